"""Soze's possible signals side by side: what a link tells its senders."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGNALS: dict[str, dict[str, Any]] = {
    "backlog": {"name": "soze", "params": {"signal": "backlog"}},
    "wait": {"name": "soze", "params": {"signal": "wait"}},
    "utilization": {"name": "soze", "params": {"signal": "utilization", "filter": "100us"}},
    "virtual queue": {"name": "soze-virtual"},
}
NETWORKS: dict[str, dict[str, Any]] = {
    "one link": {"kind": "star", "hosts": 9, "rate": "10Gbps", "link_delay": "20us"},
    "leaf-spine": {
        "kind": "leaf-spine",
        "leaves": 4,
        "spines": 2,
        "hosts_per_leaf": 4,
        "host_rate": "10Gbps",
        "spine_rate": "10Gbps",
        "link_delay": "20us",
    },
}
FLOWS = {"one link": 8, "leaf-spine": 24}
LAST_MS, SAMPLE_MS = 20, 0.5
"""Time at the end over which rates are compared with the exact ones."""
MEASURED = ("error", "swing", "use", "settled", "queue")
COLUMNS = ["network", "signal", "seed", *MEASURED]


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Runs flows of random weights over each signal, on one link and on a leaf-spine network.

    ``ms``: simulated time.
    """
    ms = Settings(settings, "ms").count("ms", 80, 1000)
    jobs = [(network, seed + k) for network in NETWORKS for k in range(max(runs, 1))]
    found = computed.Jobs(len(jobs), progress).each(jobs, lambda job: _run(*job, ms))
    rows = [row for rows in found for row in rows]
    values: dict[str, Any] = {}
    for network in NETWORKS:
        for signal in SIGNALS:
            mine = [row for row in rows if row[:2] == [network, signal]]
            for column in MEASURED:
                data = [math.inf if (x := row[COLUMNS.index(column)]) is None else x for row in mine]
                values[f"{network}, {signal}: {column}"] = computed.sample("mean", "runs", data)
    return {"setup": {"flows": FLOWS}, "tables": {"runs": {"columns": COLUMNS, "rows": rows}}, "values": values}


def _flows(network: str, seed: int) -> list[dict[str, Any]]:
    """Flows of weights 1, 2 and 4: to one host, or between random hosts of the two halves."""
    rng = Random(f"{network} {seed}")
    if network == "one link":
        pairs = [(k, FLOWS[network]) for k in range(FLOWS[network])]
    else:
        pairs = [(rng.randrange(8), 8 + rng.randrange(8)) for _ in range(FLOWS[network])]
    # Starts within one RTT, so that no two runs of the same pairs are alike.
    return [
        {
            "id": f"f{k}",
            "src": f"h{src}",
            "dst": f"h{dst}",
            "weight": rng.choice([1, 2, 4]),
            "start": f"{rng.randrange(20_000)}ns",
        }
        for k, (src, dst) in enumerate(pairs)
    ]


def _run(network: str, seed: int, ms: int) -> list[list[Any]]:
    """A row for each signal."""
    spec = {
        "network": NETWORKS[network],
        "policy": {"kind": "max-min"},
        "workload": {"kind": "steps", "flows": _flows(network, seed)},
        "scheme": [{"name": "ideal"}, *({**scheme, "label": label} for label, scheme in SIGNALS.items())],
        "measure": {"rates": f"{SAMPLE_MS}ms", "queues": "0.1ms"},
        "run": {"duration": f"{ms}ms", "drain": "0s", "seeds": [seed]},
    }
    with tempfile.TemporaryDirectory() as folder:
        results = subak.run(spec, Path(folder) / "run", progress=False)
        rates = results.table("rate", ["scheme", "time_ns", "flow", "rate_bps"]).to_pandas()
        queues = results.table("queue", ["scheme", "time_ns", "link", "queued_bytes"]).to_pandas()
    tables = {
        name: mine.pivot(index="time_ns", columns="flow", values="rate_bps").fillna(0)
        for name, mine in rates.groupby("scheme")
    }
    exact = tables["ideal"].to_numpy()[-1]
    late = queues[queues["time_ns"] > (ms - LAST_MS) * 1e6]
    rows = []
    for signal in SIGNALS:
        all_rates = tables[signal].to_numpy()
        last = all_rates[-round(LAST_MS / SAMPLE_MS) :]
        means, use = last.mean(axis=0), float(last.sum() / exact.sum() / len(last))
        error = 100 * float(np.quantile(np.abs(means / use / exact - 1), 0.95))
        swing = 100 * float(np.quantile(last.std(axis=0) / means, 0.95))
        near = (np.abs(all_rates / use / exact - 1) <= 0.1).all(axis=1)
        stays = len(near) if near.all() else int(np.argmin(near[::-1]))
        settled = (len(near) - stays) * SAMPLE_MS if stays * SAMPLE_MS >= LAST_MS else np.inf
        longest = late[late["scheme"] == signal].groupby("link")["queued_bytes"].mean().max() / 1e3
        rows.append([network, signal, seed, error, swing, 100 * use, computed.finite(settled), float(longest)])
    return rows


def draw(raw: RawResults) -> Figure:
    """Error, swing, use and the mean queue of the longest link, by signal, on both networks."""
    figure, plots = figures.axes(rows=2, columns=2, width=5)
    rows = raw.rows("runs")
    titles = {
        "error": "p95 error of mean rates, %",
        "swing": "p95 deviation of rates over time, %",
        "use": "sum of rates, % of the exact ones",
        "queue": "longest mean queue of a link, KB",
    }
    for plot, (column, title) in zip(plots, titles.items(), strict=True):
        for k, (network, colour) in enumerate(zip(NETWORKS, figures.COLOURS, strict=False)):
            of = [[r[column] for r in rows if r["network"] == network and r["signal"] == s] for s in SIGNALS]
            means = np.array([float(np.mean(data)) for data in of])
            ends = np.array([[m - min(d), max(d) - m] for m, d in zip(means, of, strict=True)]).T
            places = np.arange(len(SIGNALS)) + 0.35 * (k - 0.5)
            plot.bar(places, means, 0.35, yerr=ends, color=colour, label=network, capsize=3)
        plot.set_xticks(range(len(SIGNALS)), list(SIGNALS), fontsize=8)
        plot.set(ylabel=title)
    plots[0].legend()
    return figure
