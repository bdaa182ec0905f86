"""Runs the switch program of Soze (in P4), and compares its headers with those of the Rust scheme."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from subak.pipeline.p4.compile import Machine

PROGRAM = "soze"
SETTINGS = ((0.0, 23e3), (10e3, 23e3), (0.0, 1e6), (10e3, 1e6), (0.0, 50e6))
"""Time constant of the filter and k + p, ns. The first is the paper's without its filter, the second with it."""
LINKS = 8
MOST_HOPS = 5
MOST_WAIT_NS = (1 << 31) - 1
"""Longest delay of the Rust scheme's integers."""
KIND_DATA, KIND_ACK = 0, 1


class Crossing(NamedTuple):
    """A packet that leaves a link's queue."""

    link: int
    now_ns: int
    size_bytes: int
    wait_ns: int
    queued_bytes: int
    is_data: bool
    is_first: bool
    """Whether the packet comes from its source."""


def crossings(packets: int, seed: int, full_ns: float) -> Iterator[Crossing]:
    """Random packets, one in ten an ACK, over one to five links.

    Delays are 0, around k + p, or anything up to the longest of integers.
    """
    random = Random(seed)
    now_ns = 0
    for _ in range(packets):
        is_data = random.random() < 0.9
        for hop, link in enumerate(random.sample(range(LINKS), random.randint(1, MOST_HOPS))):
            now_ns += random.randrange(2000)
            waits_ns = 0, int(random.expovariate(2 / full_ns)), int(2 ** random.uniform(0, 31))
            wait_ns = random.choices(waits_ns, (6, 12, 1))[0]
            size, queued = random.randint(64, 1500), random.randrange(1 << 20)
            yield Crossing(link, now_ns, size, min(wait_ns, MOST_WAIT_NS), queued, is_data, hop == 0)


class Links:
    """A switch that runs the program."""

    def __init__(self, machine: Machine, unit: int) -> None:
        self.machine = machine
        self._slots = machine.fields
        machine.add("telemetry", [1, KIND_DATA], "stamp", [(1 << unit) >> 1, unit])
        self._packet = machine.packet({"hdr.ethernet.$valid$": 1, "hdr.soze.$valid$": 1})

    def step(self, delay_ns: int, header: int, is_data: bool) -> int:
        """The header of a packet after a link where the filtered delay is ``delay_ns``."""
        packet, slots = self._packet, self._slots
        packet[slots["hdr.soze.kind"]] = KIND_DATA if is_data else KIND_ACK
        packet[slots["hdr.soze.delay"]] = header
        packet[slots["standard_metadata.deq_timedelta"]] = delay_ns
        self.machine.process(packet)
        return packet[slots["hdr.soze.delay"]]


def machine() -> Machine:
    """The Soze program."""
    from subak.pipeline import program_file
    from subak.pipeline.p4.lower import read

    path = program_file.FOLDER / f"{PROGRAM}.p4"
    return Machine(read(path.read_bytes(), path.name))


def lines() -> int:
    """Lines of code of the program's egress, in which the signal is."""
    from subak.pipeline import program_file

    source = (program_file.FOLDER / f"{PROGRAM}.p4").read_text()
    egress = source[source.index("    action stamp") : source.index("control SozeDeparser")]
    return sum(line.strip(" }") != "" for line in egress.splitlines())


def compare(packets: int, seed: int, progress: Any = None) -> dict[str, Any]:
    """Runs the same packets through the P4 program and the Rust scheme's links; counts headers that differ.

    Without a filter, the program gets the packet's delay. With one, it gets what the filter of the Rust scheme returns.
    """
    from subak._subak import SozeLinks

    counted = dict.fromkeys(("headers", "filtered", "acks", "raised", "largest"), 0)
    different = 0
    first: dict[str, Any] | None = None
    for number, (filter_ns, full_ns) in enumerate(SETTINGS):
        rust = SozeLinks([10e9] * LINKS, filter_ns, full_ns)
        links = Links(machine(), rust.unit)
        header = 0
        for at in crossings(packets, seed + number, full_ns):
            before = 0 if at.is_first else header
            asked = (at.link, at.now_ns, at.size_bytes, at.wait_ns, at.queued_bytes, int(at.is_data), before)
            filtered_ns, expected = struct.unpack("<2I", rust.run(struct.pack("<7Q", *asked)))
            header = links.step(filtered_ns if filter_ns else at.wait_ns, before, at.is_data)
            counted["headers"] += 1
            counted["filtered"] += filter_ns > 0
            counted["acks"] += not at.is_data
            counted["raised"] += header > before
            counted["largest"] += header == 0xFFFF
            if header != expected:
                different += 1
                first = first or {"crossing": at, "before": before, "p4": header, "rust": expected}
        if progress:
            progress(number + 1, len(SETTINGS))
    return {"counted": counted, "different": different, "first": first}
