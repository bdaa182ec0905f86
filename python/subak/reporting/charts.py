"""Line charts as inline SVG: no script, no network, coloured by the page's style sheet, so they follow its theme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subak import units

WIDTH, HEIGHT = 460.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 10.0, 46.0
Numbers = Sequence[float] | NDArray[np.float64]
SLOTS = 8
"""Colours, dashes and markers before they repeat; see ``page.css``."""
MOST_TIPS = 24
MOST_ROWS = 16
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
class Span:
    """What happened from a time on, until another if that is finite: shaded in charts over time."""

    start: float
    end: float
    said: str


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


def line_chart(
    title: str, series: Sequence[Series], x: Axis, y: Axis, *, step: bool = False, spans: Sequence[Span] = ()
) -> str:
    """A chart as a ``figure`` element with its values in a table behind it.

    ``title`` is also what a screen reader says of it. Values show where the pointer is, without a script.
    """
    x_scale = _scale(x, (v for s in series for v in s.x), LEFT, WIDTH - RIGHT)
    y_values = (v for s in series for v in (*s.y, *s.low, *s.high))
    y_scale = _scale(y, y_values, HEIGHT - BOTTOM, TOP)
    body = [_spans(spans, x_scale), _grid(x_scale, y_scale)]
    dodge = min(5.0, 30.0 / max(len(series), 1)) if x.categories else 0.0
    tips = []
    for i, one in enumerate(series):
        shift = dodge * (i - (len(series) - 1) / 2)
        body.append(_line(one, x_scale, y_scale, shift, step))
        tips.append(_tips(one, x_scale, y_scale, shift))
    svg = (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(body)}{''.join(tips)}</svg>"
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}{_values(series, x, y)}</figure>"


def _spans(spans: Sequence[Span], x: _Scale) -> str:
    out = []
    for span in spans:
        if span.start > x.high:
            continue
        a, b = x.at(span.start), x.at(span.end if math.isfinite(span.end) else x.high)
        height = HEIGHT - BOTTOM - TOP
        place = f'x="{a:.1f}" y="{TOP:g}" width="{max(b - a, 1.5):.1f}" height="{height:g}"'
        out.append(f'<g class="pt"><rect class="span" {place}/>{_tip(span.said, a, TOP + 12)}</g>')
    return "".join(out)


def _tip(said: str, x: float, y: float) -> str:
    right = x > (LEFT + WIDTH) / 2
    anchor = "end" if right else "start"
    return (
        f'<text class="tip" x="{x + (-8 if right else 8):.1f}" y="{max(y - 8, TOP + 10):.1f}" '
        f'text-anchor="{anchor}">{escape(said)}</text>'
    )


def _tips(series: Series, x: _Scale, y: _Scale, shift: float) -> str:
    """Points that tell their values when pointed at: all of few, some of many."""
    drawn = [i for i, v in enumerate(series.y) if math.isfinite(v) and math.isfinite(series.x[i])]
    out = []
    for i in drawn[:: max(1, math.ceil(len(drawn) / MOST_TIPS))]:
        a, b = x.at(series.x[i]) + shift, y.at(series.y[i])
        where = x.axis.categories[int(series.x[i])] if x.axis.categories else units.short(series.x[i])
        value = units.number(float(series.y[i]), 3) if y.axis.log else units.short(series.y[i])
        if len(series.low) and series.high[i] > series.low[i]:
            value += f" ({units.short(series.low[i])} to {units.short(series.high[i])})"
        circle = f'<circle class="hit c{series.slot % SLOTS}" cx="{a:.1f}" cy="{b:.1f}" r="7"/>'
        out.append(f'<g class="pt">{circle}{_tip(f"{series.name}: {value} at {where}", a, b)}</g>')
    return "".join(out)


def _values(series: Sequence[Series], x: Axis, y: Axis) -> str:
    """The chart as a table: at its own places where they are few, else at some of them."""
    places = sorted({float(v) for s in series for v in s.x if math.isfinite(v)})
    if not places:
        return ""
    if len(places) > MOST_ROWS:
        chosen = np.geomspace if x.log and places[0] > 0 else np.linspace
        places = [float(v) for v in chosen(places[0], places[-1], MOST_ROWS)]
    head = "".join(f"<th>{escape(s.name)}</th>" for s in series)
    rows = []
    for place in places:
        name = x.categories[int(place)] if x.categories else units.short(place)
        cells = "".join(f"<td>{_value_at(s, place, exact=len(places) < MOST_ROWS)}</td>" for s in series)
        rows.append(f'<tr><td class="name">{escape(name)}</td>{cells}</tr>')
    return (
        f'<details class="values"><summary>Values: {escape(y.label)}</summary><div class="scroll"><table>'
        f'<thead><tr><th class="name">{escape(x.label)}</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _value_at(series: Series, place: float, *, exact: bool) -> str:
    """The value at a place; of a curve that is drawn through many, the last one up to there."""
    at = -1
    for i, v in enumerate(series.x):
        if v == place or (not exact and v < place):
            at = i
    if at < 0 or not math.isfinite(series.y[at]):
        return "-"
    value = units.number(float(series.y[at]), 3)
    if len(series.low) and series.high[at] > series.low[at]:
        value += (
            f" <small>{units.number(float(series.low[at]), 3)} to {units.number(float(series.high[at]), 3)}</small>"
        )
    return value


def legend(names: Mapping[str, int]) -> str:
    """The key to charts whose series are called so and take these slots."""
    items = "".join(
        f'<li><svg viewBox="0 0 34 12" class="key" aria-hidden="true"><line class="line c{slot % SLOTS}" '
        f'x1="1" y1="6" x2="33" y2="6"{_dash(slot)}/>{_marker(slot, 17, 6)}</svg>{escape(name)}</li>'
        for name, slot in names.items()
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
    if len(chosen) < 3:
        chosen = [v for v in _linear_ticks(low, high) if v > 0]
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
        for a, b in points:
            out.append(_marker(series.slot, a, b))
    return "".join(out)


def _stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    corners = [points[0]]
    for (_, before), (a, b) in pairwise(points):
        corners += [(a, before), (a, b)]
    return corners


def _dash(slot: int) -> str:
    dash = DASHES[(slot + 3 * (slot // SLOTS)) % SLOTS]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _marker(slot: int, x: float, y: float) -> str:
    shape = (slot + slot // SLOTS) % 4
    colour = f'class="mark c{slot % SLOTS}"'
    if shape == 0:
        return f'<circle {colour} cx="{x:.1f}" cy="{y:.1f}" r="3.4"/>'
    if shape == 1:
        return f'<rect {colour} x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"/>'
    triangle, diamond = [(0, -4.2), (4, 3.2), (-4, 3.2)], [(0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)]
    path = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in (triangle if shape == 2 else diamond))
    return f'<polygon {colour} points="{path}"/>'
