"""Figures 6.3 and 6.4 of the PERC thesis: the dependency graph of an L2/L3 program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak.papers.perc.fitting import Progress, Report
from subak.pipeline import colours, program_file
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

PLACES = {
    "source_mac": (0, 2),
    "routable": (0, 1),
    "unicast_routing": (1, 2),
    "multicast_routing": (1, 1),
    "igmp": (1, 0),
    "switching": (2, 2),
    "access_list": (3, 2),
}


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Compares the derived dependencies of the L2/L3 program with figure 6.4, as far as the thesis states them."""
    program = program_file.load("l2l3")
    kinds = {(d.before, d.after): d.kind for d in program.dependencies}
    rows = [[d.before, d.after, d.kind, ", ".join(d.fields)] for d in program.dependencies]
    values = {
        "unicast_switching": kinds.get(("unicast_routing", "switching"), "none"),
        "learning_unicast": kinds.get(("source_mac", "unicast_routing"), "none"),
        "routable_multicast": kinds.get(("routable", "multicast_routing"), "none"),
        "routable_igmp": kinds.get(("routable", "igmp"), "none"),
        "multicast_igmp": kinds.get(("multicast_routing", "igmp"), "none"),
        "tables": len(program.tables),
    }
    columns = ["before", "after", "kind", "fields"]
    return {"values": values, "tables": {"dependencies": {"columns": columns, "rows": rows}}}


def draw(raw: RawResults) -> Figure:
    """The dependency graph: one arrow per dependency, coloured by kind."""
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
