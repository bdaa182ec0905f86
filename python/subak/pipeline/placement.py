"""What a solver answers: which table lies where, and what that comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from subak.pipeline.program import Program
from subak.pipeline.reading import Node
from subak.pipeline.switch import ROWS, SHARED, TEXT, Switch

MATCH_USE, ACTION_USE, STATISTICS_USE, REGISTER_USE = "match", "action", "statistics", "register"
USES = (MATCH_USE, ACTION_USE, STATISTICS_USE, REGISTER_USE)


@dataclass(frozen=True)
class Placed:
    """Blocks of one memory in one stage that a table has for one use."""

    table: str
    stage: int
    """From 0, in the switch's order."""
    memory: str
    use: str
    blocks: int
    """Whole blocks; in shared memory, the blocks that a row of the table spans."""
    entries: int
    """Entries that fit: of a match, or of the data that goes with one; cells of a register."""
    unit: int = 1
    """Blocks strung together for one row."""
    first_block: int | None = None
    """In shared memory."""
    first_row: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON has it; stages count from 1."""
        row: dict[str, Any] = {"table": self.table, "stage": self.stage + 1, "memory": self.memory, "use": self.use}
        row |= {"blocks": self.blocks, "entries": self.entries, "unit": self.unit}
        if self.first_block is not None:
            row |= {"first_block": self.first_block, "first_row": self.first_row}
        return row


@dataclass(frozen=True)
class Placement:
    """All that is placed."""

    rows: tuple[Placed, ...]

    @cached_property
    def stages_of(self) -> dict[str, list[int]]:
        """The stages where each table matches, or keeps its registers, in order."""
        found: dict[str, set[int]] = {}
        for row in self.rows:
            found.setdefault(row.table, set()).add(row.stage)
        return {table: sorted(stages) for table, stages in found.items()}

    def of(self, use: str) -> list[Placed]:
        """The rows of one use."""
        return [row for row in self.rows if row.use == use]


@dataclass(frozen=True)
class Measures:
    """What a placement comes to."""

    stages: int
    """Up to the last one used; stages side by side count once."""
    latency_cycles: int
    """From the start of the first stage to that of the last, used or not."""
    power_w: float
    blocks: int
    """In use; a shared block counts once."""
    starts: tuple[int, ...] = field(default=())
    """Cycle in which each stage starts."""


def measure(program: Program, switch: Switch, placement: Placement) -> Measures:
    """Stages, latency, power and blocks of a placement that is valid."""
    starts = start_cycles(program, switch, placement)
    used = {row.stage for row in placement.rows}
    return Measures(
        stages=max((switch.depths[s] for s in used), default=-1) + 1,
        latency_cycles=max(starts, default=0),
        power_w=power(program, switch, placement),
        blocks=blocks_used(switch, placement),
        starts=tuple(starts),
    )


def start_cycles(program: Program, switch: Switch, placement: Placement) -> list[int]:
    """The cycle in which each stage starts: a step after those before it, and after what its tables wait for."""
    index = {stage.name: i for i, stage in enumerate(switch.stages)}
    waits: list[list[tuple[int, int]]] = [[(index[b], switch.step) for b in s.after] for s in switch.stages]
    for d in program.dependencies:
        cycles = switch.delays[d.kind].cycles
        for i in placement.stages_of.get(d.before, []):
            for j in placement.stages_of.get(d.after, []):
                if j in switch.reaches[i]:
                    waits[j].append((i, cycles))
    starts: list[int] = []
    for wait in waits:
        starts.append(max((starts[i] + cycles for i, cycles in wait), default=0))
    return starts


def power(program: Program, switch: Switch, placement: Placement) -> float:
    """Power of the memories, W.

    ``text``: of all blocks that are assigned (equation 6.6). ``release``: of packed memory and of what lies beside a
    match, of one unit a table and stage; of memory with an entry a row, of every unit, times the width of its blocks
    over the width that is matched.
    """
    if switch.power == TEXT:
        return sum(switch.memory[row.memory].watts * row.blocks for row in placement.rows)
    watts = 0.0
    for row in placement.rows:
        memory = switch.memory[row.memory]
        if row.use == MATCH_USE and memory.packing == ROWS:
            width = max(program.by_name[row.table].width, 1)
            watts += memory.watts * (row.blocks // row.unit) * (row.unit * memory.width / width)
        else:
            watts += memory.watts * row.unit
    return watts


def blocks_used(switch: Switch, placement: Placement) -> int:
    """Blocks in use."""
    whole = sum(row.blocks for row in placement.rows if switch.memory[row.memory].packing != SHARED)
    return whole + len(set(shared_blocks(switch, placement.rows)))


def shared_blocks(switch: Switch, rows: Iterable[Placed]) -> list[tuple[int, str, int]]:
    """Stage, memory and number of each shared block that the rows touch."""
    return [
        (row.stage, row.memory, block)
        for row in rows
        if switch.memory[row.memory].packing == SHARED and row.first_block is not None
        for block in range(row.first_block, row.first_block + row.blocks)
    ]


def read_placement(node: Node) -> Placement:
    """The placement in a JSON document: its list of rows, or an answer with one."""
    if isinstance(node.value, dict):
        told = node.mapping()
        if "placement" not in told:
            raise node.error('"placement" is missing', "give what `subak fit --json` printed, or its list of rows")
        node = told["placement"]
    return Placement(tuple(_row(one) for one in node.items()))


def _row(node: Node) -> Placed:
    keys = ("table", "stage", "memory", "blocks", "entries")
    told = node.mapping((*keys, "use", "unit", "first_block", "first_row"), keys)
    return Placed(
        table=told["table"].text(),
        stage=told["stage"].whole(1) - 1,
        memory=told["memory"].text(),
        use=told["use"].one_of(USES) if "use" in told else MATCH_USE,
        blocks=told["blocks"].whole(1),
        entries=told["entries"].whole(),
        unit=told["unit"].whole(1) if "unit" in told else 1,
        first_block=told["first_block"].whole() if "first_block" in told else None,
        first_row=told["first_row"].whole() if "first_row" in told else None,
    )
