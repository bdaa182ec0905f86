"""Figures 2.7 to 2.10: completion times on one link against an ideal max-min allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc import completion
from subak.repro import Measured, RawResults, Value, figures
from subak.repro.stats import over_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

SCHEMES = ("fair", "charny", "rcp", "dctcp")
CLASSES = {"small": (0, 10e3, "p99"), "medium": (10e3, 1e6, "p99"), "large": (1e6, np.inf, "mean")}


Run = dict[str, completion.Flows]


def _of(runs: Sequence[Run], scheme: str, which: str) -> float:
    low, high, statistic = CLASSES[which]
    flows = completion.pooled(runs, scheme)
    fct = flows["fct"][(flows["size"] > low) & (flows["size"] <= high)]
    return float(fct.mean()) if statistic == "mean" else completion.quantile(fct, 0.99)


def _ratio(runs: Sequence[Run], scheme: str, over: str, which: str) -> Measured:
    return over_runs(runs, lambda chosen: _of(chosen, scheme, which) / _of(chosen, over, which))


def measure(raw: RawResults) -> dict[str, Value]:
    """Each scheme's completion time of each class of flows over the ideal one, and how Fair compares."""
    runs = completion.runs(raw.simulated())
    found: dict[str, Value] = {f"{s}_{c}": _ratio(runs, s, "ideal", c) for c in CLASSES for s in SCHEMES}
    for other in ("rcp", "dctcp"):
        found |= {f"{other}_over_fair_{c}": _ratio(runs, other, "fair", c) for c in CLASSES}
    medium = {s: _of(runs, s, "medium") for s in SCHEMES}
    found["dctcp_best_medium"] = medium["dctcp"] <= 1.1 * min(medium.values())
    return found


def draw(raw: RawResults) -> Figure:
    """Bars: schemes by class of flows."""
    from matplotlib.ticker import LogFormatter

    figure, plots = figures.axes(width=6)
    runs = completion.runs(raw.simulated())
    width = 0.8 / len(SCHEMES)
    for k, scheme in enumerate(SCHEMES):
        places = [c + (k - 1.5) * width for c in range(len(CLASSES))]
        plots[0].bar(
            places,
            [_of(runs, scheme, c) / _of(runs, "ideal", c) for c in CLASSES],
            width,
            label=scheme,
            color=figures.COLOURS[k],
        )
    labels = [f"{c}, {which[2]}" for c, which in CLASSES.items()]
    plots[0].set_xticks(range(len(CLASSES)), labels)
    plots[0].set(ylabel="completion time over ideal max-min", yscale="log")
    plots[0].yaxis.set_major_formatter(LogFormatter())
    plots[0].yaxis.set_minor_formatter(LogFormatter())
    plots[0].axhline(1, color="black", linewidth=1)
    plots[0].legend()
    return figure
