"""Figure 4a of NUMFabric: convergence time to proportionally fair rates after 100 flows started or stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = {"numfabric": "NUMFabric", "dgd": "DGD", "rcp-star": "RCP*"}


def _times(raw: RawResults) -> dict[str, list[float]]:
    # The first flows start together at time 0, which does not count as a change of 100 flows.
    held = raw.simulated()
    times = {s: [1e6 * t for t in settle.times(held, s, after_ns=1)] for s in SCHEMES}
    return {s: of for s, of in times.items() if of}


def measure(raw: RawResults) -> dict[str, Value]:
    """Median and 95th percentile of each scheme's convergence times, and ratios to NUMFabric's."""
    times = _times(raw)
    mine = times["numfabric"]
    others = [s for s in times if s != "numfabric"]
    found: dict[str, Value] = {
        "ratio_p95": settle.least_ratio([times[s] for s in others], mine, [0.95]),
        "fastest": settle.least_ratio([times[s] for s in others], mine, [0.5, 0.95]),
    }
    for s, of in times.items():
        found |= {f"{s}_p50": settle.at(of, 0.5), f"{s}_p95": settle.at(of, 0.95), f"{s}_settled": settle.settled(of)}
    return found | {f"{s}_ratio": settle.ratio(times[s], mine) for s in others}


def draw(raw: RawResults) -> Figure:
    """Distribution of convergence times by scheme."""
    figure, plots = figures.axes(width=5.5)
    curves = {SCHEMES[s]: times for s, times in _times(raw).items()}
    settle.draw(plots[0], curves, "us until 95% of the flows are within 10% for 5 ms")
    return figure
