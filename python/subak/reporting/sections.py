"""The report's charts, each from the rows of one kind; a section without rows says how to get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subak import units
from subak.reporting.charts import Axis, Series, Span, legend, line_chart
from subak.reporting.data import Columns, Line, RunData, View
from subak.reporting.sweeps import numeric_axis

MOST_POINTS = 300
MOST_LINES = 8
MOST_HOT = 4
MOST_NAMED = 20
Numbers = NDArray[np.float64]
Key = tuple[int, int]


def slowdown(view: View) -> str:
    """Slowdown by size of flow, mean and 99th percentile, with intervals over the seeds."""
    found = [(s, line, row) for s in view.settings for line in view.lines if (row := view.summaries(s, line))]
    found = [one for one in found if one[2]["sizes"]]
    if not found:
        return _nothing("No completion times were measured. A spec asks for them with fct = true in [measure].")
    edges = sorted({(b["above_bytes"], b["up_to_bytes"]) for _, _, r in found for b in r["sizes"]}, key=lambda b: b[0])
    x = Axis("size of the flow", categories=[_bin(*edge) for edge in edges])
    charts: dict[str, list[str]] = {}
    drawn: dict[str, int] = {}
    for setting in view.settings:
        for metric, title in (("slowdown_mean", "mean"), ("slowdown_p99", "99th percentile")):
            series = [
                _by_size(line, row["sizes"], metric, [b[0] for b in edges]) for s, line, row in found if s == setting
            ]
            if series:
                y = Axis(f"slowdown, {title}", log=True, start=1)
                chart = line_chart(", ".join(filter(None, (setting, title))), series, x, y)
                charts.setdefault(setting, []).append(chart)
                drawn |= {s.name: s.slot for s in series}
    said = "Completion time over that of the same flow alone on the idle network; 1 is the least possible."
    if any(row["seeds"] > 1 for _, _, row in found):
        said += " Bars are the 95% confidence interval over the seeds."
    return _block(view, said, drawn, charts)


def jobs(view: View) -> str:
    """The distribution of jobs' times, where there are too many to be listed one by one."""
    charts: dict[str, list[str]] = {}
    drawn: dict[str, int] = {}
    if not any(row.get("metrics", {}).get("jobs") for run in view.runs for row in run.summary["rows"]):
        return ""
    rows = view.rows("job", "fct_ns", "start_ns")
    for setting in view.settings:
        series = []
        for line in view.lines:
            cells = [rows[c] for c in view.of(setting, line) if c in rows]
            warmup_ns = line.run.scene(setting).get("warmup_ns", 0)
            times = np.concatenate([np.zeros(0), *(c["fct_ns"][c["start_ns"] >= warmup_ns] for c in cells)])
            done = times[np.isfinite(times)] / 1e6
            if len(done) > MOST_NAMED:
                series += _beyond(line, done, np.ones(len(done)))
        _add(charts, drawn, setting, series, setting or "All jobs", "job time, ms", "share of jobs")
    if not charts:
        return ""
    said = "Share of jobs that took longer than this from their start to the end of their last flow and task, over all "
    said += "seeds. Jobs that did not finish are left out."
    return _block(view, said, drawn, charts)


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


def rates(view: View) -> str:
    """Rates over time: each flow where they are few, else their sum by scheme."""
    rows = view.rows("rate", "time_ns", "flow", "flow_id", "rate_bps")
    if not rows:
        return _nothing('No rates were sampled. A spec asks for them with rates = "100us" in [measure].')
    most = max(len(np.unique(r["flow"])) for r in rows.values())
    if most > MOST_LINES:
        return _rates_together(view, rows)
    said = "Rate received by each flow, headers included; the first seed."
    names: dict[str, int] = {}
    charts: dict[str, list[str]] = {}
    for setting in view.settings:
        for line in view.lines:
            cells = view.of(setting, line)
            if not cells or cells[0] not in rows:
                continue
            cell = rows[cells[0]]
            series = []
            for flow in np.unique(cell["flow"]):
                mine = cell["flow"] == flow
                name = str(cell["flow_id"][mine][0] or f"flow {flow:.0f}")
                slot = names.setdefault(name, len(names))
                series.append(Series(name, slot, *_thinned(cell["time_ns"][mine] / 1e9, cell["rate_bps"][mine])))
            title = " at ".join(filter(None, (line.label, setting)))
            charts.setdefault(setting, []).append(_over_time(title, series, "rate, bit/s", faults(view, setting)))
    return _block(view, said + _marked(view), names, charts)


def _rates_together(view: View, rows: Mapping[Key, Columns]) -> str:
    said = "Rate received by all flows together, headers included, in each sample; the mean over seeds."
    charts: dict[str, list[str]] = {}
    drawn: dict[str, int] = {}
    for setting in view.settings:
        series = []
        for line in view.lines:
            sums = [_by_time(rows[c], "rate_bps", np.add) for c in view.of(setting, line) if c in rows]
            if sums:
                series.append(Series(line.label, line.slot, *_mean_of(sums)))
        if series:
            drawn |= {s.name: s.slot for s in series}
            charts[setting] = [_over_time(setting or "All flows", series, "rate, bit/s", faults(view, setting))]
    return _block(view, said + _marked(view), drawn, charts)


def waits(view: View) -> str:
    """The distribution of the time that data packets waited in queues."""
    rows = view.rows("wait", "wait_ns", "packets")
    said = "Share of data packets that waited longer than this in queues, over their whole path and all seeds."
    charts: dict[str, list[str]] = {}
    drawn: dict[str, int] = {}
    for setting in view.settings:
        series = []
        for line in view.lines:
            cells = [rows[c] for c in view.of(setting, line) if c in rows]
            if not cells:
                continue
            wait = np.concatenate([c["wait_ns"] for c in cells]) / 1e3
            packets = np.concatenate([c["packets"] for c in cells])
            series += _beyond(line, wait, packets)
        _add(charts, drawn, setting, series, setting or "All data packets", "waiting, us", "share of packets")
    if not charts:
        return _nothing("No scheme of this run sends packets that waited.")
    return _block(view, said, drawn, charts, "never waited, or sends no packets")


def queues(view: View) -> str:
    """The distribution of sampled queue lengths, and the longest queue over time."""
    rows = view.rows("queue", "time_ns", "queued_bytes")
    if not rows:
        return _nothing('No queues were sampled. A spec asks for them with queues = "1ms" in [measure].')
    said = "Share of samples, one a link and interval over all seeds, in which more bytes than this waited; and the "
    said += "longest queue of all links at each time, the first seed."
    charts: dict[str, list[str]] = {}
    drawn: dict[str, int] = {}
    for setting in view.settings:
        series, longest = [], []
        for line in view.lines:
            cells = [rows[c] for c in view.of(setting, line) if c in rows]
            length = np.concatenate([c["queued_bytes"] for c in cells]) if cells else np.zeros(0)
            if length.any():
                series += _beyond(line, length, np.ones(len(length)))
                time, most = _by_time(cells[0], "queued_bytes", np.maximum)
                longest.append(Series(line.label, line.slot, *_highest(time / 1e9, most)))
        _add(charts, drawn, setting, series, setting or "All links", "queue, bytes", "share of samples")
        if longest:
            title = ", ".join(filter(None, (setting, "longest queue")))
            chart = _over_time(title, longest, "longest queue, bytes", faults(view, setting))
            charts.setdefault(setting, []).append(chart)
    if not charts:
        return _nothing("Every queue was empty whenever it was sampled.")
    return _block(view, said + _marked(view), drawn, charts, "always empty")


def links(run: RunData) -> str:
    """The hottest links: how busy each scheme kept them, and over time where queues were sampled."""
    view = View([run])
    rows = view.rows("link", "link", "utilization")
    if not rows:
        return _nothing("No link was measured.")
    setting = run.settings[-1]
    busy: dict[str, dict[str, float]] = {}
    for line in view.lines:
        cells = [rows[c] for c in view.of(setting, line) if c in rows]
        for cell in cells:
            for link, share in zip(cell["link"], cell["utilization"], strict=True):
                mine = busy.setdefault(str(link), {})
                mine[line.label] = mine.get(line.label, 0.0) + float(share) / len(cells)
    hottest = sorted(busy, key=lambda link: -max(busy[link].values()))[:MOST_HOT]
    labels = [line.label for line in view.lines if any(line.label in busy[link] for link in hottest)]
    head = "".join(f"<th>{escape(label)}</th>" for label in labels)
    body = "".join(
        f'<tr><td class="name">{escape(link)}</td>'
        + "".join(f"<td>{_percent(busy[link].get(label))}</td>" for label in labels)
        + "</tr>"
        for link in hottest
    )
    listed = f'<table><thead><tr><th class="name">Link</th>{head}</tr></thead><tbody>{body}</tbody></table>'
    where = f" at {setting}" if setting else ""
    said = f"Data over capacity between warm-up and duration{where}, mean over seeds: the {len(hottest)} busiest links."
    return f'<p class="quiet">{escape(said)}</p><div class="scroll">{listed}</div>{_loads(view, setting, hottest)}'


def _loads(view: View, setting: str, hottest: Sequence[str]) -> str:
    rows = view.rows("queue", "time_ns", "link", "data_bytes")
    scene = view.runs[0].scene(setting)
    networks = view.runs[0].networks
    graph = networks[scene["network"]].get("graph") if scene and networks else None
    if not rows or not graph:
        return _nothing('Their load over time is drawn where queues are sampled: queues = "100us" in [measure].')
    speeds = {link["id"]: link["bps"] for link in graph["links"]}
    charts = []
    drawn: dict[str, int] = {}
    for link in hottest:
        series = []
        for line in view.lines:
            cells = view.of(setting, line)
            if not cells or cells[0] not in rows:
                continue
            cell = rows[cells[0]]
            mine = cell["link"] == link
            time, sent = cell["time_ns"][mine] / 1e9, cell["data_bytes"][mine]
            if len(time) < 2:
                continue
            load = sent * 8 / (np.diff(time, prepend=0.0) * speeds.get(link, np.nan))
            series.append(Series(line.label, line.slot, *_thinned(time, load)))
        if series:
            drawn |= {s.name: s.slot for s in series}
            charts.append(_over_time(link, series, "load, of capacity", faults(view, setting)))
    return f'{legend(drawn)}<div class="charts">{"".join(charts)}</div>' if charts else ""


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


def convergence(view: View) -> str:
    """The distribution of the time that rates took to settle after each change of the flows, by criterion."""
    rows = view.rows("convergence", "convergence_ns", "criterion")
    if not rows:
        return _nothing(
            "No convergence was measured. A spec whose flows stay for a while (churn, incast, permutation, steps) asks "
            "for it with convergence = {within = 0.1, share = 0.95} in [measure]."
        )
    said = "Time until the rates had settled after each change of the flows, over all seeds. What never settled before "
    said += "the next change keeps a curve below 1."
    charts: dict[str, list[str]] = {}
    drawn: dict[str, int] = {}
    criteria = np.unique(np.concatenate([cell["criterion"] for cell in rows.values()]))
    for setting in view.settings:
        for criterion in criteria:
            series = []
            for line in view.lines:
                cells = [rows[c] for c in view.of(setting, line) if c in rows]
                times = [cell["convergence_ns"][cell["criterion"] == criterion] / 1e3 for cell in cells]
                series += _settled(line, np.concatenate(times) if times else np.zeros(0))
            if series:
                title = ", ".join(filter(None, (setting, view.runs[0].criterion(int(criterion))))) or "All changes"
                y = Axis("share of changes", start=0)
                chart = line_chart(title, series, Axis("time to settle, us", log=True), y, step=True)
                charts.setdefault(setting, []).append(chart)
                drawn |= {s.name: s.slot for s in series}
    if not charts:
        return _nothing("No change of the flows was followed by settled rates.")
    return _block(view, said, drawn, charts, "never settled")


def _settled(line: Line, times: Numbers) -> list[Series]:
    settled = np.sort(times[np.isfinite(times)])
    if not len(settled):
        return []
    share = np.arange(1, len(settled) + 1) / len(times)
    kept = _some(len(settled))
    time, share = settled[kept], share[kept]
    return [Series(line.label, line.slot, np.concatenate([time[:1], time]), np.concatenate([[0.0], share]))]


def faults(view: View, setting: str) -> list[Span]:
    """The faults of a setting, those at one time in one span."""
    together: dict[tuple[float, float], list[str]] = {}
    for run in view.runs:
        scene = run.scene(setting)
        end = scene.get("duration_ns", 0)
        for fault in scene.get("faults", []):
            start, until = fault["from_ns"], fault["until_ns"]
            if until is not None and start <= 0 and until >= end:
                continue  # it was always so
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
    return " Faults are shaded." if any(faults(view, setting) for setting in view.settings) else ""


def _over_time(title: str, series: Sequence[Series], y: str, spans: Sequence[Span]) -> str:
    return line_chart(title, series, Axis("time, s", start=0), Axis(y, start=0), spans=spans)


def _add(
    charts: dict[str, list[str]], drawn: dict[str, int], setting: str, series: list[Series], title: str, x: str, y: str
) -> None:
    """A chart of the share beyond each value."""
    if series:
        chart = line_chart(title, series, Axis(x, log=True), Axis(f"{y} beyond", log=True), step=True)
        charts.setdefault(setting, []).append(chart)
        drawn |= {s.name: s.slot for s in series}


def _by_time(rows: Columns, column: str, join: np.ufunc) -> tuple[Numbers, Numbers]:
    """The values of each time joined: their sum, or the largest."""
    times, place = np.unique(rows["time_ns"], return_inverse=True)
    joined: Numbers = np.zeros(len(times))
    join.at(joined, place, np.nan_to_num(rows[column]))
    return times, joined


def _mean_of(sums: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    times = np.unique(np.concatenate([time for time, _ in sums]))
    total = np.zeros(len(times))
    for time, value in sums:
        total[np.searchsorted(times, time)] += value / len(sums)
    return _thinned(times / 1e9, total)


def _beyond(line: Line, values: Numbers, counts: Numbers) -> list[Series]:
    """The share of the values beyond each of them, on a logarithmic axis: a staircase down to the rarest."""
    if not counts.sum() or not (values[counts > 0] > 0).any():
        return []
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    last = np.flatnonzero(np.diff(values, append=np.inf))  # of each run of equal values
    at, share = values[last], 1 - np.cumsum(counts)[last] / counts.sum()
    share = np.concatenate([[1.0], share[:-1]])  # from a value on, until it the share before
    seen = (at > 0) & (share > 0)
    at, share = at[seen], share[seen]
    if len(at) > MOST_POINTS:
        levels = np.geomspace(share[0], share[-1], MOST_POINTS)
        kept = np.unique(np.clip(len(share) - 1 - np.searchsorted(share[::-1], levels), 0, len(share) - 1))
        at, share = at[kept], share[kept]
    return [Series(line.label, line.slot, at, share)]


def _some(count: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(np.intp))


def _thinned(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """At most `MOST_POINTS` points, each the mean of its neighbours."""
    if len(x) <= MOST_POINTS:
        return x, y
    edges = np.linspace(0, len(x), MOST_POINTS + 1).astype(int)[:-1]
    count = np.diff(edges, append=len(x))
    return np.add.reduceat(x, edges) / count, np.add.reduceat(np.nan_to_num(y), edges) / count


def _highest(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """At most `MOST_POINTS` points, each the highest of its neighbours: peaks must not be averaged away."""
    if len(x) <= MOST_POINTS:
        return x, y
    edges = np.linspace(0, len(x), MOST_POINTS + 1).astype(int)[:-1]
    return x[edges], np.maximum.reduceat(y, edges)


def _block(
    view: View, said: str, drawn: Mapping[str, int], charts: Mapping[str, Sequence[str]], without: str = ""
) -> str:
    """Charts under the legend of what is drawn; those of a sweep lie behind a line that opens them."""
    missing = [line.label for line in view.lines if line.label not in drawn] if without else []
    if missing:
        said += f" Without a curve ({without}): {', '.join(missing)}."
    grids = {setting: f'<div class="charts">{"".join(some)}</div>' for setting, some in charts.items()}
    if len(grids) > 2 and numeric_axis(view):
        last = list(grids)[-1]
        closed = "".join(
            f"<details><summary>{escape(setting)}</summary>{grid}</details>"
            for setting, grid in grids.items()
            if setting != last
        )
        body = grids[last] + closed
    else:
        body = "".join(grids.values())
    return f'<p class="quiet">{escape(said)}</p>{legend(drawn)}{body}'


def _nothing(said: str) -> str:
    return f'<p class="quiet">{escape(said)}</p>'
