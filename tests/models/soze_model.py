"""A packet-level model of Soze, from the paper (sections 3 and 3.3, appendices C and D), without the simulator's code.

Hosts send full packets over store-and-forward links with FIFO queues. A packet stores the largest queueing delay of the
links on its path: the queue behind the packet when its transmission starts, divided by the link's rate. Its ACK returns
over links without queues. Where the paper is silent, the model follows ``docs/transports/soze.md``.

Times are in ns, rates in bytes per ns.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

P, K, M = 20e3, 3e3, 0.25
ALPHA_OVER_BETA = 1000.0
FIELD = 2
"""Size of the field for the largest delay in the header of a packet and of an ACK, bytes."""
SAMPLE = 1000.0
"""Interval between samples of a queue and of received bytes, ns."""
UNITS = {"Gbps": 0.125, "ns": 1.0, "us": 1e3, "ms": 1e6}


def parsed(text: str) -> float:
    """A rate in bytes per ns, or a time in ns."""
    unit = next(u for u in UNITS if text.endswith(u))
    return float(text.removesuffix(unit)) * UNITS[unit]


@dataclass(eq=False, slots=True)
class Packet:
    flow: Flow
    sent: float
    hop: int = 0
    told: float = 0.0


class Model:
    """The network and the flows of a spec; ``state`` selects the variable that senders adapt, ``window`` or
    ``rate``."""

    def __init__(self, spec: dict[str, Any], state: str = "window") -> None:
        self.now, self.order = 0.0, 0
        self.events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.size = float(spec["packets"]["mtu"] + FIELD)
        ack = spec["packets"]["ack"] + FIELD
        self.links = {ends: Link(self, *of) for ends, of in _links(spec["network"]).items()}
        self.alpha = max(link.rate for link in self.links.values())
        self.flows = []
        for flow in spec["workload"]["flows"]:
            path = [self.links[ends] for ends in self._route(flow["src"], flow["dst"])]
            back = sum(ack / self.links[e].rate + self.links[e].delay for e in self._route(flow["dst"], flow["src"]))
            self.flows.append(Flow(self, path, back, float(flow.get("weight", 1)), state))
            self.flows[-1].last = parsed(flow.get("start", "0ns"))
            for time, weight in flow.get("weights", []):
                self.at(parsed(time), self.flows[-1].weigh, float(weight))

    def _route(self, src: str, dst: str) -> list[tuple[str, str]]:
        """The links of a path with the fewest hops."""
        came: dict[str, str] = {src: src}
        todo = deque([src])
        while dst not in came:
            here = todo.popleft()
            for a, b in self.links:
                if a == here and b not in came:
                    came[b] = a
                    todo.append(b)
        path = [dst]
        while path[-1] != src:
            path.append(came[path[-1]])
        return [(a, b) for b, a in pairwise(path)][::-1]

    def at(self, time: float, what: Callable[..., None], *arguments: Any) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, arguments))

    def run(self, until: float, watch: tuple[str, str] | None = None) -> list[float]:
        """Simulates until a time; returns samples of the queue before a link, bytes."""
        queue: list[float] = []
        for flow in self.flows:
            self.at(flow.last, flow.send)
        for i in range(1, int(until / SAMPLE) + 1):
            self.at(i * SAMPLE, self._sample, queue, watch)
        while self.events and self.events[0][0] <= until:
            self.now, _, what, arguments = heapq.heappop(self.events)
            what(*arguments)
        return queue

    def _sample(self, queue: list[float], watch: tuple[str, str] | None) -> None:
        for flow in self.flows:
            flow.samples.append(flow.received)
        if watch is not None:
            queue.append(self.links[watch].waiting)

    def arrive(self, packet: Packet) -> None:
        """A packet arrives at the next link of its path, or at the receiver, which sends an ACK at once."""
        flow = packet.flow
        if packet.hop < len(flow.path):
            flow.path[packet.hop].take(packet)
        else:
            flow.received += self.size
            self.at(self.now + flow.back, flow.acknowledged, packet)


@dataclass(eq=False, slots=True)
class Link:
    model: Model
    rate: float
    delay: float
    queue: deque[Packet] = field(default_factory=deque)
    waiting: float = 0.0
    busy: bool = False

    def take(self, packet: Packet) -> None:
        if self.busy:
            self.queue.append(packet)
            self.waiting += self.model.size
        else:
            self.begin(packet)

    def begin(self, packet: Packet) -> None:
        self.busy = True
        packet.told = max(packet.told, self.waiting / self.rate)
        self.model.at(self.model.now + self.model.size / self.rate, self.end, packet)

    def end(self, packet: Packet) -> None:
        packet.hop += 1
        self.model.at(self.model.now + self.delay, self.model.arrive, packet)
        self.busy = False
        if self.queue:
            self.waiting -= self.model.size
            self.begin(self.queue.popleft())


class Flow:
    """A sender. Either ``window`` (bytes) or ``rate`` is its state."""

    def __init__(self, model: Model, path: list[Link], back: float, weight: float, state: str) -> None:
        self.model, self.path, self.back, self.weight, self.state = model, path, back, weight, state
        self.line = path[0].rate
        idle_rtt = sum(model.size / link.rate + link.delay for link in path) + back
        self.rate = self.line * min(weight / 10, 1)
        self.window = max(self.rate * idle_rtt, model.size)
        self.in_flight = self.received = self.last = 0.0
        self.samples: list[float] = []

    def weigh(self, weight: float) -> None:
        self.weight = weight

    def send(self) -> None:
        size = self.model.size
        if self.state == "rate":
            self._packet()
            self.model.at(self.model.now + size / self.rate, self.send)
            return
        while self.in_flight == 0 or self.in_flight + size <= self.window:
            self._packet()

    def _packet(self) -> None:
        self.in_flight += self.model.size
        self.path[0].take(Packet(self, self.model.now))

    def acknowledged(self, packet: Packet) -> None:
        """Updates the state by equation 7, scaled by the time since the last update over the RTT (section 3.3)."""
        now, size = self.model.now, self.model.size
        self.in_flight -= size
        rtt = now - packet.sent
        share = min((now - self.last) / rtt, 1.0)
        self.last = now
        rate = self.window / rtt if self.state == "window" else self.rate
        stands_for = self.model.alpha * ALPHA_OVER_BETA ** (-max(packet.told - K, 0.0) / P)
        u = (stands_for / (rate / self.weight)) ** M
        rate = min(rate * min(max(u, 0.5), 2.0) ** share, self.line)
        if self.state == "rate":
            self.rate = max(rate, size / rtt)
        else:
            self.window = max(rate * rtt, size)
            self.send()


def _links(network: Any) -> dict[tuple[str, str], tuple[float, float]]:
    """Rate and delay of each link, for a star network or a list of links."""
    if isinstance(network, dict) and network.get("kind") == "star":
        of = (parsed(network["rate"]), parsed(network["link_delay"]))
        hosts = [f"h{i}" for i in range(network["hosts"])]
        return {ends: of for h in hosts for ends in ((h, "switch0"), ("switch0", h))}
    links = network["links"] if isinstance(network, dict) else network
    return {(a["from"], a["to"]): (parsed(a["capacity"]), parsed(a["delay"])) for a in links}
