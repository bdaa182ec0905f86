"""Figure 7 of NUMFabric: mean normalized FCTs of NUMFabric and pFabric by load."""

from __future__ import annotations

import math
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

SCHEMES = ("numfabric", "pfabric")
PARTS = {"all flows": (0, math.inf), "up to 100 KB": (0, 100_000), "above 1 MB": (1_000_000, math.inf)}
CAPPED = "weights of at most 1.5 line rates"
Means = dict[str, dict[float, float]]
"""By scheme and load: mean slowdown (FCT over ideal FCT)."""


def _runs(raw: RawResults) -> list[dict[str, Any]]:
    """For each run and size class: number of measured flows of each scheme and load, and the sum of their slowdowns."""
    columns = ["kind", "scheme", "load", "seed", "size_bytes", "slowdown", "measured"]
    frame = raw.simulated().table("flow", columns).to_pandas()
    frame = frame[frame["measured"]]
    return [{part: _sums(of, *sizes) for part, sizes in PARTS.items()} for _, of in frame.groupby("seed")]


def _sums(flows: Any, low: float, high: float) -> Any:
    mine = flows[(flows["size_bytes"] > low) & (flows["size_bytes"] <= high)]
    return mine.groupby(["scheme", "load"])["slowdown"].agg(["sum", "count", "size"])


def _means(runs: Sequence[dict[str, Any]], part: str) -> Means:
    total = reduce(add, [run[part] for run in runs])
    means = total["sum"] / total["count"]
    return {s: {float(load): float(v) for load, v in means[s].items()} for s in SCHEMES}


def _ratios(runs: Sequence[dict[str, Any]], part: str) -> list[float]:
    means = _means(runs, part)
    return [mean / means["pfabric"][load] for load, mean in means["numfabric"].items()]


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean slowdown of NUMFabric over that of pFabric at each load, over all flows and by size.

    Whole runs are resampled.
    """
    runs = _runs(raw)
    loads = range(len(_ratios(runs, "all flows")))

    def ratio(chosen: Sequence[dict[str, Any]], part: str, load: int) -> float:
        return _ratios(chosen, part)[load]

    def each(part: str) -> list[Value]:
        return [stats.over_runs(runs, partial(ratio, part=part, load=k)) for k in loads]

    whole = reduce(add, [run["all flows"] for run in runs])
    return {
        "worst": stats.over_runs(runs, lambda chosen: max(_ratios(chosen, "all flows"))),
        "ratios": each("all flows"),
        "short": each("up to 100 KB"),
        "long": each("above 1 MB"),
        "complete": 100 * float(whole["count"].sum() / whole["size"].sum()),
        **{scheme: list(of.values()) for scheme, of in _means(runs, "all flows").items()},
    }


def draw(raw: RawResults) -> Figure:
    """Mean slowdowns by load, over all flows and over those up to 100 KB and above 1 MB; with capped weights dotted."""
    figure, plots = figures.axes(columns=3, width=3.6)
    runs = _runs(raw)
    capped = _runs(raw.variants[CAPPED]) if CAPPED in raw.variants else None
    for plot, part in zip(plots, PARTS, strict=True):
        for scheme, means in _means(runs, part).items():
            plot.plot(list(means), list(means.values()), marker="o", label=scheme)
        if capped:
            means = _means(capped, part)["numfabric"]
            plot.plot(list(means), list(means.values()), ":", marker="x", color="black", label="numfabric, capped")
        plot.set(title=part, xlabel="load", ylabel="mean normalized completion time", ylim=(0, None))
    plots[0].legend(loc="upper left")
    return figure
