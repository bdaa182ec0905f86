"""Figure 6 of NUMFabric: convergence times over NUMFabric's parameters and over alpha."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from subak.repro import Measured, RawResults, Value, figures, settle, stats
from subak.repro.stats import median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DT = {3: "dt 3us", 6: "default", 12: "dt 12us", 24: "dt 24us"}
INTERVAL = {30: "default", 48: "interval 48us", 64: "interval 64us", 96: "interval 96us", 128: "interval 128us"}
OTHERS = ("ewma 10us", "ewma 40us", "eta 1", "eta 20", "beta 0.25", "beta 0.75")
ALPHAS = (0.25, 0.5, 1, 2, 4)
LOW = ("dgd", "dgd 4x", "rcp-star", "rcp-star 4x")


def _times(raw: RawResults, spec: str, scheme: str, alpha: float | None = None) -> list[float]:
    axes: dict[str, object] = {} if alpha is None else {"policy.alpha": alpha}
    return [1e6 * t for t in settle.times(raw.simulated(spec), scheme, after_ns=1, axes=axes)]


def _median(times: Sequence[float]) -> float:
    """Median convergence time over the changes that converged, as in the paper."""
    return median(_finite(times))


def _of(raw: RawResults, label: str) -> list[float]:
    return _times(raw, "parameters", label)


def _finite(times: Sequence[float]) -> list[float]:
    return [t for t in times if math.isfinite(t)]


def _told(times: Sequence[float]) -> Measured:
    found = stats.estimate(_finite(times), "median", "changes")
    return replace(found, note=f"of {len(times)}, the others never settled" if found.count < len(times) else "")


def _over(times: Sequence[float], default: Sequence[float]) -> Measured:
    """Ratio of two medians over the changes that converged; the two sides are not paired."""
    return stats.ratio(_finite(times), _finite(default), "median", "changes", paired=False)


def _farthest(raw: RawResults) -> Measured:
    """Largest change of the median convergence time, up or down, by the parameters eta and beta."""
    sides = [_finite(_of(raw, label)) for label in (*OTHERS, "default") if not label.startswith("ewma")]
    if not all(sides):
        return Measured(math.inf, count=0, of="changes")
    middle, _ = stats.statistic_of("median")

    def most(drawn: list[stats.Array]) -> stats.Array:
        *others, default = (middle(side) for side in drawn)
        ratios = [stats.over_each(other, default) for other in others]
        return np.max([np.maximum(r, stats.over_each(1.0, r)) for r in ratios], axis=0)

    return stats.joint(sides, most, "changes", paired=False)


def measure(raw: RawResults) -> dict[str, Value]:
    """Medians of convergence times over the changes that converged, fractions of these, and ratios of the medians."""
    found: dict[str, Value] = {}
    if raw.has("parameters"):
        default = _of(raw, "default")
        found |= {
            f"us {label}": _told(_of(raw, label))
            for label in dict.fromkeys((*DT.values(), *INTERVAL.values(), *OTHERS))
        }
        found |= {
            "default_settled": settle.settled(default),
            "dt3_settled": settle.settled(_of(raw, DT[3])),
            "dt24": _over(_of(raw, DT[24]), default),
            "interval128": _over(_of(raw, INTERVAL[128]), default),
            "hardly": _farthest(raw),
        }
    for speed, scheme in (("1x", "numfabric"), ("2x", "numfabric 2x")) if raw.has("alpha") else ():
        times = {a: _times(raw, "alpha", scheme, a) for a in ALPHAS}
        found[f"alpha_{speed}"] = [_told(t) for t in times.values()]
        found[f"alpha_{speed}_settled"] = [settle.settled(t) for t in times.values()]
        found[f"alpha_{speed}_all"] = settle.settled([t for of in times.values() for t in of])
    for scheme in LOW if raw.has("low") else ():
        found[f"low {scheme}"] = settle.settled([t for a in (0.25, 0.4) for t in _times(raw, "low", scheme, a)])
    return found


def _curve(plot: Axes, at: Sequence[float], times: Sequence[Sequence[float]], label: str) -> None:
    line = plot.plot(at, [_median(t) for t in times], marker="o", label=label)[0]
    for x, of in zip(at, times, strict=True):
        share = settle.settled(of).value
        if share == 0:
            plot.plot(x, 0, marker="x", color=line.get_color(), linestyle="", markersize=8, clip_on=False)
        elif share < 100:
            plot.annotate(f"{share:.0f}%", (x, _median(of)), textcoords="offset points", xytext=(4, 6))
    plot.set_xticks(at, [f"{x:g}" for x in at])


def draw(raw: RawResults) -> Figure:
    """Median convergence times over the changes that converged.

    A percentage is the fraction that did, if not all; a cross is none.
    """
    figure, plots = figures.axes(columns=3, width=4.2)
    for plot, values, title in ((plots[0], DT, "dt, us"), (plots[1], INTERVAL, "price update interval, us")):
        _curve(plot, list(values), [_of(raw, label) for label in values.values()], "NUMFabric")
        plot.set(xlabel=title, ylabel="median convergence time, us", ylim=(0, None))
    plots[2].set(xlabel="alpha", xscale="log")
    plots[2].minorticks_off()
    for scheme, label in (("numfabric", "1x"), ("numfabric 2x", "2x slower")):
        _curve(plots[2], ALPHAS, [_times(raw, "alpha", scheme, a) for a in ALPHAS], label)
    plots[2].set(ylim=(0, None))
    plots[2].legend()
    return figure
