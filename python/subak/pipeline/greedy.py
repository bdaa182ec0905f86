"""First-fit placement: FFD, FFL, FFLS and MCF (PERC thesis, section 6.5).

A table goes into the first stages that have room, memory by memory; in shared memory, into the first rows. If a table
does not fit into the rest of a memory, that memory is closed for further tables. The variant ``-16`` reserves up to 16
blocks of each stage for action data of tables that match in another memory. ``-exact16`` reserves them too, and places
exact matches only in memory that stores nothing but exact matches.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from subak.pipeline.ordering import order
from subak.pipeline.packing import Needs, Unit
from subak.pipeline.placement import ACTION_USE, MATCH_USE, REGISTER_USE, STATISTICS_USE, Placed, Placement
from subak.pipeline.program import EXACT, Dependency, Program, Table
from subak.pipeline.row_room import RowRoom
from subak.pipeline.sorting import sorted_tables
from subak.pipeline.switch import SHARED, Stage, Switch

RESERVED = 16
VARIANTS = ("", "-16", "-exact16")


class Failed(NamedTuple):
    """Result of a greedy solver that found no placement: the table without room, and why."""

    table: str
    why: str


class Fit(NamedTuple):
    """Units of one format that fit, with the blocks of their overhead."""

    unit: Unit
    units: int
    beside: int

    @property
    def entries(self) -> int:
        """Number of match entries that fit into the units."""
        return self.unit.entries * self.units

    @property
    def blocks(self) -> int:
        """Number of blocks of the match, without overhead."""
        return self.unit.blocks * self.units


@dataclass
class Room:
    """Remaining capacity of a stage."""

    free: dict[str, int]
    subunits: dict[str, int]
    action_bits: float
    tables: float
    fields: float
    here: set[str]
    rows: dict[str, RowRoom]
    """Free rows of each shared memory."""


def place(
    program: Program,
    switch: Switch,
    needs: Mapping[str, Needs],
    metric: str,
    variant: str,
    reference: bool = False,
    until: float = inf,
) -> Placement | Failed:
    """The placement in the order of ``metric``; the search ends at the time ``until``.

    ``reference`` breaks ties and counts room as the published runs did. They counted neither the action data of a match
    that fills the rest of another memory, nor the tables of a stage.
    """
    if variant == "-exact16":
        needs = {name: _exact_apart(program.by_name[name], need, switch) for name, need in needs.items()}
    return _Greedy(program, switch, needs, RESERVED if variant else 0, reference).run(metric, until)


def _exact_apart(table: Table, needs: Needs, switch: Switch) -> Needs:
    if table.kind != EXACT:
        return needs
    only = {m: f for m, f in needs.formats.items() if switch.memory[m].kinds == {EXACT}}
    return replace(needs, formats=only) if only else needs


class _Greedy:
    def __init__(
        self, program: Program, switch: Switch, needs: Mapping[str, Needs], reserved: int, reference: bool
    ) -> None:
        self.program, self.switch, self.needs = program, switch, needs
        self.reserved, self.reference = reserved, reference
        self.rooms = [self._room(stage) for stage in switch.stages]
        self.stages: dict[str, set[int]] = {}
        self.rows: list[Placed] = []
        self.left: dict[str, int] = {}

    def _room(self, stage: Stage) -> Room:
        switch, endless = self.switch, float("inf")
        program = self.program

        def excludes(one: str, other: str) -> bool:
            return frozenset((one, other)) in program.exclusive

        shared = {m.name: m for m in switch.memories if m.packing == SHARED}
        return Room(
            free={m: n for m, n in stage.blocks.items() if m not in shared},
            subunits={m: c.units for m, c in switch.crossbars.items()},
            action_bits=endless if switch.action_bits is None else switch.action_bits,
            tables=endless if switch.tables_per_stage is None else switch.tables_per_stage,
            fields=endless if switch.fields_per_stage is None else switch.fields_per_stage,
            here=set(),
            rows={m: RowRoom(memory, stage.blocks.get(m, 0), excludes) for m, memory in shared.items()},
        )

    def run(self, metric: str, until: float) -> Placement | Failed:
        line = sorted_tables(metric, self.program, self.switch, self.needs, self.reference)
        self.left = {name: self.program.by_name[name].entries for name in line}
        waits: dict[str, list[Dependency]] = {name: [] for name in line}
        for d in self.program.dependencies:
            waits[d.after].append(d)
        # Repeatedly the first table in the list whose dependencies are all placed.
        for name in order(line, [(d.before, d.after) for d in self.program.dependencies])[0]:
            if time.monotonic() > until:
                return Failed(name, "the time was over")
            stages = [s for s in range(len(self.rooms)) if self._lets(waits[name], s)]
            for users in (self.program.users[r.name] for r in self.program.by_name[name].registers):
                if len(users) > 1:
                    held = [self.stages[other] for other in users if other in self.stages]
                    stages = [s for s in stages if all(s in there for there in held)]
            if not self._place(self.program.by_name[name], stages):
                which = f"stage {stages[0] + 1} on" if stages else "no stage"
                return Failed(name, f"{name} may lie from {which}, and there is too little room left there")
        return Placement(tuple(self.rows))

    def _lets(self, waits: list[Dependency], stage: int) -> bool:
        return all(self.switch.allows(d.kind, s, stage) for d in waits for s in self.stages[d.before])

    def _place(self, table: Table, stages: list[int]) -> bool:
        needs, left = self.needs[table.name], table.entries
        for stage in stages:
            matched = 0
            for memory in needs.formats:
                entries = self._put(table, memory, stage, left)
                matched += entries
                left -= entries
                if left <= 0:
                    break
            if matched:
                self.stages.setdefault(table.name, set()).add(stage)
                self._lay_beside(table.name, needs, stage, matched)
            if left <= 0:
                del self.left[table.name]
                return True
        return False

    def _put(self, table: Table, memory: str, stage: int, left: int) -> int:
        """Places up to ``left`` entries; returns their number."""
        if memory in self.rooms[stage].rows:
            return self._put_rows(table, memory, stage, left)
        fit = self._fit(table, memory, self.needs[table.name].formats[memory], stage, left)
        if fit:
            self._take(table, memory, stage, fit, closes=fit.entries < left)
        return fit.entries if fit else 0

    def _put_rows(self, table: Table, memory: str, stage: int, left: int) -> int:
        wide = self.needs[table.name].formats[memory][0].blocks
        placed = 0
        while placed < left:
            rows = self.rooms[stage].rows[memory].take(table.name, wide, left - placed)
            if not rows:
                break
            placed += rows.number
            row = Placed(table.name, stage, memory, MATCH_USE, wide, rows.number, wide, rows.block, rows.first)
            self.rows.append(row)
        return placed

    def _fit(self, table: Table, memory: str, formats: tuple[Unit, ...], stage: int, left: int) -> Fit | None:
        """The largest number of entries that fit; if all remaining entries do, in the fewest blocks."""
        room, needs = self.rooms[stage], self.needs[table.name]
        if needs.subunits[memory] > room.subunits.get(memory, needs.subunits[memory]):
            return None
        first = table.name not in room.here
        fields = table.fields
        if (self.reference or first) and table.action_width > room.action_bits:
            return None
        if not self.reference and first and (room.tables < 1 or room.fields < fields):
            return None
        if needs.register_blocks and (not first or left < table.entries):
            return None
        keep = self._kept(stage) if memory == self.switch.overhead else 0
        most = max((self._most(u, memory, room, needs, keep, left) for u in formats), key=lambda fit: fit.entries)
        if not most.entries:
            return None
        if most.entries < left:
            return None if needs.register_blocks else most
        enough = [self._exactly(unit, needs, left) for unit in formats]
        return min((fit for fit in enough if self._goes_in(fit, memory, room, 0)), key=lambda fit: fit.blocks)

    def _most(self, unit: Unit, memory: str, room: Room, needs: Needs, keep: int, left: int) -> Fit:
        units = min(room.free[memory] // unit.blocks, -(-left // unit.entries))
        while units > 0:
            fit = Fit(unit, units, self._beside(needs, units * unit.entries))
            if self._goes_in(fit, memory, room, keep):
                return fit
            units -= 1
        return Fit(unit, 0, 0)

    def _exactly(self, unit: Unit, needs: Needs, left: int) -> Fit:
        units = -(-left // unit.entries)
        return Fit(unit, units, self._beside(needs, units * unit.entries))

    def _beside(self, needs: Needs, entries: int) -> int:
        return needs.overhead_blocks(entries) + sum(needs.register_blocks)

    def _goes_in(self, fit: Fit, memory: str, room: Room, keep: int) -> bool:
        overhead = self.switch.overhead
        if memory == overhead:
            return fit.blocks + fit.beside <= room.free[memory] - keep
        return fit.blocks <= room.free[memory] and (overhead is None or fit.beside <= room.free[overhead])

    def _kept(self, stage: int) -> int:
        """Blocks to reserve for action data of later tables that match in another memory."""
        overhead = self.switch.overhead
        most = 0
        for name in self.left if self.reserved else ():
            needs, entries = self.needs[name], self.left[name]
            if needs.action is None or self.program.by_name[name].kind == EXACT:
                continue
            for memory, (unit, *_) in needs.formats.items():
                if memory != overhead:
                    units = min(self.rooms[stage].free[memory] // unit.blocks, -(-entries // unit.entries))
                    most = max(most, -(-units * unit.entries // needs.action.entries) * needs.action.blocks)
        return min(most, self.reserved)

    def _take(self, table: Table, memory: str, stage: int, fit: Fit, closes: bool) -> None:
        room, overhead = self.rooms[stage], self.switch.overhead
        needs = self.needs[table.name]
        keep = self._kept(stage) if memory == overhead else 0
        if overhead and not (self.reference and closes and memory != overhead):
            room.free[overhead] -= fit.beside
        room.free[memory] -= fit.blocks
        if closes:
            room.free[memory] = keep
        if memory in room.subunits:
            room.subunits[memory] -= needs.subunits[memory]
        if self.reference or table.name not in room.here:
            room.action_bits -= table.action_width
            room.tables -= 1
            room.fields -= table.fields
        room.here.add(table.name)
        row = Placed(table.name, stage, memory, MATCH_USE, fit.blocks, fit.entries, fit.unit.blocks)
        self.rows.append(row)

    def _lay_beside(self, name: str, needs: Needs, stage: int, matched: int) -> None:
        overhead = self.switch.overhead
        if not overhead:
            return
        for use, unit in ((ACTION_USE, needs.action), (STATISTICS_USE, needs.statistics)):
            if unit:
                units = -(-matched // unit.entries)
                blocks, entries = units * unit.blocks, units * unit.entries
                self.rows.append(Placed(name, stage, overhead, use, blocks, entries, unit.blocks))
        registers = self.program.by_name[name].registers
        for register, blocks in ((r, b) for r, b in zip(registers, needs.register_blocks, strict=True) if b):
            self.rows.append(Placed(name, stage, overhead, REGISTER_USE, blocks, register.cells, 1))
