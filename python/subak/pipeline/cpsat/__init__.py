"""The exact solver: a constraint program of the placement, solved by OR-tools' CP-SAT."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ortools.sat.python import cp_model

from subak.pipeline.cpsat.model import Model, OutOfTimeError
from subak.pipeline.cpsat.objective import expression, scale
from subak.pipeline.cpsat.shared import Shared
from subak.pipeline.cpsat.whole import Whole
from subak.pipeline.cpsat.windows import Windows
from subak.pipeline.packing import Needs
from subak.pipeline.placement import Placement
from subak.pipeline.program import Program
from subak.pipeline.switch import Switch

LEAST_SECONDS = 2.0
"""Time limit of each objective after the first, s. It is raised to the time of the first objective or to three times
the time of building the model, if that is longer, and cut to the time left."""
_SOLVED = (cp_model.OPTIMAL, cp_model.FEASIBLE)
_NAMES = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible", cp_model.INFEASIBLE: "infeasible"}


class Found(NamedTuple):
    """Result of the exact solver."""

    status: str
    """``optimal``, ``feasible``, ``infeasible`` or ``unknown``."""
    placement: Placement | None
    bound: float | None
    """Proven bound of the objective."""
    seconds: float
    then: tuple[tuple[str, bool], ...] = ()
    """Further objectives, and whether each is proven optimal."""


def solve(
    program: Program,
    switch: Switch,
    needs: Mapping[str, Needs],
    objective: str | None,
    *,
    then: Sequence[str] = (),
    start: Placement | None = None,
    time_limit: float = 60.0,
    workers: int | None = None,
    without: Collection[str] = (),
    depth: int | None = None,
) -> Found:
    """The best placement within ``depth`` by ``objective`` (``None``: any placement); the search starts from ``start``.

    Ties are broken by the objectives of ``then``, in order, while time lasts. ``without`` names constraints to omit:
    dependencies, blocks, crossbar, action crossbar, tables, fields, registers.
    """
    begun = time.monotonic()
    windows = Windows(program, switch, needs, depth or max(switch.depths) + 1, without)
    if windows.empty() or windows.least > windows.depth:
        return Found("infeasible", None, None, time.monotonic() - begun)
    # The solver slightly exceeds its time limit.
    until = begun + 0.95 * time_limit
    least = float(windows.least) if objective == "stages" else None
    known = objective == "stages" and start is not None and windows.least == windows.depth
    if known:
        # The start already has the smallest number of stages that the windows allow.
        seconds = time.monotonic() - begun
    try:
        search = _Search(Model(program, switch, needs, windows, without, until), until, workers)
    except OutOfTimeError:
        if known:
            return Found("optimal", start, least, seconds)
        return Found("unknown", None, least, time.monotonic() - begun)
    built = time.monotonic() - begun
    if start:
        search.hint(start)
    if known:
        search.placement, status, bound = start, "optimal", least
    else:
        status, bound = search.best(objective, start)
        seconds = time.monotonic() - begun
    proven = []
    if status == "optimal":
        for other in (o for o in then if o != objective):
            patience = min(max(LEAST_SECONDS, seconds, 3 * built), until - time.monotonic())
            if patience <= 0:
                break
            least = search.then(other, patience)
            if least is None:
                break
            proven.append((other, least))
    value = bound / scale(objective) if objective and bound is not None else least
    if value is not None and least is not None:
        value = max(value, least)
    return Found(status, search.placement, value, seconds, tuple(proven))


class _Search:
    """A model that is solved for one objective after another."""

    def __init__(self, model: Model, until: float, workers: int | None) -> None:
        self.model, self.until = model, until
        self.whole, self.shared = Whole(model), Shared(model)
        self.placement: Placement | None = None
        _cover(model, self.whole, self.shared)
        self._solver = cp_model.CpSolver()
        self._solver.parameters.num_workers = workers or min(os.cpu_count() or 1, 8)
        self._solver.parameters.random_seed = 1
        self._sum: cp_model.LinearExprT | None = None
        self._value = 0
        self._known: list[int] = []
        """Values of all variables in the best solution."""

    def hint(self, start: Placement) -> None:
        """Starts the search from a placement."""
        cp, depths = self.model.cp, self.model.switch.depths
        self.whole.hint(start.rows)
        self.shared.hint(start.rows)
        for (name, stage), here in self.model.here.items():
            cp.add_hint(here, stage in start.stages_of[name])
        for (name, depth), started in self.model.started.items():
            cp.add_hint(started, depths[start.stages_of[name][0]] <= depth)
        for (name, depth), finished in self.model.finished.items():
            cp.add_hint(finished, depths[start.stages_of[name][-1]] <= depth)

    def best(self, objective: str | None, start: Placement | None) -> tuple[str, float | None]:
        """Minimizes an objective; returns the solver's status and bound, in the model's units."""
        if objective:
            self._sum = expression(objective, self.model, self.whole, self.shared, start)
            self.model.cp.minimize(self._sum)
        status = self._run(self.until - time.monotonic())
        bound = self._solver.best_objective_bound if objective and self.placement else None
        return _NAMES.get(status, "unknown"), bound

    def then(self, objective: str, patience: float) -> bool | None:
        """Minimizes another objective, with the values of the previous ones fixed.

        Returns whether the minimum is proven; ``None`` if nothing was found in time.
        """
        cp = self.model.cp
        if self._sum is not None:
            cp.add(self._sum <= self._value)
            cp.clear_hints()  # type: ignore[no-untyped-call]
            for i, known in enumerate(self._known):
                cp.add_hint(cp.get_int_var_from_proto_index(i), known)
        self._sum = expression(objective, self.model, self.whole, self.shared, self.placement)
        cp.clear_objective()  # type: ignore[no-untyped-call]
        cp.minimize(self._sum)
        status = self._run(min(patience, self.until - time.monotonic()))
        return status == cp_model.OPTIMAL if status in _SOLVED else None

    def _run(self, seconds: float) -> cp_model.CpSolverStatus:
        self._solver.parameters.max_time_in_seconds = max(seconds, 0.05)
        status = self._solver.solve(self.model.cp)
        if status == cp_model.MODEL_INVALID:
            raise RuntimeError(f"the model is not valid: {self.model.cp.validate()}")
        if status in _SOLVED:
            self.placement = Placement((*self.whole.rows(self._solver), *self.shared.rows(self._solver)))
            self._known = list(self._solver.response_proto.solution)
            self._value = round(self._solver.objective_value)
        return status


def _cover(model: Model, whole: Whole, shared: Shared) -> None:
    """Adds constraints: all entries of each table are placed, some of them in each stage with the table."""
    for table in model.program.tables:
        stages = model.windows.stages(table.name)
        held = [term for s in stages for term in (*whole.matched(table.name, s), *shared.matched(table.name, s))]
        model.cp.add(sum(entries * var for entries, var in held) >= table.entries)
        for s in stages:
            units = [var for _, var in (*whole.matched(table.name, s), *shared.matched(table.name, s))]
            model.cp.add(sum(units) >= model.here[table.name, s])
