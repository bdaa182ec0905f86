"""Smallest numbers of stages by an independent formulation on HiGHS.

It is a program of its own, since HiGHS and OR-tools cannot be imported in one process. ``python
tests/models/fit_highs.py PROGRAM STAGES [SECONDS]`` prints whether the program fits into that number of stages of
RMT. It reads the program's JSON, computes formats, overheads and order itself, and imports nothing of Subak.
"""

from __future__ import annotations

import json
import sys
from math import ceil, gcd
from pathlib import Path
from typing import Any

import highspy

PROGRAMS = Path(__file__).parents[2] / "python/subak/pipeline/programs"
BLOCKS = {"sram": 106, "tcam": 16}
ROWS = {"sram": 1000, "tcam": 2000}
BITS = {"sram": 80, "tcam": 40}
SUBUNITS, SUBUNIT_BITS, ACTION_BITS, TABLES = 8, 80, 1280, 8
STRICT = ("match", "action")


def formats(width: int, memory: str) -> list[tuple[int, int]]:
    """Packing formats: blocks and entries of each unit, for entries of ``width`` bits."""
    one = ceil(width / BITS[memory])
    if memory == "tcam":
        return [(one, ROWS[memory])]
    widest = max(width // gcd(width, BITS[memory]), one)
    found = {(one, ROWS[memory])}
    for blocks in range(one, one + 3):
        if blocks <= widest:
            found.add((blocks, blocks * BITS[memory] // width * ROWS[memory]))
    return sorted(found)


def heads_and_tails(names: list[str], edges: list[tuple[str, str, bool]]) -> tuple[dict[str, int], dict[str, int]]:
    """Number of strict dependencies on the longest chain to each table, and on the longest chain from it."""
    head, tail = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for _ in names:
        for before, after, strict in edges:
            head[after] = max(head[after], head[before] + strict)
            tail[before] = max(tail[before], tail[after] + strict)
    return head, tail


def goes_in(told: dict[str, Any], stages: int, seconds: float) -> str:
    """Whether the program fits into ``stages`` stages: ``yes``, ``no`` or ``unknown``."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("threads", 1)
    tables = {t["name"]: t for t in told["tables"]}
    edges = [(a, b, kind in STRICT) for kind, pairs in told["dependencies"].items() for a, b in pairs]
    head, tail = heads_and_tails(list(tables), edges)
    if any(head[n] + tail[n] + 1 > stages for n in tables):
        return "no"
    used: dict[tuple[int, str], list[Any]] = {(s, m): [] for s in range(stages) for m in BLOCKS}
    crossbar: dict[tuple[int, str], list[Any]] = {(s, m): [] for s in range(stages) for m in BLOCKS}
    here: dict[tuple[str, int], Any] = {}
    for name, table in tables.items():
        width = sum(key["width"] for key in table["match"])
        exact = all(key["kind"] == "exact" for key in table["match"])
        held = []
        for s in range(head[name], stages - tail[name]):
            here[name, s] = solver.addBinary()
            laid = []
            for memory in ("sram", "tcam") if exact else ("tcam",):
                chosen = []
                for blocks, entries in formats(width, memory):
                    most = min(BLOCKS[memory] // blocks, ceil(table["entries"] / entries))
                    if most < 1:
                        continue
                    units, pick = solver.addIntegral(0, most), solver.addBinary()
                    solver.addConstr(units <= most * pick)
                    used[s, memory].append(blocks * units)
                    laid.append((entries, units))
                    chosen.append(pick)
                    solver.addConstr(pick <= here[name, s])
                if chosen:
                    solver.addConstr(sum(chosen) <= 1)
                    crossbar[s, memory].append(ceil(width / SUBUNIT_BITS) * sum(chosen))
            total = sum(entries * units for entries, units in laid)
            held.append(total)
            solver.addConstr(sum(units for _, units in laid) >= here[name, s])
            if action := table.get("action_width", 0):
                wide = ceil(action / BITS["sram"])
                data = solver.addIntegral(0, BLOCKS["sram"])
                solver.addConstr(wide * BITS["sram"] // action * ROWS["sram"] * data >= total)
                used[s, "sram"].append(wide * data)
        solver.addConstr(sum(held) >= table["entries"])
    for (s, memory), terms in used.items():
        if terms:
            solver.addConstr(sum(terms) <= BLOCKS[memory])
        if crossbar[s, memory]:
            solver.addConstr(sum(crossbar[s, memory]) <= SUBUNITS)
    for s in range(stages):
        mine = [(name, var) for (name, at), var in here.items() if at == s]
        solver.addConstr(sum(var for _, var in mine) <= TABLES)
        solver.addConstr(sum(tables[name].get("action_width", 0) * var for name, var in mine) <= ACTION_BITS)
    order(solver, tables, edges, here, stages)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return "no"
    return "yes" if status == highspy.HighsModelStatus.kOptimal else "unknown"


def order(
    solver: highspy.Highs,
    tables: dict[str, Any],
    edges: list[tuple[str, str, bool]],
    here: dict[tuple[str, int], Any],
    stages: int,
) -> None:
    """Adds constraints: a table's stages are between its start and its end; a dependent table starts at or after
    that end."""
    begun = {(n, s): solver.addBinary() for n in tables for s in range(stages)}
    ended = {(n, s): solver.addBinary() for n in tables for s in range(stages)}
    for n in tables:
        for s in range(stages):
            if s + 1 < stages:
                solver.addConstr(begun[n, s] <= begun[n, s + 1])
                solver.addConstr(ended[n, s] <= ended[n, s + 1])
            if (n, s) in here:
                solver.addConstr(here[n, s] <= begun[n, s])
                if s:
                    solver.addConstr(here[n, s] + ended[n, s - 1] <= 1)
        solver.addConstr(ended[n, stages - 1] == 1)
    for before, after, strict in edges:
        for s in range(stages):
            if s - strict < 0:
                solver.addConstr(begun[after, s] <= 0)
            else:
                solver.addConstr(begun[after, s] <= ended[before, s - strict])


if __name__ == "__main__":
    program = json.loads((PROGRAMS / f"{sys.argv[1]}.json").read_text())
    print(goes_in(program, int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 300.0))
