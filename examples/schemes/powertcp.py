"""PowerTCP (Addanki, Michel and Schmid, NSDI 2022): windows follow the power of the path's links."""

import subak


class PowerTcp(subak.Scheme):
    """PowerTCP in Python, equal to Subak's own."""

    paper = "Addanki, Michel and Schmid, NSDI 2022"
    params = {"gamma": (0.9, ""), "host_flows": (10.0, "")}
    queue = subak.Priority()
    hop = subak.Telemetry()
    lossless = subak.Pfc()
    nic = "round-robin"
    path_dependent = True
    header_bytes = 42
    ack_header_bytes = 28
    recovery = subak.Recovery(reorder=None, rto_min=0, probe=False, go_back=True)

    def source(self, flow):
        return Sender(self, flow)


class Sender(subak.Source):
    def __init__(self, scheme, flow):
        self.scheme, self.mss = scheme, flow.mss_bytes
        self.share = flow.mss_bytes / flow.mtu_bytes
        self.subflows = [Subflow(scheme, flow.rtt_ns, path) for path in flow.paths]

    def on_start(self, io):
        for number in range(len(self.subflows)):
            self.pace(io, number)

    def on_ack(self, io, ack):
        if self.subflows[ack.subflow].on_ack(self.scheme.gamma, ack):
            self.pace(io, ack.subflow)

    def on_reroute(self, io, subflow, path):
        left = self.subflows[subflow]
        self.subflows[subflow] = Subflow(self.scheme, left.t_ns, path, left.update_from)
        self.pace(io, subflow)

    def pace(self, io, number):
        one = self.subflows[number]
        window = int(one.window * self.share) + self.mss - 1
        io.pace(rate=one.window * 8e9 / one.t_ns, window=window, subflow=number)


class Subflow:
    def __init__(self, scheme, t_ns, path, update_from=0):
        self.t_ns = max(t_ns, path.base_rtt_ns)
        self.window = self.old = self.most = path.line_rate_bps / 8e9 * self.t_ns
        self.beta = self.most / scheme.host_flows
        self.power = 1.0
        self.update_from = update_from
        self.path, self.before = path.id, ()

    def on_ack(self, gamma, ack):
        if ack.path_id != self.path:
            return False
        comparable = 0 < len(self.before) == len(ack.telemetry)
        if comparable:
            self.measure(ack.telemetry)
            self.window = min(gamma * (self.old / self.power + self.beta) + (1 - gamma) * self.window, self.most)
        if ack.segment >= self.update_from:
            self.update_from, self.old = ack.next_segment, self.window
        self.before = ack.telemetry
        return comparable

    def measure(self, links):
        power = span_ns = 0.0
        for now, before in zip(links, self.before, strict=True):
            since = now.since(before)
            if since is None:
                continue
            passed_ns, sent = since
            current = (now.queued_bytes - before.queued_bytes) / passed_ns + sent / passed_ns
            rate = now.bytes_per_ns
            of_link = current * (now.queued_bytes + rate * self.t_ns) / (rate * rate * self.t_ns)
            if of_link > power:
                power, span_ns = of_link, passed_ns
        if span_ns > 0:
            weight = min(span_ns, self.t_ns) / self.t_ns
            self.power = max(self.power + weight * (power - self.power), 1e-6)
