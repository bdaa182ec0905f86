"""Declarations of a P4 program: constants, types, fields, and the controls of the pipeline."""

from __future__ import annotations

from typing import Any

from lark import Token, Tree

from subak.pipeline.frontend import STANDARD as STANDARD_NAME
from subak.pipeline.p4 import distinct, types
from subak.pipeline.p4.declared import Action, Control, Extern, Parameter, is_a, parts, token_of
from subak.pipeline.p4.parse import Node, fault
from subak.pipeline.p4.preprocess import Source
from subak.pipeline.p4.types import (
    BOOL,
    ENUMS,
    ERROR,
    INDEX,
    NUMBER,
    STANDARD,
    STRING,
    VALID,
    VOID,
    WIDEST,
    Type,
    number,
)

ARITHMETIC = ("add", "sub", "mul", "div", "mod", "shl", "shr", "bitand", "bitor", "xor")
MOST_HEADERS = 1024
"""Largest number of headers of a stack."""
MOST_STATEMENTS = 200_000
"""Largest number of statements of a program, with those of an action counted at each call."""


class Unit:
    """A program whose declarations have been read."""

    def __init__(self, tree: Node, source: Source) -> None:
        self.source = source
        self.constants: dict[str, tuple[int, Type]] = {}
        self.types: dict[str, Type] = {
            "PortId_t": types.bits(9),
            "standard_metadata_t": Type("struct", None, "standard_metadata_t"),
        }
        self.enums = {name: {m: k for k, m in enumerate(members)} for name, members in ENUMS.items()}
        self.types |= {name: Type("enum", 32, name) for name in ENUMS}
        self.errors = {name: k for k, name in enumerate(types.CORE_ERRORS)}
        self.members: dict[str, dict[str, Type]] = {"standard_metadata_t": STANDARD}
        """Fields of each header, struct and header union."""
        self.fields: dict[str, int] = {}
        """Width of each field, bits, by path."""
        self._inside: dict[str, list[str]] = {}
        """Paths directly below each structure, by the structure's path."""
        self.actions: dict[str, Action] = {}
        self.functions: dict[str, list[Action]] = {}
        """Functions of each name, by number of operands."""
        self.declared: dict[str, Node] = {}
        """Declarations of controls, by name."""
        self.instances: list[Node] = []
        """Extern instances outside of controls."""
        self.externs: dict[str, Extern] = {}
        """Externs declared outside of controls, by name; every control can use them."""
        self.extern_types: dict[str, Node] = {}
        """Externs with type arguments, by the names that typedefs give them."""
        self._main: Node | None = None
        self._statements = 0
        distinct.check(tree, self.error)
        for node in tree.children:
            if isinstance(node, Tree):
                self._declare(node)
        self.controls: list[Control] = []
        """The controls of the pipeline: ingress, then egress."""

    @property
    def file(self) -> str:
        """Name of the program's own file, not of an included one."""
        return self.source.origins[0][0]

    def error(self, node: Node | Token, what: str, hint: str) -> Exception:
        """An input error with the node's file, line and column."""
        return fault(node, self.source, what, hint)

    def spend(self, node: Node) -> None:
        """Counts a statement; raises an error above ``MOST_STATEMENTS``."""
        self._statements += 1
        if self._statements > MOST_STATEMENTS:
            what = f"written out, its actions have more than {MOST_STATEMENTS} statements"
            raise self.error(node, what, "let actions call fewer others")

    def line(self, node: Node | Token) -> int:
        """Line of a node in its file."""
        meta = node if isinstance(node, Token) else node.meta
        return self.source.origins[min(meta.line or 1, len(self.source.origins)) - 1][1]

    def _declare(self, node: Node) -> None:
        held, kind = parts(node), str(node.data)
        if kind == "constant":
            self.constant(node)
        elif kind == "typedef":
            called = next(p for p in held if is_a(p, "new_name"))
            told = next(p for p in held if isinstance(p, Tree) and p is not called)
            self._new_type(called, self.type(told))
            if self.types[str(called.children[0])].kind == "extern":
                self.extern_types[str(called.children[0])] = told
        elif kind in ("header", "struct", "union"):
            self._struct(kind, held)
        elif kind == "enum":
            self._enum(held)
        elif kind == "error":
            self.errors |= {str(name): len(self.errors) + k for k, name in enumerate(held)}
        elif kind in ("control", "parser"):
            name = token_of(node)
            if str(name) in self.declared:
                raise self.error(name, f'there are two of the name "{name}"', "give each its own name")
            self.declared[str(name)] = node
        elif kind == "action":
            self.add_action(self.actions, node)
        elif kind == "function":
            self._function(held)
        elif kind == "instance" and str(held[-1]) == "main":
            if self._main is not None:
                raise self.error(held[-1], "there are two mains", "keep one")
            self._main = node
        elif kind == "instance":
            self.instances.append(node)

    def _function(self, held: list[Any]) -> None:
        result = VOID if isinstance(held[0], Token) else self.type(held[0])
        made = Action(str(held[1]), self.parameters(held[2]), held[3], result)
        if self.function(made.name, len(made.taken), exactly=True):
            what = f'there are two functions "{made.name}" of {len(made.taken)} operands'
            raise self.error(held[1], what, "give each its own name")
        self.functions.setdefault(made.name, []).append(made)

    def function(self, name: str, count: int, exactly: bool = False) -> Action | None:
        """The function of this name with this number of operands.

        If there is none, any of this name, unless ``exactly``.
        """
        named = self.functions.get(name, [])
        fitting = [one for one in named if len(one.taken) == count]
        return next(iter(fitting if exactly else [*fitting, *named]), None)

    def _new_type(self, node: Node, of: Type) -> None:
        name = str(node.children[0])
        if name in self.types and name != "PortId_t":
            raise self.error(node, f'there are two types "{name}"', "give each its own name")
        self.types[name] = of

    def _struct(self, kind: str, held: list[Any]) -> None:
        self._new_type(held[0], Type(kind, None, str(held[0].children[0])))
        members: dict[str, Type] = {}
        for child in held[1:]:
            told, name = parts(child)
            if str(name) in members:
                raise self.error(child, f'there are two fields "{name}"', "give each its own name")
            members[str(name)] = of = self.type(told)
            if of.name == str(held[0].children[0]):
                raise self.error(child, f"{of.name} lies in itself", "let it hold other types")
        self.members[str(held[0].children[0])] = members

    def _enum(self, held: list[Any]) -> None:
        under = self.type(held[0]) if not is_a(held[0], "new_name") else None
        called = next(h for h in held if is_a(h, "new_name"))
        name = str(called.children[0])
        self._new_type(called, Type("bit", under.width, name) if under else Type("enum", 32, name))
        members: dict[str, int] = {}
        for k, item in enumerate(h for h in held if is_a(h, "enum_item")):
            told = parts(item)
            members[str(told[0])] = self.value(told[1]) if len(told) > 1 else k
        self.enums[name] = members

    def constant(self, node: Node) -> None:
        """Registers a constant; two of one name are an error."""
        told, name, value = parts(node)
        of = self.type(told)
        if str(name) in self.constants:
            raise self.error(name, f'there are two constants "{name}"', "give each its own name")
        held = self.value(value)
        self.constants[str(name)] = (held if of.width is None else held & ((1 << of.width) - 1), of)

    def add_action(self, actions: dict[str, Action], node: Node) -> None:
        """Registers an action in ``actions``; two of one name are an error."""
        name, taken, body = parts(node)
        if str(name) in actions:
            raise self.error(name, f'there are two actions "{name}"', "give each its own name")
        actions[str(name)] = Action(str(name), self.parameters(taken), body)

    def parameters(self, node: Node) -> list[Parameter]:
        """The parameters of an action, a control or a function."""
        found: list[Parameter] = []
        for one in (c for c in node.children if isinstance(c, Tree)):
            held = parts(one)
            direction = str(held[0]) if isinstance(held[0], Token) and held[0].type == "DIRECTION" else ""
            told, name, *default = held[1:] if direction else held
            found.append(Parameter(str(name), self.type(told), direction, one, next(iter(default), None)))
        return found

    def type(self, node: Any) -> Type:
        """The type that a node denotes."""
        if is_a(node, "bits") or is_a(node, "signed") or is_a(node, "varbits"):
            kind = {"bits": "bit", "signed": "int", "varbits": "varbit"}[str(node.data)]
            inner = next((c for c in node.children if isinstance(c, Tree)), None)
            if inner is None:
                return NUMBER if kind == "int" else Type("bit", 1)
            width = self.value(inner)
            if not 1 <= width <= WIDEST * 8:
                raise self.error(node, f"{kind}<{width}> is out of range", f"give 1 to {WIDEST * 8} bits")
            return Type(kind, width)
        if is_a(node, "boolean"):
            return BOOL
        if is_a(node, "error_type"):
            return ERROR
        if is_a(node, "string"):
            return STRING
        if is_a(node, "stack"):
            return self._stack(node)
        if is_a(node, "named"):
            return self._named(node)
        return self._tuple(node)

    def _tuple(self, node: Node) -> Type:
        """A tuple's type: a struct whose fields are named by their index."""
        held = [self.type(c) for told in node.children for c in told.children if isinstance(c, Tree)]  # type: ignore[union-attr]
        of = Type("struct", None, f"tuple<{', '.join(map(str, held))}>")
        self.members[of.name] = {str(k): one for k, one in enumerate(held)}
        return of

    def _named(self, node: Node) -> Type:
        name = str(node.children[0])
        if name in self.types:
            return self.types[name]
        if name in types.EXTERNS or name in ("packet_in", "packet_out"):
            return Type("extern", None, name)
        raise self.error(node, f'there is no type "{name}"', "declare it before it is used")

    def _stack(self, node: Node) -> Type:
        of, size = self.type(node.children[0]), self.value(node.children[1])
        if of.kind not in ("header", "union"):
            raise self.error(node, f"an array of {of}", "only headers stand in stacks")
        if not 1 <= size <= MOST_HEADERS:
            raise self.error(node, f"{size} headers are out of range", f"give 1 to {MOST_HEADERS}")
        return Type("stack", size, of.name)

    def value(self, node: Any) -> int:
        """The value of a constant expression."""
        if is_a(node, "number"):
            return number(str(node.children[0]))[0]
        if is_a(node, "true") or is_a(node, "false"):
            return int(node.data == "true")
        if is_a(node, "name") and str(node.children[0]) in self.constants:
            return self.constants[str(node.children[0])][0]
        if is_a(node, "member") and is_a(node.children[0], "type_name"):
            return self.enum_value(node)[0]
        if is_a(node, "member") and is_a(node.children[0], "error_name"):
            return self.errors.get(str(node.children[1]), 0)
        if is_a(node, "cast"):
            width = self.type(node.children[0]).width
            held = self.value(node.children[1])
            return held & ((1 << width) - 1) if width else held
        if is_a(node, "neg") or is_a(node, "pos"):
            return self.value(node.children[0]) * (-1 if node.data == "neg" else 1)
        if isinstance(node, Tree) and node.data in ARITHMETIC:
            return self._computed(node)
        raise self.error(node, "this is no constant", "write a number, or a const declared before")

    def _computed(self, node: Node) -> int:
        left, right = (self.value(child) for child in node.children)
        kind = str(node.data)
        if kind in ("div", "mod"):
            if right <= 0 or left < 0:
                raise self.error(node, "this division has no value", "divide what is not negative by 1 or more")
            return left // right if kind == "div" else left % right
        if kind in ("shl", "shr"):
            if right < 0:
                raise self.error(node, f"a shift by {right}", "shift by 0 or more")
            right = min(right, WIDEST)
            return left << right if kind == "shl" else left >> right
        sums = {"add": left + right, "sub": left - right, "mul": left * right}
        return {**sums, "bitand": left & right, "bitor": left | right, "xor": left ^ right}[kind]

    def enum_value(self, node: Node) -> tuple[int, Type]:
        """Value and type of ``Enum.member``."""
        name, member = str(node.children[0].children[0]), str(node.children[1])  # type: ignore[union-attr]
        if name not in self.enums:
            raise self.error(node, f'"{name}" has no members', "name an enum")
        if member not in self.enums[name]:
            raise self.error(node, f'{name} has no member "{member}"', f"use one of: {', '.join(self.enums[name])}")
        return self.enums[name][member], self.types[name]

    def pipeline(self) -> list[str]:
        """Names of the controls that the program uses as ingress and egress."""
        if self._main is None:
            nowhere = Token("NAME", "")
            raise fault(nowhere, self.source, "it has no main", "end it with V1Switch(parser(), ..., deparser()) main;")
        held = parts(self._main)
        package = held[0] if isinstance(held[0], Token) else held[0].children[0]
        given = [c for c in held[1].children if c] if is_a(held[1], "arguments") else []
        if str(package) != "V1Switch" or len(given) != 6:
            hint = "write V1Switch(parser(), verify(), ingress(), egress(), compute(), deparser()) main;"
            raise self.error(self._main, f"{package} of {len(given)} parts is not v1model", hint)
        names = []
        by_name = {str(one.children[0]): one.children[1] for one in given if is_a(one, "named")}
        for one in (by_name["ig"], by_name["eg"]) if {"ig", "eg"} <= by_name.keys() else given[2:4]:
            callee: Any = one.children[0] if is_a(one, "invoke") else None
            name = str(callee.children[0]) if is_a(callee, "name") else ""
            if name not in self.declared or not is_a(self.declared[name], "control"):
                raise self.error(self._main, f'there is no control "{name}"', "declare it before main")
            names.append(name)
        return names

    def hold(self, controls: list[Control]) -> None:
        """Stores ingress and egress, after checks of their parameters."""
        self.controls = controls
        self._check_pipeline()
        for control in controls:
            self.bind(control)

    def _check_pipeline(self) -> None:
        """Raises an error unless ingress and egress have v1model's parameters."""
        first, standard = self.controls[0], self.types["standard_metadata_t"]
        for control in self.controls:
            if len(control.taken) != 3:
                what = f"{control.name} takes {len(control.taken)} operands, and v1model hands over 3"
                hint = "take inout headers, inout metadata, inout standard_metadata_t"
                raise self.error(token_of(self.declared[control.name]), what, hint)
            wanted = [p.type for p in first.taken[:2]] + [standard]
            for parameter, of in zip(control.taken, wanted, strict=True):
                if parameter.type != of or parameter.type.kind != "struct":
                    what = f'"{parameter.name}" of {control.name} is {parameter.type}'
                    hint = f"take {of}" if of.kind == "struct" else "take a struct"
                    raise self.error(parameter.node, what, hint)

    def bind(self, control: Control) -> None:
        """Registers the fields of a pipeline control's parameters: headers, metadata and standard metadata."""
        for parameter, role in zip(control.taken, ("hdr", "meta", STANDARD_NAME), strict=True):
            self.expand(role, parameter.type)

    def expand(self, path: str, of: Type) -> None:
        """Registers the fields at and below a path."""
        if path in self.fields or path in self._inside:
            return
        if of.scalar or of == NUMBER:
            self.fields[path] = of.width or 32
            return
        if of.kind == "stack":
            held = {f"{path}[{k}]": self.types[of.name] for k in range(of.width or 0)}
            self.fields[f"{path}.{INDEX}"] = 32
            self._inside[path] = [*held, f"{path}.{INDEX}"]
        elif of.kind in ("header", "struct", "union"):
            held = {f"{path}.{name}": kind for name, kind in self.members[of.name].items()}
            self._inside[path] = list(held)
            if of.kind == "header":
                self.fields[f"{path}.{VALID}"] = 1
                self._inside[path].append(f"{path}.{VALID}")
        else:
            held = {}
            self._inside[path] = []
        for inner, kind in held.items():
            self.expand(inner, kind)

    def leaves(self, path: str) -> list[str]:
        """The fields at or below a path; ``[*]`` in it means every header of a stack."""
        head, star, rest = path.partition("[*]")
        if star:
            every = [p for p in self._inside[head] if p.endswith("]")]
            return [leaf for one in every for leaf in self.leaves(one + rest)]
        if path in self.fields:
            return [path]
        return [leaf for inner in self._inside[path] for leaf in self.leaves(inner)]
