"""Figure 4.1 of the PERC thesis: convergence of s-PERC* and RCP after 40% of the flows were replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RTT = 11.6e-6
GOALS = {"tight": "99% of flows within 10%", "loose": "95% of flows within 20%"}


def _rtts(raw: RawResults, scheme: str, goal: str) -> list[float]:
    criterion = list(GOALS).index(goal)
    return [t / RTT for t in settle.times(raw.simulated(), scheme, criterion, after_ns=1)]


def measure(raw: RawResults) -> dict[str, Value]:
    """Median convergence times and their ratio, for each convergence criterion."""
    found: dict[str, Value] = {"s_perc_settled": settle.settled(_rtts(raw, "s-perc-star", "tight"))}
    for goal in GOALS:
        s_perc, rcp = (_rtts(raw, s, goal) for s in ("s-perc-star", "rcp"))
        found |= {f"s_perc_{goal}": settle.at(s_perc, 0.5), f"rcp_{goal}": settle.at(rcp, 0.5)}
        found[f"ratio_{goal}"] = settle.ratio(rcp, s_perc)
    return found


def draw(raw: RawResults) -> Figure:
    """Distribution of convergence times, one plot per convergence criterion."""
    figure, plots = figures.axes(columns=2)
    for plot, (goal, told) in zip(plots, GOALS.items(), strict=True):
        settle.draw(plot, {s: _rtts(raw, s, goal) for s in ("s-perc-star", "rcp")}, "RTTs of 11.6 us")
        plot.set_title(told)
        plot.legend(loc="center")
    return figure
