"""Objectives of the constraint program: stages, latency, power or blocks (PERC thesis, section 6.4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from ortools.sat.python import cp_model

from subak.pipeline.cpsat.cheapest import cheapest
from subak.pipeline.cpsat.model import Model
from subak.pipeline.cpsat.shared import Shared
from subak.pipeline.cpsat.whole import Whole
from subak.pipeline.packing import Needs, Unit
from subak.pipeline.placement import Placement, start_cycles
from subak.pipeline.switch import PACKED, RELEASE

OBJECTIVES = ("stages", "latency", "power", "blocks")
MICRO = 1e6
"""Microwatts in a watt: the model counts power in whole microwatts."""


def expression(
    objective: str, model: Model, whole: Whole, shared: Shared, start: Placement | None
) -> cp_model.LinearExprT:
    """Expression of an objective.

    Adds the variables and constraints it needs to the model, with hints from ``start``.
    """
    if objective == "stages":
        return _stages(model)
    if objective == "latency":
        return _latency(model, start)
    if objective == "blocks":
        whole_blocks = _weighed(model, whole, {m.name: 1 for m in model.switch.memories}, start)
        return cp_model.LinearExpr.sum([whole_blocks, *shared.used()])
    if model.switch.power == RELEASE:
        return _woken(model, whole)
    return _weighed(model, whole, {m.name: round(m.watts * MICRO) for m in model.switch.memories}, start)


def _stages(model: Model) -> cp_model.LinearExprT:
    cp, depths = model.cp, model.switch.depths
    used = [cp.new_bool_var(f"used {depth}") for depth in range(model.windows.depth)]
    for earlier, later in pairwise(used):
        cp.add_implication(later, earlier)
    for (_, stage), here in model.here.items():
        cp.add_implication(here, used[depths[stage]])
    for depth in range(min(model.windows.least, len(used))):
        cp.add(used[depth] == 1)
    return sum(used)


def _latency(model: Model, start: Placement | None) -> cp_model.LinearExprT:
    """Adds start cycles of the stages, and of the first and last stage of each dependent table; returns the latest."""
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
            cp.add(ends >= first[name] + (model.windows.spans[name] - 1) * switch.step)
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
    return end


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


def _weighed(model: Model, whole: Whole, weights: dict[str, int], start: Placement | None) -> cp_model.LinearExprT:
    """Sum over whole blocks, weighted by memory: power by equation 6.6, or number of blocks."""
    costs: dict[str, list[tuple[int, cp_model.IntVar]]] = {t.name: [] for t in model.program.tables}
    for (name, _, memory, unit), units in whole.units.items():
        costs[name].append((weights[memory] * unit.blocks, units))
    beside = weights[model.switch.overhead] if model.switch.overhead else 0
    for (name, _, _), (unit, units) in whole.beside.items():
        costs[name].append((beside * unit.blocks, units))
    for (name, _), here in model.here.items():
        if held := sum(model.needs[name].register_blocks):
            costs[name].append((beside * held, here))

    def least(name: str) -> int:
        def price(memory: str, unit: Unit, units: int) -> int:
            return weights[memory] * unit.blocks * units

        return cheapest(model, name, price, lambda needs, entries: beside * needs.overhead_blocks(entries))

    known = dict.fromkeys(costs, 0)
    for row in start.rows if start else ():
        known[row.table] += weights[row.memory] * row.blocks
    return _summed(model, costs, least, known if start else {})


def _woken(model: Model, whole: Whole) -> cp_model.LinearExprT:
    """Power as in the code released with the thesis: packed memory and match overhead, one unit per table and stage."""
    watts = {m.name: m.watts * MICRO for m in model.switch.memories}
    costs: dict[str, list[tuple[int, cp_model.IntVar]]] = {t.name: [] for t in model.program.tables}
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
        registers = sum(blocks > 0 for blocks in model.needs[name].register_blocks)
        if registers and overhead:
            costs[name].append((round(watts[overhead] * registers), here))

    def least(name: str) -> int:
        def price(memory: str, unit: Unit, units: int) -> int:
            if model.switch.memory[memory].packing == PACKED:
                return round(watts[memory] * unit.blocks)
            return row_cost(model, name, memory, unit.blocks) * units

        def around(needs: Needs, entries: int) -> int:
            return sum(round(watts[overhead] * one.blocks) for one in needs.overheads) if overhead else 0

        return cheapest(model, name, price, around)

    return _summed(model, costs, least, {})


def _summed(
    model: Model,
    costs: dict[str, list[tuple[int, cp_model.IntVar]]],
    least: Callable[[str], int],
    known: Mapping[str, int],
) -> cp_model.LinearExprT:
    """Sum over all tables, with a lower bound for each table, since the solver cannot derive it."""
    totals = []
    for name, terms in costs.items():
        most, bound = sum(c * var.proto.domain[1] for c, var in terms), least(name)
        totals.append(model.cp.new_int_var(bound, max(bound, most), f"cost {name}"))
        model.cp.add(totals[-1] == sum(c * var for c, var in terms))
        if name in known:
            model.cp.add_hint(totals[-1], known[name])
    return sum(totals)


def row_cost(model: Model, name: str, memory: str, blocks: int) -> int:
    """Power of a unit of memory with one entry per row, microwatts."""
    described = model.switch.memory[memory]
    width = max(model.program.by_name[name].width, 1)
    return round(described.watts * MICRO * blocks * described.width / width)


def scale(objective: str) -> float:
    """Factor from the objective's unit to that of the model."""
    return MICRO if objective == "power" else 1.0
