"""s-PERC's switch program in P4, compared with the Rust scheme update by update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak.papers.perc import pictures
from subak.papers.perc.fitting import Progress, Report, drawn, workers
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import fit
from subak.pipeline.p4 import sperc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Compares algorithm 6 in P4 with the Rust scheme, and the size of its tables with the thesis (section 4.2.1)."""
    found = sperc.compare(settings["updates"], seed, lambda done, every: progress(done, every, done / every))
    answer = fit(program_file.load("s-perc"), switch_file.load("rmt"), "stages", workers=workers())
    values = {**found["counted"], **found["memory"]}
    values["different"] = sum(found["differ"].values())
    values["stages"] = answer.value
    values["latency_cycles"] = answer.measures.latency_cycles if answer.measures else None
    rows = [[name, count] for name, count in found["differ"].items()]
    notes = [f"The first difference: {found['first']}"] if found["first"] else []
    tables = {"fields": {"columns": ["field", "different"], "rows": rows}} | drawn({"cp-sat": answer})
    return {"values": values, "tables": tables, "notes": notes}


def draw(raw: RawResults) -> Figure:
    """Placement of the tables of s-PERC's program in the switch RMT."""
    placement = raw.rows("placement cp-sat")
    return pictures.maps(program_file.load("s-perc"), switch_file.load("rmt"), {"cp-sat": placement})
