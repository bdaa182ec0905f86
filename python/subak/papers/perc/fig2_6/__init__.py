"""Figure 2.6 of the PERC thesis: convergence times of Fair, Charny and RCP after a change by one flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RTT = 12e-6
SCHEMES = ("fair", "charny", "rcp")


def _rtts(raw: RawResults) -> dict[str, list[float]]:
    # The first flows start together at time 0, which does not count as a change by one flow.
    return {s: [t / RTT for t in settle.times(raw.simulated(), s, after_ns=1)] for s in SCHEMES}


def measure(raw: RawResults) -> dict[str, Value]:
    """Median and 99th percentile of each scheme's convergence times, and ratios after the same changes."""
    rtts = _rtts(raw)
    found: dict[str, Value] = {"rcp_over_fair": settle.ratio(rtts["rcp"], rtts["fair"])}
    for slower, faster in (("charny", "fair"), ("rcp", "charny")):
        for q in (0.5, 0.99):
            found[f"{slower}_over_{faster}_p{100 * q:g}"] = settle.ratio(rtts[slower], rtts[faster], q)
    for s in SCHEMES:
        found |= {f"{s}_p50": settle.at(rtts[s], 0.5), f"{s}_p99": settle.at(rtts[s], 0.99)}
    return found


def draw(raw: RawResults) -> Figure:
    """Distribution of convergence times by scheme."""
    figure, plots = figures.axes(width=5.5)
    settle.draw(plots[0], _rtts(raw), "RTTs of 12 us until within 10% for 10 RTTs")
    return figure
