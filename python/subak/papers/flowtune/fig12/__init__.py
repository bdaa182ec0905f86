"""Figure 12 of Flowtune: 99th percentiles of normalized FCTs by flow size, relative to Flowtune's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.papers.flowtune import simulated as sim
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

Run = dict[tuple[str, float, int], Any]
"""By scheme, load and index of the bin: normalized FCTs; infinite for unfinished flows."""

WORDS = (
    ("pfabric", "1-10", min),
    ("pfabric", "10-100", min),
    ("pfabric", "large", max),
    ("sfqcodel", "large", max),
    ("xcp", "10-100", min),
    ("xcp", "100-1000", min),
    ("xcp", "large", min),
)
"""Claims of section 5.3.3 (H) beside its first factors: scheme, bin, and whether the smallest or largest factor."""


def _runs(raw: RawResults) -> list[Run]:
    found = []
    for frame in sim.runs_of(raw, "flow", ["size_bytes", "slowdown", "measured"]):
        frame["bin"] = sim.bin_of(frame["size_bytes"])
        groups = frame.groupby(["scheme", "load", "bin"])["slowdown"]
        found.append({key: of.to_numpy(dtype=float, na_value=np.inf) for key, of in groups})
    return found


def _tail(runs: Sequence[Run], scheme: str, load: float, place: int) -> float:
    return stats.quantile(np.concatenate([run.get((scheme, load, place), np.empty(0)) for run in runs]), 0.99)


def _factor(runs: Sequence[Run], scheme: str, load: float, place: int) -> float:
    return _tail(runs, scheme, load, place) / _tail(runs, "flowtune", load, place)


def _loads(runs: Sequence[Run]) -> list[float]:
    return sorted({load for _, load, _ in runs[0]})


def _extreme(runs: Sequence[Run], scheme: str, place: int, pick: Any) -> float:
    return float(pick([_factor(runs, scheme, load, place) for load in _loads(runs)]))


def measure(raw: RawResults) -> dict[str, Value]:
    """The factors that the paper names, each at the loads where it is smallest and largest; all factors by load."""
    runs = _runs(raw)
    loads = _loads(runs)
    schemes = [s for s in sim.RIVALS if any(scheme == s for scheme, _, _ in runs[0])]
    found: dict[str, Value] = {}
    for scheme, name in (("dctcp", "1"), ("dctcp", "1-10"), ("pfabric", "1")):
        place = list(sim.BINS).index(name)
        if scheme not in schemes:
            continue
        for word, pick in (("least", min), ("most", max)):
            key = f"{scheme} {name} {word}"
            found[key] = stats.over_runs(runs, partial(_extreme, scheme=scheme, place=place, pick=pick), tail=0.99)
    for scheme, name, pick in WORDS:
        if scheme in schemes:
            key = f"{scheme} {name} {'least' if pick is min else 'most'}"
            place = list(sim.BINS).index(name)
            found[key] = stats.over_runs(runs, partial(_extreme, scheme=scheme, place=place, pick=pick), tail=0.99)
    for scheme in [s for s in ("sfqcodel", "sfqcodel-rtt") if s in schemes]:
        found[f"{scheme} 10-100"] = stats.over_runs(
            runs, partial(_factor, scheme=scheme, load=loads[-1], place=2), tail=0.99
        )
        found[f"{scheme} 100-1000"] = stats.over_runs(
            runs, partial(_factor, scheme=scheme, load=loads[0], place=3), tail=0.99
        )
    for scheme in schemes:
        for place, name in enumerate(sim.BINS):
            found[f"all {scheme} {name}"] = [_factor(runs, scheme, load, place) for load in loads]
    found["flowtune"] = [_tail(runs, "flowtune", loads[-1], place) for place in range(len(sim.BINS))]
    every = np.concatenate([times for run in runs for times in run.values()])
    found["complete"] = 100 * float(np.isfinite(every).mean())
    return found


def draw(raw: RawResults) -> Figure:
    """One plot per bin of sizes: each baseline's 99th percentile over Flowtune's, by load."""
    runs = _runs(raw)
    loads = _loads(runs)
    figure, plots = figures.axes(columns=len(sim.BINS), width=2.6, height=3.2)
    for place, (plot, name) in enumerate(zip(plots, sim.BINS, strict=True)):
        for scheme in sim.RIVALS:
            plot.plot(
                loads,
                [_factor(runs, scheme, load, place) for load in loads],
                marker="o",
                label=scheme,
                color=sim.COLORS[scheme],
            )
        plot.axhline(1, color="black", linewidth=0.8)
        size = "over 1000" if name == "large" else name
        plot.set(title=f"{size} packet{'' if name == '1' else 's'}", xlabel="load", yscale="log")
        plot.set_yticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1", "2", "5", "10", "20"])
        plot.minorticks_off()
    plots[0].set_ylabel("99th percentile over Flowtune's")
    plots[-1].legend(loc="upper right")
    return figure
