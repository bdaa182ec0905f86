"""Table 6.2 of the PERC thesis: dependencies of the benchmark programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak.papers.perc.fitting import Progress, Report, mtag_11
from subak.pipeline import graph, program_file
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Counts dependencies of the benchmark programs, all and without redundant ones."""
    named = [(n, "rmt") for n in ("l2l3-complex", "l2l3-simple", "l2l3-mtag", "l3dc")]
    named += [("l2l3-simple", "flexpipe"), ("l2l3-mtag", "flexpipe")]
    rows, values = [], {}
    for name, switch in named:
        program = program_file.load(name, switch)
        raw, reduced = program.counts(), graph.reduced(program).counts()
        held = [len(program.tables), raw["match"], raw["action"], raw["successor"]]
        left = [reduced["match"], reduced["action"], reduced["successor"]]
        rows.append([name, switch, *held, *left])
        key = f"{name.removeprefix('l2l3-')}_{switch}"
        values[key] = held
        values[f"{key}_reduced"] = left
    small = mtag_11()
    values["mtag_flexpipe_11"] = [len(small.tables), *list(small.counts().values())[:3]]
    columns = ["program", "switch", "tables", "match", "action", "successor"]
    columns += ["match_reduced", "action_reduced", "successor_reduced"]
    return {"values": values, "tables": {"counts": {"columns": columns, "rows": rows}}}


def draw(raw: RawResults) -> Figure:
    """Dependencies by kind, all and without redundant ones."""
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
