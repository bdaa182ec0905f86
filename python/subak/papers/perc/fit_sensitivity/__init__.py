"""Section 6.7.3: constraints left out, resources doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline.experiments import sensitivity as run
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """Stages, and the time that the proof took."""
    rows = [row for row in raw.rows("cases") if row["objective"] == "stages"]
    figure, plots = figures.axes(columns=2, width=5.2, height=3.6)
    places = range(len(rows))
    plots[0].barh(places, [row["value"] or 0 for row in rows], color=figures.COLOURS[0])
    plots[1].barh(places, [row["seconds"] for row in rows], color=figures.COLOURS[1])
    for plot, label in zip(plots, ("stages", "seconds"), strict=True):
        plot.set_yticks(places, [row["case"] for row in rows], fontsize=7)
        plot.invert_yaxis()
        plot.set_xlabel(label)
    return figure
