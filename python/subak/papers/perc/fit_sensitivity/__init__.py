"""Section 6.7.3 of the PERC thesis: placements with omitted constraints or doubled resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak.papers.perc.fitting import Progress, Report, workers
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import fit
from subak.pipeline.program import Program
from subak.pipeline.switch import Switch
from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

RELAXED = ("tables", "fields", "action crossbar", "crossbar")


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Places L2L3-Complex with omitted constraints or doubled resources."""
    program, rmt = program_file.load("l2l3-complex", "rmt"), switch_file.load("rmt")
    cases: dict[str, tuple[Program, Switch, tuple[str, ...]]] = {
        "baseline": (program, rmt, ()),
        "no dependencies": (program.with_dependencies(()), rmt, ()),
        "TCAMs doubled": (program, rmt.changed({"tcam": 2}), ()),
        "SRAMs doubled": (program, rmt.changed({"sram": 2}), ()),
        "crossbars doubled": (program, rmt.changed(crossbars=2), ()),
    }
    cases |= {f"without the limit on {limit}": (program, rmt, (limit,)) for limit in RELAXED}
    asked = [(label, "stages") for label in settings.get("cases", cases)]
    asked += [(label, "latency") for label in settings["latency_of"]]
    rows, values = [], {}
    for done, (label, objective) in enumerate(asked, 1):
        changed, switch, without = cases[label]
        seconds = settings["seconds"]
        answer = fit(changed, switch, objective, time_limit=seconds, workers=workers(), without=without)
        rows.append([label, objective, answer.status, answer.value, answer.bound, round(answer.seconds, 2)])
        key = f"{label}_{objective}".replace(" ", "_")
        values[key] = answer.value
        values[f"{key}_proven"] = answer.status == "optimal"
        values[f"{key}_seconds"] = round(answer.seconds, 2)
        progress(done, len(asked), done / len(asked))
    columns = ["case", "objective", "status", "value", "bound", "seconds"]
    return {"values": values, "tables": {"cases": {"columns": columns, "rows": rows}}}


def draw(raw: RawResults) -> Figure:
    """Number of stages of each case, and time of the optimality proof, s."""
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
