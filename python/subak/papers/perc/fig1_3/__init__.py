"""Figure 1.3 of the PERC thesis: rates of flows A, B and C, which start one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """Rate of each flow over time, one plot per scheme."""
    series = raw.report["series"]
    figure, plots = figures.axes(columns=len(series), width=5.4)
    for plot, (scheme, held) in zip(plots, series.items(), strict=True):
        end = max(at for at, _, _ in held["points"]) + 4
        for name in "ABC":
            points = [(at, rate) for at, flow, rate in held["points"] if flow == name]
            times, rates = zip(*points, (end, points[-1][1]), strict=True)
            plot.step(times, rates, where="post", label=f"flow {name}")
        plot.set(title=scheme, xlabel="time (RTTs)", ylabel="rate at the source (Gb/s)", ylim=(0, 95))
        plot.legend(loc="upper right", ncols=3)
    return figure
