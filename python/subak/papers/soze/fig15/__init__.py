"""Figures 15 and 16 of Soze: slowdowns of Google's RPCs under Soze, HPCC and DCQCN at 40 and 80% load."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import RawResults, Value, figures, stats
from subak.repro.pools import Pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

SCHEMES = ("soze", "soze-virtual", "hpcc", "dcqcn")
PAYLOAD_BYTES = 1000
SHORT = 1000
"""Largest flow size, packets, of the flows of figure 16 that gain most under Soze."""
BINS = (1, 10, 100, 1000, 10_000, 1_000_000)
"""Upper edges of the bins of flow sizes, packets."""
Flows = dict[tuple[str, float], Any]
"""By scheme and load: sizes in packets and slowdowns, one row per measured flow."""


def _runs(raw: RawResults) -> list[Flows]:
    columns = ["scheme", "load", "seed", "size_bytes", "slowdown", "measured"]
    frame = raw.simulated().table("flow", columns).to_pandas()
    runs: dict[int, Flows] = {}
    for (seed, scheme, load), flows in frame[frame["measured"]].groupby(["seed", "scheme", "load"]):
        values = flows[["size_bytes", "slowdown"]].to_numpy(dtype=float, na_value=np.inf)
        values[:, 0] = np.ceil(values[:, 0] / PAYLOAD_BYTES)
        runs.setdefault(seed, {})[scheme, float(load)] = values
    return list(runs.values())


def _ran(runs: Sequence[Flows]) -> list[str]:
    return [scheme for scheme in SCHEMES if any(name == scheme for name, _ in runs[0])]


def _loads(runs: Sequence[Flows]) -> list[float]:
    return sorted({load for _, load in runs[0]})


def _quantile(runs: Sequence[Flows], scheme: str, load: float, q: float, least: float = 0, most: float = 1e9) -> float:
    flows = np.concatenate([run[scheme, load] for run in runs])
    mine = flows[(flows[:, 0] > least) & (flows[:, 0] <= most), 1]
    return stats.quantile(mine, q) if len(mine) else float("nan")


def measure(raw: RawResults) -> dict[str, Value]:
    """Median and 99th percentile of slowdowns, and Soze's relative to the baselines'; whole runs are resampled."""
    runs = _runs(raw)
    pools = {
        (scheme, load, long): Pool([run[scheme, load][(run[scheme, load][:, 0] > SHORT) == long, 1] for run in runs])
        for scheme, load in runs[0]
        for long in (False, True)
    }

    def quantile(picks: Sequence[int], scheme: str, load: float, long: bool, q: float) -> float:
        return pools[scheme, load, long].quantile(picks, q)

    def over(picks: Sequence[int], scheme: str, rival: str, load: float, long: bool, q: float) -> float:
        return quantile(picks, scheme, load, long, q) / quantile(picks, rival, load, long, q)

    every = range(len(runs))
    found: dict[str, Value] = {}
    for load in _loads(runs):
        at = f"at {100 * load:.0f}%"
        for scheme in _ran(runs):
            for name, q in (("p50", 0.5), ("p99", 0.99)):
                found[f"{scheme} {name} {at}"] = stats.over_runs(
                    every, partial(quantile, scheme=scheme, load=load, long=False, q=q), tail=q
                )
            done = [float(np.isfinite(run[scheme, load][:, 1]).mean()) * 100 for run in runs]
            found[f"{scheme} complete {at}"] = round(min(done), 4)
        for scheme in ("soze", "soze-virtual"):
            for rival in ("hpcc", "dcqcn"):
                if not {scheme, rival} <= set(_ran(runs)):
                    continue
                ratio = partial(over, scheme=scheme, rival=rival, load=load)
                for name, long, q in (("short p50", False, 0.5), ("short p99", False, 0.99), ("long", True, 0.5)):
                    found[f"{scheme} over {rival} {name} {at}"] = stats.over_runs(
                        every, partial(ratio, long=long, q=q), tail=q
                    )
    return found


def draw(raw: RawResults) -> Figure:
    """99th percentile of slowdowns by flow size at each load, and the distribution of all slowdowns."""
    runs = _runs(raw)
    loads = _loads(runs)
    figure, plots = figures.axes(rows=2, columns=len(loads), width=5)
    for k, load in enumerate(loads):
        for scheme in _ran(runs):
            edges = [0, *BINS]
            tail = [_quantile(runs, scheme, load, 0.99, edges[b], edges[b + 1]) for b in range(len(BINS))]
            plots[k].plot(range(len(BINS)), tail, marker="o", label=scheme)
            slow = np.sort(np.concatenate([run[scheme, load] for run in runs])[:, 1])
            shares = np.linspace(0, 1, 400)
            plots[k + len(loads)].plot([stats.quantile(slow, q) for q in shares], shares, label=scheme)
        names = [f"{b:,}" for b in BINS[:-1]]
        plots[k].set_xticks(range(len(BINS)), [*names, f"> {names[-1]}"])
        plots[k].set(title=f"load {100 * load:.0f}%", xlabel="packets, up to", yscale="log")
        plots[k + len(loads)].set(xlabel="slowdown", xscale="log", ylim=(0, 1.01))
    plots[0].set_ylabel("slowdown, 99th percentile")
    plots[len(loads)].set_ylabel("share of all flows")
    plots[0].legend(fontsize="small")
    return figure
