"""What an experiment measures: a value with its confidence interval, or one that is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from subak import units


@dataclass(frozen=True)
class Sample:
    """What an interval was computed from: enough to compute it again."""

    by: str
    """``mean``, ``percent``, ``median``, ``p95``, ``share``; ``own`` for a statistic of the experiment's own code."""
    sides: dict[str, list[float]]
    """``data``; ``over`` of a ratio; ``hits`` and ``count`` of a share; of ``own``, each side and the ``draws``."""
    paired: bool = False
    value: float | None = None
    """Of ``own``: what it comes to of all together."""
    low: float | None = None
    high: float | None = None
    """Of ``own``: ends of the interval that few values leave open, beyond what the draws say."""
    signed: bool = False
    """The value may lie on either side of 0."""
    of: str = "runs"
    """What was resampled."""


@dataclass(frozen=True)
class Measured:
    """A value with its 95% confidence interval, and what was resampled for it."""

    value: float
    low: float | None = None
    high: float | None = None
    """Both ``None`` where there was one thing to measure, or none."""
    count: int = 1
    of: str = "runs"
    """What was resampled: the unit that is independent of the others, such as ``runs``, ``changes``, ``networks``."""
    note: str = ""
    share: bool = False
    """A share in percent, whose interval is Clopper and Pearson's."""
    sample: Sample | None = field(default=None, repr=False, compare=False)
    """Kept beside a record, not in it."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its ends; ``None`` where nothing could be resampled."""
        if self.low is None or self.high is None or any(map(math.isnan, (self.value, self.low, self.high))):
            return None
        return self.low, self.high


Value = Measured | float | int | str | list[Any]
"""What an analysis says of one check; a list holds values again."""


def point(value: Value) -> Any:
    """The value without its interval."""
    if isinstance(value, Measured):
        return value.value
    return [point(v) for v in value] if isinstance(value, list) else value


def text(value: Value, unit: str = "") -> str:
    """The value for people: ``1.49 [1.47, 1.52] (6 runs)``."""
    if isinstance(value, list):
        parts = [f"({text(v)})" if isinstance(v, list) else _with_interval(v) for v in value]
        counted = [v for v in value if isinstance(v, Measured)]
        return _unit(", ".join(parts), unit) + (_counted(counted[0]) if counted else "")
    return _unit(_with_interval(value), unit) + (_counted(value) if isinstance(value, Measured) else "")


def _with_interval(value: Any) -> str:
    if not isinstance(value, Measured):
        return _plain(value)
    ends = "" if value.interval is None else f" [{units.number(value.interval[0])}, {units.number(value.interval[1])}]"
    return units.number(value.value) + ends


def _counted(value: Measured) -> str:
    one = value.of.removesuffix("s") if value.count == 1 else value.of
    return f" ({value.count} {one}{f', {value.note}' if value.note else ''})"


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    return str(value) if isinstance(value, bool | str) else units.number(value)


def _unit(told: str, unit: str) -> str:
    return f"{told} {unit}" if unit and told != "none" else told


def as_json(value: Any) -> Any:
    """The value as JSON holds it: what is not finite is text."""
    if isinstance(value, Measured):
        ends = None if value.interval is None else [as_json(end) for end in value.interval]
        told = {"value": as_json(value.value), "interval": ends, "count": value.count, "of": value.of}
        return told | ({"note": value.note} if value.note else {}) | ({"share": True} if value.share else {})
    if isinstance(value, list):
        return [as_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
