"""Distributions in the report, each from one kind of rows; a section without rows explains how to measure them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subak import units
from subak.metrics import classes_of, of_class
from subak.reporting.charts import Axis, Block, Chart, Series
from subak.reporting.data import Columns, Line, View

MOST_POINTS = 300
MOST_NAMED = 20
Numbers = NDArray[np.float64]
SIZES = (
    ("all sizes", 0.0, np.inf),
    ("up to 10 kB", 0.0, 1e4),
    ("10 kB to 100 kB", 1e4, 1e5),
    ("100 kB to 1 MB", 1e5, 1e6),
    ("over 1 MB", 1e6, np.inf),
)
"""Classes of flow sizes, bytes: above the first number, up to the second."""
UNTIMED = "No completion times were measured: no flow has a size, or [measure] says fct = false."


def slowdown(view: View) -> Block:
    """Slowdown by size of flow, mean and 99th percentile, with intervals over the seeds."""
    found = [(s, line, row) for s in view.sweep_points for line in view.lines if (row := view.summaries(s, line))]
    found = [one for one in found if one[2]["sizes"]]
    if not found:
        return Block(UNTIMED)
    edges = sorted({(b["above_bytes"], b["up_to_bytes"]) for _, _, r in found for b in r["sizes"]}, key=lambda b: b[0])
    x = Axis("size of the flow", categories=[_bin(*edge) for edge in edges])
    charts: dict[str, list[Chart]] = {}
    names = classes_of([row for _, _, row in found])
    shown = {"all classes" if names else "": found} | {
        f"class {name}": [(s, line, mine) for s, line, row in found if (mine := of_class(row, name))] for name in names
    }
    for sweep_point in view.sweep_points:
        for metric, title in (("slowdown_mean", "mean"), ("slowdown_p99", "99th percentile")):
            for choice, some in shown.items():
                series = [
                    _by_size(line, row["sizes"], metric, [b[0] for b in edges])
                    for s, line, row in some
                    if s == sweep_point
                ]
                if any(one.y for one in series):
                    y = Axis(f"slowdown, {title}", log=True, start=1)
                    heading = ", ".join(filter(None, (sweep_point, title)))
                    charts.setdefault(sweep_point, []).append(Chart(heading, series, x, y, choice=choice))
    said = "Completion time over that of the same flow alone on the idle network; 1 is the least possible."
    if any(row["seeds"] > 1 for _, _, row in found):
        said += " Bars are the 95% confidence interval over the seeds."
    return block(view, said, charts)


def completion(view: View) -> Block:
    """Distributions of FCT and slowdown by class of sizes."""
    classes = classes_of([row for run in view.runs for row in run.summary["rows"]])
    # Results of older versions have no classes.
    columns = ("fct_ns", "slowdown", "size_bytes", "measured", *(["class"] if classes else []))
    rows = view.rows("flow", *columns)
    if not any(np.isfinite(cell["fct_ns"]).any() for cell in rows.values()):
        return Block("")
    charts: dict[str, list[Chart]] = {}
    of_classes = [(f"class {name}", 0.0, np.inf, name) for name in classes]
    for sweep_point in view.sweep_points:
        for name, above, up_to, class_ in [*((*one, None) for one in SIZES), *of_classes]:
            for column, factor, x in (("fct_ns", 1e-3, "completion time, us"), ("slowdown", 1.0, "slowdown")):
                series = []
                for line in view.lines:
                    trials = [rows[c] for c in view.of(sweep_point, line) if c in rows]
                    kept = [_of_size(trial, column, above, up_to, class_) for trial in trials]
                    series += _up_to(line, factor * np.concatenate([np.zeros(0), *kept]))
                if series:
                    y = Axis("share of flows", start=0)
                    title = ", ".join(filter(None, (sweep_point, x.partition(",")[0])))
                    chart = Chart(title, series, Axis(x, log=True), y, step=True, choice=name)
                    charts.setdefault(sweep_point, []).append(chart)
    said = "Share of the flows of a size that took so long or less, over all seeds. What did not finish keeps a curve "
    said += "below 1."
    return block(view, said, charts)


def _of_size(trial: Columns, column: str, above: float, up_to: float, class_: str | None) -> Numbers:
    """Values of the measured flows in a range of sizes, optionally of one class; NaN for unfinished flows."""
    size = trial["size_bytes"]
    kept = (size > above) & (size <= up_to) & (trial["measured"] == True)  # noqa: E712
    if class_ is not None:
        kept &= trial["class"] == class_
    mine: Numbers = trial[column][kept]
    return mine


def jobs(view: View) -> Block:
    """Distribution of job times, if there are too many jobs to list."""
    charts: dict[str, list[Chart]] = {}
    if not any(row.get("metrics", {}).get("jobs") for run in view.runs for row in run.summary["rows"]):
        return Block("")
    rows = view.rows("job", "fct_ns", "start_ns")
    for sweep_point in view.sweep_points:
        series = []
        for line in view.lines:
            trials = [rows[c] for c in view.of(sweep_point, line) if c in rows]
            warmup_ns = line.run.scene(sweep_point).get("warmup_ns", 0)
            times = np.concatenate([np.zeros(0), *(c["fct_ns"][c["start_ns"] >= warmup_ns] for c in trials)])
            done = times[np.isfinite(times)] / 1e6
            if len(done) > MOST_NAMED:
                series += beyond(line, done, np.ones(len(done)))
        add(charts, sweep_point, series, sweep_point or "All jobs", "job time, ms", "share of jobs")
    if not charts:
        return Block("")
    said = "Share of jobs that took longer than this from their start to the end of their last flow and task, over all "
    said += "seeds. Jobs that did not finish are left out."
    return block(view, said, charts)


def _by_size(line: Line, sizes: Sequence[Mapping[str, Any]], metric: str, bins: Sequence[int]) -> Series:
    found = [(bins.index(b["above_bytes"]), b["metrics"][metric]) for b in sizes if metric in b["metrics"]]
    x, stats = [float(i) for i, _ in found], [stat for _, stat in found]
    half = [stat["ci95"] or 0.0 for stat in stats]
    y = [stat["mean"] for stat in stats]
    low = [max(mean - h, 1.0) for mean, h in zip(y, half, strict=True)]
    return Series(line.label, line.slot, x, y, low, [mean + h for mean, h in zip(y, half, strict=True)])


def _bin(above: int, up_to: int | None) -> str:
    if above == 0:
        return f"to {units.size(up_to or 0)}"
    return f"to {units.size(up_to)}" if up_to else f"over {units.size(above)}"


def waits(view: View) -> Block:
    """Distribution of the queueing delay of data packets."""
    rows = view.rows("wait", "wait_ns", "packets")
    said = "Share of data packets that waited longer than this in queues, over their whole path and all seeds."
    charts: dict[str, list[Chart]] = {}
    for sweep_point in view.sweep_points:
        series = []
        for line in view.lines:
            trials = [rows[c] for c in view.of(sweep_point, line) if c in rows]
            if not trials:
                continue
            wait = np.concatenate([c["wait_ns"] for c in trials]) / 1e3
            packets = np.concatenate([c["packets"] for c in trials])
            series += beyond(line, wait, packets)
        add(charts, sweep_point, series, sweep_point or "All data packets", "waiting, us", "share of packets")
    if not charts:
        return Block("No scheme of this run sends packets that waited.")
    return block(view, said, charts, "never waited, or sends no packets")


def convergence(view: View) -> Block:
    """Distribution of convergence times after each change of the flows, by criterion."""
    rows = view.rows("convergence", "convergence_ns", "criterion")
    if not rows:
        return Block(
            "No convergence was measured. A spec whose flows stay for a while (churn, incast, permutation, steps) asks "
            "for it with convergence = {within = 0.1, share = 0.95} in [measure]."
        )
    said = "Time until the rates had settled after each change of the flows, over all seeds. What never settled before "
    said += "the next change keeps a curve below 1."
    charts: dict[str, list[Chart]] = {}
    criteria = np.unique(np.concatenate([cell["criterion"] for cell in rows.values()]))
    for sweep_point in view.sweep_points:
        for criterion in criteria:
            series = []
            for line in view.lines:
                trials = [rows[c] for c in view.of(sweep_point, line) if c in rows]
                times = [trial["convergence_ns"][trial["criterion"] == criterion] / 1e3 for trial in trials]
                series += _up_to(line, np.concatenate([np.zeros(0), *times]))
            if series:
                title = ", ".join(filter(None, (sweep_point, view.runs[0].criterion(int(criterion))))) or "All changes"
                y = Axis("share of changes", start=0)
                chart = Chart(title, series, Axis("time to settle, us", log=True), y, step=True)
                charts.setdefault(sweep_point, []).append(chart)
    if not charts:
        return Block("No change of the flows was followed by settled rates.")
    return block(view, said, charts, "never settled")


def _up_to(line: Line, values: Numbers) -> list[Series]:
    """Fraction of the values up to each value. NaN counts as never reached, so that the fraction stays below 1."""
    there = np.sort(values[np.isfinite(values)])
    if not len(there):
        return []
    share = np.arange(1, len(there) + 1) / len(values)
    kept = _some(len(there))
    value, share = there[kept], share[kept]
    return [Series(line.label, line.slot, np.concatenate([value[:1], value]), np.concatenate([[0.0], share]))]


def add(charts: dict[str, list[Chart]], sweep_point: str, series: list[Series], title: str, x: str, y: str) -> None:
    """Adds a chart of the fraction of values above each value."""
    if series:
        chart = Chart(title, series, Axis(x, log=True), Axis(f"{y} beyond", log=True), step=True)
        charts.setdefault(sweep_point, []).append(chart)


def beyond(line: Line, values: Numbers, counts: Numbers) -> list[Series]:
    """Fraction of the values above each value, as steps down to the rarest values, on logarithmic axes."""
    if not counts.sum() or not (values[counts > 0] > 0).any():
        return []
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    last = np.flatnonzero(np.diff(values, append=np.inf))  # Of equal values, only the last counts.
    at, share = values[last], 1 - np.cumsum(counts)[last] / counts.sum()
    share = np.concatenate([[1.0], share[:-1]])  # Up to each value, the curve has the fraction of the previous value.
    seen = (at > 0) & (share > 0)
    at, share = at[seen], share[seen]
    if len(at) > MOST_POINTS:
        levels = np.geomspace(share[0], share[-1], MOST_POINTS)
        kept = np.unique(np.clip(len(share) - 1 - np.searchsorted(share[::-1], levels), 0, len(share) - 1))
        at, share = at[kept], share[kept]
    return [Series(line.label, line.slot, at, share)]


def _some(count: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(np.intp))


def block(view: View, said: str, charts: Mapping[str, Sequence[Chart]], without: str = "") -> Block:
    """A block that names the schemes without a curve; ``without`` is the reason."""
    shown = Block(said, charts)
    missing = [line.label for line in view.lines if line.label not in shown.drawn] if without else []
    return Block(said, charts, f"Without a curve ({without}): {', '.join(missing)}." if missing else "")
