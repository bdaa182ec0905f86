"""Figure 18a of Soze: differences between the ends of a coflow's flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """End of each flow relative to the last one of its coflow, by method."""
    figure, plots = figures.axes(width=7, height=3.2)
    rows = raw.rows("ends")
    ways = list(dict.fromkeys(row["way"] for row in rows))
    for k, way in enumerate(ways):
        for coflow in dict.fromkeys(row["coflow"] for row in rows):
            ends = [row["end_ms"] for row in rows if (row["way"], row["coflow"]) == (way, coflow)]
            shares = [100 * end / max(ends) for end in ends]
            plots[0].plot(shares, [k] * len(shares), "o", color=figures.COLOURS[k % len(figures.COLOURS)], markersize=3)
    plots[0].set_yticks(range(len(ways)), ways)
    plots[0].invert_yaxis()
    plots[0].set(xlabel="end of each flow, % of the last one's of its coflow")
    return figure
