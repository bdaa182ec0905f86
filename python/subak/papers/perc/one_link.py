"""Figures 2.7 to 2.10 of the PERC thesis: FCTs on one link, relative to an ideal max-min allocation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc import completion
from subak.repro import Measured, RawResults, Value, figures
from subak.repro.stats import over_runs, quantile

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
    return float(fct.mean()) if statistic == "mean" else quantile(fct, 0.99)


def _tail(which: str) -> float:
    return 0.5 if CLASSES[which][2] == "mean" else 0.99


def _ratio(runs: Sequence[Run], scheme: str, over: str, which: str) -> Measured:
    return over_runs(runs, lambda chosen: _of(chosen, scheme, which) / _of(chosen, over, which), tail=_tail(which))


def _over_best(chosen: Sequence[Run], scheme: str, which: str) -> float:
    """Ratio of the scheme's FCT to that of the best other scheme."""
    others = [_of(chosen, s, which) for s in SCHEMES if s in chosen[0] and s != scheme]
    return _of(chosen, scheme, which) / min(others)


def measure(raw: RawResults) -> dict[str, Value]:
    """FCTs of each scheme and class of flows relative to the ideal, and ratios of Fair to others."""
    runs = completion.runs(raw.simulated())
    present = [s for s in SCHEMES if s in runs[0]]
    found: dict[str, Value] = {f"{s}_{c}": _ratio(runs, s, "ideal", c) for c in CLASSES for s in present}
    for other in ("rcp", "dctcp"):
        if other in present:
            found |= {f"{other}_over_fair_{c}": _ratio(runs, other, "fair", c) for c in CLASSES}
    if "dctcp" in present:
        found |= {
            f"dctcp_over_best_{c}": over_runs(runs, partial(_over_best, scheme="dctcp", which=c), tail=_tail(c))
            for c in CLASSES
        }
    return found


def draw(raw: RawResults) -> Figure:
    """FCTs relative to the ideal, as bars: schemes by class of flows."""
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
