"""Figures 4.2 to 4.4 of the PERC thesis: normalized FCTs by bins of flow size."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc import completion
from subak.repro import RawResults, Value, figures
from subak.repro.stats import over_runs, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

LARGE = {"search": 3, "mining": 1}
"""Number of bins for the flows beyond the smallest, which carry 1% of all bytes."""
SHORT, BASIC = "s-PERC* short", "s-PERC* basic"


KEYS = {"rcp": "rcp", "basic": BASIC, "short": SHORT, "pfabric": "pfabric"}

Run = dict[str, completion.Flows]


def _workloads(raw: RawResults) -> dict[str, list[Run]]:
    names = [name for name in LARGE if (raw.folder / name).exists()]
    return {name: completion.runs(raw.simulated(name)) for name in names}


def _small(scheme: str, q: float, large: int, runs: Sequence[Run]) -> float:
    flows = completion.pooled(runs, scheme)
    return quantile(completion.stretch(flows)[completion.bins_by_bytes(flows["size"], large)[0]], q)


def _large(scheme: str, q: float | None, large: int, runs: Sequence[Run]) -> float:
    """The ``q``-quantile, or the mean, of the largest flows' FCTs over those of the ideal scheme."""
    flows, ideal = completion.pooled(runs, scheme), completion.pooled(runs, "ideal")
    over = (flows["fct"] / ideal["fct"])[completion.bins_by_bytes(ideal["size"], large)[-1]]
    return float(np.mean(over)) if q is None else quantile(over, q)


def _ahead(q: float, large: int, runs: Sequence[Run]) -> float:
    return _small("rcp", q, large, runs) / _small(SHORT, q, large, runs)


def _mean_ahead(large: int, runs: Sequence[Run]) -> float:
    """Mean normalized FCT of the smallest flows under RCP, over that under s-PERC* basic."""
    means = []
    for scheme in ("rcp", BASIC):
        flows = completion.pooled(runs, scheme)
        means.append(np.mean(completion.stretch(flows)[completion.bins_by_bytes(flows["size"], large)[0]]))
    return float(means[0] / means[1])


def _rest_behind(scheme: str, large: int, runs: Sequence[Run]) -> float:
    """Median normalized FCT of all flows beyond the smallest, over that under RCP."""
    medians = []
    for name in (scheme, "rcp"):
        flows = completion.pooled(runs, name)
        medians.append(quantile(completion.stretch(flows)[~completion.bins_by_bytes(flows["size"], large)[0]], 0.5))
    return float(medians[0] / medians[1])


def _measure(name: str, runs: list[Run]) -> dict[str, Value]:
    large = LARGE[name]
    found: dict[str, Value] = {}
    present = {key: scheme for key, scheme in KEYS.items() if scheme in runs[0]}
    for key, scheme in present.items():
        found[f"{name}_{key}_small_p01"] = over_runs(runs, partial(_small, scheme, 0.01, large), tail=0.01)
        found[f"{name}_{key}_small_p50"] = over_runs(runs, partial(_small, scheme, 0.5, large))
        found[f"{name}_{key}_small_p99"] = over_runs(runs, partial(_small, scheme, 0.99, large), tail=0.99)
        if "ideal" in runs[0]:
            found[f"{name}_{key}_large"] = over_runs(runs, partial(_large, scheme, None, large))
            found[f"{name}_{key}_large_p95"] = over_runs(runs, partial(_large, scheme, 0.95, large), tail=0.95)
    if {"rcp", "short"} <= set(present):
        for q in (0.5, 0.9, 0.99):
            found[f"{name}_rcp_over_short_p{100 * q:.0f}"] = over_runs(runs, partial(_ahead, q, large), tail=q)
    if {"rcp", "basic"} <= set(present):
        found[f"{name}_rcp_over_basic"] = over_runs(runs, partial(_mean_ahead, large))
        for key in ("basic", "short"):
            found[f"{name}_{key}_over_rcp_rest"] = over_runs(runs, partial(_rest_behind, KEYS[key], large))
    return found


def measure(raw: RawResults) -> dict[str, Value]:
    """Medians and tails of normalized FCTs in each bin, and ratios of the schemes in the first and the last bin."""
    found: dict[str, Value] = {}
    for name, runs in _workloads(raw).items():
        found |= _measure(name, runs)
    return found


def draw(raw: RawResults) -> Figure:
    """Distributions of normalized FCTs: one row per workload, one plot per bin."""
    workloads = _workloads(raw)
    columns = 1 + max(LARGE[name] for name in workloads)
    figure, plots = figures.axes(rows=len(workloads), columns=columns, width=4)
    for row, (name, runs) in enumerate(workloads.items()):
        held = {scheme: completion.pooled(runs, scheme) for scheme in runs[0]}
        mine = plots[row * columns : (row + 1) * columns]
        completion.draw_bins(mine[: 1 + LARGE[name]], held, LARGE[name], f"{name}: ")
        for empty in mine[1 + LARGE[name] :]:
            empty.set_axis_off()
    return figure
