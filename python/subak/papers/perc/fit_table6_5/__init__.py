"""Table 6.5: the other three programs on RMT."""

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
    """The programs by the greedy solvers and, for each objective, by CP-SAT; the greedy beside the published."""
    return solvers.run(settings, solvers.published(Path(__file__).parent), progress)


def draw(raw: RawResults) -> Figure:
    """Every solver's stages, latency and power by the release; a line at CP-SAT's bound."""
    rows = [row for row in raw.rows("solvers") if "equation" not in row["solver"]]
    return pictures.bars(rows, ["l2l3-simple", "l2l3-mtag", "l3dc"])
