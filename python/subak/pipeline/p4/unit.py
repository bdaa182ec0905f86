"""What a P4 program declares: constants, types, the fields that there are, and the controls a packet goes through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lark import Token, Tree

from subak.pipeline.p4.parse import Node, fault

WIDEST = 4096
"""Bits of the widest value."""
STANDARD = {
    "ingress_port": 9,
    "egress_spec": 9,
    "egress_port": 9,
    "instance_type": 32,
    "packet_length": 32,
    "enq_timestamp": 32,
    "enq_qdepth": 19,
    "deq_timedelta": 32,
    "deq_qdepth": 19,
    "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48,
    "mcast_grp": 16,
    "egress_rid": 16,
    "priority": 3,
}
VALID = "$valid$"
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}


@dataclass
class Action:
    """An action: what its table's entries hand it, and what it does."""

    name: str
    parameters: list[tuple[str, int]]
    body: Node


@dataclass
class Table:
    """A table as declared."""

    name: str
    node: Node
    keys: list[tuple[Node, str]] = field(default_factory=list)
    """Expression and match kind."""
    actions: list[str] = field(default_factory=list)
    default: tuple[str, list[Node]] = ("NoAction", [])
    size: int | None = None
    entries: list[Node] = field(default_factory=list)


@dataclass
class Control:
    """A control of the pipeline: ingress or egress."""

    name: str
    prefix: str
    """What the names of its own variables begin with."""
    roles: dict[str, str]
    """``hdr``, ``meta`` or ``standard_metadata``, by what the control calls it."""
    variables: dict[str, int]
    actions: dict[str, Action]
    tables: dict[str, Table]
    registers: dict[str, tuple[int, int]]
    """Bits of a cell, and cells."""
    starts: list[Node]
    """Variables with a first value."""
    body: Node


class Unit:
    """A program after its declarations are read."""

    def __init__(self, tree: Node, file: str) -> None:
        self.file = file
        self.constants: dict[str, tuple[int, int | None]] = {}
        self.widths: dict[str, int] = {}
        """Of types that are a number of bits."""
        self.headers: dict[str, dict[str, int]] = {}
        self.structs: dict[str, dict[str, Node]] = {}
        self._declared: dict[str, Node] = {}
        self._main: Node | None = None
        self._role_types: dict[str, str] = {}
        for node in tree.children:
            assert isinstance(node, Tree)
            self._declare(node)
        self.controls = self._controls()
        self.fields: dict[str, int] = {f"standard_metadata.{name}": width for name, width in STANDARD.items()}
        for control in self.controls:
            self._bind(control)

    def error(self, node: Node | Token, what: str, mend: str) -> Exception:
        """An error at the node's place."""
        return fault(node, self.file, what, mend)

    def _declare(self, node: Node) -> None:
        parts = _parts(node)
        if node.data == "constant":
            width = self.width(parts[0])
            self.constants[str(parts[1])] = (self.value(parts[2]), width)
        elif node.data == "typedef":
            self.widths[_name(parts[1])] = self.width(parts[0])
        elif node.data == "header":
            self.headers[_name(parts[0])] = {str(n): self.width(t) for t, n in map(_typed, parts[1:])}
        elif node.data == "struct":
            self.structs[_name(parts[0])] = {str(n): t for t, n in map(_typed, parts[1:])}
        elif node.data == "control":
            self._declared[str(parts[0])] = node
        elif node.data == "instance":
            self._main = node

    def width(self, node: Any) -> int:
        """Bits of a type."""
        if isinstance(node, Tree) and node.data == "bits":
            width = self.value(node.children[0])
            if not 1 <= width <= WIDEST:
                raise self.error(node, f"bit<{width}> is out of range", f"give 1 to {WIDEST} bits")
            return width
        if isinstance(node, Tree) and node.data == "boolean":
            return 1
        if isinstance(node, Tree) and node.data == "named" and str(node.children[0]) in self.widths:
            return self.widths[str(node.children[0])]
        shown = str(node.children[0]) if isinstance(node, Tree) and node.children else "this type"
        what = "int<> is outside the P4 that is read" if _is(node, "signed") else f"{shown} is no number of bits"
        raise self.error(node, what, "use bit<N>, bool, or a typedef of one declared before")

    def value(self, node: Any) -> int:
        """The value of an expression of constants."""
        if _is(node, "number"):
            return number(str(node.children[0]))[0]
        if _is(node, "true") or _is(node, "false"):
            return int(node.data == "true")
        if _is(node, "name") and str(node.children[0]) in self.constants:
            return self.constants[str(node.children[0])][0]
        if isinstance(node, Tree) and node.data in ARITHMETIC:
            left, right = (self.value(child) for child in node.children)
            return {"add": left + right, "sub": left - right, "mul": left * right}[str(node.data)]
        if _is(node, "cast"):
            return self.value(node.children[1]) & ((1 << self.width(node.children[0])) - 1)
        if _is(node, "shl"):
            left, right = (self.value(child) for child in node.children)
            return left << min(right, WIDEST)
        raise self.error(node, "this is no constant", "write a number, or a const declared before")

    def _controls(self) -> list[Control]:
        if self._main is None:
            raise fault(
                Token("NAME", ""), self.file, "it has no main", "end it with V1Switch(parser(), ..., deparser()) main;"
            )
        parts = _parts(self._main)
        named = [str(part.children[0]) for part in parts[1].children] if parts[1] else []
        if str(parts[0]) != "V1Switch" or len(named) != 6:
            mend = "write V1Switch(parser(), verify(), ingress(), egress(), compute(), deparser()) main;"
            raise self.error(self._main, f"{parts[0]} of {len(named)} parts is not v1model", mend)
        for name in named[2:4]:
            if name not in self._declared:
                raise self.error(self._main, f'there is no control "{name}"', "declare it before main")
        return [self._control(self._declared[name]) for name in named[2:4]]

    def _control(self, node: Node) -> Control:
        parts = _parts(node)
        name = str(parts[0])
        control = Control(name, f"{name}.", self._roles(parts[1]), {}, {}, {}, {}, [], parts[-1])
        for item in parts[2:-1]:
            self._item(control, item)
        return control

    def _roles(self, parameters: Node) -> dict[str, str]:
        roles = {}
        for parameter in parameters.children:
            if parameter is None:
                continue
            kind, name = _parts(parameter)[-2:]
            struct = str(kind.children[0]) if _is(kind, "named") else ""
            if struct == "standard_metadata_t":
                roles[str(name)] = "standard_metadata"
            elif struct in self.structs:
                holds = self.structs[struct].values()
                headers = [t for t in holds if _is(t, "named") and str(t.children[0]) in self.headers]
                roles[str(name)] = "hdr" if headers else "meta"
                self._role_types[roles[str(name)]] = struct
            else:
                raise self.error(
                    parameter, "a control takes headers, metadata and standard metadata", "declare structs"
                )
        return roles

    def _item(self, control: Control, node: Node) -> None:
        parts = _parts(node)
        if node.data == "constant":
            self._declare(node)
        elif node.data == "variable":
            control.variables[str(parts[1])] = self.width(parts[0])
            if len(parts) > 2 and parts[2] is not None:
                control.starts.append(node)
        elif node.data == "register":
            width, cells = self.width(parts[0]), self.value(parts[1])
            if not 1 <= cells <= 1 << 24:
                raise self.error(node, f"{cells} cells are out of range", "give 1 to 2^24")
            control.registers[str(parts[2])] = (width, cells)
        elif node.data == "action":
            control.actions[str(parts[0])] = self._action(node)
        elif node.data == "table":
            control.tables[str(parts[0])] = self._table(control, node)

    def _action(self, node: Node) -> Action:
        name, parameters, body = _parts(node)
        taken = []
        for parameter in parameters.children:
            if parameter is None:
                continue
            if any(isinstance(c, Token) and c.type == "DIRECTION" for c in parameter.children):
                raise self.error(parameter, "directions of an action's parameters are not read", "leave `in` out")
            kind, called = _parts(parameter)[-2:]
            taken.append((str(called), self.width(kind)))
        return Action(str(name), taken, body)

    def _table(self, control: Control, node: Node) -> Table:
        parts = _parts(node)
        table = Table(str(parts[0]), node)
        for item in parts[1:]:
            held = _parts(item)
            if item.data == "key":
                table.keys = [self._key(k) for k in held]
            elif item.data == "actions":
                table.actions = [self._known_action(control, ref) for ref in held]
            elif item.data == "default_action":
                args = list(held[1].children) if len(held) > 1 and held[1] else []
                table.default = (self._known_action(control, item), args)
            elif item.data == "size":
                table.size = self.value(held[0])
                if not 1 <= table.size <= 1 << 32:
                    raise self.error(item, f"{table.size} entries are out of range", "give 1 to 2^32")
            else:
                table.entries = held
        return table

    def _key(self, node: Node) -> tuple[Node, str]:
        expression, kind = _parts(node)[:2]
        if str(kind) not in ("exact", "lpm", "ternary", "range"):
            raise self.error(kind, f'"{kind}" is no match kind that is read', "use exact, lpm, ternary or range")
        return expression, str(kind)

    def _known_action(self, control: Control, node: Node) -> str:
        name = next(c for c in node.children if isinstance(c, Token) and c.type == "NAME")
        if str(name) not in control.actions and str(name) != "NoAction":
            raise self.error(name, f'there is no action "{name}"', f"declare it in {control.name}, before the table")
        return str(name)

    def _bind(self, control: Control) -> None:
        for role in control.roles.values():
            if role != "standard_metadata":
                self._struct_fields(self._role_types[role], role)
        self.fields |= {control.prefix + name: width for name, width in control.variables.items()}

    def _struct_fields(self, struct: str, path: str) -> None:
        for name, kind in self.structs[struct].items():
            inner = str(kind.children[0]) if _is(kind, "named") else ""
            if inner in self.headers:
                self.fields[f"{path}.{name}.{VALID}"] = 1
                self.fields |= {f"{path}.{name}.{f}": width for f, width in self.headers[inner].items()}
            elif inner in self.structs and path.count(".") < 8:
                self._struct_fields(inner, f"{path}.{name}")
            else:
                self.fields[f"{path}.{name}"] = self.width(kind)


def number(text: str) -> tuple[int, int | None]:
    """The value of a literal, and its width if it has one."""
    digits, width = text.replace("_", ""), None
    for mark in "ws":
        head, found, tail = digits.partition(mark)
        if found and head.isdigit():
            digits, width = tail, int(head)
            break
    base = {"0x": 16, "0b": 2, "0d": 10}.get(digits[:2].lower(), 10)
    return int(digits[2:] if digits[1:2].isalpha() else digits, base), width


def _parts(node: Any) -> list[Any]:
    """The children that say something: no annotations, and nothing absent at the front."""
    return [c for c in node.children if c is not None and not _is(c, "annotation")]


def parts(node: Any) -> list[Any]:
    """The children of a node without annotations and absent ones."""
    return _parts(node)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in node.children:
        if isinstance(child, Tree):
            yield from walk(child)


def _is(node: object, data: str) -> bool:
    return isinstance(node, Tree) and node.data == data


def _name(node: Node) -> str:
    return str(node.children[0])


def _typed(node: Node) -> tuple[Node, Token]:
    kind, name = _parts(node)
    return kind, name
