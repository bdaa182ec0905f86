"""Charts as inline SVG, coloured by the page's style sheet, and readable without a script.

``data-`` attributes have what the page's script needs for zooming and for reading values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from subak import units
from subak.reporting.charts import Axis, Block, Chart, Scale, Series, Span, scale

WIDTH, HEIGHT = 460.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 12.0, 10.0, 46.0
SLOTS = 8
"""Number of colours, dashes and markers before they repeat; see ``page.css``."""
MOST_TIPS = 24
MOST_ROWS = 16
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2", "1 2", "12 3", "4 4 1 4")


def figure(chart: Chart) -> str:
    """A chart as a ``figure`` element, followed by its values as a table.

    The title is also the text for screen readers. Tooltips show values, without a script.
    """
    x = scale(chart.x, (v for s in chart.series for v in s.x), LEFT, WIDTH - RIGHT)
    y = scale(chart.y, (v for s in chart.series for v in (*s.y, *s.low, *s.high)), HEIGHT - BOTTOM, TOP)
    lines, tips = [], []
    dodge = min(5.0, 30.0 / max(len(chart.series), 1)) if chart.x.categories else 0.0
    for i, one in enumerate(chart.series):
        shift = dodge * (i - (len(chart.series) - 1) / 2)
        named = f'class="series" data-name="{escape(one.name)}"'
        lines.append(f"<g {named}>{_line(chart, one, x, y, shift)}</g>")
        tips.append(f"<g {named}>{_tips(one, x, y, shift)}</g>")
    axes = {"x": _about(x), "y": _about(y)}
    svg = (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(chart.title)}" '
        f'data-axes="{escape(json.dumps(axes))}"><g class="back">{_grid(x, y)}</g>'
        f'<g class="plot">{_spans(chart.spans, x)}{"".join(lines)}{"".join(tips)}</g></svg>'
    )
    choice = f' data-choice="{escape(chart.choice)}"' if chart.choice else ""
    title = escape(", ".join(filter(None, (chart.title, chart.choice))))
    return f"<figure{choice}><figcaption>{title}</figcaption>{svg}{_values(chart.series, chart.x, chart.y)}</figure>"


def _about(axis: Scale) -> dict[str, object]:
    """Data for a script that redraws the chart."""
    return {"low": axis.low, "high": axis.high, "log": axis.axis.log, "named": bool(axis.axis.categories)}


def _spans(spans: Sequence[Span], x: Scale) -> str:
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


def _tips(series: Series, x: Scale, y: Scale, shift: float) -> str:
    """Points with a tooltip: all points if they are few, otherwise a selection."""
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
    """The chart's values as a table: at each x value of the series if they are few, otherwise at a selection."""
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
        exact = len(places) < MOST_ROWS
        cells = "".join(f'<td data-label="{escape(s.name)}">{_value_at(s, place, exact=exact)}</td>' for s in series)
        rows.append(f'<tr><td class="name">{escape(name)}</td>{cells}</tr>')
    return (
        f'<details class="values"><summary>Values: {escape(y.label)}</summary><div class="scroll"><table class="cards">'
        f'<thead><tr><th class="name">{escape(x.label)}</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _value_at(series: Series, place: float, *, exact: bool) -> str:
    """Value at an x position; for a curve with many points, the value at the last point up to that position."""
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
    """Legend for charts with series of these names and slots."""
    items = "".join(_key(name, slot) for name, slot in names.items())
    return f'<ul class="legend">{items}</ul>'


def _key(name: str, slot: int) -> str:
    line = f'<line class="line c{slot % SLOTS}" x1="1" y1="6" x2="33" y2="6"{_dash(slot)}/>{_marker(slot, 17, 6)}'
    svg = f'<svg viewBox="0 0 34 12" class="key" aria-hidden="true">{line}</svg>'
    return f'<li data-name="{escape(name)}">{svg}{escape(name)}</li>'


def _grid(x: Scale, y: Scale) -> str:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    out = []
    for value, text in y.ticks():
        at = y.at(value)
        out.append(f'<line class="grid" x1="{LEFT:g}" y1="{at:.1f}" x2="{right:g}" y2="{at:.1f}"/>')
        out.append(f'<text x="{LEFT - 6:g}" y="{at + 3.8:.1f}" text-anchor="end">{escape(text)}</text>')
    for value, text in x.ticks():
        at = x.at(value)
        out.append(f'<line class="tick" x1="{at:.1f}" y1="{bottom:g}" x2="{at:.1f}" y2="{bottom + 4:g}"/>')
        out.append(f'<text x="{at:.1f}" y="{bottom + 19:g}" text-anchor="middle">{escape(text)}</text>')
    middle = (TOP + bottom) / 2
    out.append(f'<line class="axis" x1="{LEFT:g}" y1="{bottom:g}" x2="{right:g}" y2="{bottom:g}"/>')
    out.append(
        f'<text class="label" x="{(LEFT + right) / 2:g}" y="{HEIGHT - 8:g}" text-anchor="middle">'
        f"{escape(x.axis.label)}</text>"
        f'<text class="label" transform="translate(11 {middle:g}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.axis.label)}</text>"
    )
    return "".join(out)


def _line(chart: Chart, series: Series, x: Scale, y: Scale, shift: float) -> str:
    points = [(x.at(a) + shift, y.at(b)) for a, b in chart.line(series)]
    if not points:
        return ""
    colour = f"c{series.slot % SLOTS}"
    coordinates = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    out = [f'<polyline class="line {colour}" points="{coordinates}"{_dash(series.slot)}/>']
    drawn = [i for i, v in enumerate(series.y) if math.isfinite(v) and math.isfinite(series.x[i])]
    places = [(x.at(series.x[i]) + shift, y.at(series.y[i])) for i in drawn]
    if len(series.low):
        out += [
            f'<line class="whisker {colour}" x1="{a:.1f}" y1="{y.at(series.low[i]):.1f}" '
            f'x2="{a:.1f}" y2="{y.at(series.high[i]):.1f}"/>'
            for i, (a, _) in zip(drawn, places, strict=True)
        ]
    if len(places) <= MOST_TIPS:
        out += [_marker(series.slot, a, b) for a, b in places]
    return "".join(out)


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


def block(shown: Block, folded: bool) -> str:
    """Charts of a section with their legend; ``folded``: all but those of the last sweep point are folded."""
    missing = f" {shown.without}" if shown.without else ""
    said = f'<p class="quiet">{escape(shown.said + missing)}</p>'
    grids = {
        sweep_point: f'<div class="charts">{"".join(map(figure, some))}</div>'
        for sweep_point, some in shown.charts.items()
    }
    if not grids:
        return said
    last = list(grids)[-1]
    closed = "".join(
        f"<details><summary>{escape(sweep_point)}</summary>{grid}</details>"
        for sweep_point, grid in grids.items()
        if folded and sweep_point != last
    )
    body = grids[last] + closed if folded else "".join(grids.values())
    return f"{said}{legend(shown.drawn)}{body}"
