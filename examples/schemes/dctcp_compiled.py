"""DCTCP, compiled by numba: the sender of one subflow, whose state is numbers.

Alizadeh et al., Data Center TCP, SIGCOMM 2010, equations 1 and 2.
"""

import math

import subak
from subak import compiled


class Dctcp(compiled.Scheme):
    """DCTCP, compiled: windows are cut by the share of marked packets."""

    name = "dctcp-compiled"
    paper = "Alizadeh et al., SIGCOMM 2010"
    params = {
        "k": (65, "packets"),
        "g": (1 / 16, ""),
        "initial_window": (10, "packets"),
    }
    queue = subak.Fifo(mark="k")
    recovery = subak.Recovery(rto_min="1ms")
    state = {
        "mss": float,
        "size": float,
        "threshold": float,
        "alpha": float,
        "acked": int,
        "marked": int,
        "recover": int,
        "observe_until": int,
        "recovering": bool,
    }

    def begin(self, flow, path):
        self.mss = flow.mss_bytes
        self.size = self.initial_window * flow.mss_bytes
        self.threshold = math.inf
        self.alpha = 1.0

    def on_start(self, io):
        compiled.pace(io, window=self.size)

    def on_ack(self, io, ack):
        self.acked += ack.acked_bytes
        if ack.ecn:
            self.marked += ack.acked_bytes
            if ack.segment >= self.recover:
                cut(self, 1 - self.alpha / 2, ack.next_segment)
        else:
            grow(self, ack)
        if ack.segment >= self.observe_until and self.acked > 0:
            # Equation 1, once in each window of ACKs.
            self.alpha = (1 - self.g) * self.alpha + self.g * (self.marked / self.acked)
            self.acked = 0
            self.marked = 0
            self.observe_until = ack.next_segment
        compiled.pace(io, window=self.size)

    def on_loss(self, io, loss):
        if loss.segment >= self.recover:
            cut(self, 0.5, loss.next_segment)
            self.recovering = loss.kind != compiled.TIMEOUT
        if loss.kind == compiled.TIMEOUT:
            self.size = loss.in_flight_bytes + self.mss
            self.recovering = False
        compiled.pace(io, window=self.size)


@compiled.function
def cut(self, factor, next_segment):
    self.threshold = max(self.size * factor, 2 * self.mss)
    self.size = self.threshold
    self.recover = next_segment


@compiled.function
def grow(self, ack):
    if ack.segment >= self.recover:
        self.recovering = False
    # A window that the flow does not fill does not grow.
    used = ack.in_flight_bytes + ack.acked_bytes + self.mss >= self.size
    if used and not self.recovering:
        self.size += ack.acked_bytes if self.size < self.threshold else self.mss * ack.acked_bytes / self.size
