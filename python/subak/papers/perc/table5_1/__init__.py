"""Table 5.1: convergence of s-PERC* and RCP in a wide-area network."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RTT = 76e-3
"""The average over the flows, as the thesis gives it."""
GOALS = ("80% within 30%", "95% within 20%", "99% within 10%")
SPECS = {"s-perc": "s-perc-star", "rcp": "rcp"}


def _rtts(raw: RawResults, spec: str) -> list[list[list[float]]]:
    """By speed, slow first, and by goal: round trips of each run."""
    held = raw.simulated(spec)
    rates = held.manifest["spec"]["network"]["rate"]
    speeds = rates if isinstance(rates, list) else [rates]

    def of(rate: object, criterion: int) -> list[float]:
        axes = {"network.rate": rate} if len(speeds) > 1 or isinstance(rates, list) else {}
        return [t / RTT for t in settle.times(held, SPECS[spec], criterion, axes=axes)]

    return [[of(rate, criterion) for criterion in range(len(GOALS))] for rate in speeds]


def _means(runs: list[list[float]]) -> list[float]:
    # Over the runs that settled, as in the thesis' table.
    settled = [[t for t in times if math.isfinite(t)] for times in runs]
    return [fmean(times) if times else math.inf for times in settled]


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean round trips by goal and speed."""
    s_perc, rcp = _rtts(raw, "s-perc"), _rtts(raw, "rcp")
    slow, fast = _means(s_perc[0]), _means(s_perc[-1])
    rcp_slow = _means(rcp[0])
    return {
        "s_perc_slow": slow,
        "s_perc_fast": fast,
        "same": max(f / s for f, s in zip(fast, slow, strict=True)),
        "rcp_slow": rcp_slow,
        "ratio": min(r / s for r, s in zip(rcp_slow, slow, strict=True)),
        "rcp_settled_slow": [settle.settled(times) for times in rcp[0]],
        "rcp_settled_fast": [settle.settled(times) for times in rcp[-1]],
    }


def draw(raw: RawResults) -> Figure:
    """Bars by goal."""
    figure, plots = figures.axes(width=6)
    bars = {"s-PERC*, slower links": _means(_rtts(raw, "s-perc")[0])}
    bars["s-PERC*, faster links"] = _means(_rtts(raw, "s-perc")[-1])
    bars["RCP, slower links"] = _means(_rtts(raw, "rcp")[0])
    for k, (label, means) in enumerate(bars.items()):
        places = [g + 0.25 * (k - 1) for g in range(len(GOALS))]
        heights = [m if math.isfinite(m) else 0 for m in means]
        plots[0].bar(places, heights, 0.25, label=label, color=figures.COLOURS[k])
    plots[0].set_xticks(range(len(GOALS)), GOALS)
    plots[0].set(ylabel="round trips of 76 ms", yscale="log")
    plots[0].legend()
    return figure
