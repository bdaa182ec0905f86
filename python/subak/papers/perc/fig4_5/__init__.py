"""Figure 4.5 of the PERC thesis: convergence of s-PERC* whose links divide by look-up tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """Fraction of runs that converge within each threshold, and times in RTTs, one line per size of the tables."""
    figure, plots = figures.axes(columns=2, width=5)
    rows = raw.rows("convergence")
    for k, kb in enumerate(dict.fromkeys(row["table_kb"] for row in rows)):
        like: dict[str, Any] = {"color": figures.COLOURS[k], "marker": "o^s"[k % 3]}
        mine = [row for row in rows if row["table_kb"] == kb]
        within = [row["within_percent"] for row in mine]
        plots[0].plot(within, [row["share_converged"] for row in mine], label=f"{kb} KB", **like)
        times = [row["rtts_p50_p95_max"] for row in mine]
        plots[1].plot(within, [t[0] for t in times], linestyle="-", label=f"{kb} KB, median", **like)
        plots[1].plot(within, [t[1] for t in times], linestyle=":", label=f"{kb} KB, p95", **like)
    for plot in plots:
        plot.set_xlabel("within so many % of the exact rates, for good")
        plot.legend(loc="lower left", fontsize="small", ncols=3)
    plots[0].set(ylabel="share of runs", ylim=(0, 1.05))
    plots[1].set(ylabel="RTTs", ylim=(0, None))
    return figure
