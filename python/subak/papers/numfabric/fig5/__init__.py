"""Figure 5: how far flows' rates are from what the oracle gives them, by the flows' sizes."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from subak.repro import Measured, RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BDP_BYTES = 20_000
"""10 Gb/s times 16 us."""
EDGES = (0, 5, 10, 100, 1000, math.inf)
"""Of the bins, in BDPs."""
WORKLOADS = {"search": "web search", "enterprise": "enterprise"}
SCHEMES = {"numfabric": "NUMFabric", "dgd": "DGD", "rcp-star": "RCP*"}


def _bins(raw: RawResults, workload: str) -> dict[str, list[np.ndarray]]:
    """(rate - ideal rate) / ideal rate of the flows that count, binned, by scheme; -1: only the ideal ended it."""
    columns = ["scheme", "seed", "flow", "size_bytes", "fct_ns", "measured"]
    frame = raw.simulated(workload).table("flow", columns).to_pandas()
    frame = frame[frame["measured"]].set_index(["seed", "flow"])
    ideal = frame[frame["scheme"] == "ideal"]
    ideal = ideal[ideal["fct_ns"].notna()]
    size = ideal["size_bytes"].to_numpy(dtype=float) / BDP_BYTES
    found = {}
    for scheme in SCHEMES:
        mine = frame[frame["scheme"] == scheme]["fct_ns"].reindex(ideal.index).to_numpy(dtype=float, na_value=math.inf)
        deviation = ideal["fct_ns"].to_numpy(dtype=float) / mine - 1
        found[scheme] = [deviation[(size > low) & (size <= high)] for low, high in pairwise(EDGES)]
    return found


def measure(raw: RawResults) -> dict[str, Value]:
    """Medians of the bins, and the worst of those beyond 5 BDP."""
    found: dict[str, Value] = {}
    for workload in WORKLOADS:
        bins = _bins(raw, workload)
        for scheme, deviations in bins.items():
            medians = [float(np.median(d)) if len(d) else math.nan for d in deviations]
            large = [m for m in medians[1:] if not math.isnan(m)]
            found[f"{workload}_{scheme}"] = [round(m, 3) for m in medians]
            worst = max(large, key=abs) if scheme == "numfabric" else max(large)
            count = sum(len(d) for d in deviations[1:])
            found[f"{workload}_{scheme}_worst"] = Measured(worst, note=f"{count} flows")
    return found


def draw(raw: RawResults) -> Figure:
    """Boxes from the 25th to the 75th percentile, whiskers of 1.5 times that, a group a bin."""
    figure, plots = figures.axes(columns=2, width=6)
    names = [f"{low}-{high}" if math.isfinite(high) else f"> {low}" for low, high in pairwise(EDGES)]
    for plot, (workload, title) in zip(plots, WORKLOADS.items(), strict=True):
        bins = _bins(raw, workload)
        for k, (scheme, deviations) in enumerate(bins.items()):
            at = [b + 0.25 * (k - 1) for b in range(len(names))]
            plot.boxplot(
                deviations,
                positions=at,
                widths=0.2,
                showfliers=False,
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": figures.COLOURS[k], "alpha": 0.6},
                medianprops={"color": "black", "linestyle": "-"},
                label=SCHEMES[scheme],
            )
        counts = [len(d) for d in bins["numfabric"]]
        labels = [f"{name}\n{count} flows" for name, count in zip(names, counts, strict=True)]
        plot.set_xticks(range(len(names)), labels, fontsize="small")
        plot.axhline(0, color="black", linewidth=0.8, linestyle="-")
        plot.set(title=title, xlabel="size of the flow in BDPs of 20 KB", ylabel="deviation from the ideal rate")
    plots[0].legend()
    return figure
