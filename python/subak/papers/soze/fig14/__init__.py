"""Figure 14 of Soze: four flows that start and stop in steps at one receiver, under Soze and HPCC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.soze import series
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("soze", "soze-virtual", "hpcc")
STEP_NS, AFTER_NS, EVERY_NS = 10_000_000, 1_000_000, 100_000


def _settled(times: np.ndarray) -> np.ndarray:
    """For each interval of 100 us, whether it is inside a step and after the step's first millisecond."""
    since = (times - EVERY_NS) % STEP_NS
    return (since >= AFTER_NS) & (since < STEP_NS - EVERY_NS)


def _swing(times: np.ndarray, rates: np.ndarray) -> float:
    """Deviation of rates from the mean of all flows over the step; common oscillations count too."""
    squares: list[np.ndarray] = []
    steps = np.floor((times - EVERY_NS) / STEP_NS)
    for step in np.unique(steps):
        mine = rates[steps == step]
        mine = mine[:, np.isfinite(mine).all(axis=0)]
        if mine.shape[1] >= 2:
            squares.append(((mine / mine.mean() - 1) ** 2).ravel())
    return 100 * float(np.sqrt(np.concatenate(squares).mean()))


def measure(raw: RawResults) -> dict[str, Value]:
    """Deviation from the fair share, and utilization, over runs whose flows start a few microseconds apart."""
    return series.over_runs(raw, lambda seed: _measure(raw, seed))


def _measure(raw: RawResults, seed: int) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    deviations: dict[str, float] = {}
    swings: dict[str, float] = {}
    for scheme in SCHEMES:
        times, rates = series.rates_gbps(raw, scheme, "rate_bps", seed)
        rates = rates[_settled(times)]
        together = rates[np.sum(np.isfinite(rates), axis=1) >= 2]
        off = together / np.nanmean(together, axis=1, keepdims=True) - 1
        deviations[scheme] = 100 * float(np.sqrt(np.nanmean(off**2)))
        swings[scheme] = _swing(times[_settled(times)], rates)
        values[f"{scheme} deviation"] = deviations[scheme]
        values[f"{scheme} swing"] = swings[scheme]
        values[f"{scheme} used"] = float(np.nansum(rates, axis=1).mean())
    for scheme in ("soze", "soze-virtual"):
        values[f"{scheme} over hpcc"] = deviations[scheme] / deviations["hpcc"]
        values[f"{scheme} swing over hpcc"] = swings[scheme] / swings["hpcc"]
    return values


def draw(raw: RawResults) -> Figure:
    """Received rates of the flows, in intervals of 100 us."""
    figure, plots = figures.axes(columns=3, width=4)
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        times, rates = series.rates_gbps(raw, scheme, "rate_bps")
        for flow in range(rates.shape[1]):
            plot.plot(times / 1e6, rates[:, flow], color=figures.COLOURS[flow], linestyle="-", linewidth=0.8)
        plot.set(title=scheme, xlabel="ms", ylim=(0, 105))
    plots[0].set_ylabel("Gb/s")
    return figure
