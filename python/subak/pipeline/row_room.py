"""Free rows in the shared blocks of one memory in one stage, for the greedy solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from subak.pipeline.switch import Memory


class Rows(NamedTuple):
    """A range of rows over adjacent blocks: first block, first row, number of rows."""

    block: int
    first: int
    number: int


class RowRoom:
    """Used rows of each block, and the tables that use them."""

    def __init__(self, memory: Memory, blocks: int, excludes: Callable[[str, str], bool]) -> None:
        self.memory = memory
        self._excludes = excludes
        """Whether two tables may share a block, if only mutually exclusive tables may."""
        self._free: list[list[tuple[int, int]]] = [[(0, memory.depth)] for _ in range(blocks)]
        self._tables: list[set[str]] = [set() for _ in range(blocks)]

    def take(self, table: str, wide: int, entries: int) -> Rows | None:
        """Allocates up to ``entries`` free rows over the first ``wide`` adjacent blocks that have some."""
        for block in range(len(self._free) - wide + 1):
            blocks = range(block, block + wide)
            if not all(self._lets_in(b, table) for b in blocks):
                continue
            if common := self._common(blocks):
                first, end = max(common, key=lambda gap: min(gap[1] - gap[0], entries))
                rows = Rows(block, first, min(end - first, entries))
                for b in blocks:
                    self._mark(b, rows)
                    self._tables[b].add(table)
                return rows
        return None

    def _lets_in(self, block: int, table: str) -> bool:
        here = self._tables[block]
        if table in here:
            # A table has one range per block: if one begins in this block, no other may.
            return False
        if len(here) >= self.memory.tables_per_block:
            return False
        return not self.memory.exclusive or all(self._excludes(table, other) for other in here)

    def _common(self, blocks: range) -> list[tuple[int, int]]:
        gaps = self._free[blocks[0]]
        for block in blocks[1:]:
            gaps = [(max(a, c), min(b, d)) for a, b in gaps for c, d in self._free[block] if max(a, c) < min(b, d)]
        return gaps

    def _mark(self, block: int, rows: Rows) -> None:
        begin, end = rows.first, rows.first + rows.number
        gaps = [part for a, b in self._free[block] for part in ((a, min(b, begin)), (max(a, end), b))]
        self._free[block] = [(a, b) for a, b in gaps if a < b]
