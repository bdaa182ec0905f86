"""Figure 6.8 of the PERC thesis: several tables share memory blocks, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.papers.perc import toys
from subak.papers.perc.toys import run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """The placements by MCF and CP-SAT as maps of stages and blocks."""
    return toys.draw(raw, "fig6.8", "toy-flexpipe-release", ["mcf", "cp-sat"])
