"""Placement as a constraint program (PERC thesis, section 6.4): presence of tables, order, limits of each stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from math import inf

from ortools.sat.python import cp_model

from subak.pipeline.cpsat.windows import Windows
from subak.pipeline.packing import Needs
from subak.pipeline.program import Dependency, Program
from subak.pipeline.switch import Switch

Literal = cp_model.IntVar


class OutOfTimeError(Exception):
    """Raised if the time limit is reached before the model is complete."""


class Model:
    """Variables and constraints of a program on a switch, over the stages in each table's window."""

    def __init__(
        self,
        program: Program,
        switch: Switch,
        needs: Mapping[str, Needs],
        windows: Windows,
        without: Collection[str] = (),
        until: float = inf,
    ) -> None:
        self._until = until
        self.cp = cp_model.CpModel()
        self.program, self.switch, self.needs, self.windows = program, switch, needs, windows
        self.without = without
        self.here: dict[tuple[str, int], Literal] = {}
        """For a table and a stage: whether the table is present there."""
        self._in: dict[int, list[tuple[str, Literal]]] = {}
        for table in program.tables:
            self.tick()
            for stage in windows.stages(table.name):
                here = self.cp.new_bool_var("")
                self.here[table.name, stage] = here
                self._in.setdefault(stage, []).append((table.name, here))
            self.cp.add_bool_or([self.here[table.name, s] for s in windows.stages(table.name)])
        if "registers" not in without:
            self._keep_together()
        self.started: dict[tuple[str, int], Literal] = {}
        self.finished: dict[tuple[str, int], Literal] = {}
        if "dependencies" not in without:
            self._order()
        self._limits()

    def tables_in(self, stage: int) -> Sequence[tuple[str, Literal]]:
        """Tables that may be in a stage, with the variables of their presence."""
        return self._in.get(stage, ())

    def tick(self) -> None:
        """Stops building the model when the time limit is reached."""
        if time.monotonic() > self._until:
            raise OutOfTimeError

    def _order(self) -> None:
        if not self.switch.layered:
            for d in self.program.dependencies:
                self._keep_apart(d)
            return
        tied = {name for d in self.program.dependencies for name in (d.before, d.after)}
        for name in (t.name for t in self.program.tables if t.name in tied):
            self._follow(name)
        for d in self.program.dependencies:
            self.tick()
            apart = int(self.switch.delays[d.kind].separate)
            for depth in range(self.windows.depth):
                started, finished = self._is_started(d.after, depth), self._is_finished(d.before, depth - apart)
                if started is None or finished is True:
                    continue
                if isinstance(finished, cp_model.IntVar):
                    self.cp.add_implication(started, finished)
                else:
                    self.cp.add(started == 0)

    def _keep_together(self) -> None:
        """Adds constraints: a register is in one stage, with every table that uses it."""
        for table in self.program.tables:
            if table.registers:
                self.cp.add_exactly_one(self.here[table.name, s] for s in self.windows.stages(table.name))
        for users in self.program.users.values():
            for one, other in pairwise(users):
                for stage in {*self.windows.stages(one), *self.windows.stages(other)}:
                    self.cp.add(self.here.get((one, stage), 0) == self.here.get((other, stage), 0))

    def _follow(self, name: str) -> None:
        """Adds two literals per depth of the pipeline: whether the table has started, and whether it has finished."""
        first, last = self.windows.of(name)
        for depth in range(first, last + 1):
            self.started[name, depth] = self.cp.new_bool_var("")
            self.finished[name, depth] = self.cp.new_bool_var("")
        for depth in range(first, last):
            self.cp.add_implication(self.started[name, depth], self.started[name, depth + 1])
            self.cp.add_implication(self.finished[name, depth], self.finished[name, depth + 1])
            self.cp.add_implication(self.finished[name, depth], self.started[name, depth])
        self.cp.add(self.started[name, last] == 1)
        self.cp.add(self.finished[name, last] == 1)
        for stage in self.windows.stages(name):
            depth = self.switch.depths[stage]
            self.cp.add_implication(self.here[name, stage], self.started[name, depth])
            if depth > first:
                self.cp.add_implication(self.here[name, stage], self.finished[name, depth - 1].negated())

    def _is_started(self, name: str, depth: int) -> Literal | None:
        """Whether the table has started at or before ``depth``, as a literal; ``None`` if its window begins later."""
        first, last = self.windows.of(name)
        return None if depth < first else self.started[name, min(depth, last)]

    def _is_finished(self, name: str, depth: int) -> Literal | bool | None:
        first, last = self.windows.of(name)
        if depth < first:
            return None
        return True if depth >= last else self.finished[name, depth]

    def _keep_apart(self, d: Dependency) -> None:
        for i in self.windows.stages(d.before):
            for j in self.windows.stages(d.after):
                if not self.switch.allows(d.kind, i, j):
                    self.cp.add_bool_or([self.here[d.before, i].negated(), self.here[d.after, j].negated()])

    def _limits(self) -> None:
        switch, by_name = self.switch, self.program.by_name
        weighed: tuple[tuple[str, int | None, Callable[[str], int]], ...] = (
            ("tables", switch.tables_per_stage, lambda _: 1),
            ("fields", switch.fields_per_stage, lambda name: by_name[name].fields),
            ("action crossbar", switch.action_bits, lambda name: by_name[name].action_width),
        )
        for limit, most, weight in weighed:
            if most is None or limit in self.without:
                continue
            for stage in range(len(switch.stages)):
                held = [(weight(name), here) for name, here in self.tables_in(stage)]
                if sum(w for w, _ in held) > most:
                    self.cp.add(sum(w * here for w, here in held if w) <= most)
