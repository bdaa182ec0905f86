"""Line charts as inline SVG: no script, no network, coloured by the page's style sheet, so they follow its theme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subak import units

WIDTH, HEIGHT = 460.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 12.0, 10.0, 46.0
Numbers = Sequence[float] | NDArray[np.float64]
SLOTS = 8
"""Colours, dashes and markers before they repeat; see ``page.css``."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2", "1 2", "12 3", "4 4 1 4")


@dataclass(frozen=True)
class Series:
    """One line: where ``low`` and ``high`` are given, they are an interval about each ``y``."""

    name: str
    slot: int
    x: Numbers
    y: Numbers
    low: Numbers = field(default=())
    high: Numbers = field(default=())


@dataclass(frozen=True)
class Axis:
    """An axis; with ``categories`` the values are places in that list."""

    label: str
    log: bool = False
    categories: Sequence[str] = ()
    start: float | None = None
    """Where the axis starts, if not at the least value."""


@dataclass(frozen=True)
class _Scale:
    axis: Axis
    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.axis.log:
            value, low, high = (math.log10(max(v, 1e-300)) for v in (value, low, high))
        share = (value - low) / (high - low)
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self) -> list[tuple[float, str]]:
        if self.axis.categories:
            return [(float(i), name) for i, name in enumerate(self.axis.categories)]
        values = _log_ticks(self.low, self.high) if self.axis.log else _linear_ticks(self.low, self.high)
        return [(v, units.short(v)) for v in values]


def line_chart(title: str, series: Sequence[Series], x: Axis, y: Axis, *, step: bool = False) -> str:
    """A chart as a ``figure`` element; ``title`` is also what a screen reader says of it."""
    x_scale = _scale(x, (v for s in series for v in s.x), LEFT, WIDTH - RIGHT)
    y_values = (v for s in series for v in (*s.y, *s.low, *s.high))
    y_scale = _scale(y, y_values, HEIGHT - BOTTOM, TOP)
    body = [_grid(x_scale, y_scale)]
    dodge = 5.0 if x.categories else 0.0
    for i, one in enumerate(series):
        body.append(_line(one, x_scale, y_scale, dodge * (i - (len(series) - 1) / 2), step))
    svg = (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>"


def legend(names: Sequence[str]) -> str:
    """The key to charts whose series take the slots 0, 1, ... in the order of ``names``."""
    items = "".join(
        f'<li><svg viewBox="0 0 34 12" class="key" aria-hidden="true"><line class="line c{slot % SLOTS}" '
        f'x1="1" y1="6" x2="33" y2="6"{_dash(slot)}/>{_marker(slot, 17, 6)}</svg>{escape(name)}</li>'
        for slot, name in enumerate(names)
    )
    return f'<ul class="legend">{items}</ul>'


def _scale(axis: Axis, values: Iterable[float], begin: float, end: float) -> _Scale:
    if axis.categories:
        return _Scale(axis, -0.5, len(axis.categories) - 0.5, begin, end)
    finite = [v for v in values if math.isfinite(v) and (v > 0 or not axis.log)]
    low, high = (min(finite), max(finite)) if finite else (0.1 if axis.log else 0.0, 1.0)
    if axis.start is not None:
        low = min(low, axis.start)
    if axis.log:
        return _Scale(axis, low / 1.05, max(high * 1.05, low * 1.5), begin, end)
    room = (high - low) * 0.04 or max(abs(high) * 0.1, 0.5)
    return _Scale(axis, low if axis.start is not None else low - room, high + room, begin, end)


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
    return chosen[:: math.ceil(len(chosen) / 8)] if chosen else [low, high]


def _grid(x: _Scale, y: _Scale) -> str:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    out = []
    for value, text in y.ticks():
        at = y.at(value)
        out.append(f'<line class="grid" x1="{LEFT:g}" y1="{at:.1f}" x2="{right:g}" y2="{at:.1f}"/>')
        out.append(f'<text x="{LEFT - 6:g}" y="{at + 3.8:.1f}" text-anchor="end">{escape(text)}</text>')
    for value, text in x.ticks():
        at = x.at(value)
        out.append(f'<line class="tick" x1="{at:.1f}" y1="{bottom:g}" x2="{at:.1f}" y2="{bottom + 4:g}"/>')
        out.append(f'<text x="{at:.1f}" y="{bottom + 16:g}" text-anchor="middle">{escape(text)}</text>')
    middle = (TOP + bottom) / 2
    out.append(f'<line class="axis" x1="{LEFT:g}" y1="{bottom:g}" x2="{right:g}" y2="{bottom:g}"/>')
    out.append(
        f'<text class="label" x="{(LEFT + right) / 2:g}" y="{HEIGHT - 8:g}" text-anchor="middle">'
        f"{escape(x.axis.label)}</text>"
        f'<text class="label" transform="translate(12 {middle:g}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.axis.label)}</text>"
    )
    return "".join(out)


def _line(series: Series, x: _Scale, y: _Scale, shift: float, step: bool) -> str:
    drawn = [i for i, v in enumerate(series.y) if math.isfinite(v) and math.isfinite(series.x[i])]
    points = [(x.at(series.x[i]) + shift, y.at(series.y[i])) for i in drawn]
    if not points:
        return ""
    colour = f"c{series.slot % SLOTS}"
    path = _stairs(points) if step else points
    coordinates = " ".join(f"{a:.1f},{b:.1f}" for a, b in path)
    out = [f'<polyline class="line {colour}" points="{coordinates}"{_dash(series.slot)}/>']
    if len(series.low):
        out += [
            f'<line class="whisker {colour}" x1="{a:.1f}" y1="{y.at(series.low[i]):.1f}" '
            f'x2="{a:.1f}" y2="{y.at(series.high[i]):.1f}"/>'
            for i, (a, _) in zip(drawn, points, strict=True)
        ]
    if len(points) <= 24:
        for i, (a, b) in zip(drawn, points, strict=True):
            out.append(_marker(series.slot, a, b, f"{series.name}: {units.short(series.y[i])}"))
    return "".join(out)


def _stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    corners = [points[0]]
    for (_, before), (a, b) in pairwise(points):
        corners += [(a, before), (a, b)]
    return corners


def _dash(slot: int) -> str:
    dash = DASHES[slot % SLOTS]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _marker(slot: int, x: float, y: float, said: str = "") -> str:
    shape = slot % 4
    title = f"<title>{escape(said)}</title>" if said else ""
    colour = f'class="mark c{slot % SLOTS}"'
    if shape == 0:
        return f'<circle {colour} cx="{x:.1f}" cy="{y:.1f}" r="3.4">{title}</circle>'
    if shape == 1:
        return f'<rect {colour} x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6">{title}</rect>'
    triangle, diamond = [(0, -4.2), (4, 3.2), (-4, 3.2)], [(0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)]
    path = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in (triangle if shape == 2 else diamond))
    return f'<polygon {colour} points="{path}">{title}</polygon>'
