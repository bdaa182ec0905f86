"""Common code of the experiments on chapter 6 of the PERC thesis: placement of programs on switches."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from subak.pipeline import program_file
from subak.pipeline.fitting import Answer
from subak.pipeline.program import Program

Progress = Callable[[int, int, float], None]
Report = dict[str, Any]
MTAG_DROPPED = ("Vrf", "UrpfV6", "Igmp_Snooping", "Ipv6_Prefix", "Ipv6_Forwarding")
"""Tables of L2L3-Mtag to omit. Table 6.2 has 11 tables for FlexPipe without naming them; without these five, the
numbers of dependencies equal those published (9, 1 and 3)."""


def workers() -> int:
    """Number of threads for the exact solver."""
    return min(os.cpu_count() or 1, 8)


def mtag_11() -> Program:
    """L2L3-Mtag for FlexPipe with the numbers of tables and dependencies in table 6.2 of the PERC thesis."""
    whole = program_file.load("l2l3-mtag", "flexpipe")
    tables = tuple(t for t in whole.tables if t.name not in MTAG_DROPPED)
    kept = [d for d in whole.dependencies if d.before not in MTAG_DROPPED and d.after not in MTAG_DROPPED]
    return replace(whole, tables=tables, dependencies=tuple(kept))


def drawn(answers: Mapping[str, Answer]) -> dict[str, Any]:
    """Placements as tables for the figures, one per label."""
    columns = ["table", "stage", "memory", "use", "blocks", "entries", "unit", "first_block", "first_row"]
    tables = {}
    for label, answer in answers.items():
        rows = [row.to_dict() for row in answer.placement.rows] if answer.placement else []
        tables[f"placement {label}"] = {"columns": columns, "rows": [[r.get(c) for c in columns] for r in rows]}
    return tables
