"""Text output of `subak fit`, and the rows of the report."""

from __future__ import annotations

from collections.abc import Sequence

from subak import units
from subak.pipeline.fitting import Answer, value_of
from subak.pipeline.graph_svg import critical_path
from subak.pipeline.placement import ACTION_USE, MATCH_USE
from subak.pipeline.program import Program
from subak.pipeline.switch import SHARED, Switch

STATUS = {
    "optimal": "fits, proven optimal",
    "feasible": "fits",
    "infeasible": "does not fit, proven",
    "unknown": "nothing was found in the time given",
    "failed": "gave up; another solver may do better",
}
UNITS = {"stages": "stages", "latency": "cycles", "power": "W", "blocks": "blocks"}


def verdict(answer: Answer) -> str:
    """The result of ``subak fit`` as a sentence."""
    said = f"{answer.program.name} on {answer.switch.name}: {STATUS[answer.status]}"
    if answer.wrong:
        said = f"{answer.program.name} on {answer.switch.name}: the placement is not valid"
    if answer.value is not None:
        said += f"; {answer.objective}: {number(answer.value)} {UNITS[answer.objective]}"
        if answer.status == "feasible" and answer.bound is not None:
            said += f", at least {number(answer.bound)}, gap {100 * (answer.gap or 0):.1f}%"
    return f"{said} ({answer.solver}, {units.seconds(answer.seconds)})"


def afterwards(found: Answer) -> str:
    """Further objectives and whether each is proven optimal, as text."""
    if not found.then or not found.measures:
        return ""
    parts = []
    for name, proven in found.then:
        value = number(value_of(found.measures, name))
        unit = "" if name == UNITS[name] else f" {UNITS[name]}"
        parts.append(f"{name} {value}{unit}{' (proven)' if proven else ''}")
    return f"Of those, the least known in {', then '.join(parts)}."


def number(value: float) -> str:
    """A count as an integer, a power in W with four decimals."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4f}"


def measures(answers: Sequence[Answer]) -> list[list[str]]:
    """Measures of placements: one row per solver."""
    rows = []
    for a in answers:
        m = a.measures
        bound = "" if a.bound is None else number(a.bound)
        gap = "" if a.gap is None else f"{100 * a.gap:.1f}%"
        status = "not valid" if a.wrong else a.status
        held = [str(m.stages), str(m.latency_cycles), f"{m.power_w:.3f}", str(m.blocks)] if m else [""] * 4
        rows.append(
            [a.solver, a.objective if a.solver == "cp-sat" else "", status, *held, bound, gap, units.seconds(a.seconds)]
        )
    return rows


MEASURES = ("Solver", "Objective", "Status", "Stages", "Latency, cycles", "Power, W", "Blocks", "Bound", "Gap", "Took")


def stage_rows(answer: Answer) -> tuple[list[str], list[list[str]]]:
    """Resources of each used stage: a heading, and one row per stage."""
    switch, placement = answer.switch, answer.placement
    assert placement
    head = ["Stage"]
    head += [f"{m.name} blocks" for m in switch.memories]
    head += [f"{m} crossbar" for m in switch.crossbars]
    head += ["Action bits"] if switch.action_bits is not None else []
    head += ["Tables", "Starts in cycle"]
    rows = []
    for number, stage in enumerate(switch.stages):
        held = [row for row in placement.rows if row.stage == number]
        if not held:
            continue
        row = [stage.name]
        for memory in switch.memories:
            mine = [r for r in held if r.memory == memory.name]
            if memory.packing == SHARED:
                used = len({b for r in mine for b in range(r.first_block or 0, (r.first_block or 0) + r.blocks)})
            else:
                used = sum(r.blocks for r in mine)
            row.append(f"{used} of {stage.blocks.get(memory.name, 0)}" if stage.blocks.get(memory.name, 0) else "")
        tables = sorted({r.table for r in held})
        for name, crossbar in switch.crossbars.items():
            matched = {r.table for r in held if r.use == MATCH_USE and r.memory == name}
            taken = sum(-(-max(answer.program.by_name[t].width, 1) // crossbar.width) for t in matched)
            row.append(f"{taken} of {crossbar.units}")
        if switch.action_bits is not None:
            row.append(f"{sum(answer.program.by_name[t].action_width for t in tables)} of {switch.action_bits}")
        most = f" of {switch.tables_per_stage}" if switch.tables_per_stage is not None else ""
        starts = answer.measures.starts[number] if answer.measures else ""
        rows.append([*row, f"{len(tables)}{most}", str(starts)])
    return head, rows


def chain(program: Program, switch: Switch) -> str:
    """The critical path as text."""
    path = critical_path(program, switch)
    cycles = any(delay.cycles for delay in switch.delays.values())
    asks = f"{path.length} cycles" if cycles else f"{path.length + 1} stages"
    return f"Critical path: {' -> '.join(path.tables)} ({asks} at least)"


def table_rows(answer: Answer) -> list[list[str]]:
    """Stages and memories of each table."""
    placement = answer.placement
    assert placement
    rows = []
    for table in answer.program.tables:
        mine = [r for r in placement.rows if r.table == table.name and r.use == MATCH_USE]
        stages = sorted({r.stage for r in mine})
        memories = ", ".join(dict.fromkeys(r.memory for r in mine))
        matched = sum(r.blocks for r in mine)
        action = sum(r.blocks for r in placement.rows if r.table == table.name and r.use == ACTION_USE)
        where = ", ".join(answer.switch.stages[s].name for s in stages)
        rows.append(
            [
                table.name,
                f"{table.kind}, {table.width} bits",
                str(table.entries),
                where,
                memories,
                str(matched),
                str(action),
            ]
        )
    return rows


TABLES = ("Table", "Matches", "Entries", "Stages", "Memory", "Match blocks", "Action blocks")


def answer(found: Answer, others: Sequence[Answer] = (), why: Sequence[str] = ()) -> None:
    """Prints the verdict, the measures, each stage's resources, and why the program does not fit."""
    from subak.show import console, table

    out = console()
    out.print(verdict(found))
    if found.why:
        out.print(f"{found.why}." if found.status == "infeasible" else f"{found.solver} gave up: {found.why}.")
    for note in found.program.notes:
        out.print(f"Note: {note}.")
    for wrong in found.wrong:
        out.print(f"Not valid: {wrong}")
    if said := afterwards(found):
        out.print(said)
    if found.measures:
        rows = table(None, *MEASURES)
        for row in measures([found, *others]):
            rows.add_row(*row)
        out.print(rows)
        head, body = stage_rows(found)
        stages = table(None, *head)
        for row in body:
            stages.add_row(*row)
        out.print(stages)
    elif others:
        rows = table(None, *MEASURES)
        for row in measures(others):
            rows.add_row(*row)
        out.print(rows)
    out.print(chain(found.program, found.switch))
    for line in why:
        out.print(line)
