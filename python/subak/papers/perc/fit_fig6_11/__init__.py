"""Figure 6.11: where MCF fails on FlexPipe and the exact solver fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline import figures, program_file, switch_file
from subak.pipeline.experiments import toy as run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """The placements as maps."""
    program, switch = program_file.load("fig6.11", "toy-flexpipe-release"), switch_file.load("toy-flexpipe-release")
    placements = {label: raw.rows(f"placement {label}") for label in ["cp-sat"]}
    return figures.maps(program, switch, placements, width=6.0)
