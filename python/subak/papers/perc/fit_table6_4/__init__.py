"""Table 6.4 of the PERC thesis: placements of L2L3-Complex on RMT by all solvers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.papers.perc import pictures, solvers
from subak.papers.perc.fitting import Progress, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Places the program by the greedy solvers and, for each objective, by CP-SAT.

    Compares greedy results with the thesis.
    """
    return solvers.run(settings, solvers.published(Path(__file__).parent), progress)


def draw(raw: RawResults) -> Figure:
    """Stages, latency and power of each solver, relative to the thesis' released code; CP-SAT's bound as a line."""
    rows = [row for row in raw.rows("solvers") if "equation" not in row["solver"]]
    return pictures.bars(rows, ["l2l3-complex"])
