"""Sweeps as curves: each metric against what is swept, one line for each scheme."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from subak import units
from subak.metrics import COMPARED, Metric, setting_of
from subak.reporting.charts import Axis, Block, Chart, Series
from subak.reporting.data import Line, View

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
"""The metrics that are drawn, where they were measured."""
LEAST = 2
"""Values that make a curve."""


def numeric_axis(view: View) -> str | None:
    """The axis that curves are drawn against: the first of numbers with the most values."""
    found: dict[str, set[float]] = {}
    for run in view.runs:
        for row in run.summary["rows"]:
            for key in run.manifest["axes"]:
                value = row["axes"].get(key)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    found.setdefault(key, set()).add(float(value))
    wide = {key: values for key, values in found.items() if len(values) >= LEAST}
    return max(wide, key=lambda key: len(wide[key])) if wide else None


def curves(view: View) -> Block:
    """The charts; empty where no number is swept."""
    axis = numeric_axis(view)
    if axis is None:
        return Block("")
    name = axis.split(".")[-1]
    combined = list(dict.fromkeys(rest for line in view.lines for rest in _others(line, axis)))
    charts: dict[str, list[Chart]] = {}
    for rest in combined:
        for metric in (m for wanted in SHOWN for m in COMPARED if m.name == wanted):
            _add(charts, view, axis, rest, metric, None)
        for up_to in _ends(view):
            metric = next(m for m in COMPARED if m.name == "slowdown_p99")
            _add(charts, view, axis, rest, metric, up_to)
    said = f"Each scheme against {name}."
    if any(row["seeds"] > 1 for run in view.runs for row in run.summary["rows"]):
        said += " Bars are the 95% confidence interval over the seeds."
    return Block(said if charts else "", charts)


def _ends(view: View) -> list[int]:
    """Where the bins of sizes end that hold the smallest and the next flows, bytes."""
    ends = {b["up_to_bytes"] for run in view.runs for row in run.summary["rows"] for b in row["sizes"]}
    return sorted(end for end in ends if end)[:2]


def _add(charts: dict[str, list[Chart]], view: View, axis: str, rest: str, metric: Metric, up_to: int | None) -> None:
    """The chart of a metric: of all flows, or of those of the bin of sizes that ends so."""
    series = [s for line in view.lines if (s := _curve(line, axis, rest, metric, up_to))]
    if not series:
        return
    name = axis.split(".")[-1]
    of = f" of flows up to {units.size(up_to)}" if up_to else ""
    log = _log(metric)
    start = 1.0 if "slowdown" in metric.name else None if log else 0.0
    y = Axis(f"{metric.title.lower()}{_unit(metric)}", log=log, start=start)
    title = ", ".join(filter(None, (rest, metric.title)))
    charts.setdefault(rest, []).append(Chart(f"{title}{of} against {name}", series, Axis(name), y))


def _others(line: Line, axis: str) -> tuple[str, ...]:
    keys = [key for key in line.run.manifest["axes"] if key != axis]
    return tuple(dict.fromkeys(setting_of(row["axes"], keys) for row in line.run.summary["rows"]))


def _unit(metric: Metric) -> str:
    for ending, unit in (("_ns", ", us"), ("_bytes", ", bytes"), ("share", ", %"), ("utilization", ", %")):
        if metric.name.endswith(ending):
            return unit
    return ""


def _curve(line: Line, axis: str, rest: str, metric: Metric, up_to: int | None) -> Series | None:
    keys = [key for key in line.run.manifest["axes"] if key != axis]
    factor = {", us": 1e-3, ", %": 100.0}.get(_unit(metric), 1.0)
    found = []
    for row in line.run.summary["rows"]:
        value, stat = row["axes"].get(axis), _metrics(row, up_to).get(metric.name)
        mine = row["scheme"] == line.scheme and setting_of(row["axes"], keys) == rest
        if mine and stat and isinstance(value, int | float):
            half = stat["ci95"] or 0.0
            found.append(
                (float(value), *(factor * v for v in (stat["mean"], stat["mean"] - half, stat["mean"] + half)))
            )
    found.sort()
    if not found or (_log(metric) and not any(y > 0 for _, y, _, _ in found)):
        return None
    # What is zero has no place on a logarithmic axis.
    found = [(x, *(ends if y > 0 or not _log(metric) else (math.nan,) * 3)) for x, *ends in found for y in ends[:1]]
    xs, ys, low, high = (list(column) for column in zip(*found, strict=True))
    least = 1.0 if "slowdown" in metric.name else min((y for y in ys if y > 0), default=0.0) / 2
    return Series(line.label, line.slot, xs, ys, [max(v, least if _log(metric) else 0.0) for v in low], high)


def _metrics(row: Mapping[str, Any], up_to: int | None) -> Mapping[str, Any]:
    if up_to is None:
        return dict(row["metrics"])
    return next((dict(b["metrics"]) for b in row["sizes"] if b["up_to_bytes"] == up_to), {})


def _log(metric: Metric) -> bool:
    return metric.name.startswith(("job_", "slowdown", "wait", "queue", "convergence_"))
