"""Runs the switch program of s-PERC* (in P4), and compares its updates with those of the Rust scheme.

Number formats are those of ``sperc``. Capacities are powers of two, so that Tx_ctrl is the same in floating point.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from subak.pipeline.p4.compile import Machine
from subak.pipeline.p4.sperc import (
    DIVISION_KB,
    FRACTION,
    JOIN,
    LEAVE,
    LOSE,
    MOST_HOPS,
    NO_LIMIT,
    SEND,
    UPDATE,
    Setup,
    fill_division,
)

PROGRAM = "s-perc-star"
TICK = 2
KIND_UPDATE, KIND_ROUND, KIND_TICK = 0, 1, 2
OF_UPDATE = ("e", "b", "a", "s", "i")
OF_LINK = ("SumE", "NumB", "MaxE", "MaxE'", "SumE'", "NumB'", "roundNumber", "N")
OF_PACKET = ("roundNumber[l]", "Tx_ctrl", "round")
FIELDS = (*OF_UPDATE, *OF_LINK, *OF_PACKET)
REGISTERS = ("sum_e", "num_b", "max_e", "max_e_next", "sum_e_shadow", "num_b_shadow", "round_number", "flows")
RTT_NS = 10_000
"""Largest base RTT; the program's MaxRound is ten of these."""
FIRST_EXPONENT = 14
"""log2 of the first round, ns."""
CONTROL, HEADROOM = 1 / 32, 1 / 64
CONTROL_BITS = 512
"""Size of a control packet of at most four hops, bits."""
MTU_BITS = 12_000
CALM = 20_000
"""Updates without losses at the end: more than two rounds of each link."""


class Event(NamedTuple):
    """An event: its kind, the flow (or the link, for a tick), the hop, the time, the flow's period and its demand."""

    kind: int
    id: int
    hop: int
    now_ns: int
    period_ns: int = 0
    demand_bps: int | None = None


def setup(seed: int, links: int = 12, flows: int = 60) -> Setup:
    """A random setup: links of about 9, 34 or 69 Gb/s, and flows over one to four of them."""
    random = Random(seed)
    capacities = tuple(1 << random.choice((33, 35, 36)) for _ in range(links))
    paths = tuple(tuple(random.sample(range(links), random.randint(1, MOST_HOPS))) for _ in range(flows))
    return Setup(capacities, paths)


def events(
    made: Setup, updates: int, seed: int, drop: float = 0.002, leave: float = 0.002, calm: int = CALM
) -> Iterator[Event]:
    """Random events, until there are ``updates`` updates; the last ``calm`` of them without losses and leaving flows.

    Events are drawn as in ``sperc.events``. A source does not retransmit a lost packet: it restarts the flow, most
    often after links have forgotten it. A fifth of packets carries a demand. A packet names the time of its last trip,
    and trips are slow at times, so that rounds become longer and shorter.
    """
    random = Random(seed)
    flows, links = range(len(made.paths)), range(len(made.capacities_bps))
    place, going = [0] * len(flows), [False] * len(flows)
    silent_ns, sent_ns = [0] * len(flows), [0] * len(flows)
    done, now_ns = 0, 1

    def sent(flow: int, period_ns: int) -> Event:
        demand = random.randrange(10**6, 2 * 10**9) if random.random() < 0.2 else None
        sent_ns[flow] = now_ns
        return Event(SEND, flow, 0, now_ns, max(period_ns, RTT_NS), demand)

    yield from (sent(flow, 0) for flow in flows)
    while done < updates:
        is_calm = done > updates - calm
        is_slow = not is_calm and random.random() < 0.5
        for _ in range(100):
            for flow in random.sample(flows, len(flows)):
                now_ns += random.randrange(1600 if is_slow else 200)
                if random.random() < 0.25:
                    yield Event(TICK, random.choice(links), 0, now_ns)
                if silent_ns[flow] > now_ns:
                    continue
                if silent_ns[flow]:
                    silent_ns[flow] = 0
                    yield Event(JOIN, flow, 0, now_ns)
                    yield sent(flow, 0)
                yield Event(LEAVE if going[flow] else UPDATE, flow, place[flow], now_ns)
                done += 1
                place[flow] += 1
                if random.random() < drop and not is_calm:
                    yield Event(LOSE, flow, 0, now_ns)
                    early = random.random() < 0.1
                    silent_ns[flow] = now_ns + (random.randrange(10) if early else random.randrange(40, 80)) * RTT_NS
                    place[flow], going[flow] = 0, False
                elif place[flow] == len(made.paths[flow]):
                    period_ns = now_ns - sent_ns[flow]
                    if going[flow]:
                        yield Event(JOIN, flow, 0, now_ns)
                    place[flow], going[flow] = 0, random.random() < leave and not is_calm
                    yield sent(flow, period_ns)


class Switches:
    """All links at one switch that runs the program, with one port each."""

    def __init__(self, machine: Machine, made: Setup) -> None:
        self.machine, self.setup = machine, made
        for port, capacity in enumerate(made.capacities_bps):
            data_bps = round(capacity * (1 - CONTROL - HEADROOM) * (1 << FRACTION))
            tx_ns = CONTROL_BITS * 10**9 / (capacity * CONTROL / 2)
            wait_ns = int(100 * MTU_BITS * 10**9 / capacity)
            machine.add("capacity", [port], "has", [data_bps, round(tx_ns * (1 << 16)), wait_ns])
            machine.add("dmac", [port], "forward", [port])
        fill_division(machine)
        for exponent in range(32):
            mask = ((1 << 32) - 1) & ~((1 << exponent) - 1)
            machine.add("need_leading_one", [(1 << exponent, mask)], "needs", [exponent + 1], priority=exponent)
        machine.start()
        machine.registers["round_number"] = [1] * 64
        machine.registers["round_exponent"] = [FIRST_EXPONENT] * 64
        slots = self._slots = machine.fields
        self._packets = [machine.packet({"hdr.ethernet.$valid$": 1, "hdr.perc.$valid$": 1}) for _ in made.paths]
        self._ticks = [
            machine.packet({"hdr.perc.$valid$": 1, "hdr.perc.kind": KIND_TICK, "hdr.perc.link": link})
            for link in range(len(made.capacities_bps))
        ]
        names = ("a", "b", "s", "i", "number")
        self._held = [[slots[f"hdr.l{k}.{name}"] for name in names] for k in range(MOST_HOPS)]
        for flow in range(len(made.paths)):
            self._begin(flow)

    def wrong_sums(self) -> int:
        """Number of links whose SumE, NumB or N is not that of the packets of their flows."""
        names = ("sum_e", "num_b", "flows")
        registers = [self.machine.registers[name] for name in names]
        right = [[0, 0, 0] for _ in self.setup.capacities_bps]
        for packet, path in zip(self._packets, self.setup.paths, strict=True):
            for link, (a, _, s, _, _) in zip(path, self._held, strict=False):
                sums = right[link]
                sums[0] += 0 if packet[s] else packet[a]
                sums[1] += packet[s]
                sums[2] += 1
        return sum([held[link] for held in registers] != sums for link, sums in enumerate(right))

    def _begin(self, flow: int) -> None:
        packet = self._packets[flow]
        for held in self._held:
            for slot, value in zip(held, (0, 0, 0, 1, 0), strict=True):
                packet[slot] = value

    def step(self, event: Event) -> tuple[int, ...] | None:
        """Result of an event, in the order of ``FIELDS``; ``None`` if it involves no link."""
        if event.kind == TICK:
            return self._tick(event)
        if event.kind in (UPDATE, LEAVE):
            return self._update(event)
        if event.kind == SEND:
            self._send(event)
        elif event.kind == JOIN:
            self._begin(event.id)
        return None

    def _tick(self, event: Event) -> tuple[int, ...]:
        packet, slots = self._ticks[event.id], self._slots
        packet[slots["standard_metadata.egress_global_timestamp"]] = event.now_ns
        self.machine.process(packet)
        if packet[slots["hdr.perc.kind"]] == KIND_ROUND:
            self.machine.process(packet)
        return (*(0 for _ in OF_UPDATE), *self._state(event.id), *(0 for _ in OF_PACKET))

    def _update(self, event: Event) -> tuple[int, ...]:
        packet, slots, link = self._packets[event.id], self._slots, self.setup.paths[event.id][event.hop]
        packet[slots["standard_metadata.egress_global_timestamp"]] = event.now_ns
        packet[slots["hdr.ethernet.dst"]], packet[slots["hdr.perc.hop"]] = link, event.hop
        packet[slots["hdr.perc.leaving"]] = int(event.kind == LEAVE)
        # With 0 on arrival, the field shows the round of this link.
        longest_ns, packet[slots["hdr.perc.round"]] = packet[slots["hdr.perc.round"]], 0
        self.machine.process(packet)
        round_ns = packet[slots["hdr.perc.round"]]
        packet[slots["hdr.perc.round"]] = max(longest_ns, round_ns)
        a, b, s, i, number = (packet[slot] for slot in self._held[event.hop])
        return (packet[slots["meta.e"]], b, a, s, i, *self._state(link), number, packet[slots["hdr.perc.tx"]], round_ns)

    def _send(self, event: Event) -> None:
        packet, slots, demand = self._packets[event.id], self._slots, event.demand_bps
        packet[slots["hdr.perc.own"]] = NO_LIMIT if demand is None else demand << FRACTION
        packet[slots["hdr.perc.period"]] = event.period_ns
        packet[slots["hdr.perc.tx"]] = packet[slots["hdr.perc.round"]] = 0

    def _state(self, link: int) -> tuple[int, ...]:
        return tuple(self.machine.registers[name][link] for name in REGISTERS)


def as_floats(found: Sequence[int]) -> tuple[float, ...]:
    """The values in bit/s, as the Rust scheme has them."""
    e, b, a, s, i, sum_e, num_b, max_e, max_e_next, sum_shadow, num_shadow, *others = found
    limit = math.inf if e == NO_LIMIT else _bps(e)
    sums = (_bps(_signed(sum_e, 96)), _signed(num_b, 32), _bps(max_e), _bps(max_e_next))
    shadow = (_bps(_signed(sum_shadow, 96)), _signed(num_shadow, 32))
    return tuple(float(x) for x in (limit, _bps(b), _bps(a), s, i, *sums, *shadow, *others))


def _bps(rate: int) -> float:
    return rate / (1 << FRACTION)


def _signed(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)


def machine() -> Machine:
    """The s-PERC* program."""
    from subak.pipeline import program_file
    from subak.pipeline.p4.lower import read

    path = program_file.FOLDER / f"{PROGRAM}.p4"
    return Machine(read(path.read_bytes(), path.name))


def packed(batch: Sequence[Event]) -> bytes:
    """The events as the Rust links read them."""

    def one(event: Event) -> bytes:
        demand = math.inf if event.demand_bps is None else float(event.demand_bps)
        return struct.pack("<5Qd", *event[:5], demand)

    return b"".join(one(event) for event in batch)


def compare(updates: int, seed: int, progress: Any = None, chunk: int = 50_000) -> dict[str, Any]:
    """Runs the same events through the P4 program and the Rust scheme; counts the differences."""
    import numpy as np

    from subak._subak import SPercStarLinks

    made = setup(seed)
    switches = Switches(machine(), made)
    first_round_s = (1 << FIRST_EXPONENT) / 1e9
    params = {"division_kb": DIVISION_KB, "control": CONTROL, "headroom": HEADROOM, "first_round": first_round_s}
    capacities = [float(c) for c in made.capacities_bps]
    rust = SPercStarLinks(capacities, [list(p) for p in made.paths], json.dumps(params), RTT_NS)
    names = {UPDATE: "updates", LEAVE: "leaves", LOSE: "losses", JOIN: "joins", TICK: "ticks"}
    more = ("rounds", "wraps", "elsewhere", "ignored", "demands", "negative_sums", "longer", "shorter")
    counted = dict.fromkeys((*names.values(), *more), 0)
    differ = dict.fromkeys(FIELDS, 0)
    first: dict[str, Any] | None = None
    round_ns: dict[int, float] = {}
    number: dict[int, float] = {}
    source = events(made, updates, seed + 1)
    while batch := list(islice(source, chunk)):
        kept = [event for event in batch if event.kind != LOSE]
        theirs = iter(np.frombuffer(rust.run(packed(kept)), float).reshape(-1, len(FIELDS)).tolist())
        for event in batch:
            if event.kind in names:
                counted[names[event.kind]] += 1
            if event.kind == LOSE:
                continue
            counted["demands"] += event.demand_bps is not None
            expected = tuple(next(theirs))
            found = switches.step(event)
            if found is None:
                continue
            ours = as_floats(found)
            is_update = event.kind != TICK
            link = made.paths[event.id][event.hop] if is_update else event.id
            counted["rounds"] += number.get(link, 1.0) != ours[11]
            counted["wraps"] += number.get(link, 1.0) > ours[11]
            number[link] = ours[11]
            if is_update:
                before = round_ns.get(link, float(1 << FIRST_EXPONENT))
                counted["longer"] += ours[15] > before
                counted["shorter"] += ours[15] < before
                round_ns[link] = ours[15]
            counted["elsewhere"] += is_update and ours[3] == 0
            counted["ignored"] += ours[4] == 1
            counted["negative_sums"] += min(ours[5], ours[6], ours[9], ours[10]) < 0
            if ours != expected:
                for name, mine, other in zip(FIELDS, ours, expected, strict=True):
                    differ[name] += mine != other
                first = first or {"event": event, "p4": ours, "rust": expected}
        if progress:
            progress(min(counted["updates"] + counted["leaves"], updates), updates)
    counted["updates"] += counted["leaves"]
    return {"counted": counted, "differ": differ, "first": first, "wrong_sums": switches.wrong_sums()}
