"""A packet program for the compiler: tables and their dependencies (PERC thesis, section 6.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from subak.pipeline.flow import exclusive_pairs

EXACT, PREFIX, TERNARY, MAPPER = "exact", "prefix", "ternary", "mapper"
MATCH_KINDS = (EXACT, PREFIX, TERNARY, MAPPER)
MATCH, ACTION, SUCCESSOR, REVERSE = "match", "action", "successor", "reverse-match"
DEPENDENCY_KINDS = (MATCH, ACTION, SUCCESSOR, REVERSE)
"""Kinds of dependencies, the strictest first."""
MOST_TABLES = 2000


@dataclass(frozen=True)
class Key:
    """A field that a table matches, with its width and match kind."""

    field: str
    width: int
    """Width of the field, bits."""
    kind: str


@dataclass(frozen=True)
class Register:
    """Register array of actions: it is in one stage, with all tables that use it."""

    name: str
    width: int
    """Width of a cell, bits."""
    cells: int


@dataclass(frozen=True)
class Table:
    """A logical match-action table."""

    name: str
    keys: tuple[Key, ...]
    entries: int
    action_width: int = 0
    """Action data per entry, bits: of the widest action, since any entry may have any action."""
    statistics_width: int = 0
    """Width of the statistics (counters and meters) per entry, bits."""
    modifies: frozenset[str] = frozenset()
    """Fields that the table's actions write."""
    reads: frozenset[str] = frozenset()
    """Fields that the table's actions read as operands."""
    next: tuple[tuple[str, str | None], ...] | None = None
    """Outcomes, each with the next table (``None`` at the program's end); ``None`` if the control flow is unknown."""
    registers: tuple[Register, ...] = ()
    through: frozenset[str] = frozenset()
    """Fields, beside the keys, on which the outcome depends: inputs of an action selector, operands of a computed
    key, and ingress fields that determine a key in egress."""

    @cached_property
    def width(self) -> int:
        """Sum of the widths of the keys, bits."""
        return sum(key.width for key in self.keys)

    @cached_property
    def kind(self) -> str:
        """Match kind that memory must support: the most demanding kind of the keys."""
        return max((key.kind for key in self.keys), key=MATCH_KINDS.index, default=EXACT)

    @cached_property
    def matched(self) -> frozenset[str]:
        """Fields on which the outcome depends: keys, and those in ``through``."""
        return frozenset(key.field for key in self.keys) | self.through

    @cached_property
    def fields(self) -> int:
        """Number of fields that its actions write, without the copies of fields that the traffic manager reads."""
        return sum(not name.endswith("(queued)") for name in self.modifies)


@dataclass(frozen=True)
class Dependency:
    """A dependency: ``after`` must wait for ``before``."""

    before: str
    after: str
    kind: str
    fields: tuple[str, ...] = ()
    """Fields that cause the dependency, if it was derived."""

    def __str__(self) -> str:
        return f"{self.before} -> {self.after} ({self.kind})"


def ways(tables: Iterable[Table]) -> dict[str, list[str | None]]:
    """Possible next tables of each table; none for a table whose control flow is unknown."""
    return {table.name: [to for _, to in table.next or ()] for table in tables}


@dataclass(frozen=True)
class Program:
    """Tables in the order of the program, and their acyclic dependencies."""

    name: str
    tables: tuple[Table, ...]
    dependencies: tuple[Dependency, ...]
    source: str = ""
    """Where the program's data come from."""
    apart: frozenset[frozenset[str]] = frozenset()
    """Pairs of tables of which no packet traverses both, for programs whose control flow is unknown."""
    notes: tuple[str, ...] = ()
    """Notes for the user on parts of the program that are modelled conservatively."""

    @cached_property
    def by_name(self) -> dict[str, Table]:
        """The tables by name."""
        return {table.name: table for table in self.tables}

    @cached_property
    def users(self) -> dict[str, tuple[str, ...]]:
        """Tables that use each register, in the program's order; they are in one stage."""
        found: dict[str, tuple[str, ...]] = {}
        for table in self.tables:
            for register in table.registers:
                found[register.name] = (*found.get(register.name, ()), table.name)
        return found

    @cached_property
    def exclusive(self) -> frozenset[frozenset[str]]:
        """Pairs of tables of which no packet traverses both, as far as known."""
        return exclusive_pairs(ways(self.tables)) if self.has_flow else self.apart

    @cached_property
    def has_flow(self) -> bool:
        """Whether the control flow is known, and thus which tables exclude each other."""
        return all(table.next is not None for table in self.tables)

    def counts(self) -> dict[str, int]:
        """Number of dependencies of each kind."""
        return {kind: sum(d.kind == kind for d in self.dependencies) for kind in DEPENDENCY_KINDS}

    def with_dependencies(self, dependencies: Iterable[Dependency]) -> Program:
        """The same program with these dependencies instead of its own."""
        return replace(self, dependencies=tuple(dependencies))
