"""Figures 6.3 and 6.4: the dependency graph of an L2/L3 program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.pipeline import colours
from subak.pipeline.experiments import l2l3 as run
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

__all__ = ["draw", "run"]

PLACES = {
    "source_mac": (0, 2),
    "routable": (0, 1),
    "unicast_routing": (1, 2),
    "multicast_routing": (1, 1),
    "igmp": (1, 0),
    "switching": (2, 2),
    "access_list": (3, 2),
}


def draw(raw: RawResults) -> Figure:
    """The graph: an arrow a dependency, coloured by kind."""
    figure, plots = figures.axes(width=7.5, height=3)
    for row in raw.rows("dependencies"):
        colour = colours.KINDS[row["kind"]]
        arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 34, "shrinkB": 34, "linewidth": 1.6}
        plots[0].annotate("", PLACES[row["after"]], PLACES[row["before"]], arrowprops=arrow)
    for name, at in PLACES.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "#222222"}
        plots[0].text(*at, name, ha="center", va="center", fontsize=8, bbox=box)
    for kind, colour in colours.KINDS.items():
        plots[0].plot([], [], color=colour, linestyle="-", label=kind)
    plots[0].set(xlim=(-0.5, 3.5), ylim=(-0.6, 2.6))
    plots[0].axis("off")
    plots[0].legend(loc="lower right")
    return figure
