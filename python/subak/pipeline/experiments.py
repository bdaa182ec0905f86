"""What the experiments of chapter 6 of the PERC thesis compute: rows of tables and the values that are checked.

Each function here is an experiment's ``run``: it is told settings, and answers ``values``, ``tables`` and ``notes``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from subak.pipeline import graph, program_file, switch_file
from subak.pipeline.fitting import GREEDY, Answer, fit, value_of
from subak.pipeline.placement import Placement
from subak.pipeline.program import Program
from subak.pipeline.switch import RELEASE, TEXT, Switch

Progress = Callable[[int, int, float], None]
Report = dict[str, Any]
PUBLISHED_GREEDY = {
    "l2l3-complex": {
        "ffd": (22, 135, 4.98),
        "ffd-16": (21, 135, 5.51),
        "ffd-exact16": (21, 135, 4.62),
        "ffl": (19, 131, 5.61),
        "ffl-16": (19, 131, 6.09),
        "ffl-exact16": (17, 132, 4.61),
        "ffls": (19, 130, 5.66),
        "ffls-16": (19, 130, 6.42),
        "ffls-exact16": (17, 131, 4.66),
        "mcf": (20, 132, 4.67),
        "mcf-16": (19, 132, 6.43),
        "mcf-exact16": (18, 132, 4.67),
    },
    "l2l3-simple": {
        "ffd-exact16": (21, 64, 7.54),
        "ffl-exact16": (19, 55, 7.55),
        "ffls-exact16": (20, 64, 7.88),
        "mcf-exact16": (19, 55, 7.54),
    },
    "l2l3-mtag": {
        "ffd-exact16": (22, 75, 7.65),
        "ffl-exact16": (19, 66, 7.66),
        "ffls-exact16": (21, 75, 8.10),
        "mcf-exact16": (19, 66, 7.65),
    },
    "l3dc": {
        "ffd-exact16": (7, 88, 2.34),
        "ffl-exact16": (7, 88, 2.34),
        "ffls-exact16": (7, 88, 2.34),
        "mcf-exact16": (7, 88, 2.34),
    },
}
"""Tables 6.4 and 6.5: stages, latency in cycles, power in W."""
OBJECTIVES = ("stages", "latency", "power")
COLUMNS = ["program", "solver", "objective", "stages", "latency_cycles", "power_w", "bound", "gap", "valid", "seconds"]
MTAG_DROPPED = ("Vrf", "UrpfV6", "Igmp_Snooping", "Ipv6_Prefix", "Ipv6_Forwarding")
"""A reading of the 11 tables that table 6.2 counts for FlexPipe: without these five the counts are 9, 1 and 3."""


def _silent(done: int, every: int, share: float) -> None:
    pass


def _workers() -> int:
    return min(os.cpu_count() or 1, 8)


def _row(answer: Answer, solver: str) -> list[Any]:
    m = answer.measures
    held = [m.stages, m.latency_cycles, round(m.power_w, 4)] if m else [None] * 3
    seconds = round(answer.seconds, 2)
    return [answer.program.name, solver, answer.objective, *held, answer.bound, answer.gap, answer.fits, seconds]


def rmt_table(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Tables 6.4 and 6.5: programs on RMT, by the greedy solvers and, for each objective, CP-SAT."""
    said = progress or _silent
    # The published figures count power as the release does; what equation 6.6 counts stands beside it.
    switch = replace(switch_file.load("rmt"), power=RELEASE)
    rows: list[list[Any]] = []
    values: dict[str, Any] = {"worse": 0, "rows_equal": 0, "rows_compared": 0, "rows_overfull": 0, "mcf_equal": 0}
    programs = list(settings["programs"])
    for k, name in enumerate(programs):
        program = program_file.load(name, "rmt")
        ours = {solver: fit(program, switch, "stages", solver) for solver in GREEDY}
        rows += [_row(answer, solver) for solver, answer in ours.items()]
        _reference_rows(program, switch, rows, values)
        for objective in settings["objectives"]:
            models = (switch, replace(switch, power=TEXT)) if objective == "power" else (switch,)
            for model in models:
                answer = fit(program, model, objective, time_limit=settings["seconds"], workers=_workers())
                beside = {s: a if model is switch else fit(program, model, "stages", s) for s, a in ours.items()}
                rows.append(_row(answer, "cp-sat" if model is switch else "cp-sat, equation 6.6"))
                key = f"{name.removeprefix('l2l3-')}_{objective}{'' if model is switch else '_text'}"
                values[key] = answer.value
                values[f"{key}_bound"] = answer.bound
                values[f"{key}_gap"] = 100 * (answer.gap or 0.0)
                values[f"{key}_seconds"] = round(answer.seconds, 2)
                others = [value_of(a.measures, objective) for a in beside.values() if a.fits and a.measures]
                values["worse"] += sum(other < (answer.value or 0.0) - 1e-9 for other in others)
                values[f"{key}_greedy"] = min(others)
        said(k + 1, len(programs), (k + 1) / len(programs))
    return {"values": values, "tables": {"solvers": {"columns": COLUMNS, "rows": rows}}}


def _reference_rows(program: Program, switch: Switch, rows: list[list[Any]], values: dict[str, Any]) -> None:
    for solver, published in PUBLISHED_GREEDY[program.name].items():
        answer = fit(program, switch, "stages", solver, reference=True)
        rows.append(_row(answer, f"{solver}, reference"))
        m = answer.measures
        same = m is not None and (m.stages, m.latency_cycles, round(m.power_w, 2)) == published
        if solver.startswith("mcf"):
            values["mcf_equal"] += int(same)
            continue
        values["rows_equal"] += int(same)
        values["rows_compared"] += 1
        values["rows_overfull"] += int(same and not answer.fits)


def counts(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Table 6.2: dependencies of the benchmark programs, raw and without what others imply."""
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


def mtag_11() -> Program:
    """L2L3-Mtag for FlexPipe with as many tables and dependencies as table 6.2 counts."""
    whole = program_file.load("l2l3-mtag", "flexpipe")
    tables = tuple(t for t in whole.tables if t.name not in MTAG_DROPPED)
    kept = [d for d in whole.dependencies if d.before not in MTAG_DROPPED and d.after not in MTAG_DROPPED]
    return replace(whole, tables=tables, dependencies=tuple(kept))


def sized(program: Program, low: float, high: float, random: Random) -> Program:
    """The program with each table's entries times a factor from ``low`` to ``high``, drawn on a logarithmic scale."""
    tables = [
        t if t.kind == "mapper" else replace(t, entries=max(int(t.entries * low * (high / low) ** random.random()), 2))
        for t in program.tables
    ]
    return replace(program, tables=tuple(tables))


def flexpipe_variants(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Table 6.3: sized variants of the two programs on FlexPipe, greedily and by CP-SAT, on both models."""
    said = progress or _silent
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
                # How few blocks a variant that fits anyway can do with is not asked.
                seconds = 1.0 if greedy else settings["seconds"]
                answer = fit(program, switch, "blocks", time_limit=seconds, workers=_workers())
                fits["mcf"] += "mcf" in greedy
                fits["greedy"] += bool(greedy)
                fits["cp-sat"] += answer.fits
                values["missed"] += bool(greedy) and not answer.fits
                values["undecided"] += answer.status == "unknown"
                held = [", ".join(greedy), answer.status, answer.value, round(answer.seconds, 2)]
                rows.append([model, key, k + 1, *held])
                said(len(rows), every, len(rows) / every)
            count = settings["variants"][key]
            values |= {f"{model}_{key}_{solver}": 100 * n / count for solver, n in fits.items()}
    columns = ["model", "program", "variant", "greedy", "status", "blocks", "seconds"]
    return {"values": values, "tables": {"variants": {"columns": columns, "rows": rows}}}


def drawn(answers: Mapping[str, Answer]) -> dict[str, Any]:
    """Placements as tables, for the figures: one a label."""
    columns = ["table", "stage", "memory", "use", "blocks", "entries", "unit", "first_block", "first_row"]
    tables = {}
    for label, answer in answers.items():
        rows = [row.to_dict() for row in answer.placement.rows] if answer.placement else []
        tables[f"placement {label}"] = {"columns": columns, "rows": [[r.get(c) for c in columns] for r in rows]}
    return tables


def toy(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Figures 6.8 to 6.11: a toy program by the solvers that ``settings`` names; on ``beside``, by CP-SAT alone."""
    switch = switch_file.load(settings["switch"])
    program = program_file.load(settings["program"])
    objective = "blocks" if switch.shares else "stages"
    answers = {s: fit(program, switch, objective, s, workers=1) for s in settings["solvers"]}
    values: dict[str, Any] = {
        s.replace("-", "_"): (a.value if a.value is not None else "does not fit") for s, a in answers.items()
    }
    greedy = [a.value for s, a in answers.items() if s != "cp-sat" and a.value is not None]
    values["best_greedy"] = min(greedy, default="none fits")
    exact = answers["cp-sat"]
    values["proven"] = exact.status == "optimal"
    if "beside" in settings:
        other = fit(program, switch_file.load(settings["beside"]), objective, workers=1)
        values["beside"] = other.value if other.value is not None else "does not fit"
        values["beside_proven"] = other.status in ("optimal", "infeasible")
    if switch.shares and exact.placement:
        values |= _sharing(exact.placement)
    return {"values": values, "tables": drawn(answers)}


def _sharing(placement: Placement) -> dict[str, Any]:
    """How blocks are shared: tables in the fullest block, and blocks whose set of tables is like no other's."""
    held: dict[tuple[int, str, int], set[str]] = {}
    spans = 0
    for row in placement.rows:
        spans = max(spans, row.blocks)
        for block in range(row.first_block or 0, (row.first_block or 0) + row.blocks):
            held.setdefault((row.stage, row.memory, block), set()).add(row.table)
    sets = [frozenset(tables) for tables in held.values()]
    return {"most_tables": max(map(len, sets)), "different_sets": len(set(sets)), "widest": spans}


def maps(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Figures 6.12 and 6.13: two solvers on one program, as maps."""
    switch = switch_file.load("rmt")
    program = program_file.load(settings["program"], "rmt")
    answers = {}
    for label, solver in settings["solvers"].items():
        greedy = solver != "cp-sat"
        answers[label] = fit(program, switch, "stages", solver, reference=greedy, workers=_workers())
    values: dict[str, Any] = {label: a.value for label, a in answers.items()}
    values |= {f"{label}_valid": a.fits for label, a in answers.items()}
    values |= {f"{label}_idle_ternary": _idle(a, settings["idle"]) for label, a in answers.items()}
    return {"values": values, "tables": drawn(answers)}


def _idle(answer: Answer, stages: Sequence[int]) -> int:
    """Ternary blocks that nobody uses between the first and the last of these stages, counted from 1."""
    first, last = stages
    placement = answer.placement
    used = (
        sum(r.blocks for r in placement.rows if r.memory == "tcam" and first <= r.stage + 1 <= last) if placement else 0
    )
    return sum(s.blocks["tcam"] for s in answer.switch.stages[first - 1 : last]) - used


def l2l3(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Figure 6.4: the dependencies of the L2/L3 program, as far as the text tells them."""
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


RELAXED = ("tables", "fields", "action crossbar", "crossbar")


def sensitivity(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Section 6.7.3: L2L3-Complex with constraints left out or resources doubled."""
    said = progress or _silent
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
        answer = fit(changed, switch, objective, time_limit=seconds, workers=_workers(), without=without)
        rows.append([label, objective, answer.status, answer.value, answer.bound, round(answer.seconds, 2)])
        key = f"{label}_{objective}".replace(" ", "_")
        values[key] = answer.value
        values[f"{key}_proven"] = answer.status == "optimal"
        values[f"{key}_seconds"] = round(answer.seconds, 2)
        said(done, len(asked), done / len(asked))
    columns = ["case", "objective", "status", "value", "bound", "seconds"]
    return {"values": values, "tables": {"cases": {"columns": columns, "rows": rows}}}


def s_perc(settings: Mapping[str, Any], runs: int, seed: int, progress: Progress | None = None) -> Report:
    """Algorithm 6 in P4 beside the Rust scheme, and its tables beside the thesis' (section 4.2.1)."""
    from subak.pipeline.p4 import sperc

    said = progress or _silent
    found = sperc.compare(settings["updates"], seed, lambda done, every: said(done, every, done / every))
    answer = fit(program_file.load("s-perc"), switch_file.load("rmt"), "stages", workers=_workers())
    values = {**found["counted"], **found["memory"]}
    values["different"] = sum(found["differ"].values())
    values["stages"] = answer.value
    values["latency_cycles"] = answer.measures.latency_cycles if answer.measures else None
    rows = [[name, count] for name, count in found["differ"].items()]
    notes = [f"The first difference: {found['first']}"] if found["first"] else []
    tables = {"fields": {"columns": ["field", "different"], "rows": rows}} | drawn({"cp-sat": answer})
    return {"values": values, "tables": tables, "notes": notes}
