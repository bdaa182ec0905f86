"""What controls declare: actions, tables, variables, externs and instances of other controls."""

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
    """in, out, inout, or nothing: of an action, what its table's entries hold."""
    node: Node
    default: Node | None = None
    """Value where a call names none."""


@dataclass
class Action:
    """An action or a function: what it is handed, and what it does."""

    name: str
    taken: list[Parameter]
    body: Node
    result: Type | None = None
    """Of a function."""

    @property
    def parameters(self) -> list[tuple[str, int]]:
        """Name and bits of what a table's entries hold for it."""
        return [(p.name, p.type.width or 0) for p in self.taken if not p.direction]


NO_ACTION = Action("NoAction", [], Tree("block", []))
"""The action that core.p4 declares: it does nothing."""


@dataclass
class Table:
    """A table as declared."""

    name: str
    node: Node
    keys: list[tuple[Node, str]] = field(default_factory=list)
    """Expression and match kind."""
    actions: list[str] = field(default_factory=list)
    given: dict[str, list[Node]] = field(default_factory=dict)
    """What the list of actions hands each."""
    default: tuple[str, list[Node]] = ("NoAction", [])
    size: int | None = None
    entries: list[Node] = field(default_factory=list)
    attached: list[Extern] = field(default_factory=list)
    """Direct counters and meters, action profiles and selectors."""


@dataclass(frozen=True)
class Extern:
    """An instance of an extern."""

    kind: str
    name: str
    width: int = 0
    """Bits of a cell; of a direct counter or meter, bits an entry."""
    cells: int = 0


@dataclass
class Control:
    """A control: ingress, egress, or one that they apply."""

    name: str
    prefix: str
    """What the names of its own variables begin with."""
    egress: bool
    taken: list[Parameter]
    body: Node
    variables: list[Node] = field(default_factory=list)
    constants: list[Node] = field(default_factory=list)
    actions: dict[str, Action] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    externs: dict[str, Extern] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    """Of other controls: their names by the instance's."""

    @property
    def registers(self) -> dict[str, tuple[int, int]]:
        """Bits of a cell, and cells, of each register."""
        return {name: (e.width, e.cells) for name, e in self.externs.items() if e.kind == "register"}


def parts(node: Any) -> list[Any]:
    """The children that are there."""
    return [c for c in node.children if c is not None]


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in node.children:
        if isinstance(child, Tree):
            yield from walk(child)


def is_a(node: object, data: str) -> bool:
    """Whether a node is of this kind."""
    return isinstance(node, Tree) and node.data == data


def arguments(node: Any) -> list[Node]:
    """What a call hands over: the children of the arguments that stand last in it."""
    last: Any = node.children[-1] if node.children else None
    return [c for c in last.children if c is not None] if is_a(last, "arguments") else []


def token_of(node: Any) -> Token:
    """The first name in a node."""
    return next(c for c in node.children if isinstance(c, Token) and c.type in ("NAME", "TYPE"))
