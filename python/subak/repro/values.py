"""Measured values of an experiment: exact, or with a confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from subak import units


@dataclass(frozen=True)
class Sample:
    """Data from which an interval was computed, enough to recompute it."""

    by: str
    """Statistic: ``mean``, ``percent``, ``median``, ``p95``, ``share``, or ``own`` for an experiment's own code."""
    sides: dict[str, list[float]]
    """``data``; ``over`` of a ratio; ``hits`` and ``count`` of a share; of ``own``, each side and the ``draws``."""
    paired: bool = False
    value: float | None = None
    """For ``own``: value of the statistic on all data."""
    low: float | None = None
    high: float | None = None
    """For ``own``: end of the interval if it exceeds the bootstrap samples, as for few values."""
    signed: bool = False
    """Whether the value may be negative, such as a difference."""
    of: str = "runs"
    """Name of the resampled units, such as ``runs``."""


@dataclass(frozen=True)
class Measured:
    """A value with its 95% confidence interval, and the resampled units."""

    value: float
    low: float | None = None
    high: float | None = None
    """Upper end; both ends are ``None`` if there was at most one unit."""
    count: int = 1
    of: str = "runs"
    """The independent units that were resampled, such as ``runs``, ``changes``, ``networks``."""
    note: str = ""
    share: bool = False
    """Whether the value is a percentage with Clopper and Pearson's interval."""
    sample: Sample | None = field(default=None, repr=False, compare=False)
    """Data of the interval, stored in a file beside the record."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Ends of the interval; ``None`` if nothing could be resampled."""
        if self.low is None or self.high is None or any(map(math.isnan, (self.value, self.low, self.high))):
            return None
        return self.low, self.high


Value = Measured | float | int | str | list[Any]
"""Value that an analysis computes for one check; a list contains such values."""


def point(value: Value) -> Any:
    """The value without its interval."""
    if isinstance(value, Measured):
        return value.value
    return [point(v) for v in value] if isinstance(value, list) else value


def text(value: Value, unit: str = "") -> str:
    """The value as text: ``1.49 [1.47, 1.52] (6 runs)``."""
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
    """The value as JSON, with infinite numbers and NaN as text."""
    if isinstance(value, Measured):
        ends = None if value.interval is None else [as_json(end) for end in value.interval]
        told = {"value": as_json(value.value), "interval": ends, "count": value.count, "of": value.of}
        return told | ({"note": value.note} if value.note else {}) | ({"share": True} if value.share else {})
    if isinstance(value, list):
        return [as_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
