"""Layout of table entries in memory blocks, as all solvers use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, lcm

from subak.pipeline.program import Program, Table
from subak.pipeline.switch import PACKED, SHARED, Memory, Switch


@dataclass(frozen=True)
class Unit:
    """A number of adjacent blocks, and the number of entries that they store."""

    blocks: int
    entries: int


@dataclass(frozen=True)
class Needs:
    """Requirements of a table on a stage."""

    formats: dict[str, tuple[Unit, ...]]
    """Packing formats of the table in each memory that can store it, in the switch's order of memories."""
    subunits: dict[str, int]
    """Units of each memory's crossbar that the table uses."""
    action: Unit | None
    """Packing of the table's action data in the switch's memory for overhead."""
    statistics: Unit | None
    register_blocks: tuple[int, ...]
    """Blocks of each register; 0 for a register that an earlier table of the program already places."""

    @property
    def overheads(self) -> list[Unit]:
        """Packing of action data and of statistics, one item for each match entry."""
        return [unit for unit in (self.action, self.statistics) if unit]

    def overhead_blocks(self, entries: int) -> int:
        """Overhead blocks for ``entries`` match entries in one stage."""
        return sum(ceil(entries / unit.entries) * unit.blocks for unit in self.overheads)


class NeverFitsError(Exception):
    """Raised for a table that no stage of the switch can hold."""

    def __init__(self, table: str, what: str, hint: str) -> None:
        super().__init__(f"{table} {what}; {hint}")
        self.table = table


def needs(program: Program, switch: Switch) -> dict[str, Needs]:
    """Requirements of each table on a stage; raises ``NeverFitsError`` if no memory or crossbar supports a table."""
    return {table.name: _needs(table, switch, program.users) for table in program.tables}


def _needs(table: Table, switch: Switch, users: Mapping[str, tuple[str, ...]]) -> Needs:
    width = max(table.width, 1)
    memories = [m for m in switch.memories if table.kind in m.kinds]
    if not memories:
        known = ", ".join(sorted({kind for m in switch.memories for kind in m.kinds}))
        what = f"needs {table.kind} matches, and {switch.name} has no memory for them"
        raise NeverFitsError(table.name, what, f"it has {known}")
    subunits = {m.name: ceil(width / switch.crossbars[m.name].width) for m in memories if m.name in switch.crossbars}
    fits = [m for m in memories if m.name not in subunits or subunits[m.name] <= switch.crossbars[m.name].units]
    if not fits:
        widest = max(switch.crossbars[m.name].units * switch.crossbars[m.name].width for m in memories)
        what = f"matches {width} bits, and the crossbar of a stage carries {widest}"
        raise NeverFitsError(table.name, what, "match fewer bits, or split the table")
    if switch.action_bits is not None and table.action_width > switch.action_bits:
        what = f"has {table.action_width} bits of action data, and a stage carries {switch.action_bits}"
        raise NeverFitsError(table.name, what, "give its actions less data, or split the table")
    if switch.fields_per_stage is not None and table.fields > switch.fields_per_stage:
        what = f"modifies {table.fields} fields, and a stage can modify {switch.fields_per_stage}"
        raise NeverFitsError(table.name, what, "let it modify fewer, or split the table")
    beside = switch.memory[switch.overhead] if switch.overhead else None
    return Needs(
        formats={m.name: formats(width, m) for m in fits},
        subunits={m.name: subunits.get(m.name, 0) for m in fits},
        action=_beside(table.action_width, beside),
        statistics=_beside(table.statistics_width, beside),
        register_blocks=tuple(
            _register_blocks(r.width, r.cells, beside) if users[r.name][0] == table.name else 0 for r in table.registers
        ),
    )


def formats(width: int, memory: Memory) -> tuple[Unit, ...]:
    """Packing formats for entries of ``width`` bits: one entry per row first, then wider units with as many as fit."""
    one = ceil(width / memory.width)
    if memory.packing != PACKED:
        return (Unit(one, memory.depth),)
    # Beyond lcm(width, row) bits a unit repeats a smaller one.
    widest = max(lcm(width, memory.width) // memory.width, one)
    units = [
        Unit(blocks, blocks * memory.width // width * memory.depth)
        for blocks in range(one, min(one + max(memory.formats - 1, 1), widest + 1))
    ]
    # One entry per row stays an option: wider units need action data for all entries that fit, used or not.
    return tuple(dict.fromkeys([Unit(one, memory.depth), *units]))


def _beside(width: int, memory: Memory | None) -> Unit | None:
    if not memory or not width:
        return None
    blocks = ceil(width / memory.width)
    return Unit(blocks, blocks * memory.width // width * memory.depth)


def _register_blocks(width: int, cells: int, memory: Memory | None) -> int:
    unit = _beside(width, memory)
    return ceil(cells / unit.entries) * unit.blocks if unit else 0


def spans(table: Table, memory: Memory) -> int:
    """Number of blocks of shared memory that one row of the table spans."""
    assert memory.packing == SHARED
    return ceil(max(table.width, 1) / memory.width)
