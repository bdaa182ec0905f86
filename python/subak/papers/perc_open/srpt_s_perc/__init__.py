"""Shortest remaining size first over s-PERC: xWI under the utilities of the policy srpt."""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.papers.perc_open import drawing, waits
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EPSILON = 0.125
STEP_NS = 20_000
"""Time between two updates of weights: somewhat more than an RTT."""
SHRUNK = 0.95
"""Remaining size over that of the last update, below which a weight is updated again."""
SEGMENT = 1446
"""Smallest remaining size, bytes: the payload of a packet."""
WARMUP_MS = 10
MINE = "xwi-s-perc"
SCHEMES: dict[str, dict[str, Any]] = {
    "ideal": {"name": "ideal"},
    "pFabric": {"name": "pfabric"},
    "NUMFabric": {"name": "numfabric", "params": {"time_scale": 2, "initial_window": 12}},
    MINE: {"name": MINE, "params": {"time_scale": 2, "most_weight": 1e6}},
    "s-PERC*": {"name": "s-perc-star"},
    "s-PERC* short": {"name": "s-perc-star", "params": {"short": "18KB"}},
}
"""Schemes by label; a BDP has 18 KB."""
SIZES = {"all": (0, np.inf), "small": (0, 1e5), "large": (1e6, np.inf)}
"""Classes of flows, by bytes."""
EDGES = (0, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, np.inf)
"""Edges of the figure's classes of sizes, bytes."""
COLUMNS = ["scheme", "seed", *SIZES, "p99", "wait_us", "drops", "unfinished"]


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Runs every scheme on the flows of each seed.

    ``leaves``: leaves of four hosts each; ``ms``: time during which flows start.
    """
    given = Settings(settings, "leaves", "ms")
    leaves, ms = given.count("leaves", 4, 100), given.count("ms", 100, 10_000)
    taken = computed.Jobs(runs, progress).each(range(seed, seed + runs), partial(_one, leaves, ms))
    rows = [row for one in taken for row in one[0]]
    values: dict[str, Any] = {}
    for scheme in SCHEMES:
        mine = [dict(zip(COLUMNS, row, strict=True)) for row in rows if row[0] == scheme]
        for column in (*SIZES, "p99", "wait_us", "drops"):
            data = [row[column] for row in mine]
            if None not in data:
                values[f"{scheme} {column}"] = computed.sample("mean", "runs", data)
        values[f"{scheme} lost"] = sum(row["drops"] for row in mine)
        values[f"{scheme} unfinished"] = sum(row["unfinished"] for row in mine)
    bins = [[s, size, sum(n), sum(t) / max(sum(n), 1)] for (s, size), (n, t) in _added(taken).items()]
    return {
        "setup": {"hosts": 4 * leaves, "ms": ms},
        "tables": {
            "runs": {"columns": COLUMNS, "rows": rows},
            "sizes": {"columns": ["scheme", "bytes", "flows", "slowdown"], "rows": bins},
        },
        "values": values,
    }


Bins = dict[tuple[str, float], tuple[int, float]]
"""By scheme and smallest size: number of flows, and sum of their slowdowns."""


def _added(taken: list[tuple[list[list[Any]], Bins]]) -> dict[tuple[str, float], tuple[list[int], list[float]]]:
    found: dict[tuple[str, float], tuple[list[int], list[float]]] = {}
    for _, bins in taken:
        for key, (count, slowdowns) in bins.items():
            counts, sums = found.setdefault(key, ([], []))
            counts.append(count)
            sums.append(slowdowns)
    return found


def _one(leaves: int, ms: int, seed: int) -> tuple[list[list[Any]], Bins]:
    """A row for each scheme, and slowdowns by size, on the flows of one seed."""
    spec: dict[str, Any] = {
        "network": {
            "kind": "leaf-spine",
            "leaves": leaves,
            "spines": 2,
            "hosts_per_leaf": 4,
            "host_rate": "10Gbps",
            "spine_rate": "40Gbps",
            "link_delay": "0.2us",
            "host_delay": "2.7us",
            "buffer": "1MB",
        },
        "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.6},
        "policy": {"kind": "srpt", "epsilon": EPSILON},
        "scheme": [{**keys, "label": label} for label, keys in SCHEMES.items() if label != MINE],
        "run": {"duration": f"{ms}ms", "warmup": f"{WARMUP_MS}ms", "seeds": [seed]},
    }
    utility = {"policy": {"kind": "alpha-fair", "alpha": EPSILON}, "scheme": [{**SCHEMES[MINE], "label": MINE}]}
    rows: dict[str, list[Any]] = {}
    bins: Bins = {}
    with tempfile.TemporaryDirectory() as folder:
        others = subak.run(spec, Path(folder) / "others", progress=False)
        mine = subak.run(_weighed({**spec, **utility}, ms), Path(folder) / "mine", progress=False)
        for results in (others, mine):
            flows = results.table("flow").to_pandas()
            flows = flows[(flows["start_ns"] >= WARMUP_MS * 1e6) & (flows["start_ns"] < ms * 1e6)]
            summary = results.table("summary").to_pandas().set_index("scheme")
            for scheme, of in flows.groupby("scheme"):
                wait = waits.p99_us(results, scheme)
                drops = int(summary["dropped_in_run"][scheme])
                rows[scheme] = [scheme, seed, *_slowdowns(of), wait[0] if wait else None, drops, _unfinished(of)]
                for low, high in pairwise(EDGES):
                    chosen = of[(of["size_bytes"] >= low) & (of["size_bytes"] < high)]["slowdown"]
                    bins[scheme, low] = (len(chosen), float(chosen.sum()))
    return [rows[scheme] for scheme in SCHEMES], bins


def _slowdowns(flows: pd.DataFrame) -> list[float]:
    """Mean slowdown of each class of sizes, and the 99th percentile over all flows."""
    size, slowdown = flows["size_bytes"], flows["slowdown"]
    means = [float(slowdown[(size >= low) & (size < high)].mean()) for low, high in SIZES.values()]
    return [*means, float(np.quantile(slowdown, 0.99))]


def _unfinished(flows: pd.DataFrame) -> int:
    return int(flows["fct_ns"].isna().sum())


def _weighed(spec: dict[str, Any], ms: int) -> dict[str, Any]:
    """The spec with listed flows, whose weights follow their remaining sizes.

    The weights are those of a first simulation of the same flows. The spec's own run then repeats it.
    """
    simulation = subak.Simulation.of_spec(spec)
    flows = list(simulation.flows)
    left = [float(flow["size_bytes"]) for flow in flows]
    changes: list[list[list[Any]]] = [[] for _ in flows]
    for k, size in enumerate(left):
        simulation.set_weight(k, _weight(size))
    running, next_start, now_ns, unfinished = set(), 0, 0, len(flows)
    while unfinished:
        now_ns += STEP_NS
        finished = simulation.run(now_ns)
        unfinished -= len(finished)
        while next_start < len(flows) and flows[next_start]["start_ns"] <= now_ns:
            running.add(next_start)
            next_start += 1
        running -= set(finished)
        received = simulation.flows.to_numpy()["received_bytes"]
        for k in sorted(running):
            size = max(float(flows[k]["size_bytes"] - received[k]), SEGMENT)
            if size < SHRUNK * left[k]:
                left[k] = size
                simulation.set_weight(k, _weight(size))
                changes[k].append([f"{now_ns}ns", _weight(size)])
    listed = [
        {
            "src": flow["src"],
            "dst": flow["dst"],
            "size": flow["size_bytes"],
            "start": f"{flow['start_ns']}ns",
            "weight": _weight(flow["size_bytes"]),
            **({"weights": of} if of else {}),
        }
        for flow, of in zip(flows, changes, strict=True)
    ]
    # Weights change until the end of the duration only.
    lasts = {**spec["run"], "duration": f"{max(now_ns, ms * 1_000_000) + STEP_NS}ns"}
    return {**spec, "workload": {"kind": "steps", "flows": listed}, "run": lasts}


def _weight(size: float) -> float:
    """The weight at which an alpha-fair utility is x^(1 - EPSILON) / size / (1 - EPSILON)."""
    weight: float = size ** (-1 / EPSILON)
    return weight


def draw(raw: RawResults) -> Figure:
    """Mean slowdown by size, and mean slowdown of all flows against the p99 of the queueing delay."""
    figure, [sizes, waited] = figures.axes(columns=2, width=5.2, height=3.8)
    rows, bins = raw.rows("runs"), raw.rows("sizes")
    for k, scheme in enumerate(SCHEMES):
        colour = figures.COLOURS[k]
        of = [row for row in bins if row["scheme"] == scheme and row["flows"]]
        sizes.plot(
            [max(row["bytes"], 3e3) / 1e3 for row in of],
            [row["slowdown"] for row in of],
            "-o",
            color=colour,
            markersize=4,
            label=scheme,
        )
        mine = [row for row in rows if row["scheme"] == scheme]
        wait = [row["wait_us"] or 0.0 for row in mine]
        label = f"{scheme}: {np.mean([row['drops'] for row in mine]):,.0f} drops a run"
        waited.plot(wait, [row["all"] for row in mine], "o", color=colour, markersize=5, alpha=0.7, label=label)
    sizes.set(xscale="log", xlabel="size of the flows, KB and more", ylabel="mean slowdown")
    waited.set(xscale="symlog", xlabel="p99 of the packets' queueing delay, us", ylabel="mean slowdown of a run")
    for plot in (sizes, waited):
        drawing.log_y(plot)
    drawing.legend_right(waited)
    return figure
