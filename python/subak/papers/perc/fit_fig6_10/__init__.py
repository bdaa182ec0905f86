"""Figure 6.10 of the PERC thesis: a case in which every greedy solver is worse than the exact one on RMT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.papers.perc import toys
from subak.papers.perc.toys import run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """The placements by FFL and CP-SAT as maps of stages and blocks."""
    return toys.draw(raw, "fig6.10", "toy-rmt", ["ffl", "cp-sat"])
