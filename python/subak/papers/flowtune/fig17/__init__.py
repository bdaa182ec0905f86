"""Figure 17 of Flowtune: throughput of NED and Gradient under both normalizers, relative to the optimum."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NORMALIZERS = (("f_norm", "F-NORM"), ("u_norm", "U-NORM"))


def draw(raw: RawResults) -> Figure:
    """Throughput relative to the optimum by load, one line per method and normalizer."""
    figure, (plot,) = figures.axes(width=6)
    rows = raw.rows("runs")
    loads = sorted({row["load"] for row in rows})
    for column, normalizer in NORMALIZERS:
        for method in ("NED", "Gradient"):
            means = [
                mean(row[column] for row in rows if row["method"] == method and row["load"] == load) for load in loads
            ]
            plot.plot(loads, means, marker="o", label=f"{method}, {normalizer}")
    plot.set(xlabel="load", ylabel="throughput, % of the optimum's")
    plot.legend()
    return figure
