"""s-PERC*'s switch program in P4, compared with the Rust scheme update by update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak.papers.perc import pictures
from subak.papers.perc.fitting import Progress, Report, drawn, workers
from subak.pipeline import program_file, switch_file
from subak.pipeline.fitting import fit
from subak.pipeline.p4 import sperc_star

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults


def run(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress) -> Report:
    """Compares Algorithms 8 and 9 in P4 with the Rust scheme over random networks, and fits both programs on RMT."""
    networks = settings["networks"]
    counted: Counter[str] = Counter()
    differ = dict.fromkeys(sperc_star.FIELDS, 0)
    notes, wrong = [], 0
    for k in range(networks):
        found = sperc_star.compare(settings["updates"], 1000 * seed + k)
        counted.update(found["counted"])
        wrong += found["wrong_sums"]
        for name, count in found["differ"].items():
            differ[name] += count
        if found["first"]:
            notes.append(f"Network {k}: the first difference is {found['first']}")
        progress(k + 1, networks, (k + 1) / networks)
    rmt = switch_file.load("rmt")
    star, plain = (fit(program_file.load(name), rmt, "stages", workers=workers()) for name in ("s-perc-star", "s-perc"))
    values: dict[str, Any] = {"networks": networks, **counted}
    values |= {"different": sum(differ.values()), "wrong_sums": wrong}
    values |= {"stages": star.value, "stages_plain": plain.value, "blocks": None, "blocks_plain": None}
    values["latency_cycles"] = None
    if star.measures and plain.measures:
        values |= {"blocks": star.measures.blocks, "blocks_plain": plain.measures.blocks}
        values["latency_cycles"] = star.measures.latency_cycles
    rows = [[name, count] for name, count in differ.items()]
    tables = {"fields": {"columns": ["field", "different"], "rows": rows}} | drawn({"cp-sat": star})
    return {"values": values, "tables": tables, "notes": notes}


def draw(raw: RawResults) -> Figure:
    """Placement of the tables of s-PERC*'s program in the switch RMT."""
    placement = raw.rows("placement cp-sat")
    return pictures.maps(program_file.load("s-perc-star"), switch_file.load("rmt"), {"cp-sat": placement})
