"""Figure 16 of Flowtune: over-allocation by NED, Gradient and FGM under the web workload."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("NED", "NED-RT", "Gradient", "Gradient-RT", "FGM")


def draw(raw: RawResults) -> Figure:
    """Rate allocated beyond the links' capacity by load, Gb/s, one line per method."""
    figure, (plot,) = figures.axes(width=6)
    rows = raw.rows("runs")
    loads = sorted({row["load"] for row in rows})
    for method in METHODS:
        means = [
            mean(row["over_gbps"] for row in rows if row["method"] == method and row["load"] == load) for load in loads
        ]
        plot.plot(loads, means, marker="o", label=method)
    plot.set(xlabel="load", ylabel="over-allocation of all links, Gb/s")
    plot.set_ylim(bottom=0)
    plot.legend()
    return figure
