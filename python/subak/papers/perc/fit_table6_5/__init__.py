"""Table 6.5: the other three programs on RMT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline import figures
from subak.pipeline.experiments import rmt_table as run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """Every solver's stages, latency and power by the release; a line at CP-SAT's bound."""
    rows = [row for row in raw.rows("solvers") if "equation" not in row["solver"]]
    return figures.bars(rows, ["l2l3-simple", "l2l3-mtag", "l3dc"])
