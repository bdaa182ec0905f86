"""Drawing of the worked examples in chapters 2 and 3 of the PERC thesis: updates of two flows at three links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT_GBPS = {"fB": 18, "fW": 12}


def draw(raw: RawResults) -> Figure:
    """Rate that each update allocates, and the exact rates."""
    figure, (plot,) = figures.axes(width=6.2)
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    updates = list(enumerate(raw.rows("updates"), start=1))
    for colour, (flow, exact) in zip(figures.COLOURS, EXACT_GBPS.items(), strict=False):
        mine = [(n, row["a_gbps"], row["link"]) for n, row in updates if row["flow"] == flow]
        plot.plot([n for n, _, _ in mine], [a for _, a, _ in mine], color=colour, linestyle="-", marker="o", label=flow)
        plot.axhline(exact, color=colour, linewidth=0.9, linestyle=":")
        for n, a, link in mine:
            plot.annotate(link, (n, a), textcoords="offset points", xytext=(0, 6), ha="center", fontsize=8, bbox=white)
    plot.set(title=raw.report["setup"]["scheme"], xlabel="update", ylabel="allocation a (Gb/s)", ylim=(8, 22.5))
    plot.set_xticks([n for n, _ in updates])
    plot.legend(title="dotted: exact", loc="lower right")
    return figure
