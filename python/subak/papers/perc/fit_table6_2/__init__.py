"""Table 6.2: dependencies of the benchmark programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline.experiments import counts as run
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]


def draw(raw: RawResults) -> Figure:
    """Dependencies by kind, raw and without the implied ones."""
    figure, plots = figures.axes(width=7.5, height=3.6)
    rows = raw.rows("counts")
    bottoms = [[0.0] * len(rows), [0.0] * len(rows)]
    for k, kind in enumerate(("match", "action", "successor")):
        for side, key in enumerate((kind, f"{kind}_reduced")):
            heights = [float(row[key]) for row in rows]
            places = [i + 0.4 * side - 0.2 for i in range(len(rows))]
            label = kind if side == 0 else None
            alpha = 1.0 if side == 0 else 0.55
            plots[0].bar(places, heights, 0.38, bottoms[side], color=figures.COLOURS[k], alpha=alpha, label=label)
            bottoms[side] = [b + h for b, h in zip(bottoms[side], heights, strict=True)]
    plots[0].set_xticks(range(len(rows)), [f"{row['program']}\n{row['switch']}" for row in rows], fontsize=7)
    plots[0].set_ylabel("dependencies; pale: not implied")
    plots[0].legend()
    return figure
