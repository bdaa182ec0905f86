"""Small random programs and switches, and their best placements by exhaustive search."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, lcm
from random import Random
from typing import Any

from subak.pipeline import program_file
from subak.pipeline.fitting import value_of
from subak.pipeline.placement import ACTION_USE, MATCH_USE, Placed, Placement, measure
from subak.pipeline.program import ACTION, EXACT, MATCH, REVERSE, SUCCESSOR, TERNARY, Dependency, Key, Program, Table
from subak.pipeline.switch import PACKED, ROWS, SHARED, Crossbar, Delay, Memory, Stage, Switch

DELAYS = {MATCH: Delay(True, 5), ACTION: Delay(True, 2), SUCCESSOR: Delay(False, 0), REVERSE: Delay(False, 0)}


def rmt_like(random: Random) -> Switch:
    """A chain of two or three stages, with a packed memory and a ternary one."""
    sram = Memory("sram", 8, 10, frozenset({EXACT}), PACKED, formats=3, watts=1.25)
    tcam = Memory("tcam", 4, 20, frozenset({EXACT, TERNARY}), ROWS, watts=3.5)
    count = 3
    stages = tuple(
        Stage(str(i), {"sram": random.randint(2, 4), "tcam": random.randint(0, 3)}, (str(i - 1),) if i else ())
        for i in range(count)
    )
    crossbars = {"sram": Crossbar(2, 8), "tcam": Crossbar(2, 8)}
    return Switch("small", (sram, tcam), stages, DELAYS, 1, crossbars, 12, 2, 3, "sram")


def flexpipe_like(random: Random) -> Switch:
    """Three stages, two of them in parallel, with shared memory."""
    a = Memory("a", 4, 4, frozenset({TERNARY, EXACT}), SHARED, tables_per_block=2)
    b = Memory("b", 8, 3, frozenset({EXACT}), SHARED, tables_per_block=random.randint(1, 2))
    stages = (
        Stage("one", {"a": random.randint(1, 2), "b": 0}, ()),
        Stage("left", {"a": 0, "b": 1}, ("one",)),
        Stage("right", {"a": random.randint(0, 1), "b": 0}, ("one",)),
    )
    return Switch("shared", (a, b), stages, DELAYS)


def program(random: Random, most_entries: int, widest: int) -> Program:
    """Two or three tables with random sizes and dependencies."""
    names = "abc"[: random.randint(2, 3)]
    tables = tuple(
        Table(
            name,
            (Key(f"{name}.key", random.randint(1, widest), random.choice((EXACT, EXACT, TERNARY))),),
            random.randint(1, most_entries),
            action_width=random.choice((0, 0, 3, 8)),
            modifies=frozenset(f"{name}.{k}" for k in range(random.randint(0, 2))),
        )
        for name in names
    )
    pairs = [(x, y) for i, x in enumerate(names) for y in names[i + 1 :]]
    kinds = (MATCH, ACTION, SUCCESSOR, REVERSE)
    kept = tuple(Dependency(x, y, random.choice(kinds)) for x, y in pairs if random.random() < 0.4)
    return Program("random", tables, kept)


def spelled(random: Random, as_json: bool) -> Program:
    """Two or three tables, written as P4 or as p4c's JSON, and read by the corresponding front end."""
    names = "abc"[: random.randint(2, 3)]
    kinds, widths = {}, {}
    for name in names:
        kinds[name], widths[name] = random.choice(("exact", "exact", "ternary")), random.randint(1, 12)
    sizes = {name: random.randint(1, 40) for name in names}
    data = {name: random.choice((0, 0, 3, 8)) for name in names}
    # Each table writes a field of its own, or one that a later table matches or writes too.
    written = {
        name: [random.choice((f"{to}_out", f"{to}_key")) for to in names if random.random() < 0.3] for name in names
    }
    if as_json:
        return program_file.read(json.dumps(_as_json(names, kinds, widths, sizes, data, written)).encode(), "tiny.json")
    return program_file.read(_as_p4(names, kinds, widths, sizes, data, written).encode(), "tiny.p4")


Told = dict[str, int]


def _as_p4(
    names: str, kinds: dict[str, str], widths: Told, sizes: Told, data: Told, written: dict[str, list[str]]
) -> str:
    fields = " ".join(f"bit<{widths[n]}> {n}_key; bit<{widths[n]}> {n}_out;" for n in names)
    body = ""
    for n in names:
        taken = f"bit<{data[n]}> d" if data[n] else ""
        sets = " ".join(f"m.{to} = 1;" for to in written[n])
        body += f"action {n}_a({taken}) {{ {sets} }}\n"
        body += (
            f"table {n} {{ key = {{ m.{n}_key: {kinds[n]}; }} actions = {{ {n}_a; NoAction; }} size = {sizes[n]}; }}\n"
        )
    applied = " ".join(f"{n}.apply();" for n in names)
    return f"""
        #include <v1model.p4>
        struct h_t {{ }} struct m_t {{ {fields} }}
        parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {{
            state start {{ transition accept; }}
        }}
        control C(inout h_t h, inout m_t m) {{ apply {{ }} }}
        control D(packet_out p, in h_t h) {{ apply {{ }} }}
        control E(inout h_t h, inout m_t m, inout standard_metadata_t s) {{ apply {{ }} }}
        control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {{ {body} apply {{ {applied} }} }}
        V1Switch(P(), C(), I(), E(), C(), D()) main;
    """


def _as_json(
    names: str, kinds: dict[str, str], widths: Told, sizes: Told, data: Told, written: dict[str, list[str]]
) -> dict[str, Any]:
    fields = [[f"{n}_{part}", widths[n], False] for n in names for part in ("key", "out")]
    actions: list[dict[str, Any]] = [{"name": "NoAction", "id": 0, "runtime_data": [], "primitives": []}]
    tables = []
    for k, n in enumerate(names):
        sets = [[{"type": "field", "value": ["m", to]}, {"type": "hexstr", "value": "0x1"}] for to in written[n]]
        taken = [{"name": "d", "bitwidth": data[n]}] if data[n] else []
        primitives = [{"op": "assign", "parameters": held} for held in sets]
        actions.append({"name": f"{n}_a", "id": k + 1, "runtime_data": taken, "primitives": primitives})
        after = names[k + 1] if k + 1 < len(names) else None
        key = {"match_type": kinds[n], "target": ["m", f"{n}_key"]}
        table = {
            "name": n,
            "key": [key],
            "max_size": sizes[n],
            "action_ids": [k + 1, 0],
            "actions": [f"{n}_a", "NoAction"],
        }
        tables.append(table | {"next_tables": {f"{n}_a": after, "NoAction": after}, "base_default_next": after})
    return {
        "header_types": [{"name": "m_t", "id": 0, "fields": fields}],
        "headers": [{"name": "m", "id": 0, "header_type": "m_t"}],
        "actions": actions,
        "pipelines": [{"name": "ingress", "init_table": "a", "tables": tables, "conditionals": []}],
    }


def best_by(made: Program, switch: Switch, objectives: Sequence[str]) -> dict[str, float | None]:
    """Smallest value of each objective over all placements; ``None`` if there is no placement."""
    least: dict[str, float | None] = dict.fromkeys(objectives)
    for rows in placements(made, switch):
        found = measure(made, switch, Placement(rows))
        for objective in objectives:
            value, known = value_of(found, objective), least[objective]
            least[objective] = value if known is None else min(known, value)
    return least


def placements(made: Program, switch: Switch) -> Iterator[tuple[Placed, ...]]:
    """All placements from which no unit, or row, can be removed."""
    if switch.shares:
        options = [list(_ranges(table, switch)) for table in made.tables]
    else:
        options = [list(_units(table, switch)) for table in made.tables]
    yield from _together(made, switch, options, (), 0)


def _together(
    made: Program, switch: Switch, options: list[list[tuple[Placed, ...]]], held: tuple[Placed, ...], k: int
) -> Iterator[tuple[Placed, ...]]:
    if k == len(options):
        yield held
        return
    for rows in options[k]:
        merged = held + rows
        if _ordered(made, switch, merged) and (
            _shares(switch, merged) if switch.shares else _room(made, switch, merged)
        ):
            yield from _together(made, switch, options, merged, k + 1)


def _units(table: Table, switch: Switch) -> Iterator[tuple[Placed, ...]]:
    """Every distribution of a table over whole blocks from which no unit can be removed."""
    per_stage = [list(_here(table, switch, s)) for s in range(len(switch.stages))]
    for chosen in product(*per_stage):
        rows = [row for part in chosen for row in part]
        if sum(r.entries for r in rows) < table.entries:
            continue
        smallest = min(r.entries // (r.blocks // r.unit) for r in rows)
        if sum(r.entries for r in rows) - smallest >= table.entries:
            continue
        yield tuple(rows) + tuple(_data(table, switch, rows))


def _here(table: Table, switch: Switch, stage: int) -> Iterator[tuple[Placed, ...]]:
    packed: list[tuple[Placed, ...]] = [()]
    rows: list[tuple[Placed, ...]] = [()]
    there = switch.stages[stage].blocks
    for memory in switch.memories:
        if table.kind not in memory.kinds:
            continue
        narrowest = ceil(table.width / memory.width)
        shapes = {(narrowest, memory.depth)}
        if memory.packing == PACKED:
            widest = lcm(table.width, memory.width) // memory.width
            for unit in range(narrowest, narrowest + memory.formats - 1):
                if unit <= max(widest, narrowest):
                    shapes.add((unit, unit * memory.width // table.width * memory.depth))
        for unit, entries in shapes:
            for count in range(1, there[memory.name] // unit + 1):
                row = Placed(table.name, stage, memory.name, MATCH_USE, count * unit, count * entries, unit)
                (packed if memory.packing == PACKED else rows).append((row,))
    for one, other in product(packed, rows):
        yield one + other


def _data(table: Table, switch: Switch, rows: list[Placed]) -> Iterator[Placed]:
    if not table.action_width:
        return
    memory = switch.memory[switch.overhead or ""]
    for stage in {r.stage for r in rows}:
        entries = sum(r.entries for r in rows if r.stage == stage)
        unit = ceil(table.action_width / memory.width)
        held = unit * memory.width // table.action_width * memory.depth
        units = ceil(entries / held)
        yield Placed(table.name, stage, memory.name, ACTION_USE, units * unit, units * held, unit)


def _room(made: Program, switch: Switch, rows: tuple[Placed, ...]) -> bool:
    for stage, described in enumerate(switch.stages):
        here = [r for r in rows if r.stage == stage]
        for memory in switch.memories:
            if sum(r.blocks for r in here if r.memory == memory.name) > described.blocks[memory.name]:
                return False
            matched = {r.table for r in here if r.memory == memory.name and r.use == MATCH_USE}
            bar = switch.crossbars[memory.name]
            if sum(ceil(made.by_name[t].width / bar.width) for t in matched) > bar.units:
                return False
        tables = {r.table for r in here}
        if len(tables) > (switch.tables_per_stage or 99):
            return False
        if sum(len(made.by_name[t].modifies) for t in tables) > (switch.fields_per_stage or 99):
            return False
        if sum(made.by_name[t].action_width for t in tables) > (switch.action_bits or 999):
            return False
    return True


def _ordered(made: Program, switch: Switch, rows: tuple[Placed, ...]) -> bool:
    where: dict[str, set[int]] = {}
    for row in rows:
        where.setdefault(row.table, set()).add(row.stage)
    return all(
        switch.allows(d.kind, i, j)
        for d in made.dependencies
        for i in where.get(d.before, ())
        for j in where.get(d.after, ())
    )


def _ranges(table: Table, switch: Switch) -> Iterator[tuple[Placed, ...]]:
    """Every distribution of a table over rows of shared blocks from which no row can be removed."""
    places = []
    for stage, described in enumerate(switch.stages):
        for memory in switch.memories:
            wide = ceil(table.width / memory.width)
            if table.kind in memory.kinds:
                for block in range(described.blocks[memory.name] - wide + 1):
                    places.append((stage, memory, block, wide))
    choices = []
    for stage, memory, block, wide in places:
        some: list[Placed | None] = [None]
        for first in range(memory.depth):
            for count in range(1, min(memory.depth - first, table.entries) + 1):
                some.append(Placed(table.name, stage, memory.name, MATCH_USE, wide, count, wide, block, first))
        choices.append(some)
    for chosen in product(*choices):
        rows = tuple(r for r in chosen if r)
        if rows and sum(r.entries for r in rows) == table.entries and _shares(switch, rows):
            yield rows


def _shares(switch: Switch, rows: tuple[Placed, ...]) -> bool:
    cells: set[tuple[int, str, int, int]] = set()
    tables: dict[tuple[int, str, int], set[str]] = {}
    for row in rows:
        for block in range(row.first_block or 0, (row.first_block or 0) + row.blocks):
            tables.setdefault((row.stage, row.memory, block), set()).add(row.table)
            for r in range(row.first_row or 0, (row.first_row or 0) + row.entries):
                if (row.stage, row.memory, block, r) in cells:
                    return False
                cells.add((row.stage, row.memory, block, r))
    return all(len(names) <= switch.memory[memory].tables_per_block for (_, memory, _), names in tables.items())
