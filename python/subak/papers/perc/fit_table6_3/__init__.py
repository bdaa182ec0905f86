"""Table 6.3 of the PERC thesis: two programs with scaled table sizes on FlexPipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from subak.papers.perc.fitting import Progress, Report, mtag_11, workers
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import fit
from subak.pipeline.program import Program
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Places scaled variants of two programs on FlexPipe by greedy solvers and CP-SAT, on both models of the switch."""
    bases = {"simple": program_file.load("l2l3-simple", "flexpipe"), "mtag": mtag_11()}
    rows: list[list[Any]] = []
    values: dict[str, Any] = {"missed": 0, "undecided": 0}
    every = len(settings["switches"]) * sum(settings["variants"].values())
    for model, name in settings["switches"].items():
        switch = switch_file.load(name)
        for key, base in bases.items():
            random = Random(seed)
            low, high = settings["sizes"][model][key]
            fits = {"mcf": 0, "greedy": 0, "cp-sat": 0}
            for k in range(settings["variants"][key]):
                program = sized(base, low, high, random)
                greedy = [s for s in ("ffd", "ffl", "ffls", "mcf") if fit(program, switch, "blocks", s).fits]
                # If a greedy solver places the variant, only feasibility counts: blocks are not minimized further.
                seconds = 1.0 if greedy else settings["seconds"]
                answer = fit(program, switch, "blocks", time_limit=seconds, workers=workers())
                fits["mcf"] += "mcf" in greedy
                fits["greedy"] += bool(greedy)
                fits["cp-sat"] += answer.fits
                values["missed"] += bool(greedy) and not answer.fits
                values["undecided"] += answer.status == "unknown"
                held = [", ".join(greedy), answer.status, answer.value, round(answer.seconds, 2)]
                rows.append([model, key, k + 1, *held])
                progress(len(rows), every, len(rows) / every)
            count = settings["variants"][key]
            values |= {f"{model}_{key}_{solver}": 100 * n / count for solver, n in fits.items()}
    columns = ["model", "program", "variant", "greedy", "status", "blocks", "seconds"]
    return {"values": values, "tables": {"variants": {"columns": columns, "rows": rows}}}


def sized(program: Program, low: float, high: float, random: Random) -> Program:
    """The program with each table's entries scaled by a random factor from ``low`` to ``high``, log-uniform."""
    tables = [
        t if t.kind == "mapper" else replace(t, entries=max(int(t.entries * low * (high / low) ** random.random()), 2))
        for t in program.tables
    ]
    return replace(program, tables=tuple(tables))


def draw(raw: RawResults) -> Figure:
    """Solvers that place each variant, one plot per model of the switch."""
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
