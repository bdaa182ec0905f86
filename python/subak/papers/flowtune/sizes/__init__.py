"""Table 1 and figure 18 of Flowtune: the web, cache and Hadoop distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import subak
from subak.repro import RawResults, figures
from subak.repro.computed import Progress, Settings, rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WORKLOADS = ("cache", "hadoop", "web")
PERCENTILES = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Means and percentiles of each distribution."""
    Settings(settings)
    values: dict[str, Any] = {}
    tables = {}
    for workload in WORKLOADS:
        sizes = subak.Sizes(f"facebook-{workload}")
        values[f"{workload} mean"] = sizes.mean_bytes
        for statistic, share in PERCENTILES.items():
            # The quantile just below `share`: a step of the distribution at `share` itself belongs to larger flows.
            values[f"{workload} {statistic}"] = float(rounded(sizes.quantile(share - 1e-9)))
        curve = [[sizes.quantile(k / 1000), k / 1000] for k in range(1001)]
        tables[workload] = {"columns": ["size_bytes", "share"], "rows": curve}
    return {"values": values, "tables": tables}


def draw(raw: RawResults) -> Figure:
    """Distributions of flow sizes, as in figure 18 of Flowtune."""
    figure, (plot,) = figures.axes(width=6)
    for workload in ("web", "cache", "hadoop"):
        rows = raw.rows(workload)
        plot.plot([row["size_bytes"] for row in rows], [row["share"] for row in rows], label=workload)
    plot.set(xscale="log", xlabel="size of a flow, bytes", ylabel="share of flows up to it", ylim=(0, 1.02))
    plot.legend()
    return figure
