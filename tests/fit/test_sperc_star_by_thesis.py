"""The P4 programs of s-PERC* and Soze, against models written from Algorithms 8 and 9 and from the Soze paper alone."""

from __future__ import annotations

import heapq
import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from subak._subak import SozeLinks, SPercStarLinks
from subak.errors import InputError
from subak.pipeline.p4 import soze, sperc_star
from subak.pipeline.p4.sperc import DIVISION_KB, FRACTION, JOIN, LEAVE, LOSE, NO_LIMIT, SEND, UPDATE, Setup
from subak.pipeline.p4.sperc_star import TICK, Event

DATA_SHARE = Fraction(1) - Fraction(1, 32) - Fraction(1, 64)
CLOSE = 0.01
"""Relative difference of rates within which a table's division may decide either way."""
INFINITE = float("inf")


@dataclass
class Link:
    """State of a link in Algorithms 8 and 9. Rates are in units of 2^-50 bit/s."""

    capacity: Fraction
    sum_e: Fraction = Fraction(0)
    num_b: int = 0
    max_e: Fraction = Fraction(0)
    max_e_next: Fraction = Fraction(0)
    sum_e_shadow: Fraction = Fraction(0)
    num_b_shadow: int = 0
    number: int = 1

    def end_round(self) -> None:
        """Algorithm 9. The number is a byte in which 0 is left for a new packet."""
        self.max_e, self.max_e_next = self.max_e_next, Fraction(0)
        self.sum_e, self.sum_e_shadow = self.sum_e_shadow, Fraction(0)
        self.num_b, self.num_b_shadow = self.num_b_shadow, 0
        self.number = self.number % 255 + 1

    def state(self) -> tuple[Any, ...]:
        """SumE, NumB, MaxE, MaxE', SumE', NumB' and roundNumber."""
        sums = self.sum_e, self.num_b, self.max_e, self.max_e_next
        return (*sums, self.sum_e_shadow, self.num_b_shadow, self.number)


@dataclass
class Packet:
    """What a control packet carries, for each link of its path (table 4.1)."""

    hops: int
    a: list[Any] = field(default_factory=list)
    b: list[Any] = field(default_factory=list)
    s: list[str] = field(default_factory=list)
    i: list[int] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    own: Any = INFINITE

    def __post_init__(self) -> None:
        self.a, self.b = [Fraction(0)] * self.hops, [Fraction(0)] * self.hops
        self.s, self.i, self.number = ["E"] * self.hops, [1] * self.hops, [0] * self.hops


@dataclass
class Model:
    """Algorithms 8 and 9 at links, with the quotient and the decisions within ``CLOSE`` of the program."""

    links: list[Link]
    packets: dict[int, Packet]
    close: int = 0
    largest_error: float = 0.0

    def update(self, link: Link, packet: Packet, k: int, is_leaving: bool, found: tuple[int, ...]) -> None:
        """Algorithm 8, lines 8-36, with line 14 inside the inner condition, as the errata have it."""
        if packet.s[k] == "E":
            link.sum_e -= packet.a[k]
            link.num_b += 1
        if packet.number[k] == link.number:
            if packet.s[k] == "E":
                link.sum_e_shadow -= packet.a[k]
                link.num_b_shadow += 1
        else:
            link.num_b_shadow += 1
        # Sums are wrong for up to two rounds after a loss, where the thesis leaves the quotient open.
        rest, count = max(link.capacity - link.sum_e, Fraction(0)), max(link.num_b, 1)
        b = rest / count
        others = [packet.b[m] for m in range(packet.hops) if m != k and packet.i[m] == 0]
        e = min([packet.own, *others])
        took_e, took_b, took_a, took_s, took_i = found[:5]
        assert took_e == (NO_LIMIT if e == INFINITE else e)
        if rest >= 1 << FRACTION:
            self.largest_error = max(self.largest_error, abs(float(took_b / b) - 1))
        is_here, is_low = b <= e, b < link.max_e
        if e != INFINITE and abs(b - e) <= CLOSE * e:
            self.close, is_here = self.close + 1, bool(took_s)
        if abs(b - link.max_e) <= CLOSE * b:
            self.close, is_low = self.close + 1, bool(took_i)
        assert (took_s, took_i) == (is_here, is_low)
        assert took_a == (min(took_b, e) if is_here else e)
        packet.b[k], packet.a[k] = Fraction(took_b), Fraction(took_a)
        packet.s[k], packet.i[k] = "B" if is_here else "E", int(is_low)
        if is_leaving:
            link.num_b -= 1
            link.num_b_shadow -= 1
        elif not is_here:
            link.num_b -= 1
            link.sum_e += packet.a[k]
            link.max_e, link.max_e_next = max(link.max_e, packet.a[k]), max(link.max_e_next, packet.a[k])
            link.num_b_shadow -= 1
            link.sum_e_shadow += packet.a[k]
        packet.number[k] = link.number


@dataclass(frozen=True)
class Course:
    """A network, its flows' RTTs and demands, and what happens to them."""

    made: Setup
    rtts_ns: tuple[int, ...]
    demands_bps: tuple[int | None, ...]
    span_ns: int
    loss: float = 0.0
    leave: float = 0.0
    early: float = 0.0
    """Fraction of restarts before links have forgotten the flow."""
    start_ns: int = 1
    calm: float = 0.4
    """Last part of the time without losses, leaving flows and early restarts."""
    tick_ns: int = 1000


def course(seed: int, capacities: tuple[int, ...], rtts_ns: tuple[int, ...], **more: Any) -> Course:
    """A random course over links of these capacities; every third flow has one link."""
    random = Random(seed)
    flows = more.pop("flows", 24)
    paths = []
    for k in range(flows):
        hops = 1 if k % 3 == 0 or len(capacities) == 1 else random.randint(2, min(4, len(capacities)))
        paths.append(tuple(random.sample(range(len(capacities)), hops)))
    chosen = [random.choice(rtts_ns) for _ in paths]
    demands = [random.choice((None, None, None, 0, capacities[path[0]], 10**6 + k)) for k, path in enumerate(paths)]
    span_ns = more.pop("trips", 80) * max(rtts_ns)
    return Course(Setup(capacities, tuple(paths)), tuple(chosen), tuple(demands), span_ns, **more)


def replay(went: Course, switches: Any, seed: int) -> Iterator[tuple[Event, tuple[int, ...] | None]]:
    """Control packets on their trips: each event with what the program makes of it. Times do not wrap here."""
    random = Random(seed)
    paths = went.made.paths
    queue: list[tuple[int, int, str, int, int]] = []
    order = iter(range(10**9))

    def push(at_ns: int, what: str, which: int, hop: int = 0) -> None:
        heapq.heappush(queue, (at_ns, next(order), what, which, hop))

    for link in range(len(went.made.capacities_bps)):
        push(went.start_ns + random.randrange(went.tick_ns), "tick", link)
    for flow, rtt_ns in enumerate(went.rtts_ns):
        push(went.start_ns + random.randrange(rtt_ns), "send", flow)
    leaving, sent_ns = [False] * len(paths), [0] * len(paths)
    period_ns, rounds_ns = list(went.rtts_ns), [0] * len(paths)
    slots = switches.machine.fields
    end_ns = went.start_ns + went.span_ns
    calm_ns = end_ns - int(went.calm * went.span_ns)

    def made(event: Event) -> tuple[Event, tuple[int, ...] | None]:
        wrapped = event._replace(now_ns=event.now_ns % (1 << 48))
        return event, switches.step(wrapped)

    while queue and queue[0][0] < end_ns:
        now_ns, _, what, which, hop = heapq.heappop(queue)
        is_calm = now_ns >= calm_ns
        if what == "tick":
            push(now_ns + went.tick_ns, "tick", which)
            yield made(Event(TICK, which, 0, now_ns))
            continue
        if what == "join":
            yield made(Event(JOIN, which, 0, now_ns))
            what = "send"
        if what == "send":
            sent_ns[which] = now_ns
            yield made(Event(SEND, which, 0, now_ns, period_ns[which], went.demands_bps[which]))
        yield made(Event(LEAVE if leaving[which] else UPDATE, which, hop, now_ns))
        packet = switches._packets[which]
        rounds_ns[which] = max(rounds_ns[which], packet[slots["hdr.perc.round"]])
        rtt_ns, hops = went.rtts_ns[which], len(paths[which])
        if not is_calm and random.random() < went.loss:
            yield made(Event(LOSE, which, 0, now_ns))
            early = random.random() < went.early
            wait_ns = rtt_ns // 3 if early else 2 * rounds_ns[which] + 2 * period_ns[which]
            leaving[which] = False
            push(now_ns + wait_ns + went.tick_ns * 4, "join", which)
        elif hop + 1 < hops:
            push(now_ns + max(rtt_ns // (2 * hops), 1), "update", which, hop + 1)
        else:
            tx_ns = packet[slots["hdr.perc.tx"]]
            back_ns = sent_ns[which] + rtt_ns
            period_ns[which] = max(rtt_ns, tx_ns)
            if leaving[which]:
                leaving[which] = False
                push(max(back_ns, now_ns + 1) + random.randrange(5 * rtt_ns), "join", which)
            else:
                leaving[which] = not is_calm and random.random() < went.leave
                push(max(back_ns, sent_ns[which] + tx_ns, now_ns + 1), "send", which)


def follow(went: Course, seed: int = 1) -> tuple[Model, Any, list[Event], list[tuple[int, ...] | None]]:
    """Runs a course through the program and the model; every step has to agree."""
    switches = sperc_star.Switches(sperc_star.machine(), went.made)
    rates = [round(c * DATA_SHARE * (1 << FRACTION)) for c in went.made.capacities_bps]
    links = [Link(Fraction(rate)) for rate in rates]
    model = Model(links, {k: Packet(len(path)) for k, path in enumerate(went.made.paths)})
    happened, results = [], []
    for event, found in replay(went, switches, seed):
        happened.append(event)
        results.append(found)
        if event.kind == TICK:
            assert found is not None
            link = links[event.id]
            if found[11] != link.number:
                link.end_round()
            assert signed(found) == link.state(), event
        elif event.kind == SEND:
            demand = event.demand_bps
            model.packets[event.id].own = INFINITE if demand is None else Fraction(demand << FRACTION)
        elif event.kind == JOIN:
            model.packets[event.id] = Packet(len(went.made.paths[event.id]))
        elif event.kind in (UPDATE, LEAVE):
            assert found is not None
            link = links[went.made.paths[event.id][event.hop]]
            model.update(link, model.packets[event.id], event.hop, event.kind == LEAVE, found)
            assert signed(found) == link.state(), event
            assert found[13] == link.number
    return model, switches, happened, results


def signed(found: tuple[int, ...]) -> tuple[int, ...]:
    """The link's registers as signed numbers."""
    sum_e, num_b, max_e, max_e_next, sum_shadow, num_shadow, number = found[5:12]
    turn = sperc_star._signed
    return turn(sum_e, 96), turn(num_b, 32), max_e, max_e_next, turn(sum_shadow, 96), turn(num_shadow, 32), number


def compared(went: Course, happened: list[Event], results: list[tuple[int, ...] | None], rtt_ns: int) -> dict[str, int]:
    """How many values of the Rust scheme differ by more than rounding errors, by name."""
    first_round_s = (1 << sperc_star.FIRST_EXPONENT) / 1e9
    params = {"division_kb": DIVISION_KB, "control": 1 / 32, "headroom": 1 / 64, "first_round": first_round_s}
    capacities = [float(c) for c in went.made.capacities_bps]
    rust = SPercStarLinks(capacities, [list(p) for p in went.made.paths], json.dumps(params), rtt_ns)
    kept = [(e, r) for e, r in zip(happened, results, strict=True) if e.kind != LOSE]
    theirs = np.frombuffer(rust.run(sperc_star.packed([e for e, _ in kept])), float).reshape(-1, 16).tolist()
    differ: dict[str, int] = {}
    for (_, found), expected in zip(kept, theirs, strict=True):
        if found is None:
            continue
        for name, mine, other in zip(sperc_star.FIELDS, sperc_star.as_floats(found), expected, strict=True):
            if mine != other and not math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-3):
                differ[name] = differ.get(name, 0) + 1
    return differ


def filled(made: Setup, demands: tuple[int | None, ...]) -> list[Fraction]:
    """Max-min rates by water-filling, bit/s."""
    rest = [c * DATA_SHARE for c in made.capacities_bps]
    rates: dict[int, Fraction] = {}
    while len(rates) < len(made.paths):
        open_flows = [f for f in range(len(made.paths)) if f not in rates]
        shares = [rest[link] / n for link in range(len(rest)) if (n := sum(link in made.paths[f] for f in open_flows))]
        level = min([*shares, *(Fraction(d) for f in open_flows if (d := demands[f]) is not None)])
        for f in open_flows:
            counts = [sum(link in made.paths[g] for g in open_flows) for link in made.paths[f]]
            at_link = any(rest[link] / n == level for link, n in zip(made.paths[f], counts, strict=True))
            if at_link or demands[f] == level:
                rates[f] = level
        for f in set(open_flows) & set(rates):
            for link in made.paths[f]:
                rest[link] -= rates[f]
    return [rates[f] for f in range(len(made.paths))]


G = 1 << 33
COURSES = {
    "losses and leaving": course(1, (G, G << 2, G << 3, G << 3, G), (10_000,), loss=0.01, leave=0.02, trips=200),
    "early restarts": course(2, (G, G << 2, G << 3, G), (10_000,), loss=0.02, leave=0.05, early=0.3, trips=200),
    "400 Gb/s at 2 us": course(3, (1 << 38, 1 << 38, 1 << 37), (2_000,), loss=0.01, leave=0.02, trips=150, tick_ns=300),
    "20 ms": course(7, (G, G << 1, 1 << 38, G), (20_000_000,), loss=0.01, leave=0.01, trips=80, tick_ns=2_000_000),
    "one link": course(8, (G,), (5_000, 10_000), loss=0.03, leave=0.02, trips=400, flows=5),
}


@pytest.mark.parametrize("name", COURSES)
def test_registers_and_packets_are_those_of_the_thesis_and_of_rust(name: str) -> None:
    went = COURSES[name]
    model, switches, happened, results = follow(went)
    assert compared(went, happened, results, sperc_star.RTT_NS) == {}
    assert sum(event.kind == LOSE for event in happened) > 5
    assert sum(event.kind == LEAVE for event in happened) > 5
    assert model.largest_error < 0.006
    assert switches.wrong_sums() == 0
    held = [switches._held[: len(path)] for path in went.made.paths]
    pairs = zip(switches._packets, held, filled(went.made, went.demands_bps), strict=True)
    for packet, links, goal in pairs:
        rate = min(packet[slots[0]] for slots in links) / (1 << FRACTION)
        assert rate == pytest.approx(float(goal), rel=0.01, abs=1)


@pytest.mark.parametrize("gap_ns", [0, 300_000, 1_000_000])
def test_a_clock_of_48_bits_that_wraps_changes_nothing(gap_ns: int) -> None:
    found = []
    for start_ns in ((1 << 40) - gap_ns, (1 << 48) - gap_ns):
        more = {"loss": 0.01, "leave": 0.02, "trips": 120, "flows": 6, "start_ns": start_ns}
        went = course(1, (G << 2, G << 3, G << 3), (10_000,), **more)
        _, _, happened, results = follow(went)
        assert compared(went, happened, results, sperc_star.RTT_NS) == {}
        found.append(results)
    assert found[0] == found[1]


def test_a_round_that_ends_as_the_clock_wraps_is_followed_by_others() -> None:
    switches = sperc_star.Switches(sperc_star.machine(), Setup((G,), ((0,),)))
    numbers = []
    # 16384 ns after the first tick are 84 ns before the clock wraps.
    for ahead_ns in (-16_468, -100, 50, 16_500, 33_000):
        found = switches.step(Event(TICK, 0, 0, ahead_ns % (1 << 48)))
        assert found is not None
        numbers.append(found[11])
    assert numbers == [2, 2, 3, 4, 5]


def test_links_too_slow_for_a_field_of_the_program_are_refused() -> None:
    # Tx_ctrl for each flow has 32 bits, 16 of them fractional: 512 bits at a 64th of the link in less than 65.5 us.
    sperc_star.Switches(sperc_star.machine(), Setup((1 << 29,), ((0,),)))
    with pytest.raises(InputError, match="tx_of_flow of has is"):
        sperc_star.Switches(sperc_star.machine(), Setup((1 << 20,), ((0,),)))


@pytest.mark.parametrize("below_bps", [0, 700 * 10**9, 720 * 10**9, 1500 * 10**9])
def test_a_sum_below_zero_does_not_make_the_rate_of_a_fast_link_small(below_bps: int) -> None:
    # Packets that return after two rounds take from SumE what it no longer has.
    made = Setup((400 * 10**9,), ((0,),))
    switches = sperc_star.Switches(sperc_star.machine(), made)
    switches.machine.registers["sum_e"][0] = -(below_bps << FRACTION) % (1 << 96)
    switches.step(Event(SEND, 0, 0, 1, 10_000))
    found = switches.step(Event(UPDATE, 0, 0, 1))
    assert found is not None
    exact_bps = float(400 * 10**9 * DATA_SHARE) + below_bps
    assert found[1] / (1 << FRACTION) == pytest.approx(min(exact_bps, 2**40), rel=0.006)


@pytest.mark.parametrize("full_ns", [4e3, 23e3, 1e6, 23e6, 50e6])
def test_soze_keeps_the_largest_delay_in_units_of_the_field(full_ns: float) -> None:
    random = Random(int(full_ns))
    rust = SozeLinks([1e6, 10e9, 400e9], 0.0, full_ns)
    unit = rust.unit
    assert (4 * full_ns) / (1 << unit) <= 0xFFFF < (4 * full_ns) / (1 << unit) * 2 or unit == 0
    links = soze.Links(soze.machine(), unit)
    edges = [0, 1, (1 << unit) // 2, 0xFFFF << unit, (1 << 31) - 1, int(full_ns)]
    for _ in range(400):
        header = random.choice((0, 1, 0xFFFE, 0xFFFF, random.randrange(1 << 16)))
        wait_ns = random.choice([*edges, *(x - 1 for x in edges if x), random.randrange(int(8 * full_ns))])
        wait_ns = min(wait_ns, (1 << 31) - 1)
        is_data = random.random() < 0.8
        stamped = min(round_half_up(wait_ns, 1 << unit), 0xFFFF)
        expected = max(header, stamped) if is_data else header
        assert links.step(wait_ns, header, is_data) == expected
        asked = (random.randrange(3), random.randrange(1 << 47), 1500, wait_ns, 0, int(is_data), header)
        assert struct.unpack("<2I", rust.run(struct.pack("<7Q", *asked)))[1] == expected


def round_half_up(value: int, unit: int) -> int:
    """The number of units nearest to a value."""
    return (2 * value + unit) // (2 * unit)


def test_soze_stamps_the_longest_delay_of_its_field() -> None:
    links = soze.Links(soze.machine(), 0)
    assert links.step((1 << 32) - 1, 0, True) == 0xFFFF
    assert soze.Links(soze.machine(), 16).step((1 << 32) - 1, 0, True) == 0xFFFF
    assert soze.Links(soze.machine(), 17).step((1 << 32) - 1, 0, True) == 0x8000
