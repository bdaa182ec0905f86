"""NED's step size gamma: where NED converges, how fast, and the throughput under a stream of flows."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEVER = 8000
"""Position in the plot of values of gamma for which NED does not converge in 5000 steps."""


def draw(raw: RawResults) -> Figure:
    """Steps until NED converges, by gamma, network and flows; and throughput under a stream of flows."""
    figure, (steps, stream) = figures.axes(columns=2, width=5)
    rows = raw.rows("settling")
    for tiers, flows in dict.fromkeys((row["tiers"], row["flows_a_host"]) for row in rows):
        mine = [row for row in rows if (row["tiers"], row["flows_a_host"]) == (tiers, flows)]
        gammas = list(dict.fromkeys(row["gamma"] for row in mine))
        medians = [median(row["steps"] or NEVER for row in mine if row["gamma"] == gamma) for gamma in gammas]
        steps.plot(gammas, medians, marker="o", label=f"{tiers}, {flows} a host")
    steps.axhline(NEVER, color="grey", linewidth=0.8, linestyle=":")
    steps.annotate("never", (0.1, NEVER), va="bottom", color="grey")
    steps.set(yscale="log", xlabel="gamma", ylabel="steps to within a thousandth, median")
    steps.legend(fontsize="small")
    rows = raw.rows("stream")
    stream.scatter([row["gamma"] for row in rows], [row["f_norm"] for row in rows], s=12)
    stream.set(xlabel="gamma", ylabel="throughput, % of the optimum's", title="flows come and go, load 0.6")
    return figure
