"""Figure 5 of NUMFabric: deviation of flows' rates from the oracle's, by flow size."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

BDP_BYTES = 20_000
"""BDP, bytes: 10 Gb/s times 16 us."""
LINE_BPS = 10e9
WIRE_BYTES, PAYLOAD_BYTES = 1500, 1446
"""Bytes of a full packet on the wire, and of payload."""
EDGES = (0, 5, 10, 100, 1000, math.inf)
"""Edges of the bins of flow sizes, in BDPs."""
WORKLOADS = {"search": "web search", "enterprise": "enterprise"}
SCHEMES = {"numfabric": "NUMFabric", "dgd": "DGD", "rcp-star": "RCP*"}


Bins = dict[str, list[np.ndarray]]
"""By scheme and bin: (rate - ideal rate) / ideal rate of the measured flows; -1 if only the ideal scheme finished a
flow."""


def _runs(raw: RawResults, workload: str) -> list[Bins]:
    """Deviations of rates from the ideal, by run. Completion times are those from the first data on."""
    results = raw.simulated(workload)
    columns = ["scheme", "seed", "flow", "size_bytes", "fct_ns", "ideal_fct_ns", "measured"]
    frame = results.table("flow", columns).to_pandas()
    frame = frame[frame["measured"]]
    after = [s["label"] for s in results.manifest["schemes"] if s["params"].get("handshake")]
    frame["fct_ns"] = frame["fct_ns"].astype(float) - np.where(frame["scheme"].isin(after), _handshake_ns(frame), 0.0)
    frame = frame.set_index(["seed", "flow"])
    return [_bins(frame.loc[[seed]]) for seed in frame.index.unique("seed")]


def _handshake_ns(frame: Any) -> Any:
    """Duration of a handshake on the flow's idle path, ns: twice what its last byte takes beyond its transmission."""
    sent_ns = frame["size_bytes"] * (WIRE_BYTES / PAYLOAD_BYTES * 8e9 / LINE_BPS)
    return 2 * (frame["ideal_fct_ns"] - sent_ns)


def _bins(frame: Any) -> Bins:
    ideal = frame[frame["scheme"] == "ideal"]
    ideal = ideal[ideal["fct_ns"].notna()]
    size = ideal["size_bytes"].to_numpy(dtype=float) / BDP_BYTES
    found = {}
    for scheme in SCHEMES:
        mine = frame[frame["scheme"] == scheme]["fct_ns"].reindex(ideal.index).to_numpy(dtype=float, na_value=math.inf)
        deviation = ideal["fct_ns"].to_numpy(dtype=float) / mine - 1
        found[scheme] = [deviation[(size > low) & (size <= high)] for low, high in pairwise(EDGES)]
    return found


def _pooled(runs: Sequence[Bins], scheme: str) -> list[np.ndarray]:
    return [np.concatenate(of) for of in zip(*(run[scheme] for run in runs), strict=True)]


def _median(runs: Sequence[Bins], scheme: str, at: int) -> float:
    return stats.median(_pooled(runs, scheme)[at])


def _worst(runs: Sequence[Bins], scheme: str) -> float:
    """Of the medians for sizes above 5 BDP: NUMFabric's that is farthest from 0, and the largest of another scheme."""
    medians = [m for m in (_median(runs, scheme, at) for at in range(1, len(EDGES) - 1)) if not math.isnan(m)]
    return max(medians, key=abs if scheme == "numfabric" else float)


def measure(raw: RawResults) -> dict[str, Value]:
    """Median deviations by bin, and the largest above 5 BDP; whole runs are resampled, since flows share a network."""
    found: dict[str, Value] = {}
    for workload in filter(raw.has, WORKLOADS):
        runs = _runs(raw, workload)
        for scheme in SCHEMES:
            medians = [stats.over_runs(runs, partial(_median, scheme=scheme, at=k)) for k in range(len(EDGES) - 1)]
            found[f"{workload}_{scheme}"] = list(medians)
            found[f"{workload}_{scheme}_worst"] = stats.over_runs(runs, partial(_worst, scheme=scheme))
    return found


def draw(raw: RawResults) -> Figure:
    """Deviations as boxes from the 25th to the 75th percentile, with whiskers of 1.5 times that, one group per bin."""
    figure, plots = figures.axes(columns=2, width=6)
    names = [f"{low}-{high}" if math.isfinite(high) else f"> {low}" for low, high in pairwise(EDGES)]
    for plot, (workload, title) in zip(plots, WORKLOADS.items(), strict=True):
        runs = _runs(raw, workload)
        bins = {scheme: _pooled(runs, scheme) for scheme in SCHEMES}
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
