"""Soze on random networks at packet level: convergence times, and errors of networks that do not converge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEVER = 500
"""Position in the plot of networks that do not converge."""


def draw(raw: RawResults) -> Figure:
    """Fraction of networks that have converged by time in RTTs, and the largest error of a flow's rate."""
    figure, plots = figures.axes(columns=2, width=5)
    rows = raw.rows("networks")
    for hops, style in (("one hop", "-"), ("several hops", "--")):
        for scheme, colour in (("soze", figures.COLOURS[0]), ("soze-virtual", figures.COLOURS[1])):
            mine = [row for row in rows if (row["hops"], row["scheme"]) == (hops, scheme)]
            label = f"{scheme}, {hops}"
            for plot, values in (
                (plots[0], [row["settled_rtts"] or NEVER for row in mine]),
                (plots[1], [100 * row["worst_off"] for row in mine]),
            ):
                values = sorted(values)
                shares = [(k + 1) / len(values) for k in range(len(values))]
                plot.step(values, shares, where="post", color=colour, linestyle=style, label=label)
    plots[0].set(xlabel="round trips until all rates are within 3%", ylabel="share of networks", xlim=(0, NEVER * 0.98))
    plots[1].set(xlabel="error of the worst flow at the end, %", ylabel="share of networks", xscale="log")
    plots[1].axvline(3, color="grey", linewidth=0.8, linestyle=":")
    plots[0].legend(fontsize="small")
    return figure
