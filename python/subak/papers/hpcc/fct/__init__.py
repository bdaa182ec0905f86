"""HPCC's simulations: slowdowns by flow size under three schemes, web search and Hadoop at 30 and 50% load."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import RawResults, Value, figures, stats
from subak.sizes import by_size, labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure

WORKLOADS = {"search": "web search", "hadoop": "Hadoop"}
SCHEMES = ("hpcc", "dcqcn", "timely")
SMALL_BYTES = 30_000
LARGE_BYTES = 1_000_000
Setting = tuple[str, float]
"""Name of the workload, and load from 0 to 1."""
Flows = dict[tuple[str, Setting], Any]
"""By scheme, workload and load: sizes and slowdowns, one row per measured flow."""


def _workloads(raw: RawResults) -> list[str]:
    return [workload for workload in WORKLOADS if not raw.plan.specs or workload in raw.plan.specs]


def _frames(raw: RawResults) -> Iterator[tuple[str, Any]]:
    columns = ["scheme", "load", "seed", "size_bytes", "slowdown", "measured"]
    for workload in _workloads(raw):
        frame = raw.simulated(workload).table("flow", columns).to_pandas()
        yield workload, frame[frame["measured"]]


def _runs(raw: RawResults) -> list[Flows]:
    """Flows of each run; an unfinished flow has an infinite slowdown."""
    runs: dict[int, Flows] = {}
    for workload, frame in _frames(raw):
        for (seed, scheme, load), flows in frame.groupby(["seed", "scheme", "load"]):
            values = flows[["size_bytes", "slowdown"]].to_numpy(dtype=float, na_value=np.inf)
            runs.setdefault(seed, {})[scheme, (workload, float(load))] = values
    return list(runs.values())


def _settings(runs: Sequence[Flows]) -> list[Setting]:
    order = list(WORKLOADS)
    return sorted({setting for _, setting in runs[0]}, key=lambda s: (order.index(s[0]), s[1]))


def _tail(runs: Sequence[Flows], scheme: str, setting: Setting) -> float:
    """95th percentile of the slowdowns of short flows."""
    flows = np.concatenate([run[scheme, setting] for run in runs])
    return stats.quantile(flows[flows[:, 0] <= SMALL_BYTES, 1], 0.95)


def _middle(runs: Sequence[Flows], scheme: str, setting: Setting) -> float:
    flows = np.concatenate([run[scheme, setting] for run in runs])
    return stats.median(flows[flows[:, 0] > LARGE_BYTES, 1])


def _factors(runs: Sequence[Flows], rival: str) -> list[float]:
    return [_tail(runs, rival, setting) / _tail(runs, "hpcc", setting) for setting in _settings(runs)]


def _largest(runs: Sequence[Flows], rival: str) -> float:
    return max(_factors(runs, rival))


def _smallest(runs: Sequence[Flows], rival: str) -> float:
    return min(_factors(runs, rival))


def measure(raw: RawResults) -> dict[str, Value]:
    """95th percentile of slowdowns of short flows, and the baselines' relative to HPCC's; whole runs are resampled.

    A variant may have one scheme.
    """
    runs = _runs(raw)
    settings = _settings(runs)
    found: dict[str, Value] = {}
    ran = [scheme for scheme in SCHEMES if (scheme, settings[0]) in runs[0]]
    for rival in ran[1:] if "hpcc" in ran else []:
        found[f"{rival}_best"] = stats.over_runs(runs, partial(_largest, rival=rival), tail=0.95)
        found[f"{rival}_worst"] = stats.over_runs(runs, partial(_smallest, rival=rival), tail=0.95)
    for scheme in ran:
        found[scheme] = [_tail(runs, scheme, setting) for setting in settings]
    if {"hpcc", "dcqcn"} <= set(ran):
        found["long"] = [_middle(runs, "hpcc", s) / _middle(runs, "dcqcn", s) for s in settings]
    every = np.concatenate([flows[:, 1] for run in runs for flows in run.values()])
    found["complete"] = 100 * float(np.isfinite(every).mean())
    drops = [raw.simulated(w).table("summary", ["dropped_packets"]).to_pandas() for w in _workloads(raw)]
    found["dropped"] = int(sum(frame["dropped_packets"].sum() for frame in drops))
    return found


def draw(raw: RawResults) -> Figure:
    """95th percentile of slowdowns by flow size, in tenths of the flows as in the paper's plots."""
    runs = _runs(raw)
    settings = _settings(runs)
    figure, plots = figures.axes(rows=2, columns=2, width=5.2)
    for plot, setting in zip(plots, settings, strict=True):
        for scheme in SCHEMES:
            flows = np.concatenate([run[scheme, setting] for run in runs])
            bins = by_size(flows[:, 0], flows[:, 1])
            plot.plot(range(len(bins)), [one.slowdown for one in bins], marker="o", label=scheme)
            plot.set_xticks(range(len(bins)), labels(bins), rotation=45)
        workload, load = setting
        plot.set(title=f"{WORKLOADS[workload]}, load {load:g}", yscale="log")
        plot.set(xlabel="size: up to this, a tenth of the flows each", ylabel="95th percentile of slowdown")
        plot.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        plot.minorticks_off()
    plots[0].legend(loc="upper left")
    return figure
