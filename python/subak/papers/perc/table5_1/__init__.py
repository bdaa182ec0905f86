"""Table 5.1: convergence of s-PERC* and RCP in a wide-area network."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.runs import Results

RTT = 76e-3
"""The average over the flows, as the thesis gives it."""
GOALS = ("80% within 30%", "95% within 20%", "99% within 10%")


def _s_perc(raw: RawResults) -> list[list[list[float]]]:
    """By speed, slow first, and by goal: round trips of each run."""
    held = raw.simulated("s-perc")
    rates = held.manifest["spec"]["network"]["rate"]
    return [_rtts(held, "s-perc-star", {"network.rate": rate}) for rate in rates]


def _rcp(raw: RawResults) -> list[list[list[float]]]:
    return [_rtts(raw.simulated(spec), "rcp", {}) for spec in ("rcp", "rcp-fast")]


def _rtts(held: Results, scheme: str, axes: dict[str, object]) -> list[list[float]]:
    return [[t / RTT for t in settle.times(held, scheme, goal, axes=axes)] for goal in range(len(GOALS))]


def _means(runs: list[list[float]]) -> list[float]:
    # Over the runs that settled, as in the thesis' table.
    settled = [[t for t in times if math.isfinite(t)] for times in runs]
    return [fmean(times) if times else math.inf for times in settled]


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean round trips by goal and speed."""
    s_perc, rcp = _s_perc(raw), _rcp(raw)
    slow, fast = map(_means, s_perc)
    rcp_slow, rcp_fast = map(_means, rcp)
    return {
        "s_perc_slow": slow,
        "s_perc_fast": fast,
        "same": max(f / s for f, s in zip(fast, slow, strict=True)),
        "rcp_slow": rcp_slow,
        "rcp_fast": rcp_fast,
        "ratio": min(r / s for r, s in zip(rcp_slow, slow, strict=True)),
        "rcp_settled_slow": [settle.settled(times) for times in rcp[0]],
        "rcp_settled_fast": [settle.settled(times) for times in rcp[1]],
    }


def draw(raw: RawResults) -> Figure:
    """Bars by goal; none where nothing settled."""
    figure, plots = figures.axes(width=6)
    bars = [f"{scheme}, {links}" for scheme in ("s-PERC*", "RCP") for links in ("slower links", "faster links")]
    for k, (label, times) in enumerate(zip(bars, _s_perc(raw) + _rcp(raw), strict=True)):
        places = [g + 0.2 * (k - 1.5) for g in range(len(GOALS))]
        heights = [m if math.isfinite(m) else 0 for m in _means(times)]
        plots[0].bar(places, heights, 0.2, label=label, color=figures.COLOURS[k])
    plots[0].set_xticks(range(len(GOALS)), GOALS)
    plots[0].set(ylabel="round trips of 76 ms", yscale="log")
    plots[0].margins(y=0.3)
    plots[0].legend(loc="upper left", ncols=2)
    return figure
