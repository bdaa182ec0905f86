"""Figure 13 of Flowtune: 99th percentiles of the queueing delay on paths within a rack and between racks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.papers.flowtune import simulated as sim
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

FIFO = ("flowtune", "dctcp", "xcp")
"""Schemes with FIFO queues, for which the queue length determines a packet's queueing delay."""
PAIRS = 2000
"""Number of random paths of each length, for each time of a sample."""
Run = dict[tuple[str, float, int], Any]
"""By scheme, load and number of links: queueing delays of random paths at the samples, us."""


def _delays(frame: Any, links: int) -> Any:
    """Queueing delays, us, summed over random paths of 2 or 4 links."""
    table = frame.pivot_table(index="time_ns", columns="link", values="queued_bytes", fill_value=0)
    us = {name: table[name].to_numpy() * 8e6 / sim.SERVER_BPS for name in table.columns}
    hosts = sorted({name.split("->")[0] for name in us if name.startswith("h")}, key=lambda h: int(h[1:]))
    leaf = {name.split("->")[0]: name.split("->")[1] for name in us if name.startswith("h")}
    spines = sorted({name.split("->")[1] for name in us if name.startswith("leaf") and "->spine" in name})
    rng = np.random.default_rng(1)
    found: list[Any] = []
    while len(found) < PAIRS:
        src, dst = rng.choice(len(hosts), 2, replace=False)
        a, b = hosts[src], hosts[dst]
        if (leaf[a] == leaf[b]) != (links == 2):
            continue
        wait = us[f"{a}->{leaf[a]}"] + us[f"{leaf[b]}->{b}"]
        if links == 4:
            spine = spines[rng.integers(len(spines))]
            # Links between switches have four times the rate.
            wait = wait + (us[f"{leaf[a]}->{spine}"] + us[f"{spine}->{leaf[b]}"]) / 4
        found.append(wait)
    return np.concatenate(found)


def _runs(raw: RawResults) -> list[Run]:
    found = []
    for frame in sim.runs_of(raw, "queue", ["time_ns", "link", "queued_bytes", "measured"]):
        groups = frame[frame["scheme"].isin(FIFO)].groupby(["scheme", "load"])
        found.append({(*key, links): _delays(of, links) for key, of in groups for links in (2, 4)})
    return found


def _tail(runs: Sequence[Run], scheme: str, load: float, links: int) -> float:
    return float(np.percentile(np.concatenate([run[scheme, load, links] for run in runs]), 99))


def _loads(runs: Sequence[Run]) -> list[float]:
    return sorted({load for _, load, _ in runs[0]})


def _worst(runs: Sequence[Run]) -> float:
    return max(_tail(runs, "flowtune", load, links) for load in _loads(runs) for links in (2, 4))


def _factor(runs: Sequence[Run], scheme: str, links: int) -> float:
    load = _loads(runs)[-1]
    return _tail(runs, scheme, load, links) / _tail(runs, "flowtune", load, links)


def _least_factor(runs: Sequence[Run]) -> float:
    """Smallest ratio of DCTCP's delay to Flowtune's, over runs, loads and paths."""
    places = [(run, load, links) for run in runs for scheme, load, links in run if scheme == "flowtune"]
    return min(
        _tail([run], "dctcp", load, links) / _tail([run], "flowtune", load, links) for run, load, links in places
    )


def measure(raw: RawResults) -> dict[str, Value]:
    """99th percentiles of queueing delays: Flowtune's largest, others' over Flowtune's at the highest load, all."""
    runs = _runs(raw)
    found: dict[str, Value] = {"flowtune worst": stats.over_runs(runs, _worst, tail=0.99)}
    if any(scheme == "dctcp" for scheme, _, _ in runs[0]):
        found["dctcp every"] = stats.over_runs(runs, _least_factor, tail=0.99)
    ran = [scheme for scheme in FIFO if any(s == scheme for s, _, _ in runs[0])]
    for scheme in ran[1:]:
        found[scheme] = stats.over_runs(runs, partial(_factor, scheme=scheme, links=4), tail=0.99)
        found[f"{scheme} 2"] = stats.over_runs(runs, partial(_factor, scheme=scheme, links=2), tail=0.99)
    for scheme in ran:
        for links in (2, 4):
            found[f"{scheme} us {links}"] = [_tail(runs, scheme, load, links) for load in _loads(runs)]
    return found


def draw(raw: RawResults) -> Figure:
    """99th percentiles of the queueing delay by load, one plot per path length."""
    runs = _runs(raw)
    loads = _loads(runs)
    figure, plots = figures.axes(columns=2, width=4)
    for plot, links in zip(plots, (2, 4), strict=True):
        for scheme in FIFO:
            tails = [_tail(runs, scheme, load, links) for load in loads]
            plot.plot(loads, tails, marker="o", label=scheme, color=sim.COLORS[scheme])
        plot.set(title=f"paths of {links} links", xlabel="load", ylabel="99th percentile of delay, us")
        plot.set(yscale="log", ylim=(1, None))
    plots[1].legend(loc="lower right")
    return figure
