"""Where each table can lie at all: depths that its dependencies, and the room its chain needs, leave it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from subak.pipeline import graph
from subak.pipeline.packing import Needs
from subak.pipeline.program import Program
from subak.pipeline.sorting import capacity
from subak.pipeline.switch import SHARED, Switch


class Windows:
    """First and last depth of every table in a pipeline cut off at ``depth``."""

    def __init__(
        self, program: Program, switch: Switch, needs: Mapping[str, Needs], depth: int, without: Collection[str] = ()
    ) -> None:
        self.switch = switch
        self.depth = depth
        self._needs = needs
        names = [t.name for t in program.tables]
        dependencies = program.dependencies if switch.layered and "dependencies" not in without else ()
        line, _ = graph.order(names, [(d.before, d.after) for d in dependencies])
        spans = {
            t.name: 1 if "blocks" in without else fewest_stages(t.entries, switch, needs[t.name])
            for t in program.tables
        }
        self._first = dict.fromkeys(names, 0)
        for name in line:
            for d in dependencies:
                if d.after == name:
                    end = self._first[d.before] + spans[d.before] - 1
                    self._first[name] = max(self._first[name], end + switch.delays[d.kind].separate)
        self._last = dict.fromkeys(names, depth - 1)
        for name in reversed(line):
            for d in dependencies:
                if d.before == name:
                    start = self._last[d.after] - spans[d.after] + 1
                    self._last[name] = min(self._last[name], start - switch.delays[d.kind].separate)
        self.least = max((self._first[n] + spans[n] for n in names), default=0)
        """Fewest stages that the longest chain takes."""

    def of(self, name: str) -> tuple[int, int]:
        """First and last depth."""
        return self._first[name], self._last[name]

    def stages(self, name: str) -> list[int]:
        """Stages inside the window that have memory for the table."""
        first, last = self.of(name)
        return [
            s
            for s, depth in enumerate(self.switch.depths)
            if first <= depth <= last and any(self.switch.stages[s].blocks.get(m, 0) for m in self._needs[name].formats)
        ]

    def empty(self) -> list[str]:
        """Tables that no stage is left for."""
        return [name for name in self._first if not self.stages(name)]


def fewest_stages(entries: int, switch: Switch, needs: Needs) -> int:
    """A lower bound on the stages that a table takes: all of each stage, and every memory at its best."""
    if not switch.is_chain or needs.register_blocks:
        return 1
    most = 0
    for stage in switch.stages:
        held = 0
        for memory, formats in needs.formats.items():
            if switch.memory[memory].packing == SHARED:
                return 1
            held += max(capacity(unit, memory, stage.blocks, needs, switch, entries)[0] for unit in formats)
        most = max(most, held)
    return max(-(-entries // most), 1) if most else 1
