"""A packet program as the compiler sees it: tables, and what has to come before what (perc-thesis, section 6.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from subak.pipeline.flow import exclusive_pairs

EXACT, PREFIX, TERNARY, MAPPER = "exact", "prefix", "ternary", "mapper"
MATCH_KINDS = (EXACT, PREFIX, TERNARY, MAPPER)
MATCH, ACTION, SUCCESSOR, REVERSE = "match", "action", "successor", "reverse-match"
DEPENDENCY_KINDS = (MATCH, ACTION, SUCCESSOR, REVERSE)
"""The strictest first."""
MOST_TABLES = 2000


@dataclass(frozen=True)
class Key:
    """One field that a table matches."""

    field: str
    width: int
    """Bits."""
    kind: str


@dataclass(frozen=True)
class Register:
    """State of tables' actions: it lies in one stage, and in it all tables that use it."""

    name: str
    width: int
    """Bits a cell."""
    cells: int


@dataclass(frozen=True)
class Table:
    """One logical table."""

    name: str
    keys: tuple[Key, ...]
    entries: int
    action_width: int = 0
    """Bits of action data an entry: of the widest action, as any entry may hold any action."""
    statistics_width: int = 0
    """Bits of statistics memory an entry."""
    modifies: frozenset[str] = frozenset()
    """Fields that its actions write."""
    reads: frozenset[str] = frozenset()
    """Fields that its actions take as operands."""
    next: tuple[tuple[str, str | None], ...] | None = None
    """Outcome and the table that follows, ``None`` at the program's end; without it no control flow is known."""
    registers: tuple[Register, ...] = ()
    through: frozenset[str] = frozenset()
    """Fields that it looks at beside its keys: those that a selector goes by, parts of a key, or what decides a key on
    the way into egress."""

    @cached_property
    def width(self) -> int:
        """Bits that it matches."""
        return sum(key.width for key in self.keys)

    @cached_property
    def kind(self) -> str:
        """The match kind that memory has to support for it: the hardest among its fields'."""
        return max((key.kind for key in self.keys), key=MATCH_KINDS.index, default=EXACT)

    @cached_property
    def matched(self) -> frozenset[str]:
        """Fields that it matches."""
        return frozenset(key.field for key in self.keys) | self.through

    @cached_property
    def fields(self) -> int:
        """How many fields its actions write; what stands for a way of one into egress is none."""
        return sum(not name.endswith("(queued)") for name in self.modifies)


@dataclass(frozen=True)
class Dependency:
    """``after`` has to wait for ``before``."""

    before: str
    after: str
    kind: str
    fields: tuple[str, ...] = ()
    """The fields that tie the two, where they were derived."""

    def __str__(self) -> str:
        return f"{self.before} -> {self.after} ({self.kind})"


def ways(tables: Iterable[Table]) -> dict[str, list[str | None]]:
    """Where a packet may go from each table, as far as is known."""
    return {table.name: [to for _, to in table.next or ()] for table in tables}


@dataclass(frozen=True)
class Program:
    """Tables in the order of the program, and their dependencies, acyclic."""

    name: str
    tables: tuple[Table, ...]
    dependencies: tuple[Dependency, ...]
    source: str = ""
    """Where its facts come from."""
    apart: frozenset[frozenset[str]] = frozenset()
    """Pairs of tables that no packet meets both of, where no control flow tells."""
    notes: tuple[str, ...] = ()
    """What was taken for more than it is."""

    @cached_property
    def by_name(self) -> dict[str, Table]:
        """The tables by name."""
        return {table.name: table for table in self.tables}

    @cached_property
    def users(self) -> dict[str, tuple[str, ...]]:
        """The tables that use each register, in the program's order; they lie in one stage."""
        found: dict[str, tuple[str, ...]] = {}
        for table in self.tables:
            for register in table.registers:
                found[register.name] = (*found.get(register.name, ()), table.name)
        return found

    @cached_property
    def exclusive(self) -> frozenset[frozenset[str]]:
        """Pairs of tables that no packet meets both of, as far as anything is known of it."""
        return exclusive_pairs(ways(self.tables)) if self.has_flow else self.apart

    @cached_property
    def has_flow(self) -> bool:
        """Whether the control flow is known, and with it which tables exclude each other."""
        return all(table.next is not None for table in self.tables)

    def counts(self) -> dict[str, int]:
        """Dependencies of each kind."""
        return {kind: sum(d.kind == kind for d in self.dependencies) for kind in DEPENDENCY_KINDS}

    def with_dependencies(self, dependencies: Iterable[Dependency]) -> Program:
        """The same tables under other dependencies."""
        return replace(self, dependencies=tuple(dependencies))
