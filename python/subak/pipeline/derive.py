"""Derives dependencies from matched fields, modified fields and control flow (PERC thesis, section 6.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from subak.pipeline.flow import Flow
from subak.pipeline.program import ACTION, MATCH, REVERSE, SUCCESSOR, Dependency, Table, ways


def dependencies(tables: Sequence[Table]) -> tuple[Dependency, ...]:
    """The strictest dependency of each pair of tables that a packet may traverse one after the other.

    ``next`` of every table must be known and acyclic. An operand of an action counts like a field that it writes: an
    earlier action must have written it, but an earlier match need not be complete (Bosshart et al., SIGCOMM 2013).
    """
    flow = Flow(ways(tables))
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
