"""Figure 4.7 of the PERC thesis and figure 1 of its abstract: two flows that share a link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

SCHEMES = ("reno", "dctcp", "s-perc")


def draw(raw: RawResults, times: Mapping[str, float], titles: Mapping[str, str], until_ms: float) -> Figure:
    """Received rates in the run in which TCP takes longest to converge, one plot per scheme.

    :param times: Convergence time of TCP by the interval between the starts.
    """
    figure, plots = figures.axes(rows=3, height=2.2, width=6)
    frame = raw.simulated().table("rate").to_pandas()
    chosen = longest(times)
    frame = frame[frame["workload.interval"] == chosen]
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        for flow, label in enumerate(("first", "second")):
            of = frame[(frame["scheme"] == scheme) & (frame["flow"] == flow)]
            plot.plot(of["time_ns"] / 1e6, of["rate_bps"] / 1e9, linestyle="-", linewidth=1, label=label)
        plot.set(title=titles[scheme], ylabel="Gb/s", xlim=(0, until_ms), ylim=(0, 10.5))
    plots[0].legend()
    plots[2].set_xlabel(f"ms; the second flow starts {chosen} after the first")
    return figure


def longest(times: Mapping[str, float]) -> str:
    """The interval between the starts at which convergence takes longest."""
    return max(times, key=lambda interval: times[interval])
