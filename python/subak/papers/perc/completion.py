"""FCTs of simulated flows, by size and relative to an ideal allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.repro import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from subak.results import Results

Flows = dict[str, "np.ndarray"]
"""Flows as arrays: ``size``, bytes; ``fct`` and ``idle`` (FCT of the flow alone), s; ``seed``. Infinite if
unfinished."""


def flows(results: Results) -> dict[str, Flows]:
    """The measured flows by scheme, in the same order for each."""
    columns = ["scheme", "seed", "flow", "size_bytes", "fct_ns", "ideal_fct_ns", "measured", "kind"]
    frame = results.table("flow", columns).to_pandas().sort_values(["seed", "flow"])
    frame = frame[frame["measured"]]
    found = {}
    for scheme in dict.fromkeys(frame["scheme"]):
        mine = frame[frame["scheme"] == scheme]
        fct = mine["fct_ns"].to_numpy(dtype=float, na_value=np.inf) * 1e-9
        idle = mine["ideal_fct_ns"].to_numpy(dtype=float) * 1e-9
        size, seed = mine["size_bytes"].to_numpy(dtype=float), mine["seed"].to_numpy()
        found[str(scheme)] = {"size": size, "fct": fct, "idle": idle, "seed": seed}
    return found


def runs(results: Results) -> list[dict[str, Flows]]:
    """The measured flows of each run, by scheme."""
    held = flows(results)
    seeds = np.unique(next(iter(held.values()))["seed"])
    return [{s: {key: v[of["seed"] == seed] for key, v in of.items()} for s, of in held.items()} for seed in seeds]


def pooled(chosen: Sequence[dict[str, Flows]], scheme: str) -> Flows:
    """Flows of one scheme, concatenated over several runs."""
    return {key: np.concatenate([run[scheme][key] for run in chosen]) for key in ("size", "fct", "idle")}


def bins_by_bytes(size: np.ndarray, large: int) -> list[np.ndarray]:
    """The smallest flows with 1% of all bytes, and the rest in ``large`` bins of equal bytes."""
    order = np.argsort(size, kind="stable")
    carried = np.cumsum(size[order]) / size.sum()
    edges = [0.01 + 0.99 * k / large for k in range(1, large)]
    place = np.searchsorted([0.01, *edges], carried, side="left")
    number = np.empty(len(size), dtype=int)
    number[order] = place
    return [number == k for k in range(large + 1)]


def stretch(of: Flows) -> np.ndarray:
    """Normalized FCT: FCT over that of the flow alone in the network."""
    return np.asarray(of["fct"] / of["idle"])


def draw_bins(plots: list[Axes], held: dict[str, Flows], large: int, title: str = "") -> None:
    """Distribution of normalized FCTs, one plot per bin; ``title`` is the prefix of each plot's title."""
    for k, plot in enumerate(plots):
        for scheme, of in held.items():
            chosen = bins_by_bytes(of["size"], large)[k]
            values = np.sort(stretch(of)[chosen])
            values = values[np.isfinite(values)]
            plot.plot(values, np.arange(1, len(values) + 1) / max(1, chosen.sum()), label=scheme)
        top = max(of["size"][bins_by_bytes(of["size"], large)[k]].max(initial=0) for of in held.values())
        count = int(chosen.sum())
        plot.set(title=f"{title}{count} flows up to {top / 1e3:,.0f} KB", ylim=(0, 1.02))
        figures.log_x(plot)
        plot.set(xlabel="completion time over the flow alone", ylabel="share of flows")
    plots[0].legend(loc="lower right")
