"""Recurrences behind Soze's bounds (appendices C and D), and one with feedback delay."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

SPAN = math.log(1000)
"""ln(alpha / beta)."""
ALPHA_BPS, K_NS = 100e9, 3e3
"""alpha, with beta of 0.1 Gb/s (equation 38); and k of section 4."""


@dataclass(frozen=True)
class _Target:
    """Target function of Soze (equation 6) with this p."""

    p_ns: float

    def delay_ns(self, share_bps: float) -> float:
        return self.p_ns * math.log(ALPHA_BPS / share_bps) / SPAN + K_NS

    def share_bps(self, delay_ns: float) -> float:
        return ALPHA_BPS * math.exp(-max(delay_ns - K_NS, 0.0) / self.p_ns * SPAN)

    def ratio(self, share_bps: float, delay_ns: float, m: float) -> float:
        """Factor of a rate/weight in an update (equation 7)."""
        return math.exp(m * math.log(self.share_bps(delay_ns) / share_bps))


def comes_together(m: float) -> bool:
    """Lemma 3.1: whether two rates/weights converge to each other at a constant delay."""
    target = _Target(20e3)
    a, b = 4e9, 5e9
    delay_ns = target.delay_ns(4.5e9)
    for _ in range(40):
        before = abs(math.log(b / a))
        a, b = a * target.ratio(a, delay_ns, m), b * target.ratio(b, delay_ns, m)
        after = abs(math.log(b / a))
        if after < 1e-9:
            return True
        if after >= before * (1 - 1e-9):
            return False
    return True


def delay_settles(p: float) -> tuple[bool, bool]:
    """Lemma 3.2 (equations 28 and 29): whether the delay converges from an error of 1%, and without overshooting.

    p is in units of dt ln(alpha / beta), with dt the time between updates.
    """
    dt_ns, load = 1e3, 100.0 / 100e9
    target = _Target(p * dt_ns * SPAN)
    end_ns = target.delay_ns(1.0 / load)
    first = 0.01 * target.p_ns / SPAN
    off, one_side, last = first, True, 0.0
    for step in range(4000):
        following = off + dt_ns * (load * target.share_bps(end_ns + off) - 1.0)
        one_side &= off * following >= 0.0 or abs(following) < 1e-6
        off = following
        if step > 3990:
            last = max(last, abs(off))
    return last < 1e-3 * first, one_side


def delayed_settles(p: Any, m: Any) -> Any:
    """Whether rates on one link converge from an error of 1% if senders receive the delay an RTT later.

    p is in units of ln(alpha / beta) RTTs; the time step is a fiftieth of an RTT. Both are arrays with one value for
    each link.
    """
    steps = 50
    share, delay = np.full(len(p), 0.01), deque([np.zeros(len(p))] * (steps + 1))
    first, last = np.zeros(len(p)), np.zeros(len(p))
    for step in range(600 * steps):
        heard = delay.popleft()
        share = share + (m / steps) * (-heard / p - share)
        delay.append(delay[-1] + (np.exp(share) - 1.0) / steps)
        if step < 20 * steps:
            first = np.maximum(first, np.abs(share))
        elif step > 580 * steps:
            last = np.maximum(last, np.abs(share))
    return last < 0.5 * first


def least_integral(m: float) -> float:
    """Lower bound of p / ln(alpha / beta) RTTs for a stable loop with a feedback delay of an RTT.

    It is sin(u) / u with u tan(u) = m; ``docs/transports/soze.md`` has the derivation.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        u = 0.5 * (low + high)
        if u * math.tan(u) < m:
            low = u
        else:
            high = u
    u = 0.5 * (low + high)
    return math.sin(u) / u
