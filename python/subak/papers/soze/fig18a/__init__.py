"""Figure 18a of Soze: differences between the ends of a coflow's flows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import subak
from subak.papers.soze.networks import SIZES, pair
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, finite, rounded, total

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FLOWS = 10
RATE_BPS = 100e9
HEADROOM = 0.02
"""Fraction of a link that ``soze-virtual`` leaves free."""
QUEUES = 4
"""Number of physical queues of a switch."""
WEIGHTS, CONNECTIONS, PHYSICAL = "weights", "connections", "queues"
WAYS = {
    "soze": ("soze", WEIGHTS),
    "soze-virtual": ("soze-virtual", WEIGHTS),
    "soze connections": ("soze", CONNECTIONS),
    "soze-virtual connections": ("soze-virtual", CONNECTIONS),
    "hpcc connections": ("hpcc", CONNECTIONS),
    "physical queues": ("wrr", PHYSICAL),
}
"""By name: the scheme, and how a coflow's flows get their rates. The weight of a flow is its size; or a flow has
parallel connections of weight 1, as many as its size in GB; or flows of similar size share a weighted queue."""
Connection = tuple[int, float, float]
"""Number of its flow in the coflow, fraction of the flow's bytes, and weight."""


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Ten flows of random sizes by each way; ``scale``: factor of the flow sizes of 1 to 3 GB."""
    scale = Settings(settings, "scale").number("scale", 0.02, 1e-5, 1)
    coflows = range(seed, seed + max(runs, 1))
    jobs = [(one, name) for one in coflows for name in WAYS]
    seen = dict(zip(jobs, computed.Jobs(len(jobs), progress).each(jobs, lambda job: _run(*job, scale)), strict=True))
    of = {name: [_difference(seen[one, name]) for one in coflows] for name in WAYS}
    rivals = [of[name] for name, (_, way) in WAYS.items() if way != WEIGHTS]
    values: dict[str, Any] = {}
    for name, (_, way) in WAYS.items():
        values[name] = computed.sample("median", "coflows", of[name])
        if way == WEIGHTS:
            least = [min(those) for those in zip(*rivals, strict=True)]
            values[f"{name} over the best rival"] = computed.ratio("median", "coflows", of[name], least)
    rows = [[name, one, f, finite(end)] for (one, name), ends in seen.items() for f, end in enumerate(ends)]
    return {"values": values, "tables": {"ends": {"columns": ["way", "coflow", "flow", "end_ms"], "rows": rows}}}


def _difference(ends_ms: list[float]) -> float:
    """Time between the first and the last finish of a flow, percent of the last."""
    return 100.0 * (1.0 - min(ends_ms) / max(ends_ms))


def connections(sizes_gb: list[float], way: str) -> list[Connection]:
    """The connections of the coflow in their order in the switch."""
    if way == WEIGHTS:
        return [(flow, 1.0, size) for flow, size in enumerate(sizes_gb)]
    if way == PHYSICAL:
        return _packed(sizes_gb)
    counts = [max(rounded(size), 1) for size in sizes_gb]
    return [(flow, 1.0 / count, 1.0) for flow, count in enumerate(counts) for _ in range(count)]


def _packed(sizes_gb: list[float]) -> list[Connection]:
    """The flows in order of size, divided among four queues so that each queue has flows of similar size.

    Queue q serves the connections q, q + 4, q + 8.
    """
    rest = sorted(range(len(sizes_gb)), key=lambda flow: -sizes_gb[flow])
    queues = []
    for q in range(QUEUES):
        count = -(-len(rest) // (QUEUES - q))
        queues.append(rest[:count])
        rest = rest[count:]
    weights = [total(sizes_gb[flow] for flow in queue) for queue in queues]
    rows = range(max(map(len, queues)))
    return [(queue[k], 1.0, w) for k in rows for queue, w in zip(queues, weights, strict=True) if k < len(queue)]


def _run(seed: int, name: str, scale: float) -> list[float]:
    """Finish times of the coflow's flows, ms; infinite for a flow that did not finish."""
    scheme, way = WAYS[name]
    stream = subak.Stream(seed, "soze coflow")
    sizes_gb = [1.0 + 2.0 * stream.unit() for _ in range(FLOWS)]
    links = pair("switch", "to", RATE_BPS, 1000)
    for f in range(FLOWS):
        links += pair(f"from{f}", "switch", RATE_BPS, 1000)
    # The headroom is set explicitly, so that no share for ACKs is added: ACKs share no link with data here.
    params: dict[str, Any] = {"queues": QUEUES} if way == PHYSICAL else {}
    params |= {"headroom": HEADROOM} if scheme == "soze-virtual" else {}
    network = subak.Network.from_links(links)
    simulation = subak.Simulation(network, scheme, params=params, seed=seed, sections={"packets": SIZES})
    made = connections(sizes_gb, way)
    simulation.add_all(
        [
            {
                "path": [f"from{flow}->switch", "switch->to"],
                "size": rounded(sizes_gb[flow] * part * scale * 1e9),
                "weight": weight,
            }
            for flow, part, weight in made
        ]
    )
    # Time limit: ten times as long as the link needs for all bytes.
    limit_ns = int(10.0 * total(sizes_gb) * scale * 1e9 * 8e9 / RATE_BPS) + 10_000_000
    simulation.run(limit_ns, stop_at="done")
    ends_ms = [0.0] * FLOWS
    for (flow, *_), row in zip(made, simulation.flows, strict=True):
        end_ms = math.inf if row["fct_ns"] is None else row["fct_ns"] / 1e6
        ends_ms[flow] = max(ends_ms[flow], end_ms)
    return ends_ms


def draw(raw: RawResults) -> Figure:
    """End of each flow relative to the last one of its coflow, by method."""
    figure, plots = figures.axes(width=7, height=3.2)
    rows = raw.rows("ends")
    ways = list(dict.fromkeys(row["way"] for row in rows))
    for k, way in enumerate(ways):
        for coflow in dict.fromkeys(row["coflow"] for row in rows):
            ends = [row["end_ms"] for row in rows if (row["way"], row["coflow"]) == (way, coflow)]
            shares = [100 * end / max(ends) for end in ends]
            plots[0].plot(shares, [k] * len(shares), "o", color=figures.COLOURS[k % len(figures.COLOURS)], markersize=3)
    plots[0].set_yticks(range(len(ways)), ways)
    plots[0].invert_yaxis()
    plots[0].set(xlabel="end of each flow, % of the last one's of its coflow")
    return figure
