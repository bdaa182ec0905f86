"""Dependencies from matched fields, modified fields and control flow (perc-thesis, section 6.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from subak.pipeline.graph import order
from subak.pipeline.program import ACTION, MATCH, REVERSE, SUCCESSOR, Dependency, Table

END = None


def dependencies(tables: Sequence[Table]) -> tuple[Dependency, ...]:
    """The strictest dependency of each pair of tables that a packet may meet one after the other.

    ``next`` of every table has to be known and free of circles. An operand that an action takes counts like a field
    that it writes: the earlier write has to be done by then, the earlier match not (Bosshart and others, SIGCOMM 2013).
    """
    flow = Flow(tables)
    found = []
    place = {table.name: k for k, table in enumerate(tables)}
    for before in tables:
        for k in sorted(place[name] for name in flow.reach[before.name]):
            dependency = _between(before, tables[k], flow)
            if dependency:
                found.append(dependency)
    return tuple(found)


def _between(before: Table, after: Table, flow: Flow) -> Dependency | None:
    writes = before.modifies
    if fields := writes & after.matched:
        return Dependency(before.name, after.name, MATCH, tuple(sorted(fields)))
    if fields := writes & (after.modifies | after.reads):
        return Dependency(before.name, after.name, ACTION, tuple(sorted(fields)))
    if flow.decides(before.name, after.name):
        return Dependency(before.name, after.name, SUCCESSOR)
    if fields := (before.matched | before.reads) & after.modifies:
        return Dependency(before.name, after.name, REVERSE, tuple(sorted(fields)))
    return None


def exclusive_pairs(tables: Sequence[Table]) -> frozenset[frozenset[str]]:
    """Pairs of tables that no packet meets both of, as far as the control flow tells."""
    reach = Flow(tables).reach
    names = [t.name for t in tables]
    return frozenset(
        frozenset((a, b))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if b not in reach[a] and a not in reach[b]
    )


class Flow:
    """The control flow between tables."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.next: dict[str, set[str | None]] = {t.name: {to for _, to in t.next or ()} or {END} for t in tables}
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
        """Whether the outcome of ``before`` decides if a packet meets ``after``, and nothing later does."""
        if after in self._always[before]:
            return False
        return any(to == after or after in self._always[to] for to in self.next[before] if to is not END)
