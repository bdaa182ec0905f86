"""Table 6.3: sized variants of two programs on FlexPipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline.experiments import flexpipe_variants as run
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """Which solver fits which variant."""
    rows = raw.rows("variants")
    figure, plots = figures.axes(width=8, height=2.6)
    for at, row in enumerate(rows):
        greedy = row["greedy"].split(", ") if row["greedy"] else []
        for line, solver in enumerate(("ffd", "ffl", "ffls", "mcf", "cp-sat")):
            fits = solver in greedy if solver != "cp-sat" else row["blocks"] is not None
            proven = solver == "cp-sat" and row["status"] == "infeasible"
            marker, colour = ("o", figures.COLOURS[0]) if fits else ("x", figures.COLOURS[1])
            plots[0].plot(at, line, marker, color=colour, alpha=0.5 if proven else 1.0)
    plots[0].set_yticks(range(5), ["ffd", "ffl", "ffls", "mcf", "cp-sat"])
    first = sum(row["program"] == "simple" for row in rows)
    plots[0].axvline(first - 0.5, color="grey", linestyle="-", linewidth=0.8)
    plots[0].set_xlabel(f"variants: {first} of L2L3-Simple, then of L2L3-Mtag; o fits, x does not (pale: proven)")
    plots[0].set_xticks([])
    return figure
