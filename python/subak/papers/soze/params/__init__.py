"""Soze's parameters m and p: values for which its control loop converges with feedback delay, and at packet level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SIGNALS = {
    "wait": "a rate, what a packet waited",
    "backlog": "a rate, what waits",
    "exact": "a rate, what waits, exact senders",
    "window": "a window, what waits",
}


def draw(raw: RawResults) -> Figure:
    """Fraction of networks for which Soze converges, by the parameter p."""
    figure, plots = figures.axes(columns=4, width=3.4)
    rows = raw.rows("packets")
    for plot, signal in zip(plots, SIGNALS, strict=True):
        scales = list(dict.fromkeys(row["p_over_span_rtts"] for row in rows))
        for colour, m in zip(figures.COLOURS, dict.fromkeys(row["m"] for row in rows), strict=False):
            mine = [row for row in rows if (row["signal"], row["m"]) == (signal, m)]
            shares = [100 * row["settled"] / row["networks"] for row in mine]
            plot.plot(range(len(scales)), shares, marker="o", color=colour, label=f"m = {m:g}")
        plot.set_xticks(range(len(scales)), [f"{p:g}" if p else "20 us" for p in scales])
        plot.set(title=SIGNALS[signal], xlabel="p over ln(alpha / beta) round trips", ylim=(-3, 103))
    plots[0].set_ylabel("networks that settle, %")
    plots[0].legend(fontsize="small")
    return figure
