"""Tables 6.4 and 6.5 of the PERC thesis: placements of programs on RMT by all solvers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from subak.papers.perc.fitting import Progress, Report, workers
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import GREEDY, Answer, fit, value_of
from subak.pipeline.program import Program
from subak.pipeline.switch import RELEASE, TEXT, Switch

Published = Mapping[str, Mapping[str, list[float]]]
"""By program and solver: stages, latency in cycles, power in W."""
COLUMNS = ["program", "solver", "objective", "stages", "latency_cycles", "power_w", "bound", "gap", "valid", "seconds"]


def published(folder: Path) -> Published:
    """Rows of the published table, by program and solver."""
    with (folder / "published.toml").open("rb") as file:
        rows: Published = tomllib.load(file)["rows"]
    return rows


def _row(answer: Answer, solver: str) -> list[Any]:
    m = answer.measures
    held = [m.stages, m.latency_cycles, round(m.power_w, 4)] if m else [None] * 3
    seconds = round(answer.seconds, 2)
    return [answer.program.name, solver, answer.objective, *held, answer.bound, answer.gap, answer.fits, seconds]


def run(settings: Mapping[str, Any], published: Published, progress: Progress) -> Report:
    """Places programs on RMT by the greedy solvers and, for each objective, by CP-SAT."""
    # Published power follows the model of the released code; power by equation 6.6 is an additional row.
    switch = replace(switch_file.load("rmt"), power=RELEASE)
    rows: list[list[Any]] = []
    values: dict[str, Any] = {"worse": 0, "rows_equal": 0, "rows_compared": 0, "rows_overfull": 0, "mcf_equal": 0}
    programs = list(settings["programs"])
    for k, name in enumerate(programs):
        program = program_file.load(name, "rmt")
        ours = {solver: fit(program, switch, "stages", solver) for solver in GREEDY}
        rows += [_row(answer, solver) for solver, answer in ours.items()]
        _reference_rows(program, switch, published[name], rows, values)
        for objective in settings["objectives"]:
            models = (switch, replace(switch, power=TEXT)) if objective == "power" else (switch,)
            for model in models:
                answer = fit(program, model, objective, time_limit=settings["seconds"], workers=workers())
                beside = {s: a if model is switch else fit(program, model, "stages", s) for s, a in ours.items()}
                rows.append(_row(answer, "cp-sat" if model is switch else "cp-sat, equation 6.6"))
                key = f"{name.removeprefix('l2l3-')}_{objective}{'' if model is switch else '_text'}"
                values[key] = answer.value
                values[f"{key}_bound"] = answer.bound
                values[f"{key}_gap"] = 100 * (answer.gap or 0.0)
                values[f"{key}_seconds"] = round(answer.seconds, 2)
                others = [value_of(a.measures, objective) for a in beside.values() if a.fits and a.measures]
                values["worse"] += sum(other < (answer.value or 0.0) - 1e-9 for other in others)
                values[f"{key}_greedy"] = min(others)
        progress(k + 1, len(programs), (k + 1) / len(programs))
    return {"values": values, "tables": {"solvers": {"columns": COLUMNS, "rows": rows}}}


def _reference_rows(
    program: Program, switch: Switch, printed: Mapping[str, list[float]], rows: list[list[Any]], values: dict[str, Any]
) -> None:
    for solver, published in printed.items():
        answer = fit(program, switch, "stages", solver, reference=True)
        rows.append(_row(answer, f"{solver}, reference"))
        m = answer.measures
        same = m is not None and [m.stages, m.latency_cycles, round(m.power_w, 2)] == published
        if solver.startswith("mcf"):
            values["mcf_equal"] += int(same)
            continue
        values["rows_equal"] += int(same)
        values["rows_compared"] += 1
        values["rows_overfull"] += int(same and not answer.fits)
