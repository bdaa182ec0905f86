"""From a program and a switch to a certified answer."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from subak.errors import InputError
from subak.pipeline import greedy
from subak.pipeline.packing import Needs, needs
from subak.pipeline.placement import Measures, Placement, measure
from subak.pipeline.program import Program
from subak.pipeline.sorting import METRICS
from subak.pipeline.switch import Switch
from subak.pipeline.validate import violations

OBJECTIVES = ("stages", "latency", "power", "blocks")
GREEDY = tuple(metric + variant for metric in METRICS for variant in greedy.VARIANTS)
SOLVERS = ("cp-sat", *GREEDY)


@dataclass(frozen=True)
class Answer:
    """What a solver came to, checked."""

    program: Program
    switch: Switch
    solver: str
    objective: str
    status: str
    """``optimal``, ``feasible``, ``infeasible``, or ``unknown`` where the time was over before anything was found; of a
    greedy solver, ``failed`` where it gave up."""
    placement: Placement | None = None
    measures: Measures | None = None
    bound: float | None = None
    """Nothing is better than this."""
    seconds: float = 0.0
    why: str = ""
    """Where a greedy solver gave up."""
    wrong: tuple[str, ...] = ()
    """What the validator found; only the reference's own accounting can leave something."""
    started_from: str = ""
    """The greedy solver whose placement the search began with."""

    @property
    def fits(self) -> bool:
        """Whether there is a placement, and it is valid."""
        return self.placement is not None and not self.wrong

    @property
    def value(self) -> float | None:
        """What the objective came to."""
        return value_of(self.measures, self.objective) if self.measures else None

    @property
    def gap(self) -> float | None:
        """How much better than the answer an answer might be, as a share of it."""
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
            "placement": [row.to_dict() for row in self.placement.rows] if self.placement else [],
            "seconds": self.seconds,
        }
        if self.why:
            document["why"] = self.why
        if self.started_from:
            document["started_from"] = self.started_from
        return document


def value_of(measures: Measures, objective: str) -> float:
    """The measure that an objective is about."""
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
    file: str | None = None,
) -> Answer:
    """Places ``program`` on ``switch``; ``reference`` makes greedy solvers take ties and room as published."""
    wanted = objective or ("blocks" if switch.shares else "stages")
    if wanted not in OBJECTIVES:
        raise InputError(None, "--objective", f'"{wanted}" is none', f"choose one of: {', '.join(OBJECTIVES)}")
    if solver not in SOLVERS:
        raise InputError(None, "--solver", f'"{solver}" is none', f"choose one of: {', '.join(SOLVERS)}")
    try:
        asked = needs(program, switch)
    except InputError as error:
        raise InputError(file or program.name, error.place, error.what, error.mend) from None
    begun = time.monotonic()
    if solver == "cp-sat":
        return _exact(program, switch, asked, wanted, begun + time_limit, workers, without)
    return _greedy(program, switch, asked, wanted, solver, reference)


def _greedy(
    program: Program, switch: Switch, asked: Mapping[str, Needs], objective: str, solver: str, reference: bool = False
) -> Answer:
    begun = time.monotonic()
    metric, dash, variant = solver.partition("-")
    found = greedy.place(program, switch, asked, metric, dash + variant, reference)
    seconds = time.monotonic() - begun
    if isinstance(found, greedy.Failed):
        return Answer(program, switch, solver, objective, "failed", seconds=seconds, why=found.why)
    wrong = tuple(str(v) for v in violations(program, switch, found))
    measured = measure(program, switch, found)
    return Answer(program, switch, solver, objective, "feasible", found, measured, seconds=seconds, wrong=wrong)


def best_greedy(program: Program, switch: Switch, asked: Mapping[str, Needs], objective: str) -> Answer | None:
    """The best answer of the greedy solvers, if one of them has any."""
    answers = [_greedy(program, switch, asked, objective, solver) for solver in GREEDY]
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
    start = best_greedy(program, switch, asked, objective)
    depth = int(start.value) if start and start.value and objective == "stages" else None
    first = start.placement if start else None
    if start is None:
        # Whether it fits at all comes first: the objective only makes that harder.
        half = (until - begun) / 2
        any_one = cpsat.solve(program, switch, asked, None, time_limit=half, workers=workers, without=without)
        if any_one.status == "infeasible":
            seconds = time.monotonic() - begun
            return Answer(program, switch, "cp-sat", objective, "infeasible", seconds=seconds)
        first = any_one.placement
    found = cpsat.solve(
        program,
        switch,
        asked,
        objective,
        start=first,
        time_limit=until - time.monotonic(),
        workers=workers,
        without=without,
        depth=depth,
    )
    if found.placement is None and first is not None and start is None:
        found = found._replace(status="feasible", placement=first)
    if found.placement is None:
        seconds = time.monotonic() - begun
        if start and found.status == "unknown":
            return _improved(start, "feasible", None, seconds, "cp-sat")
        return Answer(program, switch, "cp-sat", objective, found.status, seconds=seconds)
    wrong = tuple(str(v) for v in violations(program, switch, found.placement)) if not without else ()
    if wrong:
        raise RuntimeError(f"the solver's placement is not valid: {'; '.join(wrong)}")
    measured = measure(program, switch, found.placement)
    value, bound = value_of(measured, objective), found.bound
    better = start is not None and not without and (start.value or 0.0) < value
    least = start.value if better and start else value
    if bound is not None and least is not None:
        # The model counts power in whole microwatts.
        bound = least if found.status == "optimal" else min(bound, least)
    if better and start:
        return _improved(start, found.status, bound, time.monotonic() - begun, "cp-sat")
    return Answer(
        program,
        switch,
        "cp-sat",
        objective,
        found.status,
        found.placement,
        measured,
        bound,
        time.monotonic() - begun,
        started_from=start.solver if start else "",
    )


def _improved(start: Answer, status: str, bound: float | None, seconds: float, solver: str) -> Answer:
    """The greedy solver's answer, where the exact one found nothing better in its time."""
    return Answer(
        start.program,
        start.switch,
        solver,
        start.objective,
        status,
        start.placement,
        start.measures,
        bound,
        seconds,
        started_from=start.solver,
    )
