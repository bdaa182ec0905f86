"""Which addresses hosts have and which routes nodes, so that every flow takes its path.

A host has an address for each set of paths towards it that no tree of routes holds at once: two flows to one host that
part and meet again go to two of its addresses. Routes are by destination alone, as any router has them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address

MOST_HOSTS = 4096
MOST_ADDRESSES = 4094
"""Of one host: twelve bits of 10.0.0.0/8, without the first and the last."""


@dataclass(frozen=True)
class Link:
    """A directed link of the network: nodes by number, bit/s, bytes, ns."""

    id: str
    source: int
    target: int
    rate_bps: float
    buffer_bytes: int
    delay_ns: int = 0


@dataclass(frozen=True)
class Plan:
    """A network to be made of namespaces."""

    names: tuple[str, ...]
    hosts: tuple[bool, ...]
    links: tuple[Link, ...]
    mtu_bytes: int = 1500
    """A full packet on the wire, with its Ethernet header."""
    telling: bool = False
    """Queues are pairs of devices between which programs can look at packets."""
    marking: bool = False
    """Hosts ask for marks of congestion (ECN)."""
    priority: bool = False
    """Queues let packets go first that programs give a high priority."""

    def pairs(self) -> list[tuple[int, int | None]]:
        """Links two by two, there and back, each once: parallel ones in their order."""
        waiting: dict[tuple[int, int], deque[int]] = {}
        paired: dict[int, int | None] = {}
        for number, link in enumerate(self.links):
            back = waiting.get((link.target, link.source))
            if back:
                paired[back.popleft()] = number
            else:
                paired[number] = None
                waiting.setdefault((link.source, link.target), deque()).append(number)
        return list(paired.items())

    def twins(self) -> dict[int, int]:
        """The link that leads back, of each that has one."""
        both = [(there, back) for there, back in self.pairs() if back is not None]
        return dict(both) | {back: there for there, back in both}


def address(host: int, number: int) -> str:
    """The address with this number of a host."""
    return str(IPv4Address(10 << 24 | host << 12 | number + 1))


@dataclass
class Layout:
    """Addresses and routes so far."""

    plan: Plan
    trees: dict[int, list[dict[int, int]]] = field(default_factory=dict)
    """Of each node that is a destination: of each of its addresses the link by which each node goes there."""

    def towards(self, path: Sequence[int]) -> str:
        """An address whose packets take the links of ``path``."""
        hops = {self.plan.links[link].source: link for link in path}
        target = self.plan.links[path[-1]].target
        trees = self.trees.setdefault(target, [])
        for number, tree in enumerate(trees):
            if all(tree.get(node, link) == link for node, link in hops.items()):
                tree.update(hops)
                return address(target, number)
        if len(trees) >= MOST_ADDRESSES:
            name = self.plan.names[target]
            raise ValueError(f"flows reach {name} over more than {MOST_ADDRESSES} different trees of paths")
        trees.append(hops)
        return address(target, len(trees) - 1)

    def addresses(self) -> Iterator[tuple[int, str]]:
        """Each node that has addresses, with each of them."""
        for node, trees in self.trees.items():
            for number in range(len(trees)):
                yield node, address(node, number)

    def routes(self) -> Iterator[tuple[int, str, int]]:
        """A node, an address, and the link by which the node goes there."""
        for target, trees in self.trees.items():
            for number, tree in enumerate(trees):
                for node, link in tree.items():
                    yield node, address(target, number), link


def everywhere(plan: Plan) -> Layout:
    """One address for each host, reached from everywhere by a shortest path."""
    into: list[list[int]] = [[] for _ in plan.names]
    for number, link in enumerate(plan.links):
        into[link.target].append(number)
    layout = Layout(plan)
    for host in (node for node, is_host in enumerate(plan.hosts) if is_host):
        tree: dict[int, int] = {}
        reached = deque([host])
        while reached:
            for number in into[reached.popleft()]:
                node = plan.links[number].source
                # Hosts do not forward for others.
                if node == host or node in tree:
                    continue
                tree[node] = number
                if not plan.hosts[node]:
                    reached.append(node)
        layout.trees[host] = [tree]
    return layout


def unreached(layout: Layout) -> Iterable[tuple[int, int]]:
    """Pairs of hosts of which the first does not reach the second."""
    hosts = [node for node, is_host in enumerate(layout.plan.hosts) if is_host]
    for target in hosts:
        tree = layout.trees[target][0]
        yield from ((node, target) for node in hosts if node != target and node not in tree)
