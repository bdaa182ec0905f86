"""Table 1 and figure 18 of Flowtune: the web, cache and Hadoop distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """Distributions of flow sizes, as in figure 18 of Flowtune."""
    figure, (plot,) = figures.axes(width=6)
    for workload in ("web", "cache", "hadoop"):
        rows = raw.rows(workload)
        plot.plot([row["size_bytes"] for row in rows], [row["share"] for row in rows], label=workload)
    plot.set(xscale="log", xlabel="size of a flow, bytes", ylabel="share of flows up to it", ylim=(0, 1.02))
    plot.legend()
    return figure
