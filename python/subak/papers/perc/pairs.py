"""Figures 6.12 and 6.13 of the PERC thesis: placements of one program by two solvers, as maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from subak.papers.perc import pictures
from subak.papers.perc.fitting import Progress, Report, drawn, workers
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import Answer, fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Places the program by two solvers, and counts the TCAM blocks that each leaves unused."""
    switch = switch_file.load("rmt")
    program = program_file.load(settings["program"], "rmt")
    answers = {}
    for label, solver in settings["solvers"].items():
        greedy = solver != "cp-sat"
        answers[label] = fit(program, switch, "stages", solver, reference=greedy, workers=workers())
    values: dict[str, Any] = {label: a.value for label, a in answers.items()}
    values |= {f"{label}_valid": a.fits for label, a in answers.items()}
    values |= {f"{label}_idle_ternary": _idle(a, settings["idle"]) for label, a in answers.items()}
    return {"values": values, "tables": drawn(answers)}


def _idle(answer: Answer, stages: Sequence[int]) -> int:
    """Unused TCAM blocks in the stages from ``stages[0]`` to ``stages[1]``, counted from 1."""
    first, last = stages
    placement = answer.placement
    used = (
        sum(r.blocks for r in placement.rows if r.memory == "tcam" and first <= r.stage + 1 <= last) if placement else 0
    )
    return sum(s.blocks["tcam"] for s in answer.switch.stages[first - 1 : last]) - used


def draw(raw: RawResults, program: str, labels: list[str]) -> Figure:
    """The placements by two solvers as maps of stages and blocks."""
    placements = {label: raw.rows(f"placement {label}") for label in labels}
    return pictures.maps(program_file.load(program, "rmt"), switch_file.load("rmt"), placements)
