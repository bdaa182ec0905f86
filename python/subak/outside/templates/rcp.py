"""RCP: each link offers one rate to all its flows, and corrects it by spare capacity and queue.

Dukkipati, Rate Control Protocol, Stanford 2007. Each link lowers ``packet[0]`` to its rate; ``packet[1]`` is the flow's
latest RTT.
"""

import subak

RATE, RTT, SENT = 0, 1, 2
PROBE_BYTES = 64
PROBE_NS = 100_000


class Rcp(subak.Scheme):
    """RCP in Python: one rate a link, by spare capacity and queue."""

    paper = "Dukkipati, Stanford 2007"
    goal = "equal-max-min"
    settles = (0.15, 300)
    params = {
        "alpha": (0.4, ""),
        "beta": (0.2, ""),
        "initial": (0.5, ""),
        "timeslot": (10e-3, "s"),
        "min_rate": (1.2e6, ""),
    }
    header_bytes = 8
    ack_header_bytes = 4
    recovery = subak.Recovery(rto_min=0)

    def check(self):
        if not 0 < self.initial <= 1:
            raise ValueError(f"initial is {self.initial}, not from 0 to 1")

    def source(self, flow):
        return Sender(flow)

    def hop(self, port):
        return Link(self, port)

    def sink(self, flow):
        return Receiver()


def offer(header, rate):
    header[RATE] = min(header[RATE], rate) if header[RATE] > 0 else rate


class Sender(subak.Source):
    """Paces at the rate that ACKs return, and probes a path that has returned none for a while."""

    def __init__(self, flow):
        self.rtt_ns = [0] * flow.subflows
        self.heard_ns = [0] * flow.subflows
        self.probe_ns = [max(path.base_rtt_ns, PROBE_NS) for path in flow.paths]
        self.finished = False

    def on_start(self, io):
        for k, probe_ns in enumerate(self.probe_ns):
            self.request(io, k)
            io.timer(k, io.now_ns + probe_ns)

    def stamp(self, now_ns, packet, remaining_bytes):
        packet[RATE] = 0
        packet[RTT] = self.rtt_ns[packet.subflow]

    def on_ack(self, io, ack):
        self.hear(io, ack.subflow, ack[RATE], ack.rtt_ns)

    def on_loss(self, io, loss):
        k = loss.subflow
        if loss.kind == "timeout" and self.heard_ns[k] + self.probe_ns[k] <= io.now_ns:
            io.pace(rate=0, subflow=k)
            self.request(io, k)

    def on_message(self, io, message, subflow):
        self.hear(io, subflow, message[RATE], io.now_ns - int(message[SENT]))

    def on_timer(self, io, k):
        if self.finished:
            return
        due_ns = self.heard_ns[k] + self.probe_ns[k]
        if due_ns <= io.now_ns:
            self.request(io, k)
            due_ns = io.now_ns + self.probe_ns[k]
        io.timer(k, due_ns)

    def on_reroute(self, io, subflow, path):
        self.probe_ns[subflow] = max(path.base_rtt_ns, PROBE_NS)

    def on_finish(self, io):
        self.finished = True

    def request(self, io, k):
        io.send([0, self.rtt_ns[k], io.now_ns], bytes=PROBE_BYTES, subflow=k, class_="low")

    def hear(self, io, k, rate, rtt_ns):
        self.rtt_ns[k], self.heard_ns[k] = rtt_ns, io.now_ns
        if rate > 0:
            io.pace(rate=rate, subflow=k)


class Link(subak.Hop):
    """The rate that one link offers, corrected once in each interval."""

    def __init__(self, scheme, port):
        self.scheme = scheme
        self.capacity = port.capacity_bps
        self.rate = max(scheme.initial * port.capacity_bps, scheme.min_rate)
        self.rtt_ns = float(port.rtt_ns)
        self.interval_ns = min(self.rtt_ns, scheme.timeslot * 1e9)
        self.arrived_bytes = 0
        # Bytes of packets whose header has an RTT, and the sum of bytes times RTTs.
        self.told_bytes = self.told_byte_ns = 0.0

    def on_start(self, io):
        io.timer(0, io.now_ns + int(self.interval_ns))

    def on_capacity(self, port):
        self.capacity = port.capacity_bps
        self.rate = min(self.rate, port.capacity_bps)

    def on_enqueue(self, io, packet, port):
        self.see(packet.bytes, packet)

    def on_dequeue(self, io, packet, port):
        if packet.is_data:
            offer(packet, self.rate)

    def on_message(self, io, message, visit, port):
        if visit.forward:
            self.see(PROBE_BYTES, message)
            offer(message, self.rate)

    def on_timer(self, io, timer, port):
        self.correct(port.queued_bytes)
        io.timer(0, io.now_ns + max(int(self.interval_ns), 1))

    def see(self, size_bytes, header):
        self.arrived_bytes += size_bytes
        if header[RTT] > 0:
            self.told_bytes += size_bytes
            self.told_byte_ns += size_bytes * header[RTT]

    def correct(self, queued_bytes):
        interval, d = self.interval_ns, self.rtt_ns
        arrival_bps = self.arrived_bytes * 8e9 / interval
        if self.told_bytes > 0:
            seen = self.told_byte_ns / self.told_bytes
            # A smaller RTT counts for less while the rate is low, since few packets sample it.
            gain = interval / d if seen >= d else self.rate / self.capacity * seen / d * interval / d
            self.rtt_ns += min(max(gain, 0.0), 1.0) * (seen - d)
        scheme, d = self.scheme, self.rtt_ns
        drain_bps = queued_bytes * 8e9 / d
        spare = scheme.alpha * (self.capacity - arrival_bps) - scheme.beta * drain_bps
        factor = 1 + interval / d * spare / self.capacity
        least = min(scheme.min_rate, self.capacity)
        self.rate = min(max(self.rate * factor, least), self.capacity)
        self.interval_ns = max(min(d, scheme.timeslot * 1e9), 1.0)
        self.arrived_bytes = 0
        self.told_bytes = self.told_byte_ns = 0.0


class Receiver(subak.Sink):
    """Returns rates to the sender. ACKs carry no RTT: links of the reverse path do not measure it."""

    def on_data(self, io, packet):
        packet[RTT] = 0

    def on_message(self, io, message, subflow):
        io.send(message, bytes=PROBE_BYTES, subflow=subflow, class_="low")
