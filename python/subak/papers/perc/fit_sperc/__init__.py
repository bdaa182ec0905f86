"""s-PERC's switch in P4, run update by update beside the Rust scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline import figures, program_file, switch_file
from subak.pipeline.experiments import s_perc as run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """Where the program's tables lie in RMT."""
    placement = raw.rows("placement cp-sat")
    return figures.maps(program_file.load("s-perc"), switch_file.load("rmt"), {"cp-sat": placement})
