"""Loss of optimality if the allocator does not know paths, or other pods (Flowtune, section 6).

Rates are the exact optimum of the problem that each allocator knows. If these rates overload a link, TCP would react.
Here each flow is scaled down by the worst overload on its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import subak
from subak.papers.flowtune.fabric import Fabric, loads_bps, rows, two
from subak.repro.computed import total

HOST_BPS = 10e9
LEAST_SHARE = 0.05
"""Smallest fraction of a link that traffic from other pods leaves to a pod's own traffic, as in the allocator."""
NEWEST = 0.25
"""Weight of a new sample in the moving average of traffic from other pods. The paper has no value."""
LOOKS = 40
"""Number of iterations until the pods' allocators have converged."""

Paths = list[list[int]]


@dataclass(frozen=True)
class Loss:
    """Loss relative to the optimum."""

    throughput: float
    """Throughput relative to the optimum, percent."""
    points: float
    """Mean over flows of log2(rate / optimal rate), negative."""
    overload: float
    """Largest overload of a link before scaling down, percent."""


def _optimum(network: subak.Network, paths: Paths) -> Any:
    policy = {"kind": "alpha-fair", "alpha": 1}
    answer = subak.solve(network, flows=rows(paths), policy=policy, tolerance=1e-6)
    return answer.flows.to_numpy()["rate_bps"]


def _scaled(capacities_bps: Any, paths: Paths, rates_bps: Any) -> tuple[Any, float]:
    """Rates scaled down to be feasible, and the largest overload before that, percent."""
    over = loads_bps(paths, rates_bps, len(capacities_bps)) / capacities_bps
    worst = np.array([max(1.0, *(over[link] for link in path)) for path in paths])
    return rates_bps / worst, float(100.0 * (worst.max(initial=1.0) - 1.0))


def _cost(fabric: Fabric, paths: Paths, rates_bps: Any) -> Loss:
    best = _optimum(fabric.network, paths)
    fitting, overload = _scaled(fabric.capacities_bps, paths, rates_bps)
    points = total(np.log2(fitting / best)) / len(best)
    return Loss(100.0 * total(fitting) / total(best), points, overload)


def big_switch(spine_bps: float, flows_a_host: int, seed: int) -> Loss:
    """Loss on nine racks of 16 hosts with four spines, if the allocator knows only the hosts' links."""
    shape = {"leaves": 9, "hosts_per_leaf": 16, "spines": 4, "host_rate": HOST_BPS, "spine_rate": spine_bps}
    fabric = Fabric(seed, kind="leaf-spine", **shape)
    hosts = len(fabric.hosts)
    switch = subak.Network.generate("star", hosts=hosts, rate=HOST_BPS)
    numbers = {row["id"]: k for k, row in enumerate(switch.links)}
    stream = subak.Stream(seed, "big switch")
    paths, edges = [], []
    for key in range(flows_a_host * hosts):
        src, dst = two(stream, hosts)
        paths.append(fabric.router.path(fabric.hosts[src], fabric.hosts[dst], key))
        edges.append([numbers[f"h{src}->switch0"], numbers[f"switch0->h{dst}"]])
    return _cost(fabric, paths, _optimum(switch, edges))


def pods(k: int, inside: float, flows_a_host: int, seed: int) -> Loss:
    """Loss on a fat-tree of ``k``-port switches with one allocator per pod.

    Each allocator sets the rates of flows that start in its pod, over the links up to the cores. Traffic from other
    pods reduces the capacity that the allocator sees. A fraction ``inside`` of the flows stays in its pod; the others
    go to any host.
    """
    fabric = Fabric(seed, kind="fat-tree", k=k, rate=HOST_BPS)
    hosts = len(fabric.hosts)
    a_pod = hosts // k
    stream = subak.Stream(seed, "pods")
    paths, homes = [], []
    for key in range(flows_a_host * hosts):
        src, dst = two(stream, hosts)
        pod = src // a_pod
        if stream.unit() < inside:
            dst = pod * a_pod + (src % a_pod + 1 + stream.below(a_pod - 1)) % a_pod
        paths.append(fabric.router.path(fabric.hosts[src], fabric.hosts[dst], key))
        homes.append((pod, dst // a_pod))
    return _cost(fabric, paths, _settled(fabric, paths, homes, k))


def _settled(fabric: Fabric, paths: Paths, homes: list[tuple[int, int]], k: int) -> Any:
    """Rates after each allocator has measured the traffic from the other pods."""
    links = list(fabric.network.links)
    capacities_bps = fabric.capacities_bps
    cores = set(fabric.network.nodes[-((k // 2) ** 2) :])
    own = []
    for path in paths:
        # A pod's allocator knows the links up to a core switch, or all.
        known = next((at + 1 for at, link in enumerate(path) if links[link]["to"] in cores), len(path))
        own.append(known)
    beyond = [path[known:] if a != b else [] for path, known, (a, b) in zip(paths, own, homes, strict=True)]
    mine = [[f for f, home in enumerate(homes) if home[0] == pod] for pod in range(k)]
    others_bps, rates_bps = np.zeros(len(links)), np.zeros(len(paths))
    for _ in range(LOOKS):
        left_bps = np.maximum(capacities_bps - others_bps, LEAST_SHARE * capacities_bps)
        network = subak.Network.from_links(
            [{"id": row["id"], "capacity": float(c)} for row, c in zip(links, left_bps, strict=True)]
        )
        for flows in mine:
            rates_bps[flows] = _optimum(network, [paths[f][: own[f]] for f in flows])
        carried_bps, _ = _scaled(capacities_bps, paths, rates_bps)
        others_bps = others_bps + NEWEST * (loads_bps(beyond, carried_bps, len(links)) - others_bps)
    return rates_bps
