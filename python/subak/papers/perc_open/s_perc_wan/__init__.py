"""FCTs of s-PERC* and of reactive schemes in a wide-area network."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc_open import drawing, waits
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMES = (
    "ideal",
    "s-PERC* short",
    "s-PERC* basic",
    "rcp",
    "cubic, sfq-CoDel",
    "cubic, drop-tail",
    "dctcp, 40 packets",
    "dctcp, 1 packet",
)
BDP = 950_000
"""BDP at 100 Mb/s and the mean RTT of 76 ms, bytes."""
CLASSES = {"all": (0, np.inf), "small": (0, BDP), "large": (BDP, np.inf)}
EDGES = (0, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, np.inf)
"""Edges of the figure's classes of sizes, bytes."""
OVER = ("s-PERC* basic", "s-PERC* short")


def _flows(raw: RawResults) -> pd.DataFrame:
    frame = raw.simulated().table("flow", ["scheme", "seed", "size_bytes", "slowdown", "measured"]).to_pandas()
    return frame[frame["measured"]]


def _means(flows: pd.DataFrame, scheme: str, low: float = 0, high: float = np.inf) -> list[float]:
    """Mean slowdown of the flows of these sizes in each run."""
    of = flows[(flows["scheme"] == scheme) & (flows["size_bytes"] >= low) & (flows["size_bytes"] < high)]
    return [float(m) for m in of.groupby("seed", sort=True)["slowdown"].mean()]


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean slowdowns, drops and waits of each scheme, and slowdowns over those of s-PERC*."""
    flows, found = _flows(raw), dict[str, Value]()
    summary = raw.simulated().table("summary").to_pandas()
    for scheme in SCHEMES:
        for name, (low, high) in CLASSES.items():
            found[f"{scheme} {name}"] = stats.estimate(_means(flows, scheme, low, high), "mean", "runs")
        if scheme != "ideal":
            drops = summary[summary["scheme"] == scheme].sort_values("seed")["dropped_packets"]
            found[f"{scheme} drops"] = stats.estimate(drops.to_numpy(dtype=float), "mean", "runs")
            wait = [us / 1e3 for us in waits.p99_us(raw.simulated(), scheme)]
            found[f"{scheme} wait"] = stats.estimate(wait, "mean", "runs")
    for mine in OVER:
        ratios = [stats.ratio(_means(flows, s), _means(flows, mine), "mean", "runs", paired=True) for s in SCHEMES[3:]]
        found[f"over {mine}"] = list[Value](ratios)
    found["unfinished"] = int(raw.simulated().table("flow").to_pandas()["fct_ns"].isna().sum())
    return found


def draw(raw: RawResults) -> Figure:
    """Mean slowdown by size, and mean slowdown of each run against the p99 of the queueing delay."""
    figure, [sizes, waited] = figures.axes(columns=2, width=5.4, height=4)
    flows, seen = _flows(raw), [*figures.COLOURS, "#888888"]
    for scheme, colour in zip(SCHEMES, seen, strict=True):
        bins = [np.mean(_means(flows, scheme, low, high)) for low, high in pairwise(EDGES)]
        sizes.plot([max(low, 1e4) / 1e3 for low in EDGES[:-1]], bins, "-o", color=colour, markersize=4)
        wait = [0.0] if scheme == "ideal" else [us / 1e3 for us in waits.p99_us(raw.simulated(), scheme)]
        of = _means(flows, scheme)
        waited.plot(wait if len(wait) == len(of) else wait * len(of), of, "o", color=colour, alpha=0.7, label=scheme)
    sizes.set(xscale="log", xlabel="size of the flows, KB and more", ylabel="mean slowdown")
    waited.set(xlabel="p99 of the packets' queueing delay, ms", ylabel="mean slowdown of a run")
    for plot in (sizes, waited):
        drawing.log_y(plot)
    drawing.legend_right(waited)
    return figure
