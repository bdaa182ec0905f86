"""Charts as data: series, axes, and blocks of charts for the report's sections.

``svg`` draws them for the page, ``figures`` for papers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subak import units

Numbers = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """A line of a chart. ``low`` and ``high``, if given, are ends of the confidence interval of each ``y``."""

    name: str
    slot: int
    x: Numbers
    y: Numbers
    low: Numbers = field(default=())
    high: Numbers = field(default=())


@dataclass(frozen=True)
class Axis:
    """An axis; with ``categories`` the values are indices into that list."""

    label: str
    log: bool = False
    categories: Sequence[str] = ()
    start: float | None = None
    """Start of the axis if it is below the smallest value; by default the smallest value."""


@dataclass(frozen=True)
class Span:
    """A shaded period of a chart over time, such as a fault; without an end it is a point in time."""

    start: float
    end: float
    said: str


@dataclass(frozen=True)
class Chart:
    """A chart: series in one pair of axes."""

    title: str
    series: Sequence[Series]
    x: Axis
    y: Axis
    step: bool = False
    """Whether a value is constant until the next one."""
    spans: Sequence[Span] = ()
    choice: str = ""
    """Distinction of the chart from others of its title, such as a class of flow sizes."""

    def line(self, series: Series) -> list[tuple[float, float]]:
        """The drawable points of a series; for a step function, with its corners."""
        points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
        if not self.step or not points:
            return points
        corners = [points[0]]
        for (_, before), (a, b) in pairwise(points):
            corners += [(a, before), (a, b)]
        return corners


@dataclass(frozen=True)
class Block:
    """Content of a section: a sentence, and charts by sweep point."""

    said: str
    charts: Mapping[str, Sequence[Chart]] = field(default_factory=dict)
    without: str = ""
    """Reason why a scheme may have no curve."""

    @property
    def drawn(self) -> dict[str, int]:
        """Names of all series, with their colour slots."""
        every = (chart for charts in self.charts.values() for chart in charts)
        return {series.name: series.slot for chart in every for series in chart.series}

    def __bool__(self) -> bool:
        return bool(self.said)


@dataclass(frozen=True)
class Scale:
    """Scale: maps values from ``low`` to ``high`` to positions from ``begin`` to ``end``."""

    axis: Axis
    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Position of a value; a value beyond an end has the position of that end."""
        low, high = self.low, self.high
        if self.axis.log:
            value, low, high = (math.log10(max(v, 1e-300)) for v in (value, low, high))
        share = (value - low) / (high - low)
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self) -> list[tuple[float, str]]:
        """Labelled values of the axis, with their labels."""
        if self.axis.categories:
            return [(float(i), name) for i, name in enumerate(self.axis.categories)]
        values = _log_ticks(self.low, self.high) if self.axis.log else _linear_ticks(self.low, self.high)
        return [(v, units.short(v)) for v in values]


def scale(axis: Axis, values: Iterable[float], begin: float, end: float) -> Scale:
    """A scale for all ``values``, with a margin."""
    if axis.categories:
        return Scale(axis, -0.5, len(axis.categories) - 0.5, begin, end)
    finite = [v for v in values if math.isfinite(v) and (v > 0 or not axis.log)]
    low, high = (min(finite), max(finite)) if finite else (0.1 if axis.log else 0.0, 1.0)
    if axis.start is not None:
        low = min(low, axis.start)
    if axis.log:
        return Scale(axis, low / 1.05, max(high * 1.05, low * 1.5), begin, end)
    room = (high - low) * 0.04 or max(abs(high) * 0.1, 0.5)
    return Scale(axis, low if axis.start is not None else low - room, high + room, begin, end)


def _linear_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    within = [v for d in decades for m in (1, 2, 5) if low <= (v := m * 10.0**d) <= high]
    whole = [v for v in within if abs(math.log10(v) - round(math.log10(v))) < 1e-9]
    chosen = whole if len(whole) >= 3 else within
    if len(chosen) < 3:
        chosen = [v for v in _linear_ticks(low, high) if v > 0]
    return chosen[:: math.ceil(len(chosen) / 8)] if chosen else [low, high]
