"""Figure 6.11 of the PERC thesis: the heuristic "most constrained first" (MCF) fails where the solver does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.papers.perc import toys
from subak.papers.perc.toys import run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """The placement by CP-SAT as a map of stages and blocks."""
    return toys.draw(raw, "fig6.11", "toy-flexpipe-release", ["cp-sat"])
