"""Shared memory in the constraint program: blocks store rows of several tables (PERC thesis, figure 6.8)."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from ortools.sat.python import cp_model

from subak.pipeline.cpsat.model import Literal, Model
from subak.pipeline.packing import spans
from subak.pipeline.placement import MATCH_USE, Placed
from subak.pipeline.switch import SHARED, Memory


class Range(NamedTuple):
    """Rows of a table in adjacent shared blocks, from a given first block on."""

    there: Literal
    first: cp_model.IntVar
    rows: cp_model.IntVar
    interval: cp_model.IntervalVar


class Shared:
    """Part of a model that places ranges of rows: one for each table and first block."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ranges: dict[tuple[str, int, str, int], Range] = {}
        self._of: dict[tuple[str, int], list[Range]] = {}
        """Ranges of each table in each stage."""
        self._over: dict[tuple[int, str, int], list[tuple[str, Range]]] = {}
        """Ranges that may have rows in each block."""
        for memory in model.switch.memories:
            if memory.packing == SHARED:
                for (name, stage), here in model.here.items():
                    if memory.name in model.needs[name].formats:
                        self._ranges(name, stage, here, memory)
        for stage, described in enumerate(model.switch.stages):
            for memory in (m for m in model.switch.memories if m.packing == SHARED):
                blocks = [self._touching(stage, memory, b) for b in range(described.blocks.get(memory.name, 0))]
                for held in blocks:
                    self._share(memory, held)
                self._total(stage, memory, len(blocks))

    def matched(self, name: str, stage: int) -> list[tuple[int, cp_model.IntVar]]:
        """For each range of a table in a stage: entries per row (1), and number of rows."""
        return [(1, r.rows) for r in self._of.get((name, stage), [])]

    def _ranges(self, name: str, stage: int, here: Literal, memory: Memory) -> None:
        self.model.tick()
        cp, table = self.model.cp, self.model.program.by_name[name]
        wide = spans(table, memory)
        most = min(memory.depth, table.entries)
        for block in range(self.model.switch.stages[stage].blocks.get(memory.name, 0) - wide + 1):
            key = f"{name} {stage} {memory.name} {block}"
            there = cp.new_bool_var(f"there {key}")
            first = cp.new_int_var(0, memory.depth - 1, f"first {key}")
            rows = cp.new_int_var(0, most, f"rows {key}")
            end = cp.new_int_var(0, memory.depth, f"end {key}")
            interval = cp.new_optional_interval_var(first, rows, end, there, f"interval {key}")
            cp.add(rows <= most * there)
            cp.add(rows >= there)
            cp.add_implication(there, here)
            found = Range(there, first, rows, interval)
            self.ranges[name, stage, memory.name, block] = found
            self._of.setdefault((name, stage), []).append(found)
            for over in range(block, block + wide):
                self._over.setdefault((stage, memory.name, over), []).append((name, found))

    def _touching(self, stage: int, memory: Memory, block: int) -> list[tuple[str, Range]]:
        """Ranges that may have rows in a block."""
        return self._over.get((stage, memory.name, block), [])

    def _share(self, memory: Memory, held: list[tuple[str, Range]]) -> None:
        cp, program = self.model.cp, self.model.program
        if not held or "blocks" in self.model.without:
            return
        cp.add_no_overlap([r.interval for _, r in held])
        # Necessary for any order of the ranges: a block has no more rows than its depth.
        cp.add(sum(r.rows for _, r in held) <= memory.depth)
        by_table: dict[str, list[Range]] = {}
        for name, r in held:
            by_table.setdefault(name, []).append(r)
        if len(by_table) > memory.tables_per_block:
            cp.add(sum(self._any(ranges) for ranges in by_table.values()) <= memory.tables_per_block)
        if memory.exclusive:
            for a, b in combinations(by_table, 2):
                if frozenset((a, b)) not in program.exclusive:
                    cp.add_bool_or([self._any(by_table[a]).negated(), self._any(by_table[b]).negated()])

    def _any(self, ranges: list[Range]) -> Literal:
        if len(ranges) == 1:
            return ranges[0].there
        some = self.model.cp.new_bool_var("some")
        self.model.cp.add_max_equality(some, [r.there for r in ranges])
        return some

    def _total(self, stage: int, memory: Memory, blocks: int) -> None:
        """Adds cuts: a row over all blocks has few parts of ``q`` blocks, and a table uses whole parts."""
        held = [
            (spans(self.model.program.by_name[name], memory), r.rows)
            for (name, s, m, _), r in self.ranges.items()
            if (s, m) == (stage, memory.name)
        ]
        if held and "blocks" not in self.model.without:
            for q in range(1, max(wide for wide, _ in held) + 1):
                parts = [(wide // q, rows) for wide, rows in held if wide >= q]
                self.model.cp.add(sum(count * rows for count, rows in parts) <= blocks // q * memory.depth)

    def used(self) -> list[Literal]:
        """For each shared block whether it is used."""
        found = []
        for stage, described in enumerate(self.model.switch.stages):
            for memory in (m for m in self.model.switch.memories if m.packing == SHARED):
                for block in range(described.blocks.get(memory.name, 0)):
                    held = self._touching(stage, memory, block)
                    if held:
                        found.append(self._any([r for _, r in held]))
        return found

    def rows(self, solver: cp_model.CpSolver) -> list[Placed]:
        """The placed rows of the solver's solution."""
        rows = []
        for (name, stage, memory, block), r in self.ranges.items():
            if solver.value(r.there):
                wide = spans(self.model.program.by_name[name], self.model.switch.memory[memory])
                held, first = solver.value(r.rows), solver.value(r.first)
                rows.append(Placed(name, stage, memory, MATCH_USE, wide, held, wide, block, first))
        return rows

    def hint(self, placed: tuple[Placed, ...]) -> None:
        """Starts the search from a placement."""
        held = {(row.table, row.stage, row.memory, row.first_block): row for row in placed}
        for place, r in self.ranges.items():
            row = held.get(place)
            self.model.cp.add_hint(r.there, row is not None)
            self.model.cp.add_hint(r.rows, row.entries if row else 0)
            self.model.cp.add_hint(r.first, row.first_row or 0 if row else 0)
