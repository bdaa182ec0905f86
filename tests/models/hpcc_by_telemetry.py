"""HPCC (Li et al., SIGCOMM 2019, algorithm 1) as a scheme in Python, written from the paper and the documentation."""

import subak


class Hpcc(subak.Scheme):
    """HPCC in Python."""

    params = {"eta": (0.95, ""), "max_stage": (5.0, "")}  # noqa: RUF012
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
        self.subflows = [Window(scheme, max(flow.rtt_ns, path.base_rtt_ns), path) for path in flow.paths]

    def on_start(self, io):
        for number in range(len(self.subflows)):
            self.pace(io, number)

    def on_ack(self, io, ack):
        if self.subflows[ack.subflow].on_ack(self.scheme, ack):
            self.pace(io, ack.subflow)

    def on_reroute(self, io, subflow, path):
        before = self.subflows[subflow]
        now = self.subflows[subflow] = Window(self.scheme, max(before.t_ns, path.base_rtt_ns), path)
        now.update_from = before.update_from
        self.pace(io, subflow)

    def pace(self, io, number):
        one = self.subflows[number]
        window = int(one.size * self.share) + self.mss - 1
        io.pace(rate=one.size * 8e9 / one.t_ns, window=window, subflow=number)


class Window:
    def __init__(self, scheme, t_ns, path):
        self.t_ns, self.path = t_ns, path.id
        self.size = self.reference = self.most = path.line_rate_bps / 8e9 * t_ns
        self.step = (1 - scheme.eta) / 100 * self.most
        self.u, self.stage, self.update_from, self.before = 1.0, 0, 0, ()

    def on_ack(self, scheme, ack):
        if ack.path_id != self.path:
            return False
        comparable = 0 < len(self.before) == len(ack.telemetry)
        if comparable:
            self.measure(ack.telemetry)
            is_new = ack.segment >= self.update_from
            if self.u >= scheme.eta or self.stage >= scheme.max_stage:
                size, stage = self.reference / (self.u / scheme.eta) + self.step, 0
            else:
                size, stage = self.reference + self.step, self.stage + 1
            self.size = min(size, self.most)
            if is_new:
                self.reference, self.stage = self.size, stage
        if ack.segment >= self.update_from:
            self.update_from = ack.next_segment
        self.before = ack.telemetry
        return comparable

    def measure(self, links):
        u = tau_ns = 0.0
        for now, before in zip(links, self.before, strict=True):
            since = now.since(before)
            if since is None:
                continue
            passed_ns, sent = since
            queued = min(now.queued_bytes, before.queued_bytes)
            of_link = queued / (now.bytes_per_ns * self.t_ns) + sent / passed_ns / now.bytes_per_ns
            if of_link > u:
                u, tau_ns = of_link, passed_ns
        if tau_ns > 0:
            share = min(tau_ns, self.t_ns) / self.t_ns
            self.u = (1 - share) * self.u + share * u
