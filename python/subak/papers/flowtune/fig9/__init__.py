"""Figure 9 of Flowtune: traffic to and from the allocator by workload and load."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from subak.papers.flowtune import updates
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(raw: RawResults) -> dict[str, Value]:
    """Update traffic over the servers' capacity, percent: at the highest load, and at each load in both directions."""
    found: dict[str, Value] = {}
    every = [updates.least_way(updates.runs_of(raw, workload)) for workload in updates.workloads(raw)]
    found["both ways"] = min(every)
    for workload in updates.workloads(raw):
        runs = updates.runs_of(raw, workload)
        loads = updates.loads_of(runs)
        found[workload] = stats.over_runs(runs, partial(updates.percent, load=loads[-1]))
        for way in ("from", "to"):
            found[f"{workload} {way}"] = [updates.percent(runs, load, ways=(way,)) for load in loads]
    return found


def draw(raw: RawResults) -> Figure:
    """Update traffic by load: from the allocator, and to it (dotted)."""
    figure, (plot,) = figures.axes(width=5.5)
    for workload in updates.workloads(raw):
        runs = updates.runs_of(raw, workload)
        loads = updates.loads_of(runs)
        (line,) = plot.plot(
            loads, [updates.percent(runs, load, ways=("from",)) for load in loads], marker="o", label=workload
        )
        to = [updates.percent(runs, load, ways=("to",)) for load in loads]
        plot.plot(loads, to, ":", color=line.get_color(), marker="x", label=f"{workload}, to the allocator")
    plot.set(xlabel="load", ylabel="percent of the servers' capacity", ylim=(0, None))
    plot.legend()
    return figure
