"""Runs the switch program of s-PERC (in P4), and compares its updates with those of the Rust scheme.

Rates in packets and registers are whole numbers of 2^-50 bit/s, as in the P4 program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

from subak.pipeline.p4.compile import Machine

PROGRAM = "s-perc"
INDEX_BITS = 8
LOG_BITS = 26
POWER_BITS = 30
DIVISION_KB = 2.0
"""Memory of the tables for division, KB: 256 logarithms and 256 powers of 32 bits."""
TIE = 3 / 512
FRACTION = 50
NO_LIMIT = (1 << 96) - 1
KIND_UPDATE, KIND_ROUND = 0, 1
UPDATE, LEAVE, ROUND, SEND, LOSE, JOIN = range(6)
"""Kinds of events, numbered as in the Rust code."""
FIELDS = ("e", "b", "a", "s", "i", "SumE", "NumB", "MaxE", "MaxE'")
MOST_HOPS = 4


def fill_division(machine: Machine) -> None:
    """Adds the entries of the tables that compute a division: leading ones, logarithms and powers of two."""
    for table, action, bits in (("rest_leading_one", "rest_leads", 40), ("count_leading_one", "count_leads", 32)):
        for exponent in range(bits):
            value = 1 << exponent
            mask = ((1 << bits) - 1) & ~(value - 1)
            machine.add(table, [(value, mask)], action, [exponent, bits - 1 - exponent], priority=exponent)
    for k in range(1 << INDEX_BITS):
        middle = (k + 0.5) / (1 << INDEX_BITS)
        log = round(math.log2(1 + middle) * (1 << LOG_BITS))
        machine.add("rest_logarithm", [k], "has_rest_log", [log])
        machine.add("count_logarithm", [k], "has_count_log", [log])
        machine.add("power", [k], "has_power", [round(2**middle * (1 << POWER_BITS))])


def division_memory(machine: Machine) -> dict[str, int]:
    """Memory of the tables for division: ternary entries, and bits of exact memory."""
    ternary = sum(len(machine.tables[t]) for t in ("rest_leading_one", "count_leading_one"))
    exact = {"rest_logarithm": 32, "count_logarithm": 32, "power": 32}
    return {"ternary_entries": ternary, "exact_bits": sum(len(machine.tables[t]) * bits for t, bits in exact.items())}


@dataclass(frozen=True)
class Setup:
    """Random links and the paths of flows over them."""

    capacities_bps: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]


def setup(seed: int, links: int = 12, flows: int = 60) -> Setup:
    """A random setup: links of 1, 10 or 40 Gb/s, and flows over one to four of them."""
    random = Random(seed)
    capacities = tuple(random.choice((1, 10, 40)) * 10**9 for _ in range(links))
    paths = tuple(tuple(random.sample(range(links), random.randint(1, MOST_HOPS))) for _ in range(flows))
    return Setup(capacities, paths)


def events(
    made: Setup, updates: int, seed: int, drop: float = 0.002, leave: float = 0.002
) -> Iterator[tuple[int, int, int]]:
    """Random events, until there are ``updates`` updates.

    Packets traverse the links of their flow's path, in any order among flows. Some are lost after a link has updated
    them, flows leave and restart, and rounds of links end.
    """
    random = Random(seed)
    place = [0] * len(made.paths)
    going = [False] * len(made.paths)
    done = 0
    for flow in range(len(made.paths)):
        yield SEND, flow, 0
    while done < updates:
        flow = random.randrange(len(made.paths))
        hop = place[flow]
        yield (LEAVE if going[flow] else UPDATE), flow, hop
        done += 1
        if random.random() < 0.004:
            yield ROUND, random.randrange(len(made.capacities_bps)), 0
        if random.random() < drop:
            yield LOSE, flow, 0
            place[flow] = 0
            continue
        place[flow] = hop + 1
        if place[flow] == len(made.paths[flow]):
            place[flow] = 0
            if going[flow]:
                yield JOIN, flow, 0
            going[flow] = random.random() < leave
            yield SEND, flow, 0


class Switches:
    """All links at one switch that runs the program, with one egress port each."""

    def __init__(self, machine: Machine, made: Setup) -> None:
        self.machine, self.setup = machine, made
        for port, capacity in enumerate(made.capacities_bps):
            machine.add("capacity", [port], "has", [capacity << FRACTION])
        machine.add("dmac", [1], "forward", [1])
        slots = machine.fields
        self._packets = [
            machine.packet({"hdr.ethernet.$valid$": 1, "hdr.perc.$valid$": 1, "hdr.ethernet.dst": 1})
            for _ in made.paths
        ]
        self._held = [[slots[f"hdr.l{k}.{name}"] for name in "absi"] for k in range(MOST_HOPS)]
        self._carried = [slot for held in self._held for slot in held]
        self._port, self._hop = slots["standard_metadata.egress_port"], slots["hdr.perc.hop"]
        self._kind, self._leaving = slots["hdr.perc.kind"], slots["hdr.perc.leaving"]
        self._e = slots["meta.e"]
        self._round = machine.packet({"hdr.perc.$valid$": 1, "hdr.perc.kind": KIND_ROUND})
        self._sent: list[list[int]] = [[] for _ in made.paths]
        for flow in range(len(made.paths)):
            self._begin(flow)

    def _begin(self, flow: int) -> None:
        packet = self._packets[flow]
        for slot in self._carried:
            packet[slot] = 0
        for held in self._held:
            packet[held[3]] = 1

    def step(self, kind: int, flow: int, hop: int) -> tuple[int, ...] | None:
        """Result of an event, in the order of ``FIELDS``; ``None`` if it involves no link."""
        registers = self.machine.registers
        if kind == ROUND:
            self._round[self._port] = flow
            self.machine.process(self._round)
            found: tuple[int, ...] = (0, 0, 0, 0, 0)
            port = flow
        elif kind in (UPDATE, LEAVE):
            packet = self._packets[flow]
            port = self.setup.paths[flow][hop]
            packet[self._port], packet[self._hop] = port, hop
            packet[self._leaving] = int(kind == LEAVE)
            self.machine.process(packet)
            a, b, s, i = (packet[slot] for slot in self._held[hop])
            found = (packet[self._e], b, a, s, i)
        else:
            self._carry(kind, flow)
            return None
        held = (registers[name][port] for name in ("sum_e", "num_b", "max_e", "max_e_next"))
        return (*found, *held)

    def _carry(self, kind: int, flow: int) -> None:
        packet = self._packets[flow]
        if kind == SEND:
            self._sent[flow] = [packet[slot] for slot in self._carried]
        elif kind == LOSE:
            for slot, value in zip(self._carried, self._sent[flow], strict=True):
                packet[slot] = value
        else:
            self._begin(flow)


def as_floats(found: Sequence[int]) -> tuple[float, ...]:
    """The values in bit/s, as the Rust scheme has them."""
    e, b, a, s, i, sum_e, num_b, max_e, max_e_next = found
    one = 1 << FRACTION
    sum_e -= (sum_e >> 95) << 96
    num_b -= (num_b >> 31) << 32
    limit = math.inf if e == NO_LIMIT else e / one
    return limit, b / one, a / one, float(s), float(i), sum_e / one, float(num_b), max_e / one, max_e_next / one


def machine() -> Machine:
    """The s-PERC program with the entries of its tables for division."""
    from subak.pipeline import program_file
    from subak.pipeline.p4.lower import read

    path = program_file.FOLDER / f"{PROGRAM}.p4"
    made = Machine(read(path.read_bytes(), path.name))
    fill_division(made)
    return made


def compare(updates: int, seed: int, progress: Any = None, chunk: int = 50_000) -> dict[str, Any]:
    """Runs the same events through the P4 program and the Rust scheme; counts the differences."""
    import struct

    import numpy as np

    from subak._subak import SPercLinks

    made = setup(seed)
    switches = Switches(machine(), made)
    rust = SPercLinks([float(c) for c in made.capacities_bps], [list(p) for p in made.paths], DIVISION_KB, 1e-9)
    counted = dict.fromkeys(
        ("updates", "leaves", "rounds", "losses", "joins", "elsewhere", "ignored", "negative_sums"), 0
    )
    differ = dict.fromkeys(FIELDS, 0)
    first: dict[str, Any] | None = None
    names = {UPDATE: "updates", LEAVE: "leaves", ROUND: "rounds", LOSE: "losses", JOIN: "joins"}
    source = events(made, updates, seed + 1)
    done = 0
    while batch := list(islice(source, chunk)):
        theirs = np.frombuffer(rust.run(b"".join(struct.pack("<3I", *e) for e in batch)), float).reshape(-1, 9)
        for event, expected in zip(batch, theirs.tolist(), strict=True):
            if event[0] in names:
                counted[names[event[0]]] += 1
            found = switches.step(*event)
            if found is None:
                continue
            ours = as_floats(found)
            counted["elsewhere"] += event[0] != ROUND and ours[3] == 0
            counted["ignored"] += ours[4] == 1
            counted["negative_sums"] += ours[5] < 0 or ours[6] < 0
            if ours != tuple(expected):
                for name, mine, other in zip(FIELDS, ours, expected, strict=True):
                    differ[name] += mine != other
                first = first or {"event": event, "p4": ours, "rust": expected, "at": done}
            done += 1
        if progress:
            progress(min(counted["updates"] + counted["leaves"], updates), updates)
    counted["updates"] += counted["leaves"]
    return {"counted": counted, "differ": differ, "first": first, "memory": division_memory(switches.machine)}
