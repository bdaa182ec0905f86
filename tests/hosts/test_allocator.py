"""The allocator against an independent endpoint and a model: rates, restarts, clocks, and misuse of keys."""

from __future__ import annotations

import heapq
import math
import os
import random
import select
import signal
import socket
import struct
import threading
import time
from typing import Any

import pytest
from allocator_endpoint import (
    SHARE,
    Make,
    all_told,
    fair,
    graph,
    near,
    number_of,
    replace,
    run,
    told,
)


@pytest.mark.parametrize(("seed", "alpha"), [(1, 1.0), (2, 1.0), (3, 2.0), (4, 0.5)])
def test_rates_of_unequal_links_are_the_models(make: Make, seed: int, alpha: float) -> None:
    draws = random.Random(seed)
    rates = [draws.choice([1e6, 1e7, 1e8, 1e9, 1e10, 4e10, 1e11, 4e11]) for _ in range(6)]
    daemon = make(rates, alpha=alpha)
    endpoints = [daemon.endpoint(f"h{k}") for k in range(6)]
    flows = []
    for _ in range(14):
        a, b = draws.sample(range(6), 2)
        weight = draws.choice([0.25, 0.5, 1, 2, 4, 7])
        flows.append((a, endpoints[a].start(daemon.hosts[f"h{b}"], weight), [f"up{a}", f"down{b}"], weight))
    capacities = {f"{way}{k}": SHARE * rate for k, rate in enumerate(rates) for way in ("up", "down")}
    want = fair(capacities, [(path, weight) for *_, path, weight in flows], alpha)
    pairs = list(zip(flows, want, strict=True))
    told(endpoints, lambda: all(near(endpoints[a].rates.get(f), goal) for (a, f, *_), goal in pairs))


def test_odd_networks(make: Make) -> None:
    one = graph("h0 h1", "", "h0-h1")
    parts = graph("h0 h1 h2 h3", "", "h0-h1 h2-h3")
    parallel = graph("h0 h1", "", "h0-h1 h0-h1", multigraph=True)
    directed = graph("h0 h1", "", "h0-h1", directed=True)
    lone = graph("h0 h1", "", "")
    # For each network: capacity from h0 to h1 in all, and from h1 to h0.
    for network, forth, back in [(one, 1, 1), (parts, 1, 1), (parallel, 2, 1), (directed, 1, None), (lone, None, None)]:
        daemon = make(network)
        a, b = daemon.endpoint("h0"), daemon.endpoint("h1")
        for path in range(12):
            a.start(daemon.hosts["h1"], path=path)
        g = b.start(daemon.hosts["h0"])
        if len(network["nodes"]) == 4:
            # No host of the other partition is reachable.
            a.start(daemon.hosts["h2"])
        run([a, b], 0.8)
        assert not a.rates if forth is None else near(sum(a.rates.values()), forth * SHARE * 10e9), (network, a.rates)
        assert not b.rates if back is None else near(b.rates.get(g), back * SHARE * 10e9), (network, b.rates)
        assert len(a.rates) in (0, 12)
        daemon.stop()


def test_many_flowlets_and_short_ones(make: Make) -> None:
    daemon = make([10e9] * 3, lease="2s")
    a = daemon.endpoint("h0")
    flowlets = [a.start(daemon.hosts["h2"]) for _ in range(10_000)]
    told([a], lambda: len(a.rates) == 10_000, 30)
    assert near(sum(a.rates.values()), SHARE * 10e9)
    for flowlet in flowlets:
        a.end(flowlet)
    # These flowlets end before the allocator can send a rate.
    for _ in range(300):
        flowlet = a.start(daemon.hosts["h1"])
        a.send()
        a.end(flowlet)
    told([a], lambda: not a.news and not a.told, 30)
    last = a.start(daemon.hosts["h2"])
    told([a], lambda: near(a.rates.get(last), SHARE * 10e9))
    assert daemon.ask("status")["flowlets"] == 1


class Relay:
    """A relay between endpoints and the allocator, which delays, drops, duplicates, reorders and corrupts packets by
    a seed."""

    def __init__(self, to: tuple[str, int], seed: int, delay_s: float, share: float) -> None:
        self.to, self.draws, self.delay_s, self.share = to, random.Random(seed), delay_s, share
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.address = self.front.getsockname()
        self.backs: dict[tuple[str, int], socket.socket] = {}
        self.under_way: list[tuple[float, int, bytes, socket.socket, tuple[str, int] | None]] = []
        self.count = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _happens(self) -> bool:
        return self.draws.random() < self.share

    def _take(self, at: socket.socket) -> None:
        datagram, who = at.recvfrom(65536)
        to = None
        if at is self.front:
            if who not in self.backs:
                self.backs[who] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self.backs[who].connect(self.to)
            out = self.backs[who]
        else:
            out, to = self.front, next(who for who, back in self.backs.items() if back is at)
        for _ in range(0 if self._happens() else 2 if self._happens() else 1):
            spoilt = bytearray(datagram)
            if self._happens():
                spoilt[self.draws.randrange(len(spoilt))] ^= 1 << self.draws.randrange(8)
            self.count += 1
            late = self.delay_s * (5 if self._happens() else 1)
            heapq.heappush(self.under_way, (time.monotonic() + late, self.count, bytes(spoilt), out, to))

    def _run(self) -> None:
        while not self.ended.is_set():
            ready, _, _ = select.select([self.front, *self.backs.values()], [], [], 0.001)
            for at in ready:
                self._take(at)
            while self.under_way and self.under_way[0][0] <= time.monotonic():
                _, _, datagram, out, to = heapq.heappop(self.under_way)
                if to:
                    out.sendto(datagram, to)
                else:
                    out.send(datagram)

    def end(self) -> None:
        self.ended.set()
        self.thread.join()


@pytest.mark.parametrize(("delay_s", "share"), [(2e-6, 0.02), (1e-3, 0.2), (20e-3, 0.05)])
def test_a_network_that_does_everything_wrong(make: Make, delay_s: float, share: float) -> None:
    rates = [1e9, 1e10, 4e10, 1e11, 1e10, 1e9]
    daemon = make(rates, lease="2s")
    relay = Relay(daemon.address, 5, delay_s, share)
    draws = random.Random(7)
    endpoints = [daemon.endpoint(f"h{k}") for k in range(6)]
    for endpoint in endpoints:
        endpoint.allocator = relay.address
    flows: dict[tuple[int, int], tuple[int, float]] = {}
    for _ in range(60):
        a = draws.randrange(6)
        if len(flows) > 12:
            of, flowlet = draws.choice(list(flows))
            endpoints[of].end(flowlet)
            del flows[of, flowlet]
        else:
            b, weight = draws.choice([k for k in range(6) if k != a]), draws.choice([0.5, 1, 2, 4])
            flows[a, endpoints[a].start(daemon.hosts[f"h{b}"], weight)] = (b, weight)
        run(endpoints, 0.02)
    capacities = {f"{way}{k}": SHARE * rate for k, rate in enumerate(rates) for way in ("up", "down")}
    want = fair(capacities, [([f"up{a}", f"down{b}"], weight) for (a, _), (b, weight) in flows.items()])
    pairs = list(zip(flows, want, strict=True))
    told(endpoints, lambda: all(near(endpoints[a].rates.get(f), goal, 0.015) for (a, f), goal in pairs))
    counters = daemon.ask("counters")
    assert counters["forged"] > 0
    assert counters["malformed"] == 0
    relay.end()


# Epochs, sequence numbers and clocks.


def test_numbers_and_epochs_at_their_ends(make: Make) -> None:
    daemon = make([10e9] * 4)
    a = daemon.endpoint("h0")
    f = a.start(daemon.hosts["h1"])
    told([a], lambda: f in a.rates)
    # A sequence number is later if it is ahead by less than half of the number space.
    for sent in [2**31 - 20, 2**32 - 30] + 40 * [None]:
        a.sent = sent or a.sent
        g = a.start(daemon.hosts["h2"])
        told([a], lambda g=g: g in a.rates)
    assert a.sent < 1000
    assert daemon.ask("counters")["lapsed"] == 0
    a.close()
    for epoch in (2**64 - 1, 1):
        # The second epoch is lower than the first: the allocator accepts it once the first is silent.
        b = daemon.endpoint("h0", epoch=epoch)
        f = b.start(daemon.hosts["h3"])
        told([b], lambda b=b, f=f: near(b.rates.get(f), SHARE * 10e9))
        b.close()
    nobody = daemon.endpoint("h1", epoch=0)
    f = nobody.start(daemon.hosts["h3"])
    assert not run([nobody], 0.5, lambda: f in nobody.rates)


def test_what_a_silent_host_said_brings_it_back_for_nobody(two: Any) -> None:
    daemon, a, b, _, g = two
    kept: list[bytes] = []
    raw = a.raw
    a.raw = lambda datagram: (kept.append(datagram), raw(datagram))
    for _ in range(20):
        a.start(daemon.hosts["h2"])
        run([a, b], 0.01)
    a.close()
    told([b], lambda: near(b.rates.get(g), SHARE * 10e9))
    elsewhere = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for datagram in kept * 3:
        elsewhere.sendto(datagram, daemon.address)
        run([b], 0.002)
        assert near(b.rates[g], SHARE * 10e9)
    assert [flow["from"] for flow in daemon.ask("flows")] == ["h1"]
    # The sender of a replayed datagram gets the answer for unauthenticated senders, which has no rates.
    while select.select([elsewhere], [], [], 0.2)[0]:
        assert len(elsewhere.recv(65536)) == 36 + 16


def test_of_two_hosts_with_one_name_the_later_counts(two: Any) -> None:
    daemon, a, b, f, g = two
    twin = daemon.endpoint("h0")
    h = twin.start(daemon.hosts["h3"])
    told([a, b, twin], lambda: near(twin.rates.get(h), SHARE * 10e9) and near(b.rates[g], SHARE * 10e9))
    at = a.rate_at[f]
    run([a, b, twin], 0.5)
    assert a.rate_at[f] == at
    assert daemon.ask("counters")["stale"] > 0


def test_it_stands_still_for_longer_than_a_lease(two: Any) -> None:
    daemon, a, b, f, g = two
    daemon.signal(signal.SIGSTOP)
    a.end(f)
    run([a, b], 0.8)
    daemon.signal(signal.SIGCONT)
    told([a, b], lambda: near(b.rates.get(g), SHARE * 10e9))


def test_it_dies_in_the_middle_of_updates(two: Any) -> None:
    daemon, a, b, *_ = two
    draws = random.Random(3)
    for _ in range(4):
        for endpoint in (a, b):
            endpoint.start(daemon.hosts["h2"])
        run([a, b], draws.random() * 0.01)
        daemon.stop()
        daemon.start()
        told([a, b], all_told(a, b))
    total = sum(sum(endpoint.rates.values()) for endpoint in (a, b))
    told([a, b], lambda: near(a.rates[1], SHARE * 1e9) and near(b.rates[1], SHARE * 1e9))
    assert total < 10e9


def test_the_first_comes_back_after_a_pause(make: Make) -> None:
    one, other = make([10e9] * 4, start=False), make([10e9] * 4, start=False)
    other.hosts, other.keys = one.hosts, one.keys
    for daemon, peer, first in ((one, other, True), (other, one, False)):
        replace(daemon.folder / "between", "ab" * 32)
        daemon.write(standby={"peer": f"127.0.0.1:{peer.port}", "key": "between", "first": first})
    one.start()
    while not one.ask("status")["serving"]:
        time.sleep(0.01)
    other.start()
    a = one.endpoint("h0")
    f = a.start(one.hosts["h2"])
    told([a], lambda: f in a.rates)
    one.ask("quota", tenant="all", weight=0.5)
    other.ask("quota", tenant="all", weight=0.5)
    one.signal(signal.SIGSTOP)
    a.allocator = other.address
    g = a.start(one.hosts["h3"])
    told([a], lambda: g in a.rates)
    one.signal(signal.SIGCONT)
    run([a], 0.6)
    assert (one.ask("status")["serving"], other.ask("status")["serving"]) == (False, True)
    # The allocator serves again after the other one is drained, and its flows are still known.
    other.ask("drain")
    assert other.get("/readyz") == (503, "it was drained\n")
    a.allocator = one.address
    h = a.start(one.hosts["h3"])
    told([a], lambda: h in a.rates)


# Permissions of hosts.


def test_a_tenant_has_its_own_bounds(make: Make) -> None:
    tenants = [{"name": "x", "hosts": ["h0"], "weight": 1}, {"name": "y", "hosts": ["h1", "h2"], "most_flowlets": 5}]
    daemon = make([10e9] * 3, tenants=tenants)
    a, b = daemon.endpoint("h0"), daemon.endpoint("h1")
    for _ in range(10):
        a.start(daemon.hosts["h2"], 1000)
    for _ in range(8):
        b.start(daemon.hosts["h2"])
    told(
        [a, b], lambda: near(sum(a.rates.values()), SHARE * 10e9 / 6) and near(sum(b.rates.values()), SHARE * 50e9 / 6)
    )
    assert (len(a.rates), len(b.rates)) == (10, 5)
    assert daemon.ask("counters")["refused"] >= 3


def test_a_right_key_misused_concerns_nobody_else(two: Any) -> None:
    daemon, a, b, f, g = two
    to = number_of(daemon.hosts["h2"])

    def start(flowlet: int, to: int, weight: float) -> bytes:
        return struct.pack(">BHIIIf", 1, 1, flowlet, to, 0, weight)

    wrong = [{"version": 2}, {"flags": 255}, {"flags": 3}, {"length": 5}, {"length": 60000}, {"endpoint": b.number}]
    wrong += [{"body": body} for body in (b"\0\0\1", b"\x09\0\1\0\0\0\0", b"\1\0\2" + start(9, to, 1)[3:], b"\2\0\0")]
    wrong += [{"body": start(99, to, weight)} for weight in (math.nan, math.inf, 0.0, -1.0)]
    wrong += [{"body": struct.pack(">BHIH", 3, 1, f, 60000)}, {"body": struct.pack(">BHI", 2, 1, 777)}]
    wrong += [{"body": start(2**32 - 1, 5, 1)}, {"body": start(0, a.number, 1)}]
    for other in wrong:
        a.sent += 1
        a.raw(a.encode({}, **other))
    run([a, b], 0.3)
    assert near(b.rates[g], SHARE * 5e9)
    assert daemon.ask("counters")["malformed"] >= 10
    for weight in (3e38, 1e-38):
        a.sent += 1
        a.raw(a.encode({}, body=start(200, to, weight)))
        run([a, b], 0.1)
    assert near(b.rates[g], SHARE * 10e9 / (2 + 1 / 1024))
    # A host that claims that all foreign traffic is its own loses link capacity for a while, and regains it soon.
    a.sent += 1
    a.raw(a.encode({}, body=struct.pack(">BHHH", 4, 1, 65535, 65535)))
    run([a, b], 0.1)
    links = {link["link"]: link for link in daemon.ask("links")}
    assert 0 < links["h0->s"]["unscheduled_bps"] <= 10e9
    assert links["h1->s"]["unscheduled_bps"] == links["s->h2"]["unscheduled_bps"] == 0
    for _ in range(30):
        a.sent += 1
        a.raw(a.encode({}, body=struct.pack(">BHHH", 4, 1, 0, 0)))
        run([a, b], 0.005)
    told([a, b], lambda: near(a.rates[f], SHARE * 10e9 / (2 + 1 / 1024), 0.02))


def test_a_key_that_is_another_now(two: Any) -> None:
    daemon, a, b, *_ = two
    daemon.keys["all"] = os.urandom(32).hex()
    daemon.write()
    before = daemon.ask("counters")["forged"]
    told([a, b], lambda: daemon.ask("counters")["forged"] > before + 5)
    new = daemon.endpoint("h0")
    f = new.start(daemon.hosts["h2"])
    told([a, b, new], lambda: near(new.rates.get(f), SHARE * 10e9))
    # An invalid key leaves the previous key in effect.
    for text in ("", "short", "g" * 64, "0" * 65):
        replace(daemon.folder / "all", text)
        run([new], 0.1)
    told([new], lambda: "64 hexadecimal digits" in daemon.logged())
    assert daemon.ask("status")["joined"] >= 1
