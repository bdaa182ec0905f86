"""Memory in whole blocks in the constraint program: units of a packing format, and their overhead blocks."""

from __future__ import annotations

from ortools.sat.python import cp_model

from subak.pipeline.cpsat.model import Literal, Model
from subak.pipeline.packing import Needs, Unit
from subak.pipeline.placement import ACTION_USE, MATCH_USE, REGISTER_USE, STATISTICS_USE, Placed
from subak.pipeline.switch import SHARED, Memory


class Whole:
    """Part of a model that places units of a packing format in whole blocks."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.units: dict[tuple[str, int, str, Unit], cp_model.IntVar] = {}
        self._of: dict[tuple[str, int], list[tuple[int, cp_model.IntVar]]] = {}
        """Entries per unit, and number of units, of each table in each stage."""
        self._in: dict[tuple[int, str], list[tuple[str, Unit]]] = {}
        """Tables and formats whose units may be in each stage and memory."""
        self.chosen: dict[tuple[str, int, str, Unit], Literal] = {}
        """Whether a table uses a format in a stage."""
        self.beside: dict[tuple[str, int, str], tuple[Unit, cp_model.IntVar]] = {}
        self._beside_in: dict[int, list[tuple[Unit, cp_model.IntVar]]] = {}
        for memory in model.switch.memories:
            if memory.packing != SHARED:
                for (name, stage), here in model.here.items():
                    self._match(name, stage, here, memory)
        for name, stage in model.here:
            self._lay_beside(name, stage, model.needs[name])
        if "blocks" not in model.without:
            self._blocks()
        if "crossbar" not in model.without:
            self._crossbars()

    def matched(self, name: str, stage: int) -> list[tuple[int, cp_model.IntVar]]:
        """Entries per unit, and number of units, of a table in a stage."""
        return self._of.get((name, stage), [])

    def _match(self, name: str, stage: int, here: Literal, memory: Memory) -> None:
        self.model.tick()
        cp, table = self.model.cp, self.model.program.by_name[name]
        formats = useful(self.model.needs[name], memory.name, table.entries)
        there = self.model.switch.stages[stage].blocks.get(memory.name, 0)
        chosen = []
        for unit in formats:
            most = -(-table.entries // unit.entries)
            if "blocks" not in self.model.without:
                most = min(most, there // unit.blocks)
            if most < 1:
                continue
            key = (name, stage, memory.name, unit)
            self.chosen[key] = cp.new_bool_var("")
            self.units[key] = cp.new_int_var(0, most, "") if most > 1 else self.chosen[key]
            self._of.setdefault((name, stage), []).append((unit.entries, self.units[key]))
            self._in.setdefault((stage, memory.name), []).append((name, unit))
            if most > 1:
                cp.add(self.units[key] <= most * self.chosen[key])
                cp.add(self.units[key] >= self.chosen[key])
            cp.add_implication(self.chosen[key], here)
            chosen.append(self.chosen[key])
        if len(chosen) > 1:
            cp.add_at_most_one(chosen)

    def _lay_beside(self, name: str, stage: int, needs: Needs) -> None:
        overhead = self.model.switch.overhead
        if not overhead:
            return
        for use, unit in ((ACTION_USE, needs.action), (STATISTICS_USE, needs.statistics)):
            if unit:
                matched = self.matched(name, stage)
                most = -(-sum(entries * units.proto.domain[1] for entries, units in matched) // unit.entries)
                var = self.model.cp.new_int_var(0, most, "")
                entries = sum(entries * units for entries, units in matched)
                self.model.cp.add(unit.entries * var >= entries)
                self.beside[name, stage, use] = (unit, var)
                self._beside_in.setdefault(stage, []).append((unit, var))

    def _blocks(self) -> None:
        """Adds constraints: matches, overhead data and registers fit into the blocks of each stage."""
        switch, cp = self.model.switch, self.model.cp
        for stage, described in enumerate(switch.stages):
            for memory in (m for m in switch.memories if m.packing != SHARED):
                held = self._in.get((stage, memory.name), [])
                terms = [unit.blocks * self.units[name, stage, memory.name, unit] for name, unit in held]
                if memory.name == switch.overhead:
                    terms += [u.blocks * var for u, var in self._beside_in.get(stage, [])]
                    for name, here in self.model.tables_in(stage):
                        blocks = sum(self.model.needs[name].register_blocks)
                        terms += [blocks * here] if blocks else []
                if terms:
                    cp.add(sum(terms) <= described.blocks.get(memory.name, 0))

    def _crossbars(self) -> None:
        for memory, crossbar in self.model.switch.crossbars.items():
            for stage in range(len(self.model.switch.stages)):
                used: dict[str, list[Literal]] = {}
                for name, unit in self._in.get((stage, memory), []):
                    used.setdefault(name, []).append(self.chosen[name, stage, memory, unit])
                subunits = {name: self.model.needs[name].subunits[memory] for name in used}
                if sum(subunits.values()) > crossbar.units:
                    self.model.cp.add(sum(subunits[n] * sum(c) for n, c in used.items()) <= crossbar.units)

    def rows(self, solver: cp_model.CpSolver) -> list[Placed]:
        """The placed units of the solver's solution."""
        rows = []
        matched: dict[tuple[str, int], int] = {}
        for (name, stage, memory, unit), var in self.units.items():
            if units := solver.value(var):
                entries = units * unit.entries
                rows.append(Placed(name, stage, memory, MATCH_USE, units * unit.blocks, entries, unit.blocks))
                matched[name, stage] = matched.get((name, stage), 0) + entries
        overhead = self.model.switch.overhead
        for (name, stage), entries in matched.items():
            needs = self.model.needs[name]
            for use, beside in ((ACTION_USE, needs.action), (STATISTICS_USE, needs.statistics)):
                if beside and overhead:
                    units = -(-entries // beside.entries)
                    held = units * beside.entries
                    rows.append(Placed(name, stage, overhead, use, units * beside.blocks, held, beside.blocks))
            registers = self.model.program.by_name[name].registers
            for register, blocks in zip(registers, needs.register_blocks, strict=True):
                if overhead and blocks:
                    rows.append(Placed(name, stage, overhead, REGISTER_USE, blocks, register.cells))
        return rows

    def hint(self, placed: tuple[Placed, ...]) -> None:
        """Starts the search from a placement."""
        cp = self.model.cp
        units = {
            (r.table, r.stage, r.memory, r.unit, r.entries // (r.blocks // r.unit)): r
            for r in placed
            if r.use == MATCH_USE
        }
        for key, var in self.units.items():
            name, stage, memory, unit = key
            row = units.get((name, stage, memory, unit.blocks, unit.entries))
            if var is not self.chosen[key]:
                cp.add_hint(var, row.blocks // row.unit if row else 0)
            cp.add_hint(self.chosen[key], row is not None)
        beside = {(r.table, r.stage, r.use): r.blocks // r.unit for r in placed if r.use != MATCH_USE}
        for place, (_, var) in self.beside.items():
            cp.add_hint(var, beside.get(place, 0))


def useful(needs: Needs, memory: str, entries: int) -> tuple[Unit, ...]:
    """Formats that an optimal placement may use: only the narrowest if one unit of that format stores all entries.

    Without overhead beside the match, more entries in the same number of blocks are never worse.
    """
    formats = needs.formats.get(memory, ())
    if formats and entries <= formats[0].entries:
        return formats[:1]
    if needs.overheads:
        return formats
    return tuple(
        unit
        for unit in formats
        if not any(other != unit and other.blocks <= unit.blocks and other.entries >= unit.entries for other in formats)
    )
