"""Figures 6.8 to 6.11 of the PERC thesis: small programs placed by several solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak.papers.perc import pictures
from subak.papers.perc.fitting import Progress, Report, drawn
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import fit
from subak.pipeline.placement import Placement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Places a small program by the solvers in ``settings``, and on a second switch (``beside``) by CP-SAT only."""
    switch = switch_file.load(settings["switch"])
    program = program_file.load(settings["program"])
    objective = "blocks" if switch.shares else "stages"
    answers = {s: fit(program, switch, objective, s, workers=1) for s in settings["solvers"]}
    values: dict[str, Any] = {
        s.replace("-", "_"): (a.value if a.value is not None else "does not fit") for s, a in answers.items()
    }
    greedy = [a.value for s, a in answers.items() if s != "cp-sat" and a.value is not None]
    values["best_greedy"] = min(greedy, default="none fits")
    exact = answers["cp-sat"]
    values["proven"] = exact.status == "optimal"
    if "beside" in settings:
        other = fit(program, switch_file.load(settings["beside"]), objective, workers=1)
        values["beside"] = other.value if other.value is not None else "does not fit"
        values["beside_proven"] = other.status in ("optimal", "infeasible")
    if switch.shares and exact.placement:
        values |= _sharing(exact.placement)
    return {"values": values, "tables": drawn(answers)}


def _sharing(placement: Placement) -> dict[str, Any]:
    """Sharing of blocks: tables in the fullest block, and number of blocks with a unique set of tables."""
    held: dict[tuple[int, str, int], set[str]] = {}
    spans = 0
    for row in placement.rows:
        spans = max(spans, row.blocks)
        for block in range(row.first_block or 0, (row.first_block or 0) + row.blocks):
            held.setdefault((row.stage, row.memory, block), set()).add(row.table)
    sets = [frozenset(tables) for tables in held.values()]
    return {"most_tables": max(map(len, sets)), "different_sets": len(set(sets)), "widest": spans}


def draw(raw: RawResults, program: str, switch: str, solvers: list[str]) -> Figure:
    """The placements as maps of stages and blocks."""
    placements = {solver: raw.rows(f"placement {solver}") for solver in solvers}
    return pictures.maps(program_file.load(program, switch), switch_file.load(switch), placements, width=6.0)
