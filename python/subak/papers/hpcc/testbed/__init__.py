"""HPCC's testbed: slowdowns of the shortest flows under HPCC and DCQCN at 25 Gb/s."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import RawResults, Value, figures, stats
from subak.sizes import by_size, labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

SCHEMES = ("hpcc", "dcqcn")
SHORT_BYTES = 3000
Flows = dict[tuple[str, float], Any]
"""By scheme and load: sizes and slowdowns, one row per measured flow."""


def _runs(raw: RawResults) -> list[Flows]:
    """Flows of each run; an unfinished flow has an infinite slowdown."""
    frame = raw.simulated().table("flow", ["scheme", "load", "seed", "size_bytes", "slowdown", "measured"]).to_pandas()
    runs: dict[int, Flows] = {}
    for (seed, scheme, load), flows in frame[frame["measured"]].groupby(["seed", "scheme", "load"]):
        values = flows[["size_bytes", "slowdown"]].to_numpy(dtype=float, na_value=np.inf)
        runs.setdefault(seed, {})[scheme, float(load)] = values
    return list(runs.values())


def _short(runs: Sequence[Flows], scheme: str, load: float, q: float) -> float:
    flows = np.concatenate([run[scheme, load] for run in runs])
    return stats.quantile(flows[flows[:, 0] <= SHORT_BYTES, 1], q)


def _factor(runs: Sequence[Flows], load: float) -> float:
    return _short(runs, "dcqcn", load, 0.99) / _short(runs, "hpcc", load, 0.99)


def measure(raw: RawResults) -> dict[str, Value]:
    """99th percentile of slowdowns of the shortest flows, and DCQCN's relative to HPCC's; whole runs are resampled."""
    runs = _runs(raw)
    loads = sorted({load for _, load in runs[0]})
    found: dict[str, Value] = {
        f"factor {load:g}": stats.over_runs(runs, partial(_factor, load=load), tail=0.99) for load in loads
    }
    for scheme in SCHEMES:
        found[scheme] = [_short(runs, scheme, load, 0.99) for load in loads]
    found["median"] = [_short(runs, scheme, loads[-1], 0.5) for scheme in SCHEMES]
    every = np.concatenate([flows[:, 1] for run in runs for flows in run.values()])
    found["complete"] = 100 * float(np.isfinite(every).mean())
    found["dropped"] = int(raw.simulated().table("summary", ["dropped_packets"]).to_pandas()["dropped_packets"].sum())
    return found


def draw(raw: RawResults) -> Figure:
    """99th percentile of slowdowns by flow size, in ten bins with equal numbers of flows."""
    runs = _runs(raw)
    loads = sorted({load for _, load in runs[0]})
    figure, plots = figures.axes(columns=len(loads), width=5)
    for plot, load in zip(plots, loads, strict=True):
        for scheme in SCHEMES:
            flows = np.concatenate([run[scheme, load] for run in runs])
            bins = by_size(flows[:, 0], flows[:, 1], percentile=99)
            plot.plot(range(len(bins)), [one.slowdown for one in bins], marker="o", label=scheme)
            plot.set_xticks(range(len(bins)), labels(bins), rotation=45)
        plot.set(title=f"web search, load {load:g}", yscale="log")
        plot.set(xlabel="size: up to this, a tenth of the flows each", ylabel="99th percentile of slowdown")
        plot.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        plot.minorticks_off()
    plots[0].legend(loc="upper left")
    return figure
