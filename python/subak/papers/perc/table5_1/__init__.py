"""Table 5.1 of the PERC thesis: convergence of s-PERC* and RCP in a wide-area network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from subak.repro import Measured, RawResults, Value, figures, settle, stats

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from subak.results import Results

RTT = 76e-3
"""Mean RTT over the flows, s, from the thesis."""
GOALS = ("80% within 30%", "95% within 20%", "99% within 10%")


def _s_perc(raw: RawResults) -> list[list[list[float]]]:
    """For slow and for fast links, by convergence criterion: convergence time of each run, RTTs."""
    held = raw.simulated("s-perc")
    rates = held.manifest["spec"]["network"]["rate"]
    return [_rtts(held, "s-perc-star", {"network.rate": rate}) for rate in rates]


def _rcp(raw: RawResults) -> list[list[list[float]]]:
    return [_rtts(raw.simulated(spec), "rcp", {}) for spec in ("rcp", "rcp-fast")]


def _rtts(held: Results, scheme: str, axes: dict[str, object]) -> list[list[float]]:
    return [[t / RTT for t in settle.times(held, scheme, goal, axes=axes)] for goal in range(len(GOALS))]


def _settled(runs: list[list[float]]) -> list[list[float]]:
    # Only runs that converged, as in the thesis' table.
    return [[t for t in times if math.isfinite(t)] for times in runs]


def _means(runs: list[list[float]]) -> list[Value]:
    return [stats.estimate(times, "mean", "runs") if times else math.inf for times in _settled(runs)]


def _extreme(slow: list[list[float]], fast: list[list[float]], pick: Callable[..., stats.Array]) -> Measured:
    """Smallest or largest ratio of the mean convergence times, over the three criteria, of the runs that converged.

    The ratios' runs are resampled together.
    """
    mean, _ = stats.statistic_of("mean")
    sides = [side for pair in zip(_settled(slow), _settled(fast), strict=True) for side in pair]
    if not all(sides):
        return Measured(math.inf, count=0, of="runs")

    def compute(drawn: list[stats.Array]) -> stats.Array:
        return np.asarray(
            pick([stats.over_each(mean(s), mean(f)) for s, f in zip(drawn[::2], drawn[1::2], strict=True)], axis=0)
        )

    return stats.joint(sides, compute, "runs", paired=len({len(side) for side in sides}) == 1)


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean convergence time by convergence criterion and speed of the links, RTTs."""
    found: dict[str, Value] = {}
    slow, fast = _s_perc(raw) if raw.has("s-perc") else ([], [])
    if slow:
        found |= {"s_perc_slow": _means(slow), "s_perc_fast": _means(fast), "same": _extreme(fast, slow, np.max)}
    for spec, key in (("rcp", "slow"), ("rcp-fast", "fast")):
        if raw.has(spec):
            rcp = _rtts(raw.simulated(spec), "rcp", {})
            found |= {f"rcp_{key}": _means(rcp), f"rcp_settled_{key}": [settle.settled(t, "runs") for t in rcp]}
            if key == "slow" and slow:
                found["ratio"] = _extreme(rcp, slow, np.min)
    if raw.has("rcp") and raw.has("rcp-fast"):
        slow_rcp, fast_rcp = _rcp(raw)
        found["rcp_worse"] = _extreme(fast_rcp, slow_rcp, np.min)
    return found


def draw(raw: RawResults) -> Figure:
    """Mean convergence times by criterion; no bar if no run converged."""
    figure, plots = figures.axes(width=6)
    bars = [f"{scheme}, {links}" for scheme in ("s-PERC*", "RCP") for links in ("slower links", "faster links")]
    for k, (label, times) in enumerate(zip(bars, _s_perc(raw) + _rcp(raw), strict=True)):
        places = [g + 0.2 * (k - 1.5) for g in range(len(GOALS))]
        heights = [m.value if isinstance(m, Measured) else 0 for m in _means(times)]
        plots[0].bar(places, heights, 0.2, label=label, color=figures.COLOURS[k])
    plots[0].set_xticks(range(len(GOALS)), GOALS)
    plots[0].set(ylabel="round trips of 76 ms", yscale="log")
    plots[0].margins(y=0.3)
    plots[0].legend(loc="upper left", ncols=2)
    return figure
