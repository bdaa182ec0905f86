"""Figure 6.9 of the PERC thesis: two metrics of the greedy solver, of which one leads to a bad placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.papers.perc import toys
from subak.papers.perc.toys import run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """The placements by FFL, FFLS and CP-SAT as maps of stages and blocks."""
    return toys.draw(raw, "fig6.9", "toy-rmt", ["ffl", "ffls", "cp-sat"])
