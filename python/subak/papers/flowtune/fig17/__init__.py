"""Figure 17 of Flowtune: throughput of NED and Gradient under both normalizers, relative to the optimum."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

from subak.papers.flowtune import web
from subak.papers.flowtune.web import LOADS
from subak.repro import RawResults, figures
from subak.repro.computed import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NORMALIZERS = (("f_norm", "F-NORM"), ("u_norm", "U-NORM"))


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Throughput relative to the optimum by optimizer and normalization; the settings are those of ``web.KEYS``."""
    ran = web.Runs.of(web.jobs(settings, runs, seed, ["NED", "Gradient"], looks=True), progress)
    for load in LOADS:
        shares = {}
        for method in ("NED", "Gradient"):
            flow, uniform = ran.select(method, load, "flow"), ran.select(method, load, "uniform")
            ran.sample(f"F-NORM {method} {load}", flow)
            ran.sample(f"U-NORM {method} {load}", uniform)
            ran.ratio(f"F over U {method} {load}", flow, uniform)
            shares[method] = (flow, uniform)
        ran.ratio(f"NED over Gradient F-NORM {load}", shares["NED"][0], shares["Gradient"][0])
        ran.ratio(f"Gradient over NED U-NORM {load}", shares["Gradient"][1], shares["NED"][1])
    return ran.report()


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
