"""Networks and random paths of the experiments that run Flowtune's optimizer alone."""

from __future__ import annotations

from typing import Any

import numpy as np

import subak


class Fabric:
    """A network with a router."""

    def __init__(self, seed: int, **network: Any) -> None:
        self.network = subak.Network.generate(**network)
        self.hosts = self.network.hosts
        self.router = subak.Router(self.network, seed=seed)
        self.capacities_bps = self.network.links.to_numpy()["capacity_bps"]

    def path(self, stream: subak.Stream, key: int) -> list[int]:
        """A path between two random hosts; ``key`` is the routing key."""
        src, dst = two(stream, len(self.hosts))
        return self.router.path(self.hosts[src], self.hosts[dst], key)


def two(stream: subak.Stream, hosts: int) -> tuple[int, int]:
    """Two hosts."""
    src = stream.below(hosts)
    return src, (src + 1 + stream.below(hosts - 1)) % hosts


def rows(paths: list[list[int]]) -> subak.Rows:
    """Flows over these paths."""
    flat = [link for path in paths for link in path]
    return subak.Rows(np.cumsum([0, *map(len, paths)]), np.array(flat, dtype=np.uint32))


def loads_bps(paths: list[list[int]], rates_bps: Any, links: int) -> Any:
    """The load of each link."""
    flat = np.array([link for path in paths for link in path], dtype=np.int64)
    return np.bincount(flat, np.repeat(rates_bps, [len(path) for path in paths]), links)
