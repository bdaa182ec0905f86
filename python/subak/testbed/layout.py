"""Addresses of hosts and routes of nodes, such that every flow takes its path.

Routes depend on the destination address alone, as in any router. If the paths to a host are no tree, the host has
several addresses: two flows whose paths part and join again before the host use two of its addresses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address

MOST_HOSTS = 4096
LEAST_DELAY_NS = 100_000
"""Shortest delay that a relay adds, ns: a hop takes half as long without, and the relay wakes up some 50 us late."""
MOST_ADDRESSES = 4094
"""Largest number of addresses of a host: twelve bits of 10.0.0.0/8, without the first and the last."""


@dataclass(frozen=True)
class Link:
    """A directed link of the network: its nodes as numbers, rate in bit/s, buffer in bytes, delay in ns."""

    id: str
    source: int
    target: int
    rate_bps: float
    buffer_bytes: int
    delay_ns: int = 0


@dataclass(frozen=True)
class Plan:
    """A network to be created as namespaces."""

    names: tuple[str, ...]
    hosts: tuple[bool, ...]
    links: tuple[Link, ...]
    mtu_bytes: int = 1500
    """Size of a full packet on the wire, with its Ethernet header, bytes."""
    telling: bool = False
    """Whether each queue is a pair of devices, so that kernel programs can access packets between the two."""
    marking: bool = False
    """Whether hosts request ECN marks."""
    priority: bool = False
    """Whether queues prioritize packets that kernel programs give a high priority."""
    delays: bool = False
    """Whether links have their delays."""
    relayed: tuple[int, ...] = ()
    """Links whose packets the relay carries. Their reverse links are relayed, too."""
    seed: int = 0
    """Seed of the relay's random choices."""

    def pairs(self) -> list[tuple[int, int | None]]:
        """Pairs of a link and its reverse link, each pair once; parallel links in their order."""
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

    def with_relays(self, wanted: Iterable[int], seed: int = 0) -> Plan:
        """The plan with relays for links with a delay, for these links, and for the reverse links of all."""
        twins, chosen = self.twins(), {*self.delayed(), *wanted}
        chosen |= {twins[link] for link in chosen if link in twins}
        return replace(self, relayed=tuple(sorted(chosen)), seed=seed)

    def delayed(self) -> list[int]:
        """Links whose delay is long enough for a relay."""
        return [number for number, link in enumerate(self.links) if self.delay_ns(link)]

    def delay_ns(self, link: Link) -> int:
        """The delay that the relay adds to a link; 0 if the link needs none."""
        return link.delay_ns if self.delays and link.delay_ns >= LEAST_DELAY_NS else 0

    def twins(self) -> dict[int, int]:
        """The reverse link of each link that has one."""
        both = [(there, back) for there, back in self.pairs() if back is not None]
        return dict(both) | {back: there for there, back in both}


def address(host: int, number: int) -> str:
    """IPv4 address ``number`` of a host."""
    return str(IPv4Address(10 << 24 | host << 12 | number + 1))


@dataclass
class Layout:
    """Addresses and routes assigned so far."""

    plan: Plan
    trees: dict[int, list[dict[int, int]]] = field(default_factory=dict)
    """For each destination node and each of its addresses: the next link at each node."""

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
        """Yields each address, after its node."""
        for node, trees in self.trees.items():
            for number in range(len(trees)):
                yield node, address(node, number)

    def routes(self) -> Iterator[tuple[int, str, int]]:
        """Yields routes: a node, an address, and the node's next link to that address."""
        for target, trees in self.trees.items():
            for number, tree in enumerate(trees):
                for node, link in tree.items():
                    yield node, address(target, number), link


def everywhere(plan: Plan) -> Layout:
    """One address per host, reached from every node by a shortest path."""
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
                # Hosts do not forward packets.
                if node == host or node in tree:
                    continue
                tree[node] = number
                if not plan.hosts[node]:
                    reached.append(node)
        layout.trees[host] = [tree]
    return layout


def unreached(layout: Layout) -> Iterable[tuple[int, int]]:
    """Pairs of hosts without a path from the first to the second."""
    hosts = [node for node, is_host in enumerate(layout.plan.hosts) if is_host]
    for target in hosts:
        tree = layout.trees[target][0]
        yield from ((node, target) for node in hosts if node != target and node not in tree)


def longest_rtt_ns(layout: Layout) -> int:
    """Largest sum of delays from a host to another and back, ns."""
    plan, longest = layout.plan, 0
    there: dict[tuple[int, int], int] = {}
    for target, trees in layout.trees.items():
        for node in trees[0]:
            at, delay_ns = node, 0
            while at != target:
                link = plan.links[trees[0][at]]
                at, delay_ns = link.target, delay_ns + plan.delay_ns(link)
            there[node, target] = delay_ns
            longest = max(longest, delay_ns + there.get((target, node), 0))
    return longest
