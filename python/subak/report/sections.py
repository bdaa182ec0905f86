"""The report's charts, each from the rows of one kind; a section without rows says how to get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subak import units
from subak.report.charts import Axis, Series, legend, line_chart
from subak.report.data import Columns, RunData

MOST_POINTS = 300
MOST_LINES = 8
Numbers = NDArray[np.float64]


def slowdown(run: RunData) -> str:
    """Slowdown by size of flow, mean and 99th percentile, with intervals over the seeds."""
    rows = [row for row in run.summary["rows"] if row["sizes"]]
    if not rows:
        return _nothing("No completion times were measured. A spec asks for them with fct = true in [measure].")
    bins = sorted({(b["above_bytes"], b["up_to_bytes"]) for row in rows for b in row["sizes"]}, key=lambda b: b[0])
    x = Axis("size of the flow", categories=[_bin(*edges) for edges in bins])
    charts = []
    for setting in run.settings:
        for metric, title in (("slowdown_mean", "mean"), ("slowdown_p99", "99th percentile")):
            series = []
            for slot, scheme in enumerate(run.schemes):
                sizes = [r["sizes"] for r in rows if r["scheme"] == scheme and run.setting(r["axes"]) == setting]
                if sizes:
                    series.append(_by_size(scheme, slot, sizes[0], metric, [b[0] for b in bins]))
            y = Axis(f"slowdown, {title}", log=True, start=1)
            charts.append(line_chart(", ".join(filter(None, (setting, title))), series, x, y))
    said = "Completion time over that of the same flow alone on the idle network; 1 is the least possible. "
    said += "Bars are the 95% confidence interval over the seeds."
    return _block(said, run.schemes, charts)


def _by_size(scheme: str, slot: int, sizes: Sequence[Mapping[str, Any]], metric: str, bins: Sequence[int]) -> Series:
    found = [(bins.index(b["above_bytes"]), b["metrics"][metric]) for b in sizes if metric in b["metrics"]]
    x, stats = [float(i) for i, _ in found], [stat for _, stat in found]
    half = [stat["ci95"] or 0.0 for stat in stats]
    y = [stat["mean"] for stat in stats]
    low = [max(mean - h, 1.0) for mean, h in zip(y, half, strict=True)]
    return Series(scheme, slot, x, y, low, [mean + h for mean, h in zip(y, half, strict=True)])


def _bin(above: int, up_to: int | None) -> str:
    if above == 0:
        return f"to {units.size(up_to or 0)}"
    return f"to {units.size(up_to)}" if up_to else f"over {units.size(above)}"


def rates(run: RunData) -> str:
    """Rates over time: each flow where they are few, else their sum by scheme."""
    rows = run.rows("rate", "time_ns", "flow", "flow_id", "rate_bps")
    if not rows:
        return _nothing('No rates were sampled. A spec asks for them with rates = "100us" in [measure].')
    most = max(len(np.unique(r["flow"])) for r in rows.values())
    if most > MOST_LINES:
        return _rates_together(run, rows)
    said = "Rate received by each flow, headers included; the first seed."
    names: dict[str, int] = {}
    charts = []
    for setting in run.settings:
        for scheme in run.schemes:
            cells = run.of(setting, scheme)
            if not cells or cells[0].number not in rows:
                continue
            cell = rows[cells[0].number]
            series = []
            for flow in np.unique(cell["flow"]):
                mine = cell["flow"] == flow
                name = str(cell["flow_id"][mine][0] or f"flow {flow:.0f}")
                slot = names.setdefault(name, len(names))
                time, rate = _thinned(cell["time_ns"][mine] / 1e9, cell["rate_bps"][mine])
                series.append(Series(name, slot, time, rate))
            title = " at ".join(filter(None, (scheme, setting)))
            charts.append(line_chart(title, series, Axis("time, s", start=0), Axis("rate, bit/s", start=0)))
    return _block(said, list(names), charts)


def _rates_together(run: RunData, rows: Mapping[int, Columns]) -> str:
    said = "Rate received by all flows together, headers included, in each sample; the mean over seeds."
    charts = []
    for setting in run.settings:
        series = []
        for slot, scheme in enumerate(run.schemes):
            sums = [_sum_by_time(rows[c.number]) for c in run.of(setting, scheme) if c.number in rows]
            if not sums:
                continue
            times = np.unique(np.concatenate([time for time, _ in sums]))
            total = np.zeros(len(times))
            for time, rate in sums:
                total[np.searchsorted(times, time)] += rate / len(sums)
            series.append(Series(scheme, slot, *_thinned(times / 1e9, total)))
        charts.append(
            line_chart(setting or "All flows", series, Axis("time, s", start=0), Axis("rate, bit/s", start=0))
        )
    return _block(said, run.schemes, charts)


def waits(run: RunData) -> str:
    """The distribution of the time that data packets waited in queues."""
    rows = run.rows("wait", "wait_ns", "packets")
    said = "Time that data packets waited in queues over their whole path, over all seeds. Without a curve: no packets."
    charts = []
    for setting in run.settings:
        series = []
        for slot, scheme in enumerate(run.schemes):
            cells = [rows[c.number] for c in run.of(setting, scheme) if c.number in rows]
            if not cells:
                continue
            wait = np.concatenate([c["wait_ns"] for c in cells]) / 1e3
            packets = np.concatenate([c["packets"] for c in cells])
            if packets.sum() > 0:
                series.append(Series(scheme, slot, *_distribution(wait, packets)))
        charts += _if_any(setting or "All data packets", series, Axis("waiting, us", log=True), "share of packets")
    return _block(said, run.schemes, charts) if charts else _nothing("No scheme of this run sends packets.")


def queues(run: RunData) -> str:
    """The distribution of sampled queue lengths."""
    rows = run.rows("queue", "queued_bytes")
    if not rows:
        return _nothing('No queues were sampled. A spec asks for them with queues = "1ms" in [measure].')
    said = "Bytes waiting at links, one sample a link and interval, over all seeds. Without a curve: always empty."
    charts = []
    for setting in run.settings:
        series = []
        for slot, scheme in enumerate(run.schemes):
            cells = [rows[c.number]["queued_bytes"] for c in run.of(setting, scheme) if c.number in rows]
            length = np.concatenate(cells) if cells else np.zeros(0)
            if length.any():
                series.append(Series(scheme, slot, *_distribution(length, np.ones(len(length)))))
        charts += _if_any(setting or "All links", series, Axis("queue, bytes", log=True), "share of samples")
    return _block(said, run.schemes, charts) if charts else _nothing("Every queue was empty whenever it was sampled.")


def convergence(run: RunData) -> str:
    """The distribution of the time that rates took to settle after each change of the flows, by criterion."""
    rows = run.rows("convergence", "convergence_ns", "criterion")
    if not rows:
        return _nothing(
            "No convergence was measured. A spec whose flows stay for a while (churn, incast, permutation, steps) asks "
            "for it with convergence = {within = 0.1, share = 0.95} in [measure]."
        )
    said = "Time until the rates had settled after each change of the flows, over all seeds. What never settled before "
    said += "the next change keeps a curve below 1."
    charts = []
    criteria = np.unique(np.concatenate([cell["criterion"] for cell in rows.values()]))
    for setting in run.settings:
        for criterion in criteria:
            series = []
            for slot, scheme in enumerate(run.schemes):
                cells = [rows[c.number] for c in run.of(setting, scheme) if c.number in rows]
                times = [cell["convergence_ns"][cell["criterion"] == criterion] / 1e3 for cell in cells]
                series += _settled(scheme, slot, np.concatenate(times) if times else np.zeros(0))
            title = ", ".join(filter(None, (setting, run.criterion(int(criterion))))) or "All changes"
            charts += _if_any(title, series, Axis("time to settle, us", log=True), "share of changes")
    nothing = "No change of the flows was followed by settled rates."
    return _block(said, run.schemes, charts) if charts else _nothing(nothing)


def _settled(scheme: str, slot: int, times: Numbers) -> list[Series]:
    settled = times[np.isfinite(times)]
    if not len(settled):
        return []
    time, share = _distribution(settled, np.ones(len(settled)))
    return [Series(scheme, slot, time, share * (len(settled) / len(times)))]


def _if_any(title: str, series: Sequence[Series], x: Axis, y_label: str) -> list[str]:
    return [line_chart(title, series, x, Axis(y_label, start=0), step=True)] if series else []


def _sum_by_time(rows: Columns) -> tuple[Numbers, Numbers]:
    times, place = np.unique(rows["time_ns"], return_inverse=True)
    sums: Numbers = np.bincount(place, np.nan_to_num(rows["rate_bps"]), len(times)).astype(np.float64)
    return times, sums


def _distribution(values: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """The cumulative distribution as a staircase of at most `MOST_POINTS` corners; the first lies at share 0."""
    order = np.argsort(values, kind="stable")
    values, share = values[order], np.cumsum(counts[order]) / counts.sum()
    last = np.flatnonzero(np.diff(values, append=np.inf))  # of each run of equal values
    values, share = values[last], share[last]
    if len(values) > MOST_POINTS:
        wanted = np.concatenate([np.linspace(0, 1, MOST_POINTS - 20), 1 - np.logspace(-2, -5, 20)])
        kept = np.unique(np.searchsorted(share, np.minimum(wanted, share[-1])))
        values, share = values[kept], share[kept]
    return np.concatenate([values[:1], values]), np.concatenate([[0.0], share])


def _thinned(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """At most `MOST_POINTS` points, each the mean of its neighbours."""
    if len(x) <= MOST_POINTS:
        return x, y
    edges = np.linspace(0, len(x), MOST_POINTS + 1).astype(int)[:-1]
    count = np.diff(edges, append=len(x))
    return np.add.reduceat(x, edges) / count, np.add.reduceat(np.nan_to_num(y), edges) / count


def _block(said: str, names: Sequence[str], charts: Sequence[str]) -> str:
    return f'<p class="quiet">{escape(said)}</p>{legend(names)}<div class="charts">{"".join(charts)}</div>'


def _nothing(said: str) -> str:
    return f'<p class="quiet">{escape(said)}</p>'
