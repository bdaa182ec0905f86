"""Sums of the weights of an application's flows over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ROUNDING = 1e-6
"""Relative tolerance of a budget, for rounding errors of logged weights."""
UNIT = 2**-16
"""Programs set weights on hosts in multiples of this: a flow's weight may be half of it more than it should be."""

EXACT = 1 << 1074
"""Every float is a whole number of the inverse of this."""

FiveTuple = tuple[str, str, int, int, str]
"""Source, destination, source port, destination port, protocol."""


@dataclass(frozen=True)
class Setting:
    """A row of a log: the weight of a flow from ``time_ns`` on."""

    time_ns: int
    flow: FiveTuple
    weight: float


@dataclass(frozen=True)
class Step:
    """The sum of the weights, constant from ``from_ns`` to ``until_ns``, and the number of flows."""

    from_ns: int
    until_ns: int
    total: float
    flows: int

    def exceeds(self, budget: float) -> bool:
        """Whether the sum exceeds the budget by more than rounding errors."""
        return self.total > (budget * (1 + ROUNDING) + self.flows * UNIT / 2 if budget else 0.0)


def steps(settings: Iterable[Setting], end_ns: int) -> Iterator[Step]:
    """The sums up to ``end_ns``. Changes at the same time count together."""
    # An exact running sum: to add all weights at every row takes hours for a million rows.
    weights: dict[FiveTuple, int] = {}
    total = 0
    ordered = sorted(settings, key=lambda one: one.time_ns)
    for at, setting in enumerate(ordered):
        total -= weights.pop(setting.flow, 0)
        if setting.weight > 0:
            weights[setting.flow] = _exact(setting.weight)
            total += weights[setting.flow]
        until_ns = ordered[at + 1].time_ns if at + 1 < len(ordered) else end_ns
        if until_ns > setting.time_ns or at + 1 == len(ordered):
            yield Step(setting.time_ns, until_ns, total / EXACT, len(weights))


def _exact(weight: float) -> int:
    """A finite weight in units of 1 / ``EXACT``."""
    numerator, denominator = weight.as_integer_ratio()
    return numerator * (EXACT // denominator)
