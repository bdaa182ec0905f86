"""Figures 2.4 and 3.6 to 3.8: the iterations of WF1, WF2 and water-filling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGORITHMS = ("WF1", "WF2", "WF-infinity")


def draw(raw: RawResults) -> Figure:
    """The links' rates over the iterations, a row a network; a disk marks the iteration in which a link is removed."""
    tables = list(raw.report["tables"])
    figure, plots = figures.axes(rows=len(tables), columns=len(ALGORITHMS), width=3.6, height=2.7)
    for k, name in enumerate(tables):
        for plot, algorithm in zip(plots[3 * k : 3 * k + 3], ALGORITHMS, strict=True):
            rows = [row for row in raw.rows(name) if row["algorithm"] == algorithm]
            for colour, link in zip(figures.COLOURS, range(len(rows[0]["link_rates_gbps"])), strict=False):
                shown = [
                    (r["iteration"], r["link_rates_gbps"][link]) for r in rows if r["link_rates_gbps"][link] is not None
                ]
                frozen = [point for point, r in zip(shown, rows, strict=False) if link + 1 in r["frozen"]]
                plot.plot(*zip(*shown, strict=True), color=colour, linestyle="-", marker=".", label=f"link {link + 1}")
                plot.plot(
                    *zip(*frozen, strict=True), color=colour, linestyle="none", marker="o", markersize=9, alpha=0.6
                )
            plot.set(title=f"{name}: {algorithm}", xlabel="iteration", ylabel="rate (Gb/s)")
            plot.title.set_fontsize("small")
            plot.set_xticks([row["iteration"] for row in rows])
        plots[3 * k].legend(fontsize="small")
    return figure
