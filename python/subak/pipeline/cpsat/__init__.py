"""The exact solver: OR-tools' CP-SAT over the constraint program of a placement."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ortools.sat.python import cp_model

from subak.pipeline.cpsat.model import Model
from subak.pipeline.cpsat.objective import minimize, scale
from subak.pipeline.cpsat.shared import Shared
from subak.pipeline.cpsat.whole import Whole
from subak.pipeline.cpsat.windows import Windows
from subak.pipeline.packing import Needs
from subak.pipeline.placement import Placement
from subak.pipeline.program import Program
from subak.pipeline.switch import Switch


class Found(NamedTuple):
    """What the solver came to."""

    status: str
    """``optimal``, ``feasible``, ``infeasible`` or ``unknown``."""
    placement: Placement | None
    bound: float | None
    """Nothing is better than this."""
    seconds: float


def solve(
    program: Program,
    switch: Switch,
    needs: Mapping[str, Needs],
    objective: str | None,
    *,
    start: Placement | None = None,
    time_limit: float = 60.0,
    workers: int | None = None,
    without: Collection[str] = (),
    depth: int | None = None,
) -> Found:
    """The best placement within ``depth`` by ``objective``, any one for ``None``; the search begins at ``start``.

    ``without`` leaves constraints out: dependencies, blocks, crossbar, action crossbar, tables, fields.
    """
    begun = time.monotonic()
    windows = Windows(program, switch, needs, depth or max(switch.depths) + 1, without)
    if windows.empty():
        return Found("infeasible", None, None, time.monotonic() - begun)
    model = Model(program, switch, needs, windows, without)
    whole, shared = Whole(model), Shared(model)
    _cover(model, whole, shared)
    if start:
        _hint(model, whole, shared, start)
    if objective:
        minimize(objective, model, whole, shared, start)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(time_limit - (time.monotonic() - begun), 0.1)
    solver.parameters.num_workers = workers or min(os.cpu_count() or 1, 8)
    solver.parameters.random_seed = 1
    status = solver.solve(model.cp)
    if status == cp_model.MODEL_INVALID:
        raise RuntimeError(f"the model is not valid: {model.cp.validate()}")
    names = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible", cp_model.INFEASIBLE: "infeasible"}
    placement = None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        placement = Placement((*whole.rows(solver), *shared.rows(solver)))
    bound = solver.best_objective_bound / scale(objective) if objective and placement else None
    return Found(names.get(status, "unknown"), placement, bound, time.monotonic() - begun)


def _cover(model: Model, whole: Whole, shared: Shared) -> None:
    """Every entry of every table has its place; where a table lies, it has some."""
    for table in model.program.tables:
        stages = model.windows.stages(table.name)
        held = [term for s in stages for term in (*whole.matched(table.name, s), *shared.matched(table.name, s))]
        model.cp.add(sum(entries * var for entries, var in held) >= table.entries)
        for s in stages:
            units = [var for _, var in (*whole.matched(table.name, s), *shared.matched(table.name, s))]
            model.cp.add(sum(units) >= model.here[table.name, s])


def _hint(model: Model, whole: Whole, shared: Shared, start: Placement) -> None:
    whole.hint(start.rows)
    shared.hint(start.rows)
    depths = model.switch.depths
    for (name, stage), here in model.here.items():
        model.cp.add_hint(here, stage in start.stages_of[name])
    for (name, depth), started in model.started.items():
        model.cp.add_hint(started, depths[start.stages_of[name][0]] <= depth)
    for (name, depth), finished in model.finished.items():
        model.cp.add_hint(finished, depths[start.stages_of[name][-1]] <= depth)
