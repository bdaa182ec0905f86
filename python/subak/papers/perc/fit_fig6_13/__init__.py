"""Figure 6.13 of the PERC thesis: placements of the program L2L3-Mtag by FFLS and by FFL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.papers.perc import pairs
from subak.papers.perc.pairs import run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """The placements by FFLS and by FFL as maps of stages and blocks."""
    return pairs.draw(raw, "l2l3-mtag", ["ffls", "ffl"])
