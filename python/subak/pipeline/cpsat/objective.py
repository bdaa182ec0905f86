"""What the constraint program makes small: stages, latency, power or blocks (perc-thesis, section 6.4.2)."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, gcd

from ortools.sat.python import cp_model

from subak.pipeline.cpsat.model import Literal, Model
from subak.pipeline.cpsat.shared import Shared
from subak.pipeline.cpsat.whole import Whole
from subak.pipeline.packing import Needs
from subak.pipeline.placement import Placement, start_cycles
from subak.pipeline.sorting import capacity
from subak.pipeline.switch import PACKED

OBJECTIVES = ("stages", "latency", "power", "blocks")
MICRO = 1e6
"""Power is counted in whole microwatts."""


def minimize(objective: str, model: Model, whole: Whole, shared: Shared, start: Placement | None) -> None:
    """Adds the objective, and the hint that goes with it."""
    if objective == "stages":
        _stages(model)
    elif objective == "latency":
        _latency(model, start)
    elif objective == "power":
        _power(model, whole)
    else:
        _blocks(model, whole, shared)


def _stages(model: Model) -> None:
    cp, depths = model.cp, model.switch.depths
    used = [cp.new_bool_var(f"used {depth}") for depth in range(model.windows.depth)]
    for earlier, later in pairwise(used):
        cp.add_implication(later, earlier)
    for (_, stage), here in model.here.items():
        cp.add_implication(here, used[depths[stage]])
    for depth in range(min(model.windows.least, len(used))):
        cp.add(used[depth] == 1)
    cp.minimize(sum(used))


def _latency(model: Model, start: Placement | None) -> None:
    """Starts of stages, and of the first and last stage of each table that others wait for."""
    cp, switch = model.cp, model.switch
    index = {stage.name: i for i, stage in enumerate(switch.stages)}
    cycles = [switch.delays[d.kind].cycles for d in model.program.dependencies]
    latest = max(switch.depths) * switch.step + sum(cycles)
    begins = [cp.new_int_var(depth * switch.step, latest, f"begins {i}") for i, depth in enumerate(switch.depths)]
    end = cp.new_int_var(0, latest, "end")
    for i, stage in enumerate(switch.stages):
        cp.add(end >= begins[i])
        for before in stage.after:
            cp.add(begins[i] >= begins[index[before]] + switch.step)
    first: dict[str, cp_model.IntVar] = {}
    last: dict[str, cp_model.IntVar] = {}
    for d in model.program.dependencies:
        if switch.delays[d.kind].cycles and "dependencies" not in model.without:
            _waits(model, d.before, last, begins, latest, opens=False)
            _waits(model, d.after, first, begins, latest, opens=True)
            cp.add(first[d.after] >= last[d.before] + switch.delays[d.kind].cycles)
    for name, ends in last.items():
        cp.add(ends <= end)
        if name in first:
            cp.add(first[name] <= ends)
    for begin in first.values():
        cp.add(begin <= end)
    if start:
        hints = start_cycles(model.program, switch, start)
        for var, value in zip(begins, hints, strict=True):
            cp.add_hint(var, value)
        cp.add_hint(end, max(hints))
        for name, var in last.items():
            cp.add_hint(var, hints[start.stages_of[name][-1]])
        for name, var in first.items():
            cp.add_hint(var, hints[start.stages_of[name][0]])
    cp.minimize(end)


def _waits(
    model: Model, name: str, times: dict[str, cp_model.IntVar], begins: list[cp_model.IntVar], latest: int, opens: bool
) -> None:
    if name in times:
        return
    times[name] = model.cp.new_int_var(0, latest, f"{'first' if opens else 'last'} {name}")
    for stage in model.windows.stages(name):
        here = model.here[name, stage]
        bound = times[name] <= begins[stage] if opens else times[name] >= begins[stage]
        model.cp.add(bound).only_enforce_if(here)


def _power(model: Model, whole: Whole) -> None:
    watts = {m.name: m.watts * MICRO for m in model.switch.memories}
    costs: dict[str, list[tuple[int, Literal]]] = {t.name: [] for t in model.program.tables}
    for (name, stage, memory, unit), chosen in whole.chosen.items():
        if model.switch.memory[memory].packing == PACKED:
            costs[name].append((round(watts[memory] * unit.blocks), chosen))
        else:
            costs[name].append((row_cost(model, name, memory, unit.blocks), whole.units[name, stage, memory, unit]))
    overhead = model.switch.overhead
    for (name, stage, _), (unit, _) in whole.beside.items():
        if overhead:
            costs[name].append((round(watts[overhead] * unit.blocks), model.here[name, stage]))
    for (name, _), here in model.here.items():
        registers = model.needs[name].register_blocks
        if registers and overhead:
            costs[name].append((round(watts[overhead] * len(registers)), here))
    powers = []
    for name, terms in costs.items():
        most = sum(c * var.proto.domain[1] for c, var in terms)
        least = cheapest(model, name)
        powers.append(model.cp.new_int_var(least, max(least, most), f"power {name}"))
        model.cp.add(powers[-1] == sum(c * var for c, var in terms))
    model.cp.minimize(sum(powers))


def row_cost(model: Model, name: str, memory: str, blocks: int) -> int:
    """Microwatts of a unit of memory with an entry a row."""
    described = model.switch.memory[memory]
    width = max(model.program.by_name[name].width, 1)
    return round(described.watts * MICRO * blocks * described.width / width)


def cheapest(model: Model, name: str) -> int:
    """A lower bound on the microwatts of a table: each stage empty, each of its options as often as wanted."""
    needs, table = model.needs[name], model.program.by_name[name]
    if needs.register_blocks or model.switch.shares or model.without:
        return 0
    options = _options(model, name, needs, table.entries)
    step = gcd(*(held for held, _ in options))
    best = [0]
    for k in range(1, ceil(table.entries / step) + 1):
        best.append(min(cost + best[max(k - held // step, 0)] for held, cost in options))
    return best[-1]


def _options(model: Model, name: str, needs: Needs, entries: int) -> list[tuple[int, int]]:
    """Entries and microwatts of one stage's worth of a format, or of one row unit."""
    switch, found = model.switch, []
    blocks = {m.name: max(s.blocks.get(m.name, 0) for s in switch.stages) for m in switch.memories}
    beside = switch.memory[switch.overhead].watts * MICRO if switch.overhead else 0.0
    overhead = sum(round(beside * one.blocks) for one in needs.overheads)
    for memory, formats in needs.formats.items():
        for unit in formats:
            if switch.memory[memory].packing == PACKED:
                held, _ = capacity(unit, memory, blocks, needs, switch, entries)
                if held:
                    found.append((held, round(switch.memory[memory].watts * MICRO * unit.blocks) + overhead))
            else:
                found.append((unit.entries, row_cost(model, name, memory, unit.blocks)))
    return found or [(entries, 0)]


def _blocks(model: Model, whole: Whole, shared: Shared) -> None:
    terms: list[cp_model.LinearExprT] = [unit.blocks * var for (_, _, _, unit), var in whole.units.items()]
    terms += [unit.blocks * var for unit, var in whole.beside.values()]
    for (name, _), here in model.here.items():
        terms.append(sum(model.needs[name].register_blocks) * here)
    model.cp.minimize(sum([*terms, *shared.used()]))


def scale(objective: str) -> float:
    """What one of the objective's units is in the model."""
    return MICRO if objective == "power" else 1.0
