"""Declarations of controls: actions, tables, variables, externs and instances of other controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lark import Token, Tree

from subak.pipeline.p4.parse import Node
from subak.pipeline.p4.types import Type


@dataclass(frozen=True)
class Parameter:
    """A parameter of an action, a control or a function."""

    name: str
    type: Type
    direction: str
    """in, out, inout, or empty; empty in an action means data of a table's entries."""
    node: Node
    default: Node | None = None
    """Value for a call without this argument."""


@dataclass
class Action:
    """An action or a function: parameters and body."""

    name: str
    taken: list[Parameter]
    body: Node
    result: Type | None = None
    """Result type of a function."""

    @property
    def parameters(self) -> list[tuple[str, int]]:
        """Name and width of each parameter that a table's entries store."""
        return [(p.name, p.type.width or 0) for p in self.taken if not p.direction]


NO_ACTION = Action("NoAction", [], Tree("block", []))
"""The action NoAction of core.p4."""


@dataclass
class Table:
    """A table as the P4 program declares it."""

    name: str
    node: Node
    keys: list[tuple[Node, str]] = field(default_factory=list)
    """Expression and match kind of each key."""
    actions: list[str] = field(default_factory=list)
    given: dict[str, list[Node]] = field(default_factory=dict)
    """Arguments of each action in the table's list of actions."""
    default: tuple[str, list[Node]] = ("NoAction", [])
    size: int | None = None
    entries: list[Node] = field(default_factory=list)
    attached: list[Extern] = field(default_factory=list)
    """Direct counters and meters, action profiles and selectors of the table."""


@dataclass(frozen=True)
class Extern:
    """An instance of an extern."""

    kind: str
    name: str
    width: int = 0
    """Width of a cell, bits; of a direct counter or meter, bits per entry."""
    cells: int = 0


@dataclass
class Control:
    """A control: ingress, egress, or a control that these apply."""

    name: str
    prefix: str
    """Prefix of the names of the control's own variables."""
    egress: bool
    taken: list[Parameter]
    body: Node
    variables: list[Node] = field(default_factory=list)
    constants: list[Node] = field(default_factory=list)
    actions: dict[str, Action] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    externs: dict[str, Extern] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    """For each instance of another control, the control's name."""

    @property
    def registers(self) -> dict[str, tuple[int, int]]:
        """Width and number of cells of each register."""
        return {name: (e.width, e.cells) for name, e in self.externs.items() if e.kind == "register"}


def parts(node: Any) -> list[Any]:
    """The children of a node that are present; optional ones may be ``None``."""
    return [c for c in node.children if c is not None]


def walk(node: Node) -> Iterator[Node]:
    """The node and all its descendants."""
    yield node
    for child in node.children:
        if isinstance(child, Tree):
            yield from walk(child)


def is_a(node: object, data: str) -> bool:
    """Whether a node of the syntax tree is of the kind ``data``."""
    return isinstance(node, Tree) and node.data == data


def arguments(node: Any) -> list[Node]:
    """Arguments of a call: the children of its last argument list."""
    last: Any = node.children[-1] if node.children else None
    return [c for c in last.children if c is not None] if is_a(last, "arguments") else []


def token_of(node: Any) -> Token:
    """The first name among the children of a node."""
    return next(c for c in node.children if isinstance(c, Token) and c.type in ("NAME", "TYPE"))
