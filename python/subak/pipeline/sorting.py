"""Orders in which the greedy solvers place tables (PERC thesis, section 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from subak.pipeline import graph
from subak.pipeline.hashing import reference_order
from subak.pipeline.packing import Needs, Unit
from subak.pipeline.program import Dependency, Program, Table
from subak.pipeline.switch import Switch

METRICS = ("ffd", "ffl", "ffls", "mcf")


def sorted_tables(
    metric: str, program: Program, switch: Switch, needs: Mapping[str, Needs], reference: bool
) -> list[str]:
    """Names of the tables by ``metric``, largest first.

    Ties in the order of the program or, with ``reference``, in that of the published runs.
    """
    value = _metric(metric, program, switch, needs)
    names = reference_order(program, metric) if reference else [table.name for table in program.tables]
    return sorted(names, key=value, reverse=True)


def _metric(
    metric: str, program: Program, switch: Switch, needs: Mapping[str, Needs]
) -> Callable[[str], tuple[float, ...]]:
    if metric == "ffd":
        return lambda name: (_limiting(program.by_name[name], switch, needs[name]),)
    levels = _levels(program, switch)
    if metric == "ffl":
        return lambda name: (levels[name],)
    if metric == "ffls":
        alone = {name: _stages_alone(program.by_name[name], switch, needs[name]) for name in needs}
        paths = graph.longest_from(program, lambda d: _separate(d, switch), lambda name: alone[name])
        return lambda name: (paths[name].length,)
    stages = {name: _stages_possible(needs[name], levels[name], switch) for name in needs}
    return lambda name: (-stages[name], program.by_name[name].width)


def _separate(dependency: Dependency, switch: Switch) -> int:
    return int(switch.delays[dependency.kind].separate)


def _levels(program: Program, switch: Switch) -> dict[str, int]:
    """Number of stages required after each table by the tables that depend on it."""
    paths = graph.longest_from(program, lambda d: _separate(d, switch))
    return {name: path.length for name, path in paths.items()}


def _limiting(table: Table, switch: Switch, needs: Needs) -> float:
    """FFD: the largest fraction of a stage's crossbars that the table uses."""
    shares = [needs.subunits[m] / switch.crossbars[m].units for m in needs.formats if m in switch.crossbars]
    if switch.action_bits:
        shares.append(table.action_width / switch.action_bits)
    return max(shares, default=float(table.width))


def _stages_possible(needs: Needs, level: int, switch: Switch) -> int:
    """MCF: number of stages that have memory for the table and enough stages after them."""
    last = max(switch.depths) - level
    return sum(
        depth <= last and any(stage.blocks[m] for m in needs.formats)
        for stage, depth in zip(switch.stages, switch.depths, strict=True)
    )


def _stages_alone(table: Table, switch: Switch, needs: Needs) -> int:
    """FFLS: number of stages that the table fills if it has the first ones exclusively."""
    left, filled = table.entries, 0
    blocks = switch.stages[0].blocks
    while True:
        free = dict(blocks)
        before = left
        for memory, formats in needs.formats.items():
            left -= min(left, most(formats, memory, free, needs, switch, left))
            if left == 0:
                return filled
        if left == before:
            return len(switch.stages)
        filled += 1


def most(formats: tuple[Unit, ...], memory: str, free: dict[str, int], needs: Needs, switch: Switch, left: int) -> int:
    """Number of entries that fit in the free blocks; subtracts the blocks that they use from ``free``."""
    best = max((capacity(unit, memory, free, needs, switch, left) for unit in formats), key=lambda c: c[0])
    entries, blocks = best
    free[memory] -= blocks
    if switch.overhead:
        free[switch.overhead] -= needs.overhead_blocks(entries)
    return entries


def capacity(
    unit: Unit, memory: str, free: Mapping[str, int], needs: Needs, switch: Switch, left: int
) -> tuple[int, int]:
    """Number of entries, at most ``left`` rounded up to a unit, that fit in units of this format, and their blocks."""
    units = min(free[memory] // unit.blocks, -(-left // unit.entries))
    while units > 0:
        beside = needs.overhead_blocks(units * unit.entries) if switch.overhead else 0
        match = units * unit.blocks
        if beside + (match if memory == switch.overhead else 0) <= (free[switch.overhead] if switch.overhead else 0):
            return units * unit.entries, match
        units -= 1
    return 0, 0
