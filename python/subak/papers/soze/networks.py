"""Random networks for experiments on Soze (100 Gb/s links, flows of weights 1 to 16), and the criterion of convergence.

A network converges if every flow's assigned rate, averaged over 10 RTTs, is within 3% of the exact one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import subak
from subak.repro.computed import quantile

SIZES = {"mtu": 1048, "header": 48, "ack": 64}
"""Packet sizes of Soze's section 5: 1000 bytes of payload, with 48 bytes of headers."""
RATE_BPS = 100e9
RATE_KEPT: dict[str, Any] = {"state": "rate", "signal": "wait", "filter": 10e-6}
"""Parameters of ``soze`` by which a sender keeps a rate, and packets carry their queueing delay, filtered as in the
paper's switches."""
ONE, SEVERAL = "one hop", "several hops"
"""Number of congested links on a path. One: 5 to 100 pairs of hosts share one link; 2 us per link. Several: four leaves
with four hosts each and two spines, 1.5 us per link. 10 to 80 flows go from one half of the hosts to the other. Links
to spines have half, the same or twice the hosts' rate."""
LIMIT_RTTS = {ONE: 200, SEVERAL: 400}
"""Number of RTTs within which rates must converge."""
EACH = 4
"""Samples per RTT."""
OVER = 10
"""Length of the moving average, RTTs."""
WITHIN = 0.03
HELD = 50
"""Dwell time of convergence, RTTs."""

Path = list[str]


@dataclass(frozen=True)
class Setup:
    """Links, and flows over them."""

    links: list[dict[str, Any]]
    paths: list[Path]
    weights: list[float]

    @cached_property
    def network(self) -> subak.Network:
        """The links as a network."""
        return subak.Network.from_links(self.links)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {link["id"]: k for k, link in enumerate(self.links)}

    @cached_property
    def rtt_ns(self) -> int:
        """Base RTT of the first flow."""
        back = ["->".join(reversed(link.split("->"))) for link in reversed(self.paths[0])]
        return idle_rtt_ns(*([self.links[self._numbers[link]] for link in path] for path in (self.paths[0], back)))

    @cached_property
    def rows(self) -> subak.Rows:
        """The flows in compressed rows."""
        flat = [self._numbers[link] for path in self.paths for link in path]
        return subak.Rows(np.cumsum([0, *map(len, self.paths)]), np.array(flat, dtype=np.uint32), self.weights)

    def exact(self, share: float) -> tuple[Any, list[int]]:
        """Exact rates with a fraction ``share`` of each link for data, and the numbers of the saturated links."""
        return exact(self.links, self.rows, share)

    def simulation(self, scheme: str, params: Mapping[str, Any], seed: int) -> subak.Simulation:
        """The flows under a scheme, in packets, at time 0."""
        made = subak.Simulation(self.network, scheme, params=params, seed=seed, sections={"packets": SIZES})
        made.add_all([{"path": path, "weight": w} for path, w in zip(self.paths, self.weights, strict=True)])
        return made


def pair(a: str, b: str, rate_bps: float, delay_ns: int) -> list[dict[str, Any]]:
    """A link between two nodes, in both directions."""
    rest = {"capacity": rate_bps, "delay": f"{delay_ns}ns"}
    return [{"id": f"{x}->{y}", "from": x, "to": y, **rest} for x, y in ((a, b), (b, a))]


def weight(stream: subak.Stream) -> float:
    """A random weight."""
    return 1.0 + 15.0 * stream.unit()


def draw(hops: str, seed: int) -> Setup:
    """A random network, with ``ONE`` or ``SEVERAL`` congested links on a path."""
    stream = subak.Stream(seed, f"soze {hops}")
    links, paths = _one(5 + stream.below(96)) if hops == ONE else _several(stream)
    return Setup(links, paths, [weight(stream) for _ in paths])


def _one(pairs: int) -> tuple[list[dict[str, Any]], list[Path]]:
    links = pair("a", "b", RATE_BPS, 2000)
    for f in range(pairs):
        links += pair(f"from{f}", "a", RATE_BPS, 2000) + pair("b", f"to{f}", RATE_BPS, 2000)
    return links, [[f"from{f}->a", "a->b", f"b->to{f}"] for f in range(pairs)]


def _several(stream: subak.Stream) -> tuple[list[dict[str, Any]], list[Path]]:
    leaves, hosts, spines = 4, 4, 2
    spine_bps = RATE_BPS * (0.5, 1.0, 2.0)[stream.below(3)]
    flows = 10 + stream.below(71)
    links: list[dict[str, Any]] = []
    for leaf in range(leaves):
        for spine in range(spines):
            links += pair(f"leaf{leaf}", f"spine{spine}", spine_bps, 1500)
        for host in range(hosts):
            links += pair(f"h{leaf * hosts + host}", f"leaf{leaf}", RATE_BPS, 1500)
    half, paths = leaves * hosts // 2, []
    for _ in range(flows):
        src, dst, spine = stream.below(half), half + stream.below(half), stream.below(spines)
        nodes = [f"h{src}", f"leaf{src // hosts}", f"spine{spine}", f"leaf{dst // hosts}", f"h{dst}"]
        paths.append([f"{a}->{b}" for a, b in pairwise(nodes)])
    return links, paths


def idle_rtt_ns(forward: Iterable[Mapping[str, Any]], back: Iterable[Mapping[str, Any]]) -> int:
    """Base RTT of a packet and its ACK over links."""
    total = 0.0
    for path, size in ((forward, SIZES["mtu"]), (back, SIZES["ack"])):
        crossing = 0.0
        for link in path:
            crossing += float(link["delay"].removesuffix("ns")) + size * 8e9 / link["capacity"]
        total += crossing
    return math.ceil(total)


def exact(links: list[dict[str, Any]], rows: subak.Rows, share: float) -> tuple[Any, list[int]]:
    """Exact weighted max-min rates with a fraction ``share`` of each link, and the numbers of the saturated links."""
    capacities = np.array([link["capacity"] * share for link in links])
    scaled = [link | {"capacity": float(c)} for link, c in zip(links, capacities, strict=True)]
    rates = subak.solve(subak.Network.from_links(scaled), flows=rows).flows.to_numpy()["rate_bps"]
    load = np.bincount(rows.links, np.repeat(rates, np.diff(rows.link_ptr)), len(links))
    return rates, [int(k) for k in np.flatnonzero(load > 0.9999 * capacities)]


@dataclass(frozen=True)
class Observations:
    """Measurements of a run."""

    settled_rtts: float
    """First RTT from which all rates stay within 3% to the end; infinite if they are not within 3% at the last one."""
    median_off: float
    """Relative error of the median flow at the end."""
    worst_off: float
    utilization: float
    """During the dwell time: smallest ratio of load to target load over links that should be full."""
    peak_us: float
    """Longest real queueing delay since the start."""
    held_peak_us: float
    """Longest real queueing delay during the dwell time."""


def watch(simulation: subak.Simulation, setup: Setup, share: float, limit: int) -> Observations:
    """Runs a simulation for ``limit`` RTTs and ``HELD`` more."""
    want, full = setup.exact(share)
    from_ns, steps = simulation.now_ns, (limit + HELD) * EACH
    times = [from_ns + step * setup.rtt_ns // EACH for step in range(1, steps + 1)]
    simulation.restart_peaks()
    cold = simulation.sample(times[: limit * EACH]).to_numpy()["assigned_bps"]
    longest_us = peak_us(simulation)
    simulation.restart_peaks()
    sent_before = simulation.links.to_numpy()["data_bytes"]
    held = simulation.sample(times[limit * EACH :]).to_numpy()["assigned_bps"]
    held_us = peak_us(simulation)
    off = np.abs(_averages(np.concatenate([cold, held]).reshape(steps, len(want))) / want - 1.0)
    outside = np.flatnonzero(off.max(axis=1) > WITHIN)
    # There is no average before there are enough samples.
    settled = (OVER * EACH + int(outside[-1]) if len(outside) else OVER * EACH - 1) / EACH
    worst, seconds = float(off[-1].max()), HELD * float(setup.rtt_ns) * 1e-9
    sent = simulation.links.to_numpy()["data_bytes"]
    used = [float(sent[k] - sent_before[k]) * 8.0 / seconds / (share * setup.links[k]["capacity"]) for k in full]
    return Observations(
        settled_rtts=math.inf if worst > WITHIN else settled,
        median_off=float(quantile(off[-1], 0.5)),
        worst_off=worst,
        utilization=min(used, default=math.inf),
        peak_us=max(longest_us, held_us),
        held_peak_us=held_us,
    )


def peak_us(simulation: subak.Simulation) -> float:
    """Longest queueing delay of any link."""
    links = simulation.links.to_numpy()
    return float(np.max(links["peak_queued_bytes"].astype(float) * 8e6 / links["capacity_bps"]))


def _averages(samples: Any) -> Any:
    """Moving averages over the last ``OVER`` RTTs, from the first sample on that has so many before it."""
    averages = Averages(samples.shape[1])
    rows = np.empty_like(samples)
    for row, sample in zip(rows, samples, strict=True):
        averages.add(sample)
        row[:] = averages.sums
    return rows[OVER * EACH - 1 :] / (OVER * EACH)


class Averages:
    """Moving averages over the last ``OVER`` RTTs."""

    def __init__(self, flows: int) -> None:
        self.samples: deque[Any] = deque()
        self.sums = np.zeros(flows)

    def add(self, sample: Any) -> None:
        """Adds the rates at one time."""
        self.sums += sample
        self.samples.append(sample)
        if len(self.samples) > OVER * EACH:
            self.sums -= self.samples.popleft()

    @property
    def now(self) -> Any:
        """Current averages; ``None`` until there are enough samples."""
        return self.sums / (OVER * EACH) if len(self.samples) == OVER * EACH else None
