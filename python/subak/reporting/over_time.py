"""Charts over time: rates, fairness, queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from subak.reporting.charts import Axis, Block, Chart, Series, Span
from subak.reporting.data import Columns, View
from subak.reporting.sections import MOST_POINTS, add, beyond, block

MOST_LINES = 8
Numbers = NDArray[np.float64]
Key = tuple[int, int]


def rates(view: View) -> Block:
    """Rates over time: of each flow if they are few, otherwise their sum by scheme."""
    rows = view.rows("rate", "time_ns", "flow", "flow_id", "rate_bps")
    if not rows:
        return Block('No rates were sampled. A spec asks for them with rates = "100us" in [measure].')
    most = max(len(np.unique(r["flow"])) for r in rows.values())
    if most > MOST_LINES:
        return _rates_together(view, rows)
    said = "Rate received by each flow, headers included; the first seed."
    names: dict[str, int] = {}
    charts: dict[str, list[Chart]] = {}
    for sweep_point in view.sweep_points:
        for line in view.lines:
            trials = view.of(sweep_point, line)
            if not trials or trials[0] not in rows:
                continue
            trial = rows[trials[0]]
            series = []
            for flow in np.unique(trial["flow"]):
                mine = trial["flow"] == flow
                name = str(trial["flow_id"][mine][0] or f"flow {flow:.0f}")
                slot = names.setdefault(name, len(names))
                series.append(Series(name, slot, *thinned(trial["time_ns"][mine] / 1e9, trial["rate_bps"][mine])))
            title = " at ".join(filter(None, (line.label, sweep_point)))
            charts.setdefault(sweep_point, []).append(
                over_time(title, series, "rate, bit/s", faults(view, sweep_point))
            )
    return block(view, said + _marked(view), charts)


def _rates_together(view: View, rows: Mapping[Key, Columns]) -> Block:
    said = "Rate received by all flows together, headers included, in each sample; the mean over the seeds."
    charts: dict[str, list[Chart]] = {}
    for sweep_point in view.sweep_points:
        series = []
        for line in view.lines:
            sums = [_by_time(rows[c], "rate_bps", np.add) for c in view.of(sweep_point, line) if c in rows]
            if sums:
                series.append(Series(line.label, line.slot, *_mean_of(sums)))
        if series:
            charts[sweep_point] = [
                over_time(sweep_point or "All flows", series, "rate, bit/s", faults(view, sweep_point))
            ]
    return block(view, said + _marked(view), charts)


def fairness(view: View) -> Block:
    """Jain's index of the received rates over time."""
    rows = view.rows("rate", "time_ns", "rate_bps")
    charts: dict[str, list[Chart]] = {}
    for sweep_point in view.sweep_points:
        series = []
        for line in view.lines:
            found = [_jain(rows[c]) for c in view.of(sweep_point, line) if c in rows]
            found = [one for one in found if len(one[0])]
            if found:
                series.append(Series(line.label, line.slot, *_mean_of(found)))
        if series:
            charts[sweep_point] = [
                over_time(sweep_point or "Jain's index", series, "Jain's index", faults(view, sweep_point))
            ]
    if not charts:
        return Block("")
    said = "Jain's index of the rates received in each sample, where two flows or more run: 1 where all are equal, "
    said += "1 / n where one of n has everything. Weights do not count; the mean over the seeds that have a value."
    return block(view, said + _marked(view), charts)


def _jain(rows: Columns) -> tuple[Numbers, Numbers]:
    """Jain's index at each time with at least two running flows, of which at least one receives data."""
    times, sums = _by_time(rows, "rate_bps", np.add)
    place = np.searchsorted(times, rows["time_ns"])
    rates = np.nan_to_num(rows["rate_bps"])
    count = np.bincount(place, minlength=len(times))
    squares = np.bincount(place, rates**2, minlength=len(times))
    some = (count > 1) & (squares > 0)
    return times[some], sums[some] ** 2 / (count[some] * squares[some])


def queues(view: View) -> Block:
    """Distribution of sampled queue lengths, and the longest queue over time."""
    rows = view.rows("queue", "time_ns", "queued_bytes")
    if not rows:
        return Block('No queues were sampled. A spec asks for them with queues = "1ms" in [measure].')
    said = "Share of samples, one a link and interval over all seeds, in which more bytes than this waited; and the "
    said += "longest queue of all links at each time, the first seed."
    charts: dict[str, list[Chart]] = {}
    for sweep_point in view.sweep_points:
        series, longest = [], []
        for line in view.lines:
            trials = [rows[c] for c in view.of(sweep_point, line) if c in rows]
            length = np.concatenate([c["queued_bytes"] for c in trials]) if trials else np.zeros(0)
            if length.any():
                series += beyond(line, length, np.ones(len(length)))
                time, most = _by_time(trials[0], "queued_bytes", np.maximum)
                longest.append(Series(line.label, line.slot, *_highest(time / 1e9, most)))
        add(charts, sweep_point, series, sweep_point or "All links", "queue, bytes", "share of samples")
        if longest:
            title = ", ".join(filter(None, (sweep_point, "longest queue")))
            chart = over_time(title, longest, "longest queue, bytes", faults(view, sweep_point))
            charts.setdefault(sweep_point, []).append(chart)
    if not charts:
        return Block("Every queue was empty whenever it was sampled.")
    return block(view, said + _marked(view), charts, "always empty")


def faults(view: View, sweep_point: str) -> list[Span]:
    """Faults of a sweep point; those at the same time are combined."""
    together: dict[tuple[float, float], list[str]] = {}
    for run in view.runs:
        scene = run.scene(sweep_point)
        end = scene.get("duration_ns", 0)
        for fault in scene.get("faults", []):
            start, until = fault["from_ns"], fault["until_ns"]
            if until is not None and start <= 0 and until >= end:
                continue  # The fault is in effect from the start of the run.
            when = (start / 1e9, start / 1e9 if until is None else min(until, end) / 1e9)
            said = together.setdefault(when, [])
            if fault["text"] not in said:
                said.append(fault["text"])
    spans = []
    for (start, until), said in together.items():
        rest = f" and {len(said) - 2} more" if len(said) > 2 else ""
        spans.append(Span(start, until, "; ".join(said[:2]) + rest))
    return spans


def _marked(view: View) -> str:
    return " Faults are shaded." if any(faults(view, sweep_point) for sweep_point in view.sweep_points) else ""


def over_time(title: str, series: Sequence[Series], y: str, spans: Sequence[Span]) -> Chart:
    """A chart over time in s, ms or us, depending on its length; series and spans are in s."""
    last = max((float(one.x[-1]) for one in series if len(one.x)), default=1.0)
    factor, unit = next(((f, u) for f, u in ((1.0, "s"), (1e3, "ms")) if last * f >= 2), (1e6, "us"))
    scaled = [Series(s.name, s.slot, np.asarray(s.x) * factor, s.y) for s in series]
    shaded = [Span(s.start * factor, s.end * factor, s.said) for s in spans]
    return Chart(title, scaled, Axis(f"time, {unit}", start=0), Axis(y, start=0), spans=shaded)


def _by_time(rows: Columns, column: str, join: np.ufunc) -> tuple[Numbers, Numbers]:
    """Combines the values of each time by ``join``: their sum, or the largest."""
    times, place = np.unique(rows["time_ns"], return_inverse=True)
    joined: Numbers = np.zeros(len(times))
    join.at(joined, place, np.nan_to_num(rows[column]))
    return times, joined


def _mean_of(sums: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    times, place = np.unique(np.concatenate([time for time, _ in sums]), return_inverse=True)
    total = np.bincount(place, np.concatenate([value for _, value in sums]))
    return thinned(times / 1e9, total / np.bincount(place))


def thinned(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """At most `MOST_POINTS` points, each the mean of neighbouring ones."""
    if len(x) <= MOST_POINTS:
        return x, y
    edges = np.linspace(0, len(x), MOST_POINTS + 1).astype(int)[:-1]
    count = np.diff(edges, append=len(x))
    return np.add.reduceat(x, edges) / count, np.add.reduceat(np.nan_to_num(y), edges) / count


def _highest(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """At most `MOST_POINTS` points, each the maximum of neighbouring ones, so that peaks are kept."""
    if len(x) <= MOST_POINTS:
        return x, y
    edges = np.linspace(0, len(x), MOST_POINTS + 1).astype(int)[:-1]
    return x[edges], np.maximum.reduceat(y, edges)
