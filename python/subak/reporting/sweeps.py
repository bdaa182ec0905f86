"""Sweeps as curves: each metric by the swept value, one line per scheme."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from subak import units
from subak.errors import InputError
from subak.metrics import COMPARED, Metric, classes_of, of_class
from subak.reporting.charts import Axis, Block, Chart, Series
from subak.reporting.data import Line, RunData, View
from subak.swept import LEAST, Point, axes, find, label

SHOWN = (
    "job_time_mean_ns",
    "job_slowdown_mean",
    "slowdown_mean",
    "slowdown_p99",
    "wait_p99_ns",
    "queue_p99_bytes",
    "utilization",
    "converged_share",
    "convergence_p50_ns",
)
"""Metrics that are drawn if they were measured."""
WIDE = 30.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""


@dataclass(frozen=True)
class Curve:
    """A line of a chart: a scheme of a run, and its other swept values."""

    run: RunData
    name: str
    slot: int
    points: list[Point]


def numeric_axis(view: View) -> str | None:
    """The x axis: the numeric key of sweep points with the most values, otherwise a parameter of schemes."""
    found = _axes(view)
    return found[0] if found else None


def _axes(view: View) -> list[str]:
    """All possible x axes: numeric keys of sweep points first, then parameters of schemes."""
    found = axes([point for run in view.runs for point in run.points])
    return sorted(found, key=lambda key: key.startswith("params."))


def curves(view: View, against: str | None = None, split: str | None = None) -> Block:
    """The charts; empty if no number is swept.

    The x axis is each swept number, or only the key ``against``; values of ``split`` become curves of one chart.
    """
    every = [point for run in view.runs for point in run.points]
    wanted = [find(against, every, "against")] if against else _axes(view)
    key = find(split, every, "curves", numeric=False) if split else None
    if key is not None and wanted == [key]:
        raise InputError(None, "curves", f'"{key}" is the axis already', "choose another of the swept keys")
    wanted = [axis for axis in wanted if axis != key]
    if not wanted:
        return Block("")
    charts: dict[str, list[Chart]] = {}
    for axis in wanted:
        _charts(charts, view, axis, key)
    said = f"Each scheme against {_listed([axis.split('.')[-1] for axis in wanted])}."
    if any(point.row["seeds"] > 1 for point in every):
        said += " Bars are the 95% confidence interval over the seeds."
    return Block(said if charts else "", charts)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _charts(charts: dict[str, list[Chart]], view: View, axis: str, split: str | None) -> None:
    sweep_points = [key for run in view.runs for key in run.manifest["axes"] if key not in (axis, split)]
    sweep_points = list(dict.fromkeys(sweep_points))
    has_axis = [point for run in view.runs for point in run.points if axis in point.numbers]
    for rest in dict.fromkeys(point.said(sweep_points) for point in has_axis):
        drawn = _curves(view, axis, split, sweep_points, rest)
        for metric in (m for wanted in SHOWN for m in COMPARED if m.name == wanted):
            _add(charts, drawn, axis, rest, metric, None)
        for up_to in _ends(view):
            metric = next(m for m in COMPARED if m.name == "slowdown_p99")
            _add(charts, drawn, axis, rest, metric, up_to)
        for name in classes_of([row for run in view.runs for row in run.summary["rows"]]):
            metric = next(m for m in COMPARED if m.name == "slowdown_p99")
            _add(charts, drawn, axis, rest, metric, None, name)


def _curves(view: View, axis: str, split: str | None, sweep_points: Sequence[str], rest: str) -> list[Curve]:
    """Lines of the charts of sweep point ``rest``: one per scheme and combination of parameters other than the axis."""
    slots = {line.label: line.slot for line in view.lines}
    found: dict[str, Curve] = {}
    for line in view.lines:
        for point in line.run.points:
            if point.row["scheme"] != line.scheme or point.said(sweep_points) != rest:
                continue
            name = _name(line, point, axis, split)
            slot = slots.setdefault(name, len(set(slots.values())))
            found.setdefault(name, Curve(line.run, name, slot, [])).points.append(point)
    return list(found.values())


def _ends(view: View) -> list[int]:
    """Upper ends, bytes, of the two bins with the smallest flows."""
    ends = {b["up_to_bytes"] for run in view.runs for row in run.summary["rows"] for b in row["sizes"]}
    return sorted(end for end in ends if end)[:2]


def _name(line: Line, point: Point, axis: str, split: str | None) -> str:
    """Name of a line: the scheme without the parameter of the axis; with ``split``, also the value of that key."""
    own = [key for key in point.values if key.startswith("params.") and key not in (axis, split)]
    if split not in point.values and not (axis in point.values and axis.startswith("params.")):
        return line.label
    shown = line.run.shown(line.scheme)
    base = line.run.shown(point.scheme) + line.label.removeprefix(shown)
    return ", ".join(filter(None, (base, point.said(own), point.said([split]) if split else "")))


def _add(
    charts: dict[str, list[Chart]],
    drawn: Sequence[Curve],
    axis: str,
    rest: str,
    metric: Metric,
    up_to: int | None,
    class_: str | None = None,
) -> None:
    """Adds the chart of a metric, for all flows or for those of the size bin with this upper end, or of one class."""
    every = [point for curve in drawn for point in curve.points]
    ends = [point.numbers[axis] for point in every if axis in point.numbers]
    series = [s for curve in drawn if (s := _series(curve, axis, (min(ends), max(ends)), metric, up_to, class_))]
    if not any(len(set(one.x)) >= LEAST for one in series):
        return
    name = axis.split(".")[-1]
    of = f" of flows up to {units.size(up_to)}" if up_to else f" of class {class_}" if class_ else ""
    log = _log(metric)
    start = 1.0 if "slowdown" in metric.name else None if log else 0.0
    y = Axis(f"{metric.title.lower()}{_unit(metric)}", log=log, start=start)
    x = Axis(label(axis, every), log=min(ends) > 0 and max(ends) >= WIDE * min(ends))
    title = ", ".join(filter(None, (rest, metric.title)))
    charts.setdefault(rest, []).append(Chart(f"{title}{of} against {name}", series, x, y))


def _unit(metric: Metric) -> str:
    for ending, unit in (("_ns", ", us"), ("_bytes", ", bytes"), ("share", ", %"), ("utilization", ", %")):
        if metric.name.endswith(ending):
            return unit
    return ""


def _series(
    curve: Curve, axis: str, ends: tuple[float, float], metric: Metric, up_to: int | None, class_: str | None
) -> Series | None:
    factor = {", us": 1e-3, ", %": 100.0}.get(_unit(metric), 1.0)
    found = []
    for point in curve.points:
        stat = _metrics(point.row, up_to, class_).get(metric.name)
        # A scheme without the parameter is a horizontal line.
        places = [point.numbers[axis]] if axis in point.numbers else list(ends) if axis.startswith("params.") else []
        if stat:
            half = stat["ci95"] or 0.0
            mean = stat["mean"]
            found += [(x, *(factor * v for v in (mean, mean - half, mean + half))) for x in places]
    found.sort()
    if not found or (_log(metric) and not any(y > 0 for _, y, _, _ in found)):
        return None
    # A logarithmic axis has no position for 0.
    found = [(x, *(ends if y > 0 or not _log(metric) else (math.nan,) * 3)) for x, *ends in found for y in ends[:1]]
    xs, ys, low, high = (list(column) for column in zip(*found, strict=True))
    least = 1.0 if "slowdown" in metric.name else min((y for y in ys if y > 0), default=0.0) / 2
    return Series(curve.name, curve.slot, xs, ys, [max(v, least if _log(metric) else 0.0) for v in low], high)


def _metrics(row: Mapping[str, Any], up_to: int | None, class_: str | None) -> Mapping[str, Any]:
    if class_ is not None:
        return dict((of_class(row, class_) or {"metrics": {}})["metrics"])
    if up_to is None:
        return dict(row["metrics"])
    return next((dict(b["metrics"]) for b in row["sizes"] if b["up_to_bytes"] == up_to), {})


def _log(metric: Metric) -> bool:
    return metric.name.startswith(("job_", "slowdown", "wait", "queue", "convergence_"))
