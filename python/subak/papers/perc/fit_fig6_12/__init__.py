"""Figure 6.12: FFL-16 beside the exact solver on L2L3-Complex."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline import figures, program_file, switch_file
from subak.pipeline.experiments import maps as run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """Both placements as maps of stages and blocks."""
    program, switch = program_file.load("l2l3-complex", "rmt"), switch_file.load("rmt")
    placements = {label: raw.rows(f"placement {label}") for label in ["ffl16", "exact"]}
    return figures.maps(program, switch, placements)
