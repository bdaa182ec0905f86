"""Control flow between tables: the tables that may follow each one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from subak.pipeline.ordering import order

END = None
Ways = Mapping[str, Iterable[str | None]]
"""Possible next tables of each table, in the program's order."""


def exclusive_pairs(ways: Ways) -> frozenset[frozenset[str]]:
    """Pairs of tables of which no packet traverses both, by the control flow."""
    reach = Flow(ways).reach
    names = list(ways)
    return frozenset(
        frozenset((a, b))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if b not in reach[a] and a not in reach[b]
    )


class Flow:
    """Control flow between tables: for each table, the tables that a packet may or must reach later."""

    def __init__(self, ways: Ways) -> None:
        self.next: dict[str, set[str | None]] = {name: set(follow) or {END} for name, follow in ways.items()}
        edges = [(name, to) for name, after in self.next.items() for to in after if to is not END]
        line, _ = order(self.next, edges)
        self.reach: dict[str, set[str]] = {}
        self._always: dict[str, set[str]] = {}
        for name in reversed(line):
            follow = [to for to in self.next[name] if to is not END]
            self.reach[name] = set(follow).union(*(self.reach[to] for to in follow))
            paths = [set() if to is END else {to} | self._always[to] for to in self.next[name]]
            self._always[name] = set.intersection(*paths)

    def decides(self, before: str, after: str) -> bool:
        """Whether ``before`` is the last table whose outcome decides if a packet reaches ``after``."""
        if after in self._always[before]:
            return False
        return any(to == after or after in self._always[to] for to in self.next[before] if to is not END)
