"""Places a program on a switch with the chosen solver, and validates the placement."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from subak.errors import InputError
from subak.pipeline import greedy
from subak.pipeline.packing import Needs, NeverFitsError, needs
from subak.pipeline.placement import Measures, Placement, measure
from subak.pipeline.program import Program
from subak.pipeline.sorting import METRICS
from subak.pipeline.switch import Switch
from subak.pipeline.validate import violations

if TYPE_CHECKING:
    from subak.pipeline.cpsat import Found

OBJECTIVES = ("stages", "latency", "power", "blocks")
GREEDY = tuple(metric + variant for metric in METRICS for variant in greedy.VARIANTS)
SOLVERS = ("cp-sat", *GREEDY)


@dataclass(frozen=True)
class Answer:
    """Result of a solver, after validation."""

    program: Program
    switch: Switch
    solver: str
    objective: str
    status: str
    """``optimal``, ``feasible``, ``infeasible``, or ``unknown`` if the time limit came before any result; ``failed``
    for a greedy solver that found no placement."""
    placement: Placement | None = None
    measures: Measures | None = None
    bound: float | None = None
    """Proven bound of the objective."""
    seconds: float = 0.0
    """Time until the objective was decided or the time limit was reached, s; without the further objectives."""
    why: str = ""
    """Why a greedy solver found no placement."""
    wrong: tuple[str, ...] = ()
    """Violations found by the validator. Only ``reference`` causes some, since it counts room as the published runs
    did."""
    started_from: str = ""
    """Greedy solver whose placement the exact solver started from."""
    then: tuple[tuple[str, bool], ...] = ()
    """Further objectives, and whether each is proven optimal."""

    @property
    def fits(self) -> bool:
        """Whether there is a valid placement."""
        return self.placement is not None and not self.wrong

    @property
    def value(self) -> float | None:
        """Value of the objective."""
        return value_of(self.measures, self.objective) if self.measures else None

    @property
    def gap(self) -> float | None:
        """Relative difference between the value and its bound."""
        if self.value is None or self.bound is None:
            return None
        return max(self.value - self.bound, 0.0) / self.value if self.value else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The document that ``subak fit --json`` prints."""
        m = self.measures
        document: dict[str, Any] = {
            "schema": 1,
            "program": self.program.name,
            "switch": self.switch.name,
            "solver": self.solver,
            "objective": self.objective,
            "status": self.status,
            "stages": m.stages if m else None,
            "latency_cycles": m.latency_cycles if m else None,
            "power_w": m.power_w if m else None,
            "blocks": m.blocks if m else None,
            "bound": self.bound,
            "gap": self.gap,
            "valid": self.fits,
            "violations": list(self.wrong),
            "then": [
                {"objective": name, "value": value_of(m, name), "proven": proven} for name, proven in self.then if m
            ],
            "power_model": self.switch.power,
            "notes": list(self.program.notes),
            "placement": [row.to_dict() for row in self.placement.rows] if self.placement else [],
            "seconds": self.seconds,
        }
        if self.why:
            document["why"] = self.why
        if self.started_from:
            document["started_from"] = self.started_from
        return document


def value_of(measures: Measures, objective: str) -> float:
    """The value of the measure that ``objective`` names."""
    named = {
        "stages": measures.stages,
        "latency": measures.latency_cycles,
        "power": measures.power_w,
        "blocks": measures.blocks,
    }
    return named[objective]


def fit(
    program: Program,
    switch: Switch,
    objective: str | None = None,
    solver: str = "cp-sat",
    *,
    time_limit: float = 60.0,
    workers: int | None = None,
    reference: bool = False,
    without: Collection[str] = (),
) -> Answer:
    """Places ``program`` on ``switch``.

    ``reference`` makes greedy solvers break ties and count room as the published runs did.
    """
    wanted = objective or ("blocks" if switch.shares else "stages")
    if wanted not in OBJECTIVES:
        raise InputError(None, "--objective", f'"{wanted}" is none', f"choose one of: {', '.join(OBJECTIVES)}")
    if solver not in SOLVERS:
        raise InputError(None, "--solver", f'"{solver}" is none', f"choose one of: {', '.join(SOLVERS)}")
    begun = time.monotonic()
    try:
        asked = needs(program, switch)
    except NeverFitsError as error:
        return Answer(program, switch, solver, wanted, "infeasible", why=str(error))
    if solver == "cp-sat":
        return _exact(program, switch, asked, wanted, begun + time_limit, workers, without)
    return _greedy(program, switch, asked, wanted, solver, begun + time_limit, reference)


def _greedy(
    program: Program,
    switch: Switch,
    asked: Mapping[str, Needs],
    objective: str,
    solver: str,
    until: float,
    reference: bool = False,
) -> Answer:
    begun = time.monotonic()
    metric, dash, variant = solver.partition("-")
    found = greedy.place(program, switch, asked, metric, dash + variant, reference, until)
    seconds = time.monotonic() - begun
    if isinstance(found, greedy.Failed):
        return Answer(program, switch, solver, objective, "failed", seconds=seconds, why=found.why)
    wrong = tuple(str(v) for v in violations(program, switch, found))
    measured = measure(program, switch, found)
    return Answer(program, switch, solver, objective, "feasible", found, measured, seconds=seconds, wrong=wrong)


def best_greedy(
    program: Program, switch: Switch, asked: Mapping[str, Needs], objective: str, until: float = inf
) -> Answer | None:
    """The best result of the greedy solvers, if any placed the program."""
    answers = [_greedy(program, switch, asked, objective, solver, until) for solver in GREEDY]
    return min((a for a in answers if a.fits), key=lambda a: a.value or 0.0, default=None)


def _exact(
    program: Program,
    switch: Switch,
    asked: Mapping[str, Needs],
    objective: str,
    until: float,
    workers: int | None,
    without: Collection[str],
) -> Answer:
    from subak.pipeline import cpsat

    begun = time.monotonic()
    # Greedy solvers must leave time for the exact one.
    start = best_greedy(program, switch, asked, objective, begun + (until - begun) / 4)
    depth = int(start.value) if start and start.value and objective == "stages" else None
    first = start.placement if start else None
    if start is None:
        # A placement of any kind is searched first, since an objective makes the search harder.
        half = (until - time.monotonic()) / 2
        any_one = cpsat.solve(program, switch, asked, None, time_limit=half, workers=workers, without=without)
        if any_one.status == "infeasible":
            seconds = time.monotonic() - begun
            return Answer(program, switch, "cp-sat", objective, "infeasible", seconds=seconds)
        first = any_one.placement
    before = time.monotonic() - begun
    found = cpsat.solve(
        program,
        switch,
        asked,
        objective,
        then=() if without else OBJECTIVES,
        start=first,
        time_limit=until - time.monotonic(),
        workers=workers,
        without=without,
        depth=depth,
    )
    seconds = before + found.seconds
    if found.placement is None and first is not None and start is None:
        found = found._replace(status="feasible", placement=first)
    if found.placement is None:
        if start and found.status == "unknown":
            return replace(start, solver="cp-sat", bound=found.bound, seconds=seconds, started_from=start.solver)
        return Answer(program, switch, "cp-sat", objective, found.status, seconds=seconds)
    return _checked(program, switch, objective, found, start, seconds, without)


def _checked(
    program: Program,
    switch: Switch,
    objective: str,
    found: Found,
    start: Answer | None,
    seconds: float,
    without: Collection[str],
) -> Answer:
    """The exact solver's result, or the greedy solver's if that is better, with the better of the two bounds."""
    assert found.placement is not None
    wrong = tuple(str(v) for v in violations(program, switch, found.placement)) if not without else ()
    if wrong:
        raise RuntimeError(f"the solver's placement is not valid: {'; '.join(wrong)}")
    measured = measure(program, switch, found.placement)
    value, bound = value_of(measured, objective), found.bound
    name = start.solver if start else ""
    # The model counts power in whole microwatts.
    better = start is not None and not without and (start.value or 0.0) < value - 1e-5
    least = start.value if better and start else value
    if bound is not None and least is not None:
        bound = least if found.status == "optimal" else min(bound, least)
    if better and start:
        return replace(start, solver="cp-sat", status=found.status, bound=bound, seconds=seconds, started_from=name)
    return Answer(
        program,
        switch,
        "cp-sat",
        objective,
        found.status,
        found.placement,
        measured,
        bound,
        seconds,
        started_from=name,
        then=found.then,
    )
