"""When NUMFabric's heuristic for several paths holds: a subflow's share, averaged over shorter and longer times."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIRS = ("xwi/swift", "xwi/s-perc", "xwi/soze-virtual", "ned/paced", "dgd/paced", "rcp-star/paced")
ALPHAS = (0.5, 1.0, 2.0)
TIMES_US = (0.0, 30.0, 300.0, 3000.0)
"""Time constants of the average; 0: the share at the last ACK, as in the paper."""
LAST_MS, SAMPLE_MS = 20, 0.5
"""Time at the end over which rates are compared with the exact ones."""
MEASURED = ("error", "swing", "use")
COLUMNS = ["pair", "alpha", "share_us", "seed", *MEASURED]
NETWORK = {
    "kind": "leaf-spine",
    "leaves": 2,
    "spines": 8,
    "hosts_per_leaf": 8,
    "host_rate": "10Gbps",
    "spine_rate": "10Gbps",
    "link_delay": "2us",
    "buffer": "4MB",
}
WORKLOAD = {"kind": "permutation", "one_way": True, "hashed": True, "subflows": 4}


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Runs a permutation of 8 flows with four subflows each under each pair of optimizer and transport.

    ``ms``: simulated time.
    """
    ms = Settings(settings, "ms").count("ms", 60, 1000)
    jobs = [(alpha, seed + k) for alpha in ALPHAS for k in range(max(runs, 1))]
    found = computed.Jobs(len(jobs), progress).each(jobs, lambda job: _run(*job, ms))
    rows = [row for rows in found for row in rows]
    values: dict[str, Any] = {}
    for pair in PAIRS:
        for alpha in ALPHAS:
            for us in TIMES_US:
                mine = [row for row in rows if row[:3] == [pair, alpha, us]]
                for column in MEASURED:
                    data = [row[COLUMNS.index(column)] for row in mine]
                    values[f"{pair} {alpha:g} {us:g} {column}"] = computed.sample("mean", "runs", data)
    return {"setup": {"flows": 8}, "tables": {"runs": {"columns": COLUMNS, "rows": rows}}, "values": values}


def _run(alpha: float, seed: int, ms: int) -> list[list[Any]]:
    """A row for each pair and time constant."""
    schemes = [
        {
            "optimizer": pair.partition("/")[0],
            "transport": pair.partition("/")[2],
            "label": f"{pair} {us:g}",
            # A nanosecond, because 0 means the pair's default.
            "params": {"share_time": max(us * 1e-6, 1e-9)},
        }
        for pair in PAIRS
        for us in TIMES_US
    ]
    spec = {
        "network": NETWORK,
        "policy": {"kind": "alpha-fair", "alpha": alpha},
        "workload": WORKLOAD,
        "scheme": [{"name": "ideal"}, *schemes],
        "measure": {"rates": f"{SAMPLE_MS}ms"},
        "run": {"duration": f"{ms}ms", "drain": "0s", "seeds": [seed]},
    }
    with tempfile.TemporaryDirectory() as folder:
        results = subak.run(spec, Path(folder) / "run", progress=False)
        frame = results.table("rate", ["scheme", "time_ns", "flow", "rate_bps"]).to_pandas()
    late = frame[frame["time_ns"] > (ms - LAST_MS) * 1e6]
    tables = {
        name: mine.pivot(index="time_ns", columns="flow", values="rate_bps").fillna(0).to_numpy()
        for name, mine in late.groupby("scheme")
    }
    exact = tables["ideal"].mean(axis=0)
    rows = []
    for pair in PAIRS:
        for us in TIMES_US:
            rates = tables[f"{pair} {us:g}"]
            means, use = rates.mean(axis=0), float(rates.sum() / exact.sum() / len(rates))
            error = 100 * float(np.max(np.abs(means / use / exact - 1)))
            swing = 100 * float(np.max(rates.std(axis=0) / means))
            rows.append([pair, alpha, us, seed, error, swing, 100 * use])
    return rows


def draw(raw: RawResults) -> Figure:
    """Error of the worst flow's mean rate, and the used fraction of the exact rates, by the time of the average."""
    figure, plots = figures.axes(rows=2, columns=3, width=4.2)
    rows = raw.rows("runs")
    labels = ["none", *(f"{us:g}" for us in TIMES_US[1:])]
    titles = {"error": "error of the worst flow's mean rate, %", "use": "sum of rates, % of the exact ones"}
    for row, (column, title) in enumerate(titles.items()):
        for alpha, plot in zip(ALPHAS, plots[3 * row :], strict=False):
            for pair, colour in zip(PAIRS, figures.COLOURS, strict=False):
                mine = [r for r in rows if r["pair"] == pair and r["alpha"] == alpha]
                means = [float(np.mean([r[column] for r in mine if r["share_us"] == us])) for us in TIMES_US]
                plot.plot(labels, means, "-o", markersize=4, color=colour, label=pair)
            plot.set(xlabel="share averaged over, us", title=f"alpha {alpha:g}")
            if column == "error":
                plot.set(yscale="log")
        plots[3 * row].set_ylabel(title)
    plots[0].legend(fontsize=7)
    return figure
