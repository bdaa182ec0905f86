"""DCTCP: links mark packets, and senders cut their windows by the fraction of marked packets.

Alizadeh et al., Data Center TCP, SIGCOMM 2010, equations 1 and 2.
"""

import math

import subak


class Dctcp(subak.Scheme):
    """DCTCP in Python: windows are cut by the share of marked packets."""

    paper = "Alizadeh et al., SIGCOMM 2010"
    # Default and unit of each parameter. A spec sets them: params = {k = [20, 65]}.
    params = {
        "k": (65, "packets"),
        "g": (1 / 16, ""),
        "initial_window": (10, "packets"),
    }
    # Links mark packets if the queue has k packets or more, at 10 Gb/s: k is scaled by
    # the link's capacity.
    queue = subak.Fifo(mark="k")
    recovery = subak.Recovery(rto_min="1ms")

    def source(self, flow):
        return Sender(self, flow)


class Sender(subak.Source):
    """The sender of one flow: a window for each of its subflows."""

    def __init__(self, scheme, flow):
        self.g = scheme.g
        self.windows = [Window(flow.mss_bytes, scheme.initial_window) for _ in flow.paths]

    def on_start(self, io):
        for subflow, w in enumerate(self.windows):
            io.pace(window=w.size, subflow=subflow)

    def on_ack(self, io, ack):
        w = self.windows[ack.subflow]
        w.acked += ack.acked_bytes
        if ack.ecn:
            w.marked += ack.acked_bytes
            if ack.segment >= w.recover:
                w.cut(1 - w.alpha / 2, ack.next_segment)
        else:
            w.grow(ack)
        if ack.segment >= w.observe_until and w.acked > 0:
            # Equation 1, once in each window of ACKs.
            w.alpha = (1 - self.g) * w.alpha + self.g * (w.marked / w.acked)
            w.acked = w.marked = 0
            w.observe_until = ack.next_segment
        io.pace(window=w.size, subflow=ack.subflow)

    def on_loss(self, io, loss):
        w = self.windows[loss.subflow]
        if loss.segment >= w.recover:
            w.cut(0.5, loss.next_segment)
            w.recovering = loss.kind != "timeout"
        if loss.kind == "timeout":
            w.size = loss.in_flight_bytes + w.mss
            w.recovering = False
        io.pace(window=w.size, subflow=loss.subflow)


class Window:
    """A congestion window in bytes of payload: slow start, then one segment more for each window."""

    def __init__(self, mss_bytes, initial):
        self.mss = mss_bytes
        self.size = initial * mss_bytes
        self.threshold = math.inf
        self.recovering = False
        # First segment sent after the last cut: losses and marks of earlier segments cause no further cut.
        self.recover = 0
        self.alpha = 1.0
        self.acked = self.marked = self.observe_until = 0

    def cut(self, factor, next_segment):
        self.size = self.threshold = max(self.size * factor, 2 * self.mss)
        self.recover = next_segment

    def grow(self, ack):
        if ack.segment >= self.recover:
            self.recovering = False
        # A window that the flow does not fill does not grow.
        used = ack.in_flight_bytes + ack.acked_bytes + self.mss >= self.size
        if used and not self.recovering:
            slow_start = self.size < self.threshold
            self.size += ack.acked_bytes if slow_start else self.mss * ack.acked_bytes / self.size
