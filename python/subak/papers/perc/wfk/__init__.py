"""Figures 2.4 and 3.6 to 3.8: the iterations of WF1, WF2 and water-filling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
            for link in range(len(rows[0]["link_rates_gbps"])):
                # Links that share a rate lie on one another: the later ones are drawn smaller.
                like: dict[str, Any] = {
                    "color": figures.COLOURS[link],
                    "linewidth": 4 - link,
                    "label": f"link {link + 1}",
                }
                shown = [(row["iteration"], row["link_rates_gbps"][link]) for row in rows]
                shown = [(n, rate) for n, rate in shown if rate is not None]
                plot.plot(*zip(*shown, strict=True), linestyle="-", **like)
                removed = [shown[-1]] if any(link + 1 in row["frozen"] for row in rows) else []
                for n, rate in removed:
                    plot.scatter(n, rate, s=30 * (4 - link), color=like["color"], zorder=3)
            plot.set(title=f"{name}: {algorithm}", xlabel="iteration", ylabel="rate (Gb/s)")
            plot.title.set_fontsize("small")
            plot.set_xticks([row["iteration"] for row in rows])
        plots[3 * k].legend(fontsize="small")
    return figure
