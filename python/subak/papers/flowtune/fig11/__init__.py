"""Figure 11 of Flowtune: update traffic as the network grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.papers.flowtune import updates
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

KEY = "network.leaves"


def _spread(runs: Sequence[updates.Run]) -> float:
    """Ratio of the largest to the smallest fraction of capacity that update traffic takes, over network sizes."""
    fractions = [updates.percent(runs, leaves) for leaves in updates.loads_of(runs)]
    return max(fractions) / min(fractions)


def measure(raw: RawResults) -> dict[str, Value]:
    """Update traffic over capacity: ratio of its largest to its smallest value over network sizes, and all values."""
    runs = updates.runs_of(raw, key=KEY)
    sizes = updates.loads_of(runs)
    return {
        "both ways": updates.least_way(runs),
        "spread": stats.over_runs(runs, _spread),
        "percent": [updates.percent(runs, leaves) for leaves in sizes],
    }


def draw(raw: RawResults) -> Figure:
    """Update traffic, percent of the servers' capacity, by number of servers."""
    runs = updates.runs_of(raw, key=KEY)
    sizes = updates.loads_of(runs)
    figure, (plot,) = figures.axes(width=5)
    percent = [updates.percent(runs, leaves) for leaves in sizes]
    plot.plot([16 * leaves for leaves in sizes], percent, marker="o")
    plot.set(xlabel="servers", ylabel="update traffic, % of capacity", ylim=(0, 1.2 * max(percent)))
    figures.log_x(plot)
    return figure
