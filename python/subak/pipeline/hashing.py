"""Order of ties in the published runs: that of a Python 2.7 dictionary of table names.

The greedy solvers behind the thesis' tables broke ties in the order of their dictionaries. Python 2.7 hashed strings
without a random seed, so the order can be computed: 64-bit hashes in an open table with perturbed probing.
"""

from __future__ import annotations

from collections.abc import Iterable

from subak.pipeline.program import ACTION, MATCH, SUCCESSOR, Program

_MASK = (1 << 64) - 1
_START, _END = "start", "end"


def dictionary_order(names: Iterable[str]) -> list[str]:
    """The names in the order of a Python 2.7 dictionary into which they are inserted in sequence."""
    slots: list[str | None] = [None] * 8
    for count, name in enumerate(dict.fromkeys(names), 1):
        _put(slots, name)
        if 3 * count >= 2 * len(slots):
            larger = 8
            while larger <= 4 * count:
                larger *= 2
            held = [slot for slot in slots if slot is not None]
            slots = [None] * larger
            for one in held:
                _put(slots, one)
    return [slot for slot in slots if slot is not None]


def _put(slots: list[str | None], name: str) -> None:
    mask = len(slots) - 1
    perturb = _hash(name)
    at = perturb & mask
    while slots[at & mask] is not None:
        at = (5 * at + perturb + 1) & _MASK
        perturb >>= 5
    slots[at & mask] = name


def _hash(text: str) -> int:
    data = text.encode()
    if not data:
        return 0
    value = data[0] << 7
    for byte in data:
        value = ((1000003 * value) & _MASK) ^ byte
    value ^= len(data)
    return _MASK - 1 if value == _MASK else value


def reference_order(program: Program, metric: str) -> list[str]:
    """The tables in the order of the published runs, for FFD or for a metric of path lengths."""
    names = [table.name for table in program.tables]
    if metric == "ffd":
        return [n for n in dictionary_order([*names, _START, _END]) if n in program.by_name]
    return [n for n in dictionary_order(dictionary_order(_reached(program))) if n in program.by_name]


def _reached(program: Program) -> list[str]:
    """The tables in the order in which Bellman-Ford first reaches them by shortest paths from the start."""
    names = [table.name for table in program.tables]
    before: dict[str, list[str]] = {name: [] for name in (*names, _START, _END)}
    for kind in (SUCCESSOR, MATCH, ACTION):
        for d in program.dependencies:
            if d.kind == kind:
                before[d.after].append(d.before)
    followed = {name for waits in before.values() for name in waits}
    for name in names:
        if not before[name]:
            before[name].append(_START)
        if name not in followed:
            before[_END].append(name)
    nodes = dictionary_order(before)
    after: dict[str, list[str]] = {name: [] for name in nodes}
    for name in nodes:
        for waited in before[name]:
            after[waited].append(name)
    edges = [(name, to) for name in dictionary_order(nodes) for to in after[name]]
    reached = {_START: None}
    for _ in nodes:
        for name, to in edges:
            if name in reached:
                reached.setdefault(to)
    return list(reached)
