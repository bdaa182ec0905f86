"""Payments for weight above an application's budget (Soze, section 3.4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from subak.policy.sums import ROUNDING, Step

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Unpaid:
    """From ``from_ns`` to ``until_ns``, payments of the last span exceeded the limit; the largest was ``paid``."""

    from_ns: int
    until_ns: int
    paid: float


def unpaid(steps: Sequence[Step], budget: float, price: float, pays: float, span_ns: int) -> list[Unpaid]:
    """Times of weight above the budget at which the payments of the last ``span_ns`` exceed ``pays``.

    ``steps`` are those above the budget, in order. A weight of 1 above the budget costs ``price`` per second.
    """
    edges = [edge for step in steps for edge in (step.from_ns, step.until_ns)]
    # Payments up to each edge; between two edges they are linear.
    sums = [0.0]
    for step in steps:
        cost = (step.total - budget) * (step.until_ns - step.from_ns) * price / SECOND_NS
        sums += [sums[-1] + cost, sums[-1] + cost]
    sums.pop()

    def paid_until(time_ns: float) -> float:
        at = bisect_right(edges, time_ns)
        if at in (0, len(edges)):
            return 0.0 if at == 0 else sums[-1]
        first, last = edges[at - 1], edges[at]
        return sums[at - 1] + (sums[at] - sums[at - 1]) * (time_ns - first) / (last - first)

    found: list[Unpaid] = []
    for step in steps:
        inner = edges[bisect_right(edges, step.from_ns - span_ns) : bisect_left(edges, step.until_ns - span_ns)]
        times = [step.from_ns, *(edge + span_ns for edge in inner), step.until_ns]
        costs = [paid_until(time_ns) - paid_until(time_ns - span_ns) for time_ns in times]
        for k in range(len(times) - 1):
            span = _above(times[k], times[k + 1], costs[k], costs[k + 1], pays)
            if span is None:
                continue
            if found and found[-1].until_ns == span.from_ns:
                span = Unpaid(found[-1].from_ns, span.until_ns, max(found.pop().paid, span.paid))
            found.append(span)
    return found


def _above(from_ns: int, until_ns: int, first: float, last: float, pays: float) -> Unpaid | None:
    """The part of a time in which payments, linear in between, exceed the limit."""
    if max(first, last) <= pays * (1 + ROUNDING) or from_ns == until_ns:
        return None
    if min(first, last) < pays:
        crossing_ns = from_ns + round((until_ns - from_ns) * (pays - first) / (last - first))
        from_ns, until_ns = (crossing_ns, until_ns) if last > first else (from_ns, crossing_ns)
    return Unpaid(from_ns, until_ns, max(first, last)) if from_ns < until_ns else None
