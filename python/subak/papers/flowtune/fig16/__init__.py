"""Figure 16 of Flowtune: over-allocation by NED, Gradient and FGM under the web workload."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

from subak.papers.flowtune import web
from subak.papers.flowtune.web import LOADS
from subak.repro import RawResults, figures
from subak.repro.computed import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = tuple(web.OPTIMIZERS)


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Over-allocation by each optimizer at each load; the settings are those of ``web.KEYS``."""
    ran = web.Runs.of(web.jobs(settings, runs, seed, list(METHODS), looks=False), progress)
    for method in METHODS:
        for load in LOADS:
            over = ran.select(method, load, "over_gbps")
            ran.sample(f"over {method} {load}", over)
            ran.sample(f"most {method} {load}", ran.select(method, load, "most_over_gbps"))
            if method.endswith("-RT"):
                ran.ratio(f"rt {method} {load}", over, ran.select(method.removesuffix("-RT"), load, "over_gbps"))
    for load in LOADS:
        ned, gradient, fgm = (ran.select(method, load, "over_gbps") for method in ("NED", "Gradient", "FGM"))
        ran.ratio(f"NED over Gradient {load}", ned, gradient)
        ran.ratio(f"FGM over NED {load}", fgm, ned)
    return ran.report()


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
