"""Figures of the experiments on chapter 6 of the PERC thesis, drawn from raw results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from subak.pipeline import colours
from subak.pipeline.placement import MATCH_USE
from subak.pipeline.program import Program
from subak.pipeline.switch import SHARED, Switch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]


def maps(program: Program, switch: Switch, placements: Mapping[str, Sequence[Row]], width: float = 9.0) -> Figure:
    """Maps of stages and blocks in a column: for each placement one plot per memory."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    memories = [m for m in switch.memories if any(s.blocks.get(m.name) for s in switch.stages)]
    heights = [1.0 if memory.packing == SHARED or i else 1.8 for i, memory in enumerate(memories)]
    names = [t.name for t in program.tables]
    colour = colours.of_tables(names)
    figure = Figure(figsize=(width, 1.25 * sum(heights) * len(placements) + 0.9))
    plots = figure.subplots(len(memories) * len(placements), 1, squeeze=False, height_ratios=heights * len(placements))
    place = iter(plots[:, 0])
    for label, rows in placements.items():
        for k, memory in enumerate(memories):
            plot = next(place)
            _panel(plot, switch, memory.name, [r for r in rows if r["memory"] == memory.name], colour, names)
            if k == 0:
                plot.set_title(label, loc="left")
    handles = [Patch(color=colour[name], label=f"{i + 1} {name}") for i, name in enumerate(names)]
    if any(r["use"] != MATCH_USE for rows in placements.values() for r in rows):
        handles.append(Patch(color=colours.ACTION, label="action data"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6), fontsize=7)
    return figure


def _panel(
    plot: Axes, switch: Switch, memory: str, rows: Sequence[Row], colour: Mapping[str, str], names: Sequence[str]
) -> None:
    described = switch.memory[memory]
    shared = described.packing == SHARED
    numbers = {name: str(i + 1) for i, name in enumerate(names)}
    for k, stage in enumerate(switch.stages):
        there = stage.blocks.get(memory, 0)
        top = (described.depth if there else 0) if shared else there
        plot.bar(k, top, width=0.94, color="#f2f2f2", edgecolor="#cccccc", linewidth=0.5, zorder=1)
        bottom = 0
        for row in sorted((r for r in rows if r["stage"] == k + 1), key=lambda r: r["use"] != MATCH_USE):
            fill = colour[row["table"]] if row["use"] == MATCH_USE else colours.ACTION
            if shared:
                wide = 0.94 / there
                left, low, height = k - 0.47 + row["first_block"] * wide, row["first_row"], row["entries"]
                across = row["blocks"] * wide
            else:
                left, low, height, across = k - 0.47, bottom, row["blocks"], 0.94
                bottom += height
            plot.bar(left, height, across, low, align="edge", color=fill, edgecolor="white", linewidth=0.3, zorder=2)
            if row["use"] == MATCH_USE and height >= 0.09 * (top or 1):
                at = (left + across / 2, low + height / 2)
                plot.text(*at, numbers[row["table"]], fontsize=6, ha="center", va="center", zorder=3)
    plot.set_xticks(range(len(switch.stages)), [s.name for s in switch.stages], fontsize=7)
    plot.set_xlim(-0.7, len(switch.stages) - 0.3)
    plot.set_ylabel(f"{memory}\n{'rows' if shared else 'blocks'}", fontsize=8)
    plot.grid(visible=False)


def bars(figure_rows: Sequence[Row], programs: Sequence[str]) -> Figure:
    """Stages, latency and power of every solver, one column per program."""
    from matplotlib.figure import Figure

    measures = (("stages", "stages"), ("latency_cycles", "latency, cycles"), ("power_w", "power, W"))
    figure = Figure(figsize=(1.2 + 4.2 * len(programs), 7.5))
    plots = figure.subplots(len(measures), len(programs), squeeze=False)
    for column, program in enumerate(programs):
        rows = [r for r in figure_rows if r["program"] == program]
        greedy = [r for r in rows if r["solver"] != "cp-sat" and "reference" not in r["solver"]]
        for line, (key, title) in enumerate(measures):
            plot = plots[line][column]
            objective = {"stages": "stages", "latency_cycles": "latency", "power_w": "power"}[key]
            exact = [r for r in rows if r["solver"] == "cp-sat" and r["objective"] == objective]
            labels = [r["solver"] for r in greedy] + ["cp-sat" for _ in exact]
            heights = [r[key] or 0 for r in (*greedy, *exact)]
            fills = ["#56B4E9"] * len(greedy) + ["#D55E00"] * len(exact)
            plot.bar(range(len(labels)), heights, color=fills)
            for k, r in enumerate(exact):
                if r["bound"] is not None:
                    plot.hlines(
                        r["bound"], len(greedy) + k - 0.45, len(greedy) + k + 0.45, color="black", linestyle="-"
                    )
            plot.set_xticks(range(len(labels)), labels, rotation=90, fontsize=7)
            plot.set(ylabel=title, title=program if line == 0 else "")
    return figure
