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
    """Which solver fits which variant, a plot a model of the switch."""
    models = list(dict.fromkeys(row["model"] for row in raw.rows("variants")))
    figure, plots = figures.axes(len(models), width=8, height=2.6)
    for plot, model in zip(plots, models, strict=False):
        rows = [row for row in raw.rows("variants") if row["model"] == model]
        for at, row in enumerate(rows):
            greedy = row["greedy"].split(", ") if row["greedy"] else []
            for line, solver in enumerate(("ffd", "ffl", "ffls", "mcf", "cp-sat")):
                fits = solver in greedy if solver != "cp-sat" else row["blocks"] is not None
                proven = solver == "cp-sat" and row["status"] == "infeasible"
                marker, colour = ("o", figures.COLOURS[0]) if fits else ("x", figures.COLOURS[1])
                plot.plot(at, line, marker, color=colour, alpha=0.5 if proven else 1.0)
        plot.set_yticks(range(5), ["ffd", "ffl", "ffls", "mcf", "cp-sat"])
        first = sum(row["program"] == "simple" for row in rows)
        plot.axvline(first - 0.5, color="grey", linestyle="-", linewidth=0.8)
        plot.set_xlabel(f"{model}: {first} of L2L3-Simple, then L2L3-Mtag; o fits, x does not (pale: proven)")
        plot.set_xticks([])
    return figure
