"""Figure 6: convergence times over NUMFabric's parameters and over alpha."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from subak.repro import Measured, RawResults, Value, figures, settle
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
    """Of the changes that settled, as in the paper."""
    return median([t for t in times if math.isfinite(t)])


def _of(raw: RawResults, label: str) -> list[float]:
    return _times(raw, "parameters", label)


def _told(times: Sequence[float]) -> Measured:
    return Measured(_median(times), note=f"{settle.settled(times):.0f}% of {len(times)} settled")


def measure(raw: RawResults) -> dict[str, Value]:
    """Medians of the changes that settled, shares of those, and how they compare."""
    default = _median(_of(raw, "default"))
    over = {label: _median(_of(raw, label)) / default for label in (*DT.values(), *INTERVAL.values(), *OTHERS)}
    found: dict[str, Value] = {
        f"us {label}": _told(_of(raw, label)) for label in dict.fromkeys((*DT.values(), *INTERVAL.values(), *OTHERS))
    }
    hardly = [over[label] for label in OTHERS if not label.startswith("ewma")]
    found |= {
        "default_settled": settle.settled(_of(raw, "default")),
        "dt3_settled": settle.settled(_of(raw, DT[3])),
        "dt24": over[DT[24]],
        "interval128": over[INTERVAL[128]],
        "hardly": max(max(r, 1 / r) if r > 0 else math.inf for r in hardly),
    }
    for speed, scheme in (("1x", "numfabric"), ("2x", "numfabric 2x")):
        times = {a: _times(raw, "alpha", scheme, a) for a in ALPHAS}
        found[f"alpha_{speed}"] = [_median(t) for t in times.values()]
        found[f"alpha_{speed}_settled"] = [settle.settled(t) for t in times.values()]
        found[f"alpha_{speed}_all"] = settle.settled([t for of in times.values() for t in of])
    for scheme in LOW:
        found[f"low {scheme}"] = settle.settled([t for a in (0.25, 0.4) for t in _times(raw, "low", scheme, a)])
    return found


def _curve(plot: Axes, at: Sequence[float], times: Sequence[Sequence[float]], label: str) -> None:
    line = plot.plot(at, [_median(t) for t in times], marker="o", label=label)[0]
    for x, of in zip(at, times, strict=True):
        share = settle.settled(of)
        if share == 0:
            plot.plot(x, 0, marker="x", color=line.get_color(), linestyle="", markersize=8, clip_on=False)
        elif share < 100:
            plot.annotate(f"{share:.0f}%", (x, _median(of)), textcoords="offset points", xytext=(4, 6))
    plot.set_xticks(at, [f"{x:g}" for x in at])


def draw(raw: RawResults) -> Figure:
    """Median times of the changes that settled; a percentage says how many did where not all, a cross where none."""
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
