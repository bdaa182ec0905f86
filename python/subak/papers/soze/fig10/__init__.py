"""Figure 10 of Soze: FCTs of three senders to one receiver, with weights by flow size."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import subak
from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST, MOST = 700e6, 7000e6
SENDERS = 3
SPREADS: dict[str, Callable[[Random], float]] = {
    "log": lambda rng: math.exp(rng.uniform(math.log(LEAST), math.log(MOST))),
    "even": lambda rng: rng.uniform(LEAST, MOST),
    "short": lambda rng: MOST if rng.random() < 0.1 else rng.uniform(LEAST, 2 * LEAST),
}


def _spec(rng: Random, settings: dict[str, Any]) -> dict[str, Any]:
    """A spec in which each sender is a job of successive transfers.

    With the setting ``together``, the k-th transfers of all senders start at the same time.
    """
    each, small = settings["each"], settings.get("smaller", 1)
    sizes = [[round(SPREADS[settings["sizes"]](rng) / small) for _ in range(each)] for _ in range(SENDERS)]
    together = settings.get("together", False)
    jobs = []
    for sender in range(SENDERS):
        flows: list[dict[str, Any]] = []
        for k, size in enumerate(sizes[sender]):
            # Starts are 8 s apart, since three of the largest flows take less than 7 s.
            wait = {"start": f"{8 * k}s"} if together else {"after": [f"f{k - 1}"]} if k else {}
            flows.append({"id": f"f{k}", "src": f"h{sender}", "dst": "h3", "size": size, **wait})
        jobs.append({"id": f"sender{sender}", "flows": flows})
    return {
        "network": {"kind": "star", "hosts": SENDERS + 1, "rate": "25Gbps", "link_delay": "2us"},
        "workload": {
            "kind": "jobs",
            "jobs": jobs,
            "policy": ["even", {"kind": "shortest-first", "largest": MOST / small}],
        },
        "scheme": [{"name": settings.get("scheme", "ideal")}],
        "run": {"duration": f"{8 * each / small}s"},
    }


def _times(spec: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """FCTs under equal weights and under weights by size, in the same order."""
    with TemporaryDirectory() as folder:
        results = subak.run(spec, Path(folder), jobs=1)
        rows = results.table("flow", ["trial", "flow", "size_bytes", "fct_ns"]).to_pylist()
    rows.sort(key=lambda row: (row["trial"], row["flow"]))
    half = len(rows) // 2
    return rows[:half], rows[half:]


def run(settings: dict[str, Any], runs: int, seed: int, progress: Callable[[int, int, float], None]) -> dict[str, Any]:
    """Runs with random sizes, new in each run, under equal weights and under weights by size."""
    faster, table, unfinished, worst = [], [], 0, 0.0
    sums: tuple[list[float], list[float]] = ([], [])
    for k in range(runs):
        even, weighted = _times(_spec(Random(f"{seed} {k}"), settings))
        ratios = []
        for before, after in zip(even, weighted, strict=True):
            if before["fct_ns"] is None or after["fct_ns"] is None:
                unfinished += 1
                continue
            ratios.append(after["fct_ns"] / before["fct_ns"])
            table.append([before["size_bytes"], before["fct_ns"] / 1e9, after["fct_ns"] / 1e9])
        # An equal FCT counts as not faster; times are whole nanoseconds.
        faster.append(100 * sum(ratio < 1 - 1e-6 for ratio in ratios) / len(ratios))
        worst = max(worst, *ratios)
        sums[0].append(sum(row["fct_ns"] or 0 for row in weighted))
        sums[1].append(sum(row["fct_ns"] or 0 for row in even))
        progress(k + 1, runs, (k + 1) / runs)
    quantiles = zip(sorted(row[1] for row in table), sorted(row[2] for row in table), strict=True)
    lower = [after < before for before, after in quantiles]
    values = {
        "quantiles": round(100 * sum(lower) / len(lower), 1),
        "faster": {"statistic": "percent", "data": faster, "of": "runs"},
        "starved": round(worst, 3),
        "mean": {"statistic": "mean", "data": sums[0], "over": sums[1], "of": "runs"},
        "unfinished": unfinished,
    }
    columns = ["size_bytes", "even_s", "weighted_s"]
    return {"values": values, "tables": {"flows": {"columns": columns, "rows": table}}}


def draw(raw: RawResults) -> Figure:
    """Distribution of FCTs, and each flow's ratio of FCTs by its size."""
    figure, plots = figures.axes(columns=2)
    rows = raw.rows("flows")
    figures.cdf(plots[0], [row["even_s"] for row in rows], "even")
    figures.cdf(plots[0], [row["weighted_s"] for row in rows], "shortest first")
    plots[0].set(xlabel="completion time, s", ylabel="share of flows")
    plots[0].legend()
    ratios = [row["weighted_s"] / row["even_s"] for row in rows]
    plots[1].scatter([row["size_bytes"] / 1e6 for row in rows], ratios, s=4)
    plots[1].axhline(1, color="grey", linewidth=0.8, linestyle=":")
    plots[1].set(xlabel="size, MB", ylabel="time over that under even weights", ylim=(0, None))
    return figure
