"""Queues of FIFO links against an independent model, written without the simulator's code: a link is a sum over its
packets in exact fractions. Also compares counts of events with those of an engine that had an event for each
departure."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import subak

pytestmark = pytest.mark.filterwarnings("ignore")

Rows = list[dict[str, Any]]
# An arriving packet: time in ns, flow, segment, bytes.
Coming = tuple[int, int, int, int]


def simulate(spec: dict[str, Any], out: Path, threads: int = 1, **measure: object) -> Rows:
    subak.run(spec | {"measure": spec["measure"] | measure}, out, threads=threads, jobs=1)
    rows: Rows = pq.read_table(out / "results.parquet").to_pylist()
    return rows


@dataclass
class Link:
    """A FIFO link. Times of transmission are whole 1024ths of a picosecond per byte.

    Transmissions end at exact times; other components see these times rounded up to ns.
    """

    bps: int
    delay: int
    buffer: int
    # Changes of the capacity: time in ns, and bit/s.
    changes: list[tuple[int, int]] = field(default_factory=list)
    # For each packet: arrival and start in ns, exact start, exact time on the wire, bytes.
    carried: list[tuple[int, int, Fraction, Fraction, int]] = field(default_factory=list)
    events: Counter[tuple[int, str, int, int]] = field(default_factory=Counter)
    drops: int = 0
    peak: int = 0
    # Whether a packet arrived in the same ns in which another one left or arrived.
    ties: bool = False

    def waiting(self, time: int) -> int:
        return sum(size for come, start, _, _, size in self.carried if come <= time < start)

    def run(self, coming: list[Coming]) -> list[Coming]:
        onward = []
        free = Fraction(-1)
        last = -1
        for time, flow, segment, size in sorted(coming):
            self.ties |= time == last or any(start == time for _, start, _, _, _ in self.carried)
            last = time
            self.events[time, "enqueue", flow, segment] += 1
            queued = self.waiting(time) + size
            if ceil(free) > time and queued > self.buffer:
                self.drops += 1
                self.events[time, "drop", flow, segment] += 1
                continue
            self.peak = max(self.peak, queued)
            begin = free if ceil(free) >= time else Fraction(time)
            bps = ([self.bps] + [bps for at, bps in self.changes if at <= ceil(begin)])[-1]
            wire = Fraction(size * round(Fraction(8 * 10**12 * 1024, bps)), 1024 * 1000)
            free = begin + wire
            self.carried.append((time, ceil(begin), begin, wire, size))
            self.events[ceil(begin), "dequeue", flow, segment] += 1
            onward.append((ceil(free) + self.delay, flow, segment, size))
        return onward

    def sent(self, end: int) -> int:
        return sum(
            int(size * min(Fraction(1), (end - begin) / wire)) for _, at, begin, wire, size in self.carried if at <= end
        )


# By seed, the delay of a link in ns, for RTTs of 2 us to 20 ms.
DELAYS = {1: 1, 3: 1_700, 4: 20_000, 6: 3_300_000, 8: 900, 15: 300_000, 18: 7_000}


@pytest.mark.parametrize("seed", DELAYS)
def test_bursts_over_links_in_a_row(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    delay = DELAYS[seed]
    hosts = 1 + seed % 3
    slowest = int(draw.choice([0.3e9, 1e9, 3.7e9, 9e9]) * draw.uniform(0.9, 1.1))
    # ACKs return after the end: dropped packets are not retransmitted.
    lossy = seed % 2 == 0
    ways = [f"h{host}->s0" for host in range(hosts)] + ["s0->s1", "s1->d"]
    links = {
        way: Link(int(slowest * draw.uniform(1.0, 40.0)), delay, draw.choice([3000, 7500, 40_000]) if lossy else 10**9)
        for way in ways
    }
    for way in ways[:hosts]:
        links[way].buffer = 10**9
    links["s1->d"].bps = slowest
    packet = 12e12 / slowest
    flows = [
        (draw.randrange(hosts), number + int(draw.uniform(0, 40) * packet), draw.randint(1, 60 * 1446))
        for number in range(draw.randint(2, 9))
    ]
    busy = sum(size for _, _, size in flows) / 1446 * packet
    end = min(int(5 * busy + 40 * packet) + 6 * delay, 99_000_000)
    faults: Rows = []
    for at in sorted(int(draw.uniform(1, 0.8 * busy)) for _ in range(seed % 4)):
        way = draw.choice(["s0->s1", "s1->d"])
        bps = int(links[way].bps * draw.choice([0.31, 0.7, 1.9, 7.3]))
        links[way].changes.append((at, bps))
        faults.append({"kind": "capacity", "link": way, "both": False, "capacity": bps, "at": f"{at}ns"})

    network = [
        {"from": a, "to": b, "capacity": link.bps, "delay": f"{link.delay}ns", "buffer": link.buffer}
        for (a, b), link in ((way.split("->"), link) for way, link in links.items())
    ]
    network += [
        {"from": b, "to": a, "capacity": 10**11, "delay": "100ms" if lossy else f"{delay}ns", "buffer": 10**9}
        for a, b in (way.split("->") for way in ways)
    ]
    spec = {
        "network": network,
        "workload": {
            "kind": "steps",
            "flows": [
                {"src": f"h{host}", "dst": "d", "size": size, "start": f"{start}ns"} for host, start, size in flows
            ],
        },
        "scheme": [{"name": "reno", "params": {"initial_window": 1000, "probe": False, "rto_min": "100s"}}],
        "fault": faults,
        "measure": {"queues": f"{max(100, end // 150)}ns"},
        "run": {"duration": f"{end}ns", "drain": "0s"},
    }

    merged: list[Coming] = []
    for host in range(hosts):
        segments = []
        for number, (at, start, size) in enumerate(flows):
            if at == host:
                whole, rest = divmod(size, 1446)
                sizes = [1500] * whole + [rest + 54] * (rest > 0)
                segments += [(start, number, segment, wire) for segment, wire in enumerate(sizes)]
        merged += links[f"h{host}->s0"].run(segments)
    arrived = links["s1->d"].run(links["s0->s1"].run(merged))
    assert not any(links[way].ties for way in ways[hosts:]), "the case says nothing: take another seed"
    completed = {}
    for number, (_, start, size) in enumerate(flows):
        times = [time for time, flow, _, _ in arrived if flow == number and time <= end]
        completed[number] = max(times) - start if len(times) == -(-size // 1446) else None

    rows = simulate(spec, tmp_path / "plain")
    assert {row["flow"]: row["fct_ns"] for row in rows if row["kind"] == "flow"} == completed
    if lossy:
        assert sum(link.drops for link in links.values()) > 0
    over = max(row["time_ns"] for row in rows if row["kind"] == "summary")
    for row in rows:
        if row["kind"] == "link" and row["link"] in links:
            link = links[row["link"]]
            found = (row["peak_queued_bytes"], row["dropped_packets"] or 0, row["data_bytes"])
            assert found == (link.peak, link.drops, link.sent(end)), row["link"]
        if row["kind"] == "queue" and row["link"] in links:
            link, time = links[row["link"]], row["time_ns"]
            if not any(time in (come, start) for come, start, _, _, _ in link.carried):
                assert row["queued_bytes"] == link.waiting(time), (row["link"], time)

    assert simulate(spec, tmp_path / "recorded", threads=2, packets=True) == rows
    recorded = pq.read_table(tmp_path / "recorded" / "trials" / "0.packets.parquet").to_pylist()
    for way, link in links.items():
        seen = Counter(
            (row["time_ns"], row["event"], row["flow"], row["segment"])
            for row in recorded
            if row["link"] == way and row["packet"] == "data" and row["event"] in ("enqueue", "dequeue", "drop")
        )
        assert seen == Counter({event: count for event, count in link.events.items() if event[0] <= over}), way


OF_FLOWS = ["kind", "time_ns", "flow", "fct_ns", "received_bytes", "retransmissions", "drops", "rate_bps", "packets"]
OF_LINKS = ["link", "queued_bytes", "peak_queued_bytes", "data_bytes", "ack_bytes", "dropped_packets", "lost_packets"]
COLUMNS = [*OF_FLOWS, *OF_LINKS]


def grid() -> dict[str, Any]:
    """All events are at multiples of 1200 ns, the time of a packet: capacity changes, links down, restarts, samples."""
    flows = [
        {"src": f"h{n % 4}", "dst": "h4", "size": 1446 * (3 + n), "start": f"{1200 * (n // 3)}ns"} for n in range(30)
    ]
    to, back = "switch0->h4", "h4->switch0"
    return {
        "network": {"kind": "star", "hosts": 5, "rate": "10Gbps", "link_delay": "1200ns", "buffer": 7500},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [
            {"name": "reno", "params": {"rto_min": "100us"}},
            {"name": "dctcp", "params": {"k": 3}},
            {"name": "cubic", "params": {"queue": "fifo"}},
            {"name": "dgd", "policy": {"kind": "alpha-fair", "alpha": 1}},
        ],
        "fault": [
            {"kind": "capacity", "link": to, "capacity": "5Gbps", "at": "12us"},
            {"kind": "restart", "link": to, "at": "18us"},
            {"kind": "down", "link": to, "down": "24us", "up": "25200ns", "waiting": "keep"},
            {"kind": "capacity", "link": to, "capacity": "1Gbps", "at": "30us"},
            {"kind": "capacity", "link": to, "capacity": "40Gbps", "at": "30001ns"},
            {
                "kind": "down",
                "link": back,
                "down": "36us",
                "up": "60us",
                "period": "2400ns",
                "both": False,
                "waiting": "keep",
            },
        ],
        "measure": {"queues": "1200ns", "rates": "12us"},
        "run": {"duration": "600us", "warmup": "12us"},
    }


def gaps() -> dict[str, Any]:
    """Flows that start at powers of two of ns, and RTOs of seconds, over links with delays from 1 ns to 20 ms."""
    flows = [
        {"src": f"h{n % 2}", "dst": f"h{2 + n % 3 % 2}", "size": 20_000, "start": f"{2**n + n % 3 - 1}ns"}
        for n in range(1, 35)
    ]
    return {
        "network": [
            {"from": a, "to": b, "capacity": rate, "delay": delay, "buffer": 4000}
            for x, y, rate, delay in [
                ("h0", "s0", "400Gbps", "1ns"),
                ("h1", "s0", "1Gbps", "20ms"),
                ("s0", "s1", "10Mbps", "1ns"),
                ("h2", "s1", "100Gbps", "1ns"),
                ("h3", "s1", "2.5Gbps", "3us"),
            ]
            for a, b in ((x, y), (y, x))
        ],
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [
            {"name": "reno", "params": {"rto_min": "1s"}},
            {"name": "google-swift", "params": {"rto_min": "4.294967296s", "base_target": "25us"}},
        ],
        "fault": [{"kind": "loss", "probability": 0.3}],
        "measure": {"queues": "100ms"},
        "run": {"duration": "20s", "drain": "100s"},
    }


def crowd() -> dict[str, Any]:
    """Two thousand flows to one link over several paths. Half of the flows stop while packets are queued."""
    flows: Rows = [
        {"src": f"h{n % 8}", "dst": "h8", "size": 4000} | ({"stop": f"{1 + 40 * n}ns"} if n % 2 else {})
        for n in range(2000)
    ]
    return {
        "network": {
            "kind": "leaf-spine",
            "leaves": 3,
            "spines": 2,
            "hosts_per_leaf": 4,
            "host_rate": "25Gbps",
            "spine_rate": "400Gbps",
            "link_delay": "1ns",
            "host_delay": "480ns",
            "buffer": "1MB",
        },
        "routing": {"kind": "spray", "reroute": "1us"},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "dctcp"}],
        "fault": [
            {"kind": "duplicate", "probability": 0.05},
            {"kind": "down", "node": "spine1", "down": "30us", "up": "50us", "waiting": "keep"},
            {"kind": "restart", "node": "leaf2", "at": "48us"},
        ],
        "measure": {"queues": "4800ns"},
        "run": {"duration": "300us", "drain": "2ms"},
    }


# Counts of an engine that had an event for each departure from each link, and that stored the queue of a failed link:
# events and packets of each scheme, rows. They were taken anew, with an event for each departure, when the RTO began to
# restart with a fast retransmission and a probe, when checks for silence began to move to earlier times, and when later
# RTT samples no longer moved the RTO, which doubles up to 60 s.
BEFORE = {
    "grid": ([(3258, 2160), (3172, 2151), (3244, 2151), (4837, 2199)], "a76ab39f77039bf9"),
    "gaps": ([(1190, 999), (912, 731)], "dcf6ba65649ad761"),
    "crowd": ([(84530, 51484)], "ffd85c19b836745f"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_as_with_an_event_for_each_departure(name: str, tmp_path: Path) -> None:
    spec = {"grid": grid, "gaps": gaps, "crowd": crowd}[name]()
    rows = simulate(spec, tmp_path / "plain")
    text = json.dumps([[row.get(column) for column in COLUMNS] for row in rows])
    counted = [(row["events"], row["packet_hops"]) for row in rows if row["kind"] == "summary"]
    assert (counted, hashlib.sha256(text.encode()).hexdigest()[:16]) == BEFORE[name]
    assert simulate(spec, tmp_path / "recorded", packets=True) == rows
    assert simulate(spec, tmp_path / "threads", threads=2) == rows
