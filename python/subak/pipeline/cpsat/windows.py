"""Window of each table: depths (positions of stages) that its dependencies and the stages' capacity allow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from math import ceil

from subak.pipeline.ordering import order
from subak.pipeline.packing import Needs
from subak.pipeline.program import Dependency, Program, Table
from subak.pipeline.sorting import capacity
from subak.pipeline.switch import SHARED, Switch


class Windows:
    """First and last possible depth of every table in a pipeline of ``depth`` stages."""

    def __init__(
        self, program: Program, switch: Switch, needs: Mapping[str, Needs], depth: int, without: Collection[str] = ()
    ) -> None:
        self.switch = switch
        self.depth = depth
        self._needs = needs
        self._stages: dict[str, list[int]] = {}
        names = [t.name for t in program.tables]
        dependencies = program.dependencies if switch.layered and "dependencies" not in without else ()
        line, _ = order(names, [(d.before, d.after) for d in dependencies])
        whole = "blocks" in without
        self.spans = {t.name: 1 if whole else fewest_stages(t.entries, switch, needs[t.name]) for t in program.tables}
        """Lower bound on the number of stages of each table."""
        after: dict[str, list[Dependency]] = {name: [] for name in names}
        before: dict[str, list[Dependency]] = {name: [] for name in names}
        for d in dependencies:
            after[d.before].append(d)
            before[d.after].append(d)
        self._first = dict.fromkeys(names, 0)
        for name in line:
            ends = (self._first[d.before] + self.spans[d.before] - 1 + self._apart(d) for d in before[name])
            self._first[name] = max([0, *ends])
        self._last = dict.fromkeys(names, depth - 1)
        for name in reversed(line):
            starts = (self._last[d.after] - self.spans[d.after] + 1 - self._apart(d) for d in after[name])
            self._last[name] = min([depth - 1, *starts])
        self.longest = max((self._first[n] + self.spans[n] for n in names), default=0)
        """Lower bound on the number of stages, by the longest chain of dependent tables."""
        self.least = max([self.longest, *self._crowded(program, without)])
        """Lower bound on the number of stages, by the chain and by the capacity of stages."""

    def _apart(self, dependency: Dependency) -> bool:
        return self.switch.delays[dependency.kind].separate

    def _crowded(self, program: Program, without: Collection[str]) -> Iterator[int]:
        """Yields lower bounds on the number of stages, by the capacity that the tables with late windows need."""
        if not self.switch.is_chain:
            return
        room: list[tuple[int, Mapping[str, int]]] = []
        if self.switch.tables_per_stage is not None and "tables" not in without:
            room.append((self.switch.tables_per_stage, self.spans))
        for memory in self.switch.memories if "blocks" not in without else ():
            most = max(s.blocks.get(memory.name, 0) for s in self.switch.stages)
            only = {t.name: least_blocks(t, self._needs[t.name], memory.name, self.switch) for t in program.tables}
            if most and memory.packing != SHARED:
                room.append((most, only))
        tails = {name: self.depth - 1 - last for name, last in self._last.items()}
        for head in sorted(set(self._first.values())):
            late = [name for name, first in self._first.items() if first >= head]
            for tail in sorted({tails[name] for name in late}):
                both = [name for name in late if tails[name] >= tail]
                for most, weights in room:
                    yield head + tail + -(-sum(weights[name] for name in both) // most)

    def of(self, name: str) -> tuple[int, int]:
        """Earliest and latest position of a table in the chain of dependencies."""
        return self._first[name], self._last[name]

    def stages(self, name: str) -> list[int]:
        """Stages in the window that have memory for the table."""
        if name not in self._stages:
            first, last = self.of(name)
            formats, stages = self._needs[name].formats, self.switch.stages
            self._stages[name] = [
                s
                for s, depth in enumerate(self.switch.depths)
                if first <= depth <= last and any(stages[s].blocks.get(m, 0) for m in formats)
            ]
        return self._stages[name]

    def empty(self) -> list[str]:
        """Tables without a possible stage."""
        return [name for name in self._first if not self.stages(name)]


def least_blocks(table: Table, needs: Needs, memory: str, switch: Switch) -> int:
    """Lower bound on the number of blocks of a memory that a table uses, over all stages."""
    held = 0
    if list(needs.formats) == [memory]:
        held += ceil(table.entries * min(Fraction(unit.blocks, unit.entries) for unit in needs.formats[memory]))
    if memory == switch.overhead:
        held += sum(ceil(Fraction(table.entries * unit.blocks, unit.entries)) for unit in needs.overheads)
        held += sum(needs.register_blocks)
    return held


def fewest_stages(entries: int, switch: Switch, needs: Needs) -> int:
    """Lower bound on the number of stages of a table, as if it had them to itself and used every memory fully."""
    if not switch.is_chain or needs.register_blocks:
        return 1
    most = 0
    for blocks in {tuple(sorted(stage.blocks.items())) for stage in switch.stages}:
        held = 0
        for memory, formats in needs.formats.items():
            if switch.memory[memory].packing == SHARED:
                return 1
            held += max(capacity(unit, memory, dict(blocks), needs, switch, entries)[0] for unit in formats)
        most = max(most, held)
    return max(-(-entries // most), 1) if most else 1
