"""Figure 10 of Flowtune: reduction of update traffic by larger thresholds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from subak.papers.flowtune import updates
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure


def _saved(runs: Sequence[updates.Run], load: float, scheme: str) -> float:
    """Reduction of update traffic relative to the smallest threshold, percent."""
    least = updates.schemes_of(runs)[0]
    return 100 * (1 - updates.percent(runs, load, scheme=scheme) / updates.percent(runs, load, scheme=least))


def _most(runs: Sequence[updates.Run], scheme: str) -> float:
    return max(_saved(runs, load, scheme) for load in updates.loads_of(runs))


def measure(raw: RawResults) -> dict[str, Value]:
    """Reduction of update traffic: by a threshold of 0.05 at its best load, and by each threshold and load."""
    found: dict[str, Value] = {}
    every = [updates.least_way(updates.runs_of(raw, workload)) for workload in updates.workloads(raw)]
    found["both ways"] = min(every)
    for workload in updates.workloads(raw):
        runs = updates.runs_of(raw, workload)
        schemes = updates.schemes_of(runs)
        found[workload] = stats.over_runs(runs, partial(_most, scheme=schemes[-1]))
        for load in updates.loads_of(runs):
            found[f"{workload} {load:g}"] = [_saved(runs, load, scheme) for scheme in schemes]
    return found


def draw(raw: RawResults) -> Figure:
    """Reduction of update traffic by threshold, one plot per workload."""
    names = updates.workloads(raw)
    figure, plots = figures.axes(columns=len(names), width=3.2)
    for plot, workload in zip(plots, names, strict=True):
        runs = updates.runs_of(raw, workload)
        schemes = updates.schemes_of(runs)
        for load in updates.loads_of(runs):
            saved = [_saved(runs, load, scheme) for scheme in schemes]
            plot.plot(range(1, len(schemes) + 1), saved, marker="o", label=f"load {load:g}")
        plot.set(title=workload, xlabel="threshold, percent", ylabel="update traffic saved, percent", ylim=(-5, 100))
    plots[0].legend(loc="upper left")
    return figure
