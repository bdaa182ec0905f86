"""Flows with unequal RTTs under s-PERC*: whether their rates are feasible at all times, and a raise that waits."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, rounded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

RATE_BPS, BUFFER = 100e6, 125_000
"""Rate of links between sites, and bytes of each buffer."""
EPOCH_MS, REPLACED = 2000, 0.4
DATA = 1500
"""Bytes of a packet. ACKs have 1 byte, so that the headroom is for raises alone."""
HEADROOMS = (0.0, 0.02, 0.05, 0.1)
DELAYS = {"wan": None, "short": "100us"}
"""Delay of each link between sites: by distance, and one that leaves RTTs of a millisecond."""
SAMPLED_MS, COUNTED_MS = 1000, 1900
"""Time at which samples of rates begin, when those of the start have settled, and from which on drops count: shortly
before the first change, and long enough after the first sample for all waits."""
MS_KEPT = {"10ms": 10.0, "1ms": 1.0}
"""Buffers of the fluid, as times at the link's rate: 125 KB at 100 Mb/s, and at 1 Gb/s."""
WAITS = {"at_once": None, "waits": 1, "twice": 2}
"""By the way in which sources follow their assigned rates: a raise waits for so many times the longest RTT, less the
flow's own."""
COLUMNS = ["delays", "headroom", "seed", "drops", "goodput"]
COLUMNS += [f"{name}_{what}" for name in WAITS for what in ("over", *MS_KEPT, "cost")]
DEMANDS = {"demand": True, "no demand": False}
"""Whether control packets carry a flow's remaining bytes, of which the last are then sent at line rate."""
FINITE = ["demand", "headroom", "seed", "drops", "slowdown"]


@dataclass(frozen=True)
class Planned:
    """A flow: its path, and the time for which it runs."""

    src: str
    dst: str
    path: list[int]
    start_ms: int
    stop_ms: int


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Runs churn of each seed with each headroom, over delays by distance and over short ones.

    ``flows``: flows of a site; ``seconds``: duration of churn; ``finite``: that of flows with a size.
    """
    given = Settings(settings, "flows", "seconds", "finite")
    flows, seconds = given.count("flows", 5, 100), given.count("seconds", 10, 1000)
    finite = given.count("finite", 30, 1000)
    jobs = [(name, headroom, seed + k) for name in DELAYS for headroom in HEADROOMS for k in range(runs)]
    work = computed.Jobs(len(jobs) + runs, progress)
    rows = work.each(jobs, partial(_one, flows, seconds))
    sized = [row for rows in work.each(range(seed, seed + runs), partial(_finite, finite)) for row in rows]
    values = _means(DELAYS, COLUMNS, rows) | _means(DEMANDS, FINITE, sized)
    values["over in all runs"] = computed.total(row[COLUMNS.index("twice_over")] for row in rows if row[0] == "wan")
    return {
        "setup": {"network": "b4-18", "rate": "100Mbps", "flows": flows, "seconds": seconds},
        "tables": {"runs": {"columns": COLUMNS, "rows": rows}, "finite": {"columns": FINITE, "rows": sized}},
        "values": values,
    }


def _means(names: Iterable[str], columns: list[str], rows: list[list[Any]]) -> dict[str, Any]:
    """Means over the runs of each column after the seed, by name and headroom."""
    found = {}
    for name in names:
        for headroom in HEADROOMS:
            mine = [row for row in rows if row[:2] == [name, headroom]]
            for k, column in list(enumerate(columns))[3:]:
                found[f"{name} {column} {100 * headroom:g}%"] = computed.sample(
                    "mean", "runs", [row[k] for row in mine]
                )
    return found


def _one(flows: int, seconds: int, job: tuple[str, float, int]) -> list[Any]:
    """A row of the table: drops of the packets, and drops and excess of the assigned rates as fluids."""
    name, headroom, seed = job
    delay = {"link_delay": DELAYS[name]} if DELAYS[name] else {}
    network = subak.Network.generate("wan", topology="b4-18", rate=RATE_BPS, buffer=BUFFER, **delay)
    planned = _plan(network, flows, seconds, seed)
    ids = [link["id"] for link in network.links]
    params = {"control": 0.04, "headroom": headroom, "reverse": False, "first_round": "100ms"}
    simulation = subak.Simulation(network, "s-perc-star", params=params, seed=seed, sections={"packets": {"ack": 1}})
    simulation.add_all(
        [{"path": [ids[k] for k in f.path], "start": f"{f.start_ms}ms", "stop": f"{f.stop_ms}ms"} for f in planned]
    )
    simulation.run(f"{SAMPLED_MS}ms")
    rates = np.zeros((1000 * seconds, len(planned)))
    _sample(simulation, rates, SAMPLED_MS, COUNTED_MS)
    before = sum(link["dropped_packets"] for link in simulation.links)
    received = sum(flow["received_bytes"] for flow in simulation.flows)
    _sample(simulation, rates, COUNTED_MS, 1000 * seconds)
    for k, flow in enumerate(planned):
        rates[: flow.start_ms, k] = 0
        rates[flow.stop_ms :, k] = 0
    drops = sum(link["dropped_packets"] for link in simulation.links) - before
    received = sum(flow["received_bytes"] for flow in simulation.flows) - received
    row: list[Any] = [name, headroom, seed, drops, 8 * received / (seconds - COUNTED_MS / 1000) / 1e6]
    for times_rtt in WAITS.values():
        fluid = _Fluid(network, planned, _waiting(rates, _waits_ms(network, planned, times_rtt)))
        row += [fluid.over, *fluid.drops, 100 * (1 - fluid.sent / float(rates[COUNTED_MS:].sum()))]
    return row


def _sample(simulation: subak.Simulation, rates: np.ndarray, begin_ms: int, end_ms: int) -> None:
    """Advances to ``end_ms``, and puts the assigned rates after ``begin_ms`` into ``rates``."""
    table = simulation.sample([f"{ms}ms" for ms in range(begin_ms + 1, min(end_ms + 1, len(rates)))]).to_numpy()
    at = np.asarray(table["time_ns"]) // 1_000_000
    rates[at, table["flow"]] = np.nan_to_num(np.asarray(table["assigned_bps"], dtype=float))


def _finite(seconds: int, seed: int) -> list[list[Any]]:
    """A row for each headroom, with and without demands: drops and mean slowdown of flows with a size."""
    params = {"control": 0.04, "reverse": False, "first_round": "100ms"}
    spec = {
        "network": {"kind": "wan", "topology": "b4-18", "rate": RATE_BPS, "buffer": BUFFER},
        "routing": {"metric": "hops", "hash": "pair"},
        "packets": {"ack": 1},
        "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.125},
        "scheme": [
            {
                "name": "s-perc-star",
                "label": f"{name} {headroom}",
                "params": {**params, "headroom": headroom, "demand": demand},
            }
            for name, demand in DEMANDS.items()
            for headroom in HEADROOMS
        ],
        "run": {"duration": f"{seconds}s", "warmup": "2s", "seeds": [seed]},
    }
    with tempfile.TemporaryDirectory() as folder:
        results = subak.run(spec, Path(folder) / "run", progress=False)
        dropped = results.table("summary").to_pandas().set_index("scheme")["dropped_packets"]
        flows = results.table("flow", measured=True).to_pandas()
        slowdown = flows.groupby("scheme")["slowdown"].mean()
        keys = [(name, headroom, f"{name} {headroom}") for name in DEMANDS for headroom in HEADROOMS]
        return [[name, headroom, seed, int(dropped[key]), float(slowdown[key])] for name, headroom, key in keys]


def _plan(network: subak.Network, flows: int, seconds: int, seed: int) -> list[Planned]:
    """Random pairs of sites; at the end of each epoch some flows stop, and as many start."""
    stream, router = subak.Stream(seed, "churn"), subak.Router(network, symmetric=True)
    hosts, running = network.hosts, flows * len(network.hosts)
    changed = rounded(REPLACED * running)
    epochs = -(-1000 * seconds // EPOCH_MS)
    starts = [0] * running
    stops = [EPOCH_MS * epochs] * running
    alive = list(range(running))
    for epoch in range(1, epochs):
        stream.shuffle(alive)
        for k in alive[:changed]:
            stops[k] = EPOCH_MS * epoch
        alive = alive[changed:] + list(range(len(starts), len(starts) + changed))
        starts += [EPOCH_MS * epoch] * changed
        stops += [EPOCH_MS * epochs] * changed
    found = []
    for start, stop in zip(starts, stops, strict=True):
        src = stream.below(len(hosts))
        dst = (src + 1 + stream.below(len(hosts) - 1)) % len(hosts)
        path = list(router.path(hosts[src], hosts[dst]))
        found.append(Planned(hosts[src], hosts[dst], path, start, stop))
    return found


def _delays_ms(network: subak.Network) -> np.ndarray:
    return np.asarray(network.links.to_numpy()["delay_ns"], dtype=float) / 1e6


def _waits_ms(network: subak.Network, planned: list[Planned], times_rtt: int | None) -> list[int]:
    """For each flow, ``times_rtt`` times the longest RTT of all, less its own, ms; 0 for ``None``."""
    delays = _delays_ms(network)
    rtts = [2 * float(delays[flow.path].sum()) for flow in planned]
    return [0 if times_rtt is None else rounded(times_rtt * max(rtts) - rtt) for rtt in rtts]


def _waiting(rates: np.ndarray, waits_ms: list[int]) -> np.ndarray:
    """Rates that fall at once, and rise after the flow's wait, unless the rate has fallen again: running minima."""
    found = rates.copy()
    for k, wait in enumerate(waits_ms):
        if wait > 0:
            padded = np.concatenate([np.zeros(wait), rates[:, k]])
            found[:, k] = np.lib.stride_tricks.sliding_window_view(padded, wait + 1).min(axis=1)
    return found


class _Fluid:
    """The sources' rates as fluids: what arrives at each link, and what its buffer cannot hold.

    A link gets all that sources send, so that a drop upstream is not subtracted.
    """

    def __init__(self, network: subak.Network, planned: list[Planned], rates: np.ndarray) -> None:
        """Adds the rates up at each link, delayed by their way there."""
        delays = _delays_ms(network)
        arriving = np.zeros((len(delays), len(rates)))
        for k, flow in enumerate(planned):
            come_ms = np.concatenate([[0], np.cumsum(delays[flow.path])[:-1]])
            for link, ms in zip(flow.path, come_ms, strict=True):
                late = rounded(ms)
                arriving[link, late:] += rates[: len(rates) - late, k]
        arriving[:, :COUNTED_MS] = 0
        capacity = np.asarray(network.links.to_numpy()["capacity_bps"], dtype=float)
        buffers = np.array([[ms * bps / 8e3 for bps in capacity] for ms in MS_KEPT.values()])
        queues, dropped = np.zeros_like(buffers), np.zeros_like(buffers)
        for bps in arriving.T:
            queues = np.maximum(queues + (bps - capacity) / 8e3, 0)
            dropped += np.maximum(queues - buffers, 0)
            queues = np.minimum(queues, buffers)
        self.drops = [float(bytes_) for bytes_ in dropped.sum(axis=1) / DATA]
        """Packets dropped, by buffer."""
        self.over = float(np.maximum(arriving - capacity[:, None], 0).sum() / 8e3 / DATA)
        """Packets that arrive beyond the capacity of their link."""
        self.sent = float(rates[COUNTED_MS:].sum())
        """Sum of the rates over the samples that count."""


def draw(raw: RawResults) -> Figure:
    """By headroom: dropped packets, packets beyond the capacity, what the wait costs, and drops of finite flows."""
    figure, [drops, over, cost, finite] = figures.axes(rows=2, columns=2, width=5)
    rows = raw.rows("runs")

    def mean(delays: str, column: str) -> list[float]:
        of = [[r[column] for r in rows if r["delays"] == delays and r["headroom"] == h] for h in HEADROOMS]
        return [float(np.mean(data)) for data in of]

    percent, [blue, red, green, pink, *_] = [100 * headroom for headroom in HEADROOMS], figures.COLOURS
    sent = mean("wan", "goodput")
    labels = {
        "at_once": "a raise at once",
        "waits": "a raise waits: longest RTT less own",
        "twice": "a raise waits: twice the longest less own",
    }
    drops.plot(percent, mean("wan", "drops"), "-o", color=blue, label="packets")
    for (name, label), colour in zip(labels.items(), (red, green, pink), strict=True):
        drops.plot(percent, mean("wan", f"{name}_10ms"), "--o", color=colour, label=f"fluid, {label}")
        over.plot(percent, mean("wan", f"{name}_over"), "-o", color=colour, label=label)
        left = [g * (1 - c / 100) for g, c in zip(sent, mean("wan", f"{name}_cost"), strict=True)]
        cost.plot(percent, left, "-o", color=colour, label=label)
    over.plot(percent, mean("short", "at_once_over"), ":s", color="black", label="a raise at once, RTTs of 1 ms")
    for name, colour in zip(DEMANDS, (blue, red), strict=True):
        of = [r for r in raw.rows("finite") if r["demand"] == name]
        means = [np.mean([r["drops"] for r in of if r["headroom"] == h]) for h in HEADROOMS]
        finite.plot(percent, means, "-o", color=colour, label=f"flows with a size, {name}")
    finite.set(ylabel="packets dropped in a run")
    drops.set(ylabel="packets dropped in a run")
    over.set(ylabel="packets beyond the capacity of a link")
    cost.set(ylabel="sent by all, Mb/s")
    for plot in (drops, over, cost, finite):
        plot.set(xlabel="headroom, % of each link", ylim=(0, None))
        plot.legend(fontsize=8)
    return figure
