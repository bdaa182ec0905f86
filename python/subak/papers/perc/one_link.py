"""Figures 2.7 to 2.10: completion times on one link against an ideal max-min allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc import completion
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("fair", "charny", "rcp", "dctcp")
CLASSES = {"small": (0, 10e3, "p99"), "medium": (10e3, 1e6, "p99"), "large": (1e6, np.inf, "mean")}


def _table(raw: RawResults) -> dict[str, dict[str, float]]:
    held = completion.flows(raw.simulated())

    def of(scheme: str, low: float, high: float, statistic: str) -> float:
        flows = held[scheme]
        fct = flows["fct"][(flows["size"] > low) & (flows["size"] <= high)]
        return float(fct.mean()) if statistic == "mean" else completion.quantile(fct, 0.99)

    return {c: {s: of(s, *which) / of("ideal", *which) for s in SCHEMES} for c, which in CLASSES.items()}


def measure(raw: RawResults) -> dict[str, Value]:
    """Each scheme's completion time of each class of flows over the ideal one, and how Fair compares."""
    table = _table(raw)
    found: dict[str, Value] = {f"{s}_{c}": table[c][s] for c in CLASSES for s in SCHEMES}
    for other in ("rcp", "dctcp"):
        found |= {f"{other}_over_fair_{c}": table[c][other] / table[c]["fair"] for c in CLASSES}
        found[f"{other}_over_fair_worst"] = max(table[c][other] / table[c]["fair"] for c in CLASSES)
    found["dctcp_best_medium"] = table["medium"]["dctcp"] <= 1.1 * min(table["medium"][s] for s in SCHEMES)
    return found


def draw(raw: RawResults) -> Figure:
    """Bars: schemes by class of flows."""
    figure, plots = figures.axes(width=6)
    table = _table(raw)
    width = 0.8 / len(SCHEMES)
    for k, scheme in enumerate(SCHEMES):
        places = [c + (k - 1.5) * width for c in range(len(CLASSES))]
        plots[0].bar(places, [table[c][scheme] for c in CLASSES], width, label=scheme, color=figures.COLOURS[k])
    labels = [f"{c}, {which[2]}" for c, which in CLASSES.items()]
    plots[0].set_xticks(range(len(CLASSES)), labels)
    plots[0].set(ylabel="completion time over ideal max-min", yscale="log")
    plots[0].axhline(1, color="black", linewidth=1)
    plots[0].legend()
    return figure
