"""Median FCTs of Flowtune's longer flows relative to those at exact rates, and the effect of variants of Flowtune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subak.papers.flowtune import simulated as sim
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

LONG, SHORT = list(sim.BINS).index("100-1000"), list(sim.BINS).index("1")
MARKERS = "os^vD<>pPX*h"
Run = Any
"""Frame of a run's flows: scheme, load, index of the size bin, normalized FCT (infinite for unfinished flows)."""


def _runs(raw: RawResults) -> list[Run]:
    runs = sim.runs_of(raw, "flow", ["size_bytes", "slowdown", "measured"])
    for frame in runs:
        frame["bin"] = sim.bin_of(frame["size_bytes"])
        frame["slowdown"] = frame["slowdown"].astype(float).fillna(np.inf)
    return runs


def _of(runs: Sequence[Run], scheme: str, load: float, place: int | None = None) -> Any:
    frames = [run[(run["scheme"] == scheme) & (run["load"] == load)] for run in runs]
    return np.concatenate([f["slowdown"][f["bin"] == place if place is not None else slice(None)] for f in frames])


def _long(runs: Sequence[Run], scheme: str, load: float) -> float:
    return stats.median(_of(runs, scheme, load, LONG)) / stats.median(_of(runs, "ideal", load, LONG))


def _schemes(runs: Sequence[Run]) -> list[str]:
    return [scheme for scheme in runs[0]["scheme"].unique() if scheme != "ideal"]


def measure(raw: RawResults) -> dict[str, Value]:
    """By variant and load: FCTs of long flows relative to exact fluid rates, of single packets, of all flows."""
    runs = _runs(raw)
    loads = sim.loads_of(runs)
    found: dict[str, Value] = {
        "flowtune": sim.over_runs(runs, lambda some: max(_long(some, "flowtune", load) for load in loads)),
        "complete": 100 * float(np.mean([np.isfinite(run["slowdown"]).mean() for run in runs])),
    }
    for scheme in _schemes(runs):
        found[f"long {scheme}"] = [_long(runs, scheme, load) for load in loads]
        found[f"short {scheme}"] = [stats.quantile(_of(runs, scheme, load, SHORT), 0.99) for load in loads]
        found[f"all {scheme}"] = [float(np.mean(_of(runs, scheme, load))) for load in loads]
    return found


def draw(raw: RawResults) -> Figure:
    """One point per variant: median FCT of long flows over 99th percentile of single packets."""
    runs = _runs(raw)
    loads = sim.loads_of(runs)
    figure, plots = figures.axes(columns=len(loads), width=4.6, height=4.2)
    for plot, load in zip(plots, loads, strict=True):
        for k, scheme in enumerate(_schemes(runs)):
            x, y = _long(runs, scheme, load), stats.quantile(_of(runs, scheme, load, SHORT), 0.99)
            plot.plot([x], [y], marker=MARKERS[k], color=f"C{k % 10}", linestyle="none", markersize=8, label=scheme)
        plot.set(title=f"load {load:g}", xlabel="100-1000 packets: median over the exact fluid's")
    plots[0].set_ylabel("1 packet: 99th percentile")
    plots[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure
