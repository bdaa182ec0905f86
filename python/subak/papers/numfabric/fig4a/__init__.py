"""Figure 4a: how long rates take to the proportionally fair ones after 100 flows came or went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = {"numfabric": "NUMFabric", "dgd": "DGD", "rcp-star": "RCP*"}


def _times(raw: RawResults) -> dict[str, list[float]]:
    # The first flows start together, at 0: that is no change of 100.
    held = raw.simulated()
    return {s: [1e6 * t for t in settle.times(held, s, after_ns=1)] for s in SCHEMES}


def measure(raw: RawResults) -> dict[str, Value]:
    """Median and 95th percentile of each scheme, and how they compare."""
    times = _times(raw)
    p50 = {s: settle.at(times[s], 0.5) for s in SCHEMES}
    p95 = {s: settle.at(times[s], 0.95) for s in SCHEMES}
    others = ("dgd", "rcp-star")
    found: dict[str, Value] = {
        "fastest": all(q["numfabric"].value < q[s].value for q in (p50, p95) for s in others),
        "ratio_p95": min(settle.ratio(p95[s], p95["numfabric"]) for s in others),
    }
    for s in SCHEMES:
        found |= {f"{s}_p50": p50[s], f"{s}_p95": p95[s], f"{s}_settled": settle.settled(times[s])}
    return found | {f"{s}_ratio": settle.ratio(p50[s], p50["numfabric"]) for s in others}


def draw(raw: RawResults) -> Figure:
    """The distribution of the times."""
    figure, plots = figures.axes(width=5.5)
    curves = {SCHEMES[s]: times for s, times in _times(raw).items()}
    settle.draw(plots[0], curves, "us until 95% of the flows are within 10% for 5 ms")
    return figure
