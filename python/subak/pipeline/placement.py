"""Placements: the assignment of tables to stages and memories, and its measures."""

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
    """Blocks of one memory in one stage that a table uses for one purpose."""

    table: str
    stage: int
    """Index of the stage from 0, in the switch's order."""
    memory: str
    use: str
    blocks: int
    """Number of whole blocks; in shared memory, the blocks that a row of the table spans."""
    entries: int
    """Number of entries that fit, of a match or of its overhead data; for a register, number of cells."""
    unit: int = 1
    """Number of adjacent blocks over which one row of entries extends."""
    first_block: int | None = None
    """Index of the first block in shared memory."""
    first_row: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON; stages count from 1."""
        row: dict[str, Any] = {"table": self.table, "stage": self.stage + 1, "memory": self.memory, "use": self.use}
        row |= {"blocks": self.blocks, "entries": self.entries, "unit": self.unit}
        if self.first_block is not None:
            row |= {"first_block": self.first_block, "first_row": self.first_row}
        return row


@dataclass(frozen=True)
class Placement:
    """All rows (memory assignments) of a placement."""

    rows: tuple[Placed, ...]

    @cached_property
    def stages_of(self) -> dict[str, list[int]]:
        """Stages in which each table matches or keeps its registers, in order."""
        found: dict[str, set[int]] = {}
        for row in self.rows:
            found.setdefault(row.table, set()).add(row.stage)
        return {table: sorted(stages) for table, stages in found.items()}

    def of(self, use: str) -> list[Placed]:
        """Rows with the purpose ``use``: match, action data, statistics or registers."""
        return [row for row in self.rows if row.use == use]


@dataclass(frozen=True)
class Measures:
    """Stages, latency, power and blocks of a placement."""

    stages: int
    """Number of stages up to the last used one; parallel stages count once."""
    latency_cycles: int
    """Cycles from the start of the first stage to the start of the switch's last stage, used or not."""
    power_w: float
    blocks: int
    """Number of used blocks; a shared block counts once."""
    starts: tuple[int, ...] = field(default=())
    """Start cycle of each stage, in the switch's order."""


def measure(program: Program, switch: Switch, placement: Placement) -> Measures:
    """Stages, latency, power and blocks of a valid placement."""
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
    """Start cycle of each stage: one step after its predecessors, and after the dependencies of its tables."""
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

    ``text``: all assigned blocks (equation 6.6). ``release``: for packed memory and match overhead, one unit per table
    and stage; for memory with one entry per row, every unit, times the ratio of its blocks' width to the matched width.
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
    """Number of used blocks; a shared block counts once."""
    whole = sum(row.blocks for row in placement.rows if switch.memory[row.memory].packing != SHARED)
    return whole + len(set(shared_blocks(switch, placement.rows)))


def shared_blocks(switch: Switch, rows: Iterable[Placed]) -> list[tuple[int, str, int]]:
    """Stage, memory and index of each shared block that the rows use."""
    return [
        (row.stage, row.memory, block)
        for row in rows
        if switch.memory[row.memory].packing == SHARED and row.first_block is not None
        for block in range(row.first_block, row.first_block + row.blocks)
    ]


def read_placement(node: Node) -> Placement:
    """The placement in a JSON document: a list of rows, or a result that contains one."""
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
