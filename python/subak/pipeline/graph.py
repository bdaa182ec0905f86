"""The table dependency graph: order, transitive reduction, levels and critical path."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from subak.pipeline.ordering import order
from subak.pipeline.program import ACTION, DEPENDENCY_KINDS, MATCH, Dependency, Program


class Path(NamedTuple):
    """A chain of tables along dependencies, with the sum of its weights."""

    length: int
    tables: tuple[str, ...]


def reduced(program: Program) -> Program:
    """The program without redundant dependencies.

    A dependency is redundant if a chain of others connects its tables and contains an edge at least as strict: for a
    match dependency another match, for an action dependency a match or an action, for the rest anything.
    """
    rank = {kind: i for i, kind in enumerate((*reversed(DEPENDENCY_KINDS),))}
    rank = {kind: max(r, rank["successor"]) for kind, r in rank.items()}
    strict = _strictest_chains(program, rank)
    kept = [d for d in program.dependencies if strict.get((d.before, d.after), -1) < rank[d.kind]]
    return program.with_dependencies(kept)


def _strictest_chains(program: Program, rank: dict[str, int]) -> dict[tuple[str, str], int]:
    """For each pair, the strictest edge on any chain of two or more edges between them."""
    after: dict[str, list[Dependency]] = {t.name: [] for t in program.tables}
    for d in program.dependencies:
        after[d.before].append(d)
    topological, _ = order(after, [(d.before, d.after) for d in program.dependencies])
    long: dict[tuple[str, str], int] = {}
    reach: dict[str, dict[str, int]] = {}
    for name in reversed(topological):
        best: dict[str, int] = {}
        for d in after[name]:
            for far, strictest in reach[d.after].items():
                value = max(strictest, rank[d.kind])
                long[name, far] = max(long.get((name, far), -1), value)
                best[far] = max(best.get(far, -1), value)
            best[d.after] = max(best.get(d.after, -1), rank[d.kind])
        reach[name] = best
    return long


def longest(program: Program, weight: Callable[[Dependency], int], of: Callable[[str], int] = lambda _: 0) -> Path:
    """The longest chain, with weights of dependencies and of tables."""
    paths = longest_from(program, weight, of)
    return max(paths.values(), key=lambda path: path.length, default=Path(0, ()))


def longest_from(
    program: Program, weight: Callable[[Dependency], int], of: Callable[[str], int] = lambda _: 0
) -> dict[str, Path]:
    """For each table the longest chain from it to the end."""
    after: dict[str, list[Dependency]] = {t.name: [] for t in program.tables}
    for d in program.dependencies:
        after[d.before].append(d)
    topological, _ = order(after, [(d.before, d.after) for d in program.dependencies])
    paths: dict[str, Path] = {}
    for name in reversed(topological):
        chains = [Path(weight(d) + paths[d.after].length, paths[d.after].tables) for d in after[name]]
        best = max(chains, key=lambda path: path.length, default=Path(0, ()))
        paths[name] = Path(best.length + of(name), (name, *best.tables))
    return paths


def levels(program: Program) -> dict[str, int]:
    """The level of each table: match and action dependencies on its longest chain to the end (section 6.5.1)."""
    return {name: path.length for name, path in longest_from(program, is_strict).items()}


def is_strict(dependency: Dependency) -> int:
    """1 if RMT requires separate stages, otherwise 0."""
    return int(dependency.kind in (MATCH, ACTION))
