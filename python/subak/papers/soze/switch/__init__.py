"""Soze's switch program in P4, compared with the Rust scheme packet by packet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak.papers.perc import pictures
from subak.papers.perc.fitting import Progress, Report, drawn, workers
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import fit
from subak.pipeline.p4 import soze

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Compares headers with those of the Rust scheme, counts the lines of the program, and fits it on RMT."""
    found = soze.compare(settings["packets"], seed, lambda done, every: progress(done, every, done / every))
    answer = fit(program_file.load("soze"), switch_file.load("rmt"), "stages", workers=workers())
    values = {**found["counted"], "different": found["different"], "lines": soze.lines()}
    values["stages"] = answer.value
    values["latency_cycles"] = answer.measures.latency_cycles if answer.measures else None
    notes = [f"The first difference: {found['first']}"] if found["first"] else []
    return {"values": values, "tables": drawn({"cp-sat": answer}), "notes": notes}


def draw(raw: RawResults) -> Figure:
    """Placement of the tables of Soze's program in the switch RMT."""
    placement = raw.rows("placement cp-sat")
    return pictures.maps(program_file.load("soze"), switch_file.load("rmt"), {"cp-sat": placement})
