"""Explains why a program does not fit, or does not fit into fewer stages, by an irreducible infeasible subset."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from subak.pipeline import cpsat, graph, greedy
from subak.pipeline.cpsat.windows import Windows, fewest_stages
from subak.pipeline.packing import Needs
from subak.pipeline.placement import Placement
from subak.pipeline.program import Dependency, Program
from subak.pipeline.switch import Switch

LIMITS = ("blocks", "crossbar", "action crossbar", "tables", "fields", "registers")
FAILS, HOLDS, UNDECIDED = "fails", "holds", "undecided"
TRIAL_SECONDS = 2.0
ENDLESS = 10**9
"""Blocks of a stage are multiplied by this to make them unlimited."""


@dataclass(frozen=True)
class Core:
    """A set of constraints that no placement meets."""

    depth: int
    """Number of stages that does not suffice; parallel stages count once."""
    sizes: tuple[str, ...]
    """Tables whose number of entries matters; any other table could have a single entry."""
    dependencies: tuple[Dependency, ...]
    limits: tuple[str, ...]
    undecided: tuple[Any, ...]
    """Constraints of the set that might be unnecessary: the time limit was reached before a decision."""
    chain: tuple[str, ...]
    """The longest chain of tables, if it is too long by itself."""

    @property
    def minimal(self) -> bool:
        """Whether the set is feasible without any one of its constraints."""
        return not self.undecided

    def to_dict(self) -> dict[str, Any]:
        """The set of constraints as a JSON document."""
        return {
            "depth": self.depth,
            "tables": list(self.sizes),
            "dependencies": [{"before": d.before, "after": d.after, "kind": d.kind} for d in self.dependencies],
            "limits": list(self.limits),
            "minimal": self.minimal,
            "undecided": [str(demand) for demand in self.undecided],
            "chain": list(self.chain),
        }


def core(
    program: Program, switch: Switch, needs: Mapping[str, Needs], depth: int | None = None, seconds: float = 30.0
) -> Core | str:
    """An irreducible infeasible subset of the constraints, for a pipeline of ``depth`` stages.

    Returns ``HOLDS`` if the program fits, ``UNDECIDED`` if ``seconds`` did not suffice.
    """
    depth = max(switch.depths) + 1 if depth is None else depth
    until = time.monotonic() + seconds
    # Without the limit of blocks, shared memory would have no rows: every subset includes it.
    fixed = ["blocks"] if switch.shares else []
    limits = [limit for limit in LIMITS if _has(program, switch, limit) and limit not in fixed]
    demands: list[Any] = [*limits, *program.dependencies, *(t.name for t in program.tables)]

    def tried(kept: Sequence[Any]) -> str:
        """``FAILS`` if these constraints alone are infeasible, ``HOLDS`` if they are feasible, or ``UNDECIDED``."""
        left = until - time.monotonic()
        if left <= 0.05:
            return UNDECIDED
        held = set(kept)
        fewer = _relaxed(program, held)
        without = [limit for limit in limits if limit not in held]
        if _placed(fewer, switch, needs, without, depth):
            return HOLDS
        patience = left if len(kept) == len(demands) else min(left, TRIAL_SECONDS)
        found = cpsat.solve(fewer, switch, needs, None, time_limit=patience, without=without, depth=depth)
        return {"infeasible": FAILS, "unknown": UNDECIDED}.get(found.status, HOLDS)

    first = tried(demands)
    if first != FAILS:
        return first
    kept, undecided = _shrink(demands, tried)
    sizes = tuple(d for d in kept if isinstance(d, str) and d in program.by_name)
    found = tuple(d for d in kept if isinstance(d, Dependency))
    held = (*fixed, *(d for d in kept if d in limits))
    return Core(depth, sizes, found, held, tuple(undecided), _chain(program, switch, needs, depth))


def _placed(program: Program, switch: Switch, needs: Mapping[str, Needs], without: Sequence[str], depth: int) -> bool:
    """Whether a greedy solver finds a placement: this is faster than the exact solver's proof."""
    if "registers" in without:
        return False
    factor = ENDLESS if "blocks" in without else 1
    stages = (replace(s, blocks={m: n * factor for m, n in s.blocks.items()}) for s in switch.stages)
    free = replace(
        switch,
        stages=tuple(stages),
        crossbars={} if "crossbar" in without else switch.crossbars,
        action_bits=None if "action crossbar" in without else switch.action_bits,
        tables_per_stage=None if "tables" in without else switch.tables_per_stage,
        fields_per_stage=None if "fields" in without else switch.fields_per_stage,
    )
    found = greedy.place(program, free, needs, "ffl", "")
    return isinstance(found, Placement) and all(switch.depths[row.stage] < depth for row in found.rows)


def _has(program: Program, switch: Switch, limit: str) -> bool:
    present = {
        "blocks": True,
        "crossbar": bool(switch.crossbars),
        "action crossbar": switch.action_bits is not None,
        "tables": switch.tables_per_stage is not None,
        "fields": switch.fields_per_stage is not None,
        "registers": any(t.registers for t in program.tables),
    }
    return present[limit]


def _relaxed(program: Program, held: set[Any]) -> Program:
    tables = tuple(t if t.name in held else replace(t, entries=1) for t in program.tables)
    kept = tuple(d for d in program.dependencies if d in held)
    return replace(program, tables=tables, dependencies=kept)


def _shrink(demands: list[Any], tried: Callable[[Sequence[Any]], str]) -> tuple[list[Any], list[Any]]:
    """Removes constraints, in ever smaller groups, while the rest stays infeasible.

    Also returns the undecided constraints.
    """
    kept, needed = list(demands), set()
    size = max(len(kept) // 2, 1)
    while True:
        start = 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            outcome = tried(rest)
            if outcome == FAILS:
                kept = rest
                continue
            if size == 1 and outcome == HOLDS:
                needed.add(kept[start])
            start += size
        if size == 1:
            return kept, [demand for demand in kept if demand not in needed]
        size = max(size // 2, 1)


def _chain(program: Program, switch: Switch, needs: Mapping[str, Needs], depth: int) -> tuple[str, ...]:
    """The chain of tables that is longer than the pipeline, if there is one."""
    if not switch.layered or Windows(program, switch, needs, depth).longest <= depth:
        return ()
    spans = {t.name: fewest_stages(t.entries, switch, needs[t.name]) for t in program.tables}
    # Two tables that share a stage add one stage fewer.
    path = graph.longest(program, lambda d: int(switch.delays[d.kind].separate) - 1, lambda name: spans[name])
    return path.tables


def words(found: Core, program: Program, switch: Switch) -> list[str]:
    """The infeasible subset as sentences."""
    count = f"{found.depth} stages" if found.depth != 1 else "1 stage"
    said = [f"{program.name} does not fit into {count} of {switch.name}."]
    if found.chain:
        said.append(f"The chain {' -> '.join(found.chain)} alone is longer.")
    lead = "These demands cannot hold together"
    said.append(f"{lead}{', and any one fewer could' if found.minimal else ''}:")
    told: list[tuple[Any, str]] = [(limit, _limit(limit, program, switch)) for limit in found.limits]
    told += [(d, f"{d.after} waits for {d.before} ({d.kind} dependency{_fields(d)})") for d in found.dependencies]
    for name in found.sizes:
        table = program.by_name[name]
        told.append((name, f"{name} holds {table.entries} entries of {table.width} bits ({table.kind})"))
    open_ = set(found.undecided)
    said += [f"- {line}{' (not decided in the time: it may be needless)' if d in open_ else ''}" for d, line in told]
    return said


def _fields(d: Dependency) -> str:
    return f" by {', '.join(d.fields)}" if d.fields else ""


def _limit(limit: str, program: Program, switch: Switch) -> str:
    blocks: dict[str, set[int]] = {}
    for stage in switch.stages:
        for memory, count in stage.blocks.items():
            if count:
                blocks.setdefault(memory, set()).add(count)
    shared = [f"{name} of {' and '.join(users)}" for name, users in program.users.items() if len(users) > 1]
    told = {
        "blocks": "the memory of a stage: "
        + ", ".join(f"{' or '.join(map(str, sorted(n)))} blocks of {m}" for m, n in blocks.items()),
        "crossbar": "the input crossbars of a stage: "
        + ", ".join(f"{c.units} x {c.width} bits for {m}" for m, c in switch.crossbars.items()),
        "action crossbar": f"{switch.action_bits} bits of action data a stage",
        "tables": f"{switch.tables_per_stage} tables a stage",
        "fields": f"{switch.fields_per_stage} modified fields a stage",
        "registers": f"a register lies in one stage, with all tables that use it{': ' if shared else ''}"
        + ", ".join(shared),
    }
    return told[limit]
