"""Figures 4.2 to 4.4: normalized completion times by bins of flow size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc import completion
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGE = {"search": 3, "mining": 1}
"""Bins of the flows beyond the first 1% of bytes."""
SHORT, BASIC = "s-PERC* short", "s-PERC* basic"


def _workloads(raw: RawResults) -> dict[str, dict[str, completion.Flows]]:
    names = [name for name in LARGE if (raw.folder / name).exists()]
    return {name: completion.flows(raw.simulated(name)) for name in names}


def measure(raw: RawResults) -> dict[str, Value]:
    """Medians and tails of each bin, and how the schemes compare in the first and the last."""
    found: dict[str, Value] = {}
    for name, held in _workloads(raw).items():
        bins = completion.bins_by_bytes(held["ideal"]["size"], LARGE[name])
        small, large = bins[0], bins[-1]
        ideal = completion.stretch(held["ideal"])
        medians = {}
        for scheme, key in (("rcp", "rcp"), (BASIC, "basic"), (SHORT, "short"), ("pfabric", "pfabric")):
            stretch = completion.stretch(held[scheme])
            over_ideal = stretch[large] / ideal[large]
            medians[key] = completion.quantile(stretch[small], 0.5)
            found[f"{name}_{key}_small_p50"] = medians[key]
            found[f"{name}_{key}_small_p99"] = completion.quantile(stretch[small], 0.99)
            found[f"{name}_{key}_large"] = float(np.mean(over_ideal))
            found[f"{name}_{key}_large_p95"] = completion.quantile(over_ideal, 0.95)
        found[f"{name}_rcp_over_short"] = medians["rcp"] / medians["short"]
    return found


def draw(raw: RawResults) -> Figure:
    """A row a workload, a plot a bin."""
    workloads = _workloads(raw)
    columns = 1 + max(LARGE[name] for name in workloads)
    figure, plots = figures.axes(rows=len(workloads), columns=columns, width=4)
    for row, (name, held) in enumerate(workloads.items()):
        mine = plots[row * columns : (row + 1) * columns]
        completion.draw_bins(mine[: 1 + LARGE[name]], held, LARGE[name])
        for empty in mine[1 + LARGE[name] :]:
            empty.set_axis_off()
    return figure
