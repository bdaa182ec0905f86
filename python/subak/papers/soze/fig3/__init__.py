"""Figure 3 of Soze: three flows over two links, and the link that determines the signal of the flow over both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.soze import series
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = {"soze": 1.0, "soze-virtual": 0.98}
"""Fraction of a link that each scheme allocates."""
FLOWS = ("blue", "red", "yellow")
STEP_NS, LAST_NS = 5_000_000, 1_000_000
WEIGHTS = (np.array([3.0, 2.0, 1.0]), np.array([3.0, 2.0, 4.0]))
EXACT = (np.array([60.0, 40.0, 60.0]), np.array([200 / 3, 100 / 3, 200 / 3]))
BOTTLENECK = ("s0->s1", "s1->s2")
"""Bottleneck of the flow over both links (red in the figure), before and after the change of weights."""


def _ran(raw: RawResults) -> list[str]:
    return [scheme for scheme in SHARES if not raw.plan.schemes or scheme in raw.plan.schemes]


def _late(times: np.ndarray, step: int) -> np.ndarray:
    end = min((step + 1) * STEP_NS, times[-1])
    return np.asarray((times > end - LAST_NS) & (times < end))


def measure(raw: RawResults) -> dict[str, Value]:
    """Last rates before and after the change, and their ratios to the weights, over runs with shifted starts."""
    return series.over_runs(raw, lambda seed: _measure(raw, seed))


def _measure(raw: RawResults, seed: int) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for scheme in _ran(raw):
        share = SHARES[scheme]
        times, rates = series.rates_gbps(raw, scheme, "assigned_bps", seed)
        for step in range(2):
            mean = rates[_late(times, step)].mean(axis=0)
            part = f"{scheme} part {step + 1}"
            values[f"{part} rates"] = ", ".join(f"{x:.2f}" for x in mean)
            values[f"{part} off"] = round(100 * float(np.abs(mean / (share * EXACT[step]) - 1).max()), 3)
            blue, red, yellow = mean / WEIGHTS[step]
            # Blue has the signal of the first link, yellow that of the second: the two flows share no link.
            own, other = (blue, yellow) if step == 0 else (yellow, blue)
            values[f"{part} same"] = round(100 * float(abs(red / own - 1)), 3)
            values[f"{part} other"] = round(float(other / red), 3)
            waits = {link: series.queue_us(raw, scheme, link, 100, seed) for link in BOTTLENECK}
            longest = [float(np.mean(queue[_late(at, step)])) for at, queue in waits.values()]
            values[f"{part} queues"] = ", ".join(f"{x:.2f}" for x in longest)
            if scheme == "soze":
                own, other = (longest[k] for k in ((0, 1) if step == 0 else (1, 0)))
                values[f"{part} longer"] = own / other
    return values


def draw(raw: RawResults) -> Figure:
    """Rates of the flows over time, and the exact rates."""
    figure, plots = figures.axes(columns=2, width=5)
    for plot, (scheme, share) in zip(plots, SHARES.items(), strict=True):
        times, rates = series.rates_gbps(raw, scheme, "assigned_bps")
        for flow, (name, colour) in enumerate(zip(FLOWS, ("tab:blue", "tab:red", "goldenrod"), strict=True)):
            plot.plot(times / 1e6, rates[:, flow], color=colour, linestyle="-", linewidth=0.8, label=name)
            for step in range(2):
                plot.hlines(
                    share * EXACT[step][flow], 5 * step, 5 * step + 5, color=colour, linestyle=":", linewidth=1.4
                )
        plot.set(title=scheme, xlabel="ms", ylim=(0, 100))
    plots[0].set_ylabel("Gb/s; dotted: exact")
    plots[0].legend(fontsize="small")
    return figure
