"""PowerTCP (Addanki, Michel and Schmid, NSDI 2022): windows follow the power of the path's links.

A header of eight numbers has room for the records of two links after the sender's own. Subak's own ``powertcp`` has
eight, and PFC.
"""

import subak

TIME, SENT, QUEUE, RATE = range(4)


class PowerTcp(subak.Scheme):
    """PowerTCP in Python, for paths of two switches at most."""

    paper = "Addanki, Michel and Schmid, NSDI 2022"
    params = {"gamma": (0.9, ""), "host_flows": (10.0, "")}
    queue = subak.Priority()
    nic = "round-robin"
    path_dependent = True
    header_bytes = 42
    ack_header_bytes = 28
    recovery = subak.Recovery(rto_min=0)

    def source(self, flow):
        return Sender(self, flow)

    def hop(self, port):
        return Link(port)


class Sender(subak.Source):
    def __init__(self, scheme, flow):
        if flow.hops > 3:
            raise ValueError(f"flow {flow.flow} crosses {flow.hops - 1} switches, and a header has two records")
        self.gamma = scheme.gamma
        self.t_ns = max(flow.rtt_ns, flow.base_rtt_ns)
        self.window = self.old = self.most = flow.line_rate_bps / 8e9 * self.t_ns
        self.beta = self.most / scheme.host_flows
        self.share, self.mss = flow.mss_bytes / flow.mtu_bytes, flow.mss_bytes
        self.power = 1.0
        self.update_from = 0
        self.before = None

    def on_start(self, io):
        self.pace(io)

    def stamp(self, now_ns, packet, remaining_bytes):
        for k in range(8):
            packet[k] = 0

    def on_ack(self, io, ack):
        now = [ack.data[k : k + 4] for k in (0, 4) if ack.data[k + RATE] > 0]
        if self.before is not None:
            self.measure(now)
            wanted = self.old / self.power + self.beta
            self.window = min(self.gamma * wanted + (1 - self.gamma) * self.window, self.most)
        if ack.segment >= self.update_from:
            self.update_from, self.old = ack.next_segment, self.window
        known, self.before = self.before is not None, now
        if known:
            self.pace(io)

    def measure(self, now):
        power = span_ns = 0.0
        for one, before in zip(now, self.before, strict=True):
            passed_ns, sent, rate = one[TIME] - before[TIME], one[SENT] - before[SENT], one[RATE]
            if passed_ns <= 0:
                continue
            current = (one[QUEUE] - before[QUEUE]) / passed_ns + sent / passed_ns
            of_link = current * (one[QUEUE] + rate * self.t_ns) / (rate * rate * self.t_ns)
            if of_link > power:
                power, span_ns = of_link, passed_ns
        if span_ns > 0:
            weight = min(span_ns, self.t_ns) / self.t_ns
            self.power = max(self.power + weight * (power - self.power), 1e-6)

    def pace(self, io):
        window = int(self.window * self.share) + self.mss - 1
        io.pace(rate=self.window * 8e9 / self.t_ns, window=window)


class Link(subak.Hop):
    """Writes its record into departing data packets: time, bytes sent, bytes queued, rate in bytes per ns."""

    def __init__(self, port):
        self.sent = 0
        self.rate = port.capacity_bps / 8e9

    def on_capacity(self, port):
        self.rate = port.capacity_bps / 8e9

    def on_dequeue(self, io, packet, port):
        self.sent += packet.bytes
        if not packet.is_data or packet.hop == 0:
            return
        at = 4 * (packet.hop - 1)
        packet[at + TIME], packet[at + SENT] = io.now_ns, self.sent
        packet[at + QUEUE], packet[at + RATE] = port.queued_bytes, self.rate
