"""Validator: checks every constraint of program and switch on the rows of a placement.

It shares only data with the solvers: widths, formats and orders are computed independently here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from math import ceil
from typing import NamedTuple

from subak.pipeline.placement import ACTION_USE, MATCH_USE, REGISTER_USE, STATISTICS_USE, Placed, Placement
from subak.pipeline.program import Program, Table
from subak.pipeline.switch import PACKED, SHARED, Memory, Switch


class Violation(NamedTuple):
    """A constraint that a placement violates."""

    constraint: str
    """Name of the constraint."""
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what} ({self.constraint})"


def violations(program: Program, switch: Switch, placement: Placement) -> list[Violation]:
    """All violations of the placement; empty if it is valid."""
    names = list(_names(program, switch, placement))
    if names:
        return names
    checks = (_matches, _entries, _formats, _beside, _registers, _blocks, _crossbars, _limits, _dependencies, _shared)
    return [found for check in checks for found in check(program, switch, placement)]


def _stage(switch: Switch, number: int) -> str:
    name = switch.stages[number].name
    return f"stage {number + 1}" if name == str(number + 1) else f"stage {number + 1} ({name})"


def _names(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    tables = {table.name for table in program.tables}
    memories = {memory.name for memory in switch.memories}
    for i, row in enumerate(placement.rows):
        where = f"placement[{i}]"
        if row.table not in tables:
            yield Violation("names", where, f'there is no table "{row.table}"')
        if row.memory not in memories:
            yield Violation("names", where, f'{switch.name} has no memory "{row.memory}"')
        if not 0 <= row.stage < len(switch.stages):
            yield Violation("names", where, f"there is no stage {row.stage + 1}")
        if row.blocks < 1 or row.unit < 1 or row.entries < 0:
            yield Violation("names", where, "a row needs blocks")


def _matches(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    for row in placement.rows:
        table, memory = _table(program, row), _memory(switch, row)
        if row.use == MATCH_USE and table.kind not in memory.kinds:
            what = f"{memory.name} does not support {table.kind} matches"
            yield Violation("match kind", f"{row.table} in {_stage(switch, row.stage)}", what)
        if row.use != MATCH_USE and row.memory != switch.overhead:
            what = f"{row.use} memory lies in {switch.overhead or 'no memory'}, not in {row.memory}"
            yield Violation("overhead memory", f"{row.table} in {_stage(switch, row.stage)}", what)


def _entries(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    held: dict[str, int] = defaultdict(int)
    for row in placement.rows:
        held[row.table] += row.entries if row.use == MATCH_USE else 0
    for table in program.tables:
        if held[table.name] < table.entries:
            what = f"{held[table.name]} of its {table.entries} entries are placed"
            yield Violation("entries", table.name, what)


def _formats(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    """Checks, in whole blocks, that the blocks of a match or its overhead store the stated number of entries."""
    seen = set()
    for row in placement.rows:
        memory = _memory(switch, row)
        if memory.packing == SHARED or row.use == REGISTER_USE:
            continue
        where = f"{row.table} in {_stage(switch, row.stage)}"
        place = (row.table, row.stage, row.memory, row.use)
        if place in seen:
            yield Violation("one format", where, f"{row.memory} is laid out twice for its {row.use}")
        seen.add(place)
        width = _width(_table(program, row), row.use)
        bits = row.unit * memory.width
        a_row = bits // width if width else 0
        if row.use == MATCH_USE and memory.packing != PACKED:
            a_row = min(a_row, 1)
        if row.blocks % row.unit:
            yield Violation("units", where, f"{row.blocks} blocks are no whole number of units of {row.unit}")
        if row.entries > row.blocks // row.unit * a_row * memory.depth:
            most = row.blocks // row.unit * a_row * memory.depth
            yield Violation("capacity", where, f"{row.blocks} blocks of {row.memory} hold {most}, not {row.entries}")
        if row.use == MATCH_USE and memory.packing == PACKED:
            narrowest = ceil(width / memory.width)
            if row.unit >= narrowest + max(memory.formats - 1, 1):
                yield Violation("formats", where, f"units of {row.unit} blocks are none of {switch.name}'s formats")


def _width(table: Table, use: str) -> int:
    if use == MATCH_USE:
        return max(sum(key.width for key in table.keys), 1)
    return table.action_width if use == ACTION_USE else table.statistics_width


def _beside(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    """Checks that action data and statistics are in the stage of their match."""
    if switch.overhead is None:
        return
    held: dict[tuple[str, int, str], int] = defaultdict(int)
    for row in placement.rows:
        held[row.table, row.stage, row.use] += row.entries
    tables = {table.name: table for table in program.tables}
    for (name, stage, use), entries in list(held.items()):
        if use != MATCH_USE:
            continue
        table = tables[name]
        for beside, width in ((ACTION_USE, table.action_width), (STATISTICS_USE, table.statistics_width)):
            if width and held[name, stage, beside] < entries:
                what = f"{beside} memory for {held[name, stage, beside]} of {entries} entries"
                yield Violation(f"{beside} memory", f"{name} in {_stage(switch, stage)}", what)


def _registers(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    if switch.overhead is None:
        return
    memory = next(m for m in switch.memories if m.name == switch.overhead)
    cells = {r.name: r for table in program.tables for r in table.registers}
    for group in _sharing(program):
        names = ", ".join(sorted(group))
        rows = [row for row in placement.rows if row.table in group]
        stages = {row.stage for row in rows}
        if len(stages) > 1:
            what = f"their registers can lie in one stage only, and not in {len(stages)}"
            yield Violation("registers", names, what)
        needed = 0
        for register in {r.name for t in program.tables if t.name in group for r in t.registers}:
            wide = ceil(cells[register].width / memory.width)
            held = wide * memory.width // cells[register].width * memory.depth
            needed += wide * ceil(cells[register].cells / held)
        held = sum(row.blocks for row in rows if row.use == REGISTER_USE)
        if held < needed:
            yield Violation("registers", names, f"{held} of the {needed} blocks that their registers need")


def _sharing(program: Program) -> list[set[str]]:
    """Groups of tables that common registers bind to one stage."""
    groups: list[set[str]] = []
    for name in {r.name for table in program.tables for r in table.registers}:
        tied = {t.name for t in program.tables if any(r.name == name for r in t.registers)}
        for group in [g for g in groups if g & tied]:
            groups.remove(group)
            tied |= group
        groups.append(tied)
    return groups


def _blocks(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    used: dict[tuple[int, str], int] = defaultdict(int)
    for row in placement.rows:
        if _memory(switch, row).packing != SHARED:
            used[row.stage, row.memory] += row.blocks
    for (stage, memory), blocks in used.items():
        there = switch.stages[stage].blocks.get(memory, 0)
        if blocks > there:
            yield Violation("blocks", _stage(switch, stage), f"{blocks} blocks of {memory} are used, {there} are there")


def _crossbars(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    matched = {(r.stage, r.memory, r.table) for r in placement.rows if r.use == MATCH_USE}
    units: dict[tuple[int, str], int] = defaultdict(int)
    for stage, memory, name in matched:
        if memory in switch.crossbars:
            units[stage, memory] += ceil(_width_of(program, name) / switch.crossbars[memory].width)
    for (stage, memory), used in units.items():
        there = switch.crossbars[memory].units
        if used > there:
            what = f"{used} units of the crossbar of {memory} are used, {there} are there"
            yield Violation("crossbar", _stage(switch, stage), what)
    if switch.action_bits is not None:
        bits: dict[int, int] = defaultdict(int)
        for stage, name in {(stage, name) for stage, _, name in matched}:
            bits[stage] += program.by_name[name].action_width
        for stage, used in bits.items():
            if used > switch.action_bits:
                what = f"{used} bits of action data, the action crossbar carries {switch.action_bits}"
                yield Violation("action crossbar", _stage(switch, stage), what)


def _width_of(program: Program, name: str) -> int:
    return max(sum(key.width for key in program.by_name[name].keys), 1)


def _limits(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    here: dict[int, set[str]] = defaultdict(set)
    for row in placement.rows:
        here[row.stage].add(row.table)
    for stage, names in here.items():
        if switch.tables_per_stage is not None and len(names) > switch.tables_per_stage:
            what = f"{len(names)} tables are matched, {switch.tables_per_stage} can be"
            yield Violation("tables", _stage(switch, stage), what)
        fields = sum(_changed(program.by_name[name]) for name in names)
        if switch.fields_per_stage is not None and fields > switch.fields_per_stage:
            what = f"{fields} fields are modified, {switch.fields_per_stage} can be"
            yield Violation("fields", _stage(switch, stage), what)


def _changed(table: Table) -> int:
    return len([name for name in table.modifies if "(queued)" not in name])


def _dependencies(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    stages: dict[str, set[int]] = defaultdict(set)
    for row in placement.rows:
        stages[row.table].add(row.stage)
    after = _starts_after(switch)
    layer = _layers(switch)
    for d in program.dependencies:
        for i in sorted(stages[d.before]):
            for j in sorted(stages[d.after]):
                together = not switch.delays[d.kind].separate and layer[i] == layer[j] and i not in after[j]
                if j not in after[i] and not together:
                    what = f"{_stage(switch, i)} of the one, {_stage(switch, j)} of the other"
                    yield Violation(f"{d.kind} dependency", f"{d.before} -> {d.after}", what)


def _starts_after(switch: Switch) -> list[set[int]]:
    """For each stage the stages that start after it, by transitive closure."""
    number = {stage.name: i for i, stage in enumerate(switch.stages)}
    after: list[set[int]] = [set() for _ in switch.stages]
    changed = True
    while changed:
        changed = False
        for j, stage in enumerate(switch.stages):
            for before in stage.after:
                i = number[before]
                more = ({j} | after[j]) - after[i]
                after[i] |= more
                changed = changed or bool(more)
    return after


def _layers(switch: Switch) -> list[int]:
    number = {stage.name: i for i, stage in enumerate(switch.stages)}
    layer = [0] * len(switch.stages)
    for _ in switch.stages:
        for j, stage in enumerate(switch.stages):
            layer[j] = max([layer[number[before]] + 1 for before in stage.after], default=0)
    return layer


def _shared(program: Program, switch: Switch, placement: Placement) -> Iterator[Violation]:
    cells: dict[tuple[int, str, int], list[Placed]] = defaultdict(list)
    for row in placement.rows:
        memory = _memory(switch, row)
        if memory.packing != SHARED:
            if row.first_block is not None:
                yield Violation("row ranges", row.table, f"blocks of {memory.name} are not shared")
            continue
        where = f"{row.table} in {_stage(switch, row.stage)}"
        if row.first_block is None or row.first_row is None:
            yield Violation("row ranges", where, f"it does not say which rows of {memory.name} it has")
            continue
        if row.blocks * memory.width < _width_of(program, row.table):
            yield Violation("capacity", where, f"a row of {row.blocks} blocks of {memory.name} is too narrow")
        if row.first_block + row.blocks > switch.stages[row.stage].blocks.get(memory.name, 0):
            yield Violation("blocks", where, f"there is no block {row.first_block + row.blocks} of {memory.name}")
        if row.first_row + row.entries > memory.depth:
            yield Violation("row ranges", where, f"row {row.first_row + row.entries} is past the end of a block")
        for block in range(row.first_block, row.first_block + row.blocks):
            cells[row.stage, memory.name, block].append(row)
    for (stage, name, block), rows in cells.items():
        yield from _one_block(program, switch, f"{_stage(switch, stage)}, {name} block {block + 1}", rows)


def _one_block(program: Program, switch: Switch, where: str, rows: list[Placed]) -> Iterator[Violation]:
    memory = _memory(switch, rows[0])
    tables = {row.table for row in rows}
    if len(tables) > memory.tables_per_block:
        yield Violation("tables a block", where, f"{len(tables)} tables share it, {memory.tables_per_block} can")
    for one, other in combinations(sorted(rows, key=lambda row: row.first_row or 0), 2):
        if (one.first_row or 0) + one.entries > (other.first_row or 0):
            yield Violation("row ranges", where, f"{one.table} and {other.table} overlap")
    if memory.exclusive:
        for pair in combinations(sorted(tables), 2):
            if frozenset(pair) not in program.exclusive:
                yield Violation("exclusive sharing", where, f"a packet may meet both {pair[0]} and {pair[1]}")


def _table(program: Program, row: Placed) -> Table:
    return program.by_name[row.table]


def _memory(switch: Switch, row: Placed) -> Memory:
    return next(m for m in switch.memories if m.name == row.memory)
