"""Names in a control, fields that expressions read, and type checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lark import Token, Tree

from subak.pipeline import frontend
from subak.pipeline.p4.declared import NO_ACTION, Action, Control, arguments, is_a, parts
from subak.pipeline.p4.externs import FUNCTIONS
from subak.pipeline.p4.parse import Node
from subak.pipeline.p4.types import BOOL, ERROR, INDEX, LIST, NUMBER, STRING, VALID, Type, bits, number
from subak.pipeline.p4.unit import Unit

COMPARED = ("eq", "ne", "lt", "gt", "le", "ge")
LOGIC = ("and", "or", "not")
SUMS = ("add", "sub", "mul", "bitand", "bitor", "xor", "satadd", "satsub", "div", "mod")


@dataclass(frozen=True)
class Ref:
    """Meaning of a name or a member expression: a field, a structure, a variable or a constant."""

    type: Type
    path: str | None = None
    """Path of a field or of a structure of fields; ``None`` for an action's own data and variables."""
    writable: bool = True
    value: int | None = None
    """Value if the name is a constant; otherwise ``None``."""
    weak: bool = False
    """Whether it is one of several candidates, selected at run time: a write does not change all of them for sure."""
    reads: frozenset[str] = frozenset()
    """Fields that select among the candidates."""


@dataclass
class Scope:
    """The names that are visible at a point of a control."""

    unit: Unit
    control: Control
    names: dict[str, Ref] = field(default_factory=dict)
    in_action: bool = False
    result: Type | None = None
    """Result type of the enclosing function."""

    def child(self, names: Mapping[str, Ref], in_action: bool = False, result: Type | None = None) -> Scope:
        """A nested scope with additional names."""
        inside = self.in_action or in_action
        return Scope(self.unit, self.control, {**self.names, **names}, inside, result or self.result)

    def action(self, name: str) -> Action:
        """The action of this name, in the control or the program."""
        found = self.control.actions.get(name) or self.unit.actions.get(name)
        return NO_ACTION if found is None and name == NO_ACTION.name else found or self.unit.actions[name]

    def called(self, node: Node) -> Action | None:
        """The action that a call refers to; an extern function of the same name has another number of operands."""
        name, count = str(node.children[0].children[0]), len(arguments(node))  # type: ignore[union-attr]
        found = self.control.actions.get(name) or self.unit.actions.get(name)
        if found is None:
            return NO_ACTION if name == NO_ACTION.name else None
        extern = any(len(ways) == count for ways in FUNCTIONS.get(name, ()))
        return None if extern and count != len(found.taken) else found

    def function(self, node: Node, name: str) -> Action:
        """The function that a call refers to; raises an error if there is none."""
        found = self.unit.function(name, len(arguments(node)))
        if found is None:
            raise self.unit.error(node, f'there is no function "{name}"', "declare it before it is used")
        return found

    def inside(self, action: str) -> Scope:
        """The scope of an action's body when a table runs the action, before arguments are bound to parameters."""
        taken = self.action(action).taken
        return self.child({p.name: Ref(p.type, None, bool(p.direction)) for p in taken}, in_action=True)

    @property
    def parameters(self) -> dict[str, Ref]:
        """An action's own names: its data and its variables."""
        return {name: ref for name, ref in self.names.items() if ref.path is None and ref.value is None}

    def ref(self, node: Node) -> Ref:
        """The field, structure, variable or constant that a node stands for."""
        if node.data == "name":
            return self._name(node)
        if node.data == "member":
            return self._member(node)
        if node.data == "index":
            return self._index(node)
        if node.data == "invoke":
            self._invoked(node)
        raise self.unit.error(node, "this is no name", "name a field")

    def _name(self, node: Node) -> Ref:
        name = str(node.children[0])
        if name in self.names:
            return self.names[name]
        if name in self.unit.constants:
            value, of = self.unit.constants[name]
            return Ref(of, None, False, value)
        raise self.unit.error(node, f'there is no name "{name}"', "declare it before it is used")

    def _member(self, node: Node) -> Ref:
        owner, member = node.children[0], node.children[1]
        assert isinstance(owner, Tree)
        assert isinstance(member, Token)
        if owner.data == "type_name":
            value, of = self.unit.enum_value(node)
            return Ref(of, None, False, value)
        if owner.data == "error_name":
            return Ref(ERROR, None, False, self.unit.errors.get(str(member), 0))
        base = self.ref(owner)
        if base.type.kind == "stack":
            return self._of_stack(member, base)
        held = self.unit.members.get(base.type.name, {}) if base.type.kind in ("header", "struct", "union") else {}
        if str(member) not in held:
            hint = f"use one of: {', '.join(held)}" if held else f"{base.type} has no fields"
            raise self.unit.error(member, f'there is no field "{self._spelled(node)}"', hint)
        path = None if base.path is None else f"{base.path}.{member}"
        return replace(base, type=held[str(member)], path=path)

    def _of_stack(self, member: Token, base: Ref) -> Ref:
        if member == "size":
            return Ref(bits(32), None, False, base.type.width)
        if member == "lastIndex":
            path = None if base.path is None else f"{base.path}.{INDEX}"
            return replace(base, type=bits(32), path=path, writable=False)
        hint = "name a header of the stack by its number; next and last are for parsers"
        raise self.unit.error(member, f'a stack of headers has no "{member}" here', hint)

    def _index(self, node: Node) -> Ref:
        owner, number_ = node.children[0], node.children[1]
        assert isinstance(owner, Tree)
        assert isinstance(number_, Tree)
        base = self.ref(owner)
        if base.type.name.startswith("tuple<"):
            return self._of_tuple(number_, base)
        if base.type.kind != "stack":
            raise self.unit.error(node, f"{base.type} has no numbered parts", "number the headers of a stack")
        of = self.unit.types[base.type.name]
        if self.constant(number_):
            k = self.unit.value(number_)
            if not 0 <= k < (base.type.width or 0):
                raise self.unit.error(number_, f"there is no header {k} in {base.type}", "number from 0")
            return replace(base, type=of, path=None if base.path is None else f"{base.path}[{k}]")
        self.numeric(number_)
        seen = base.reads | self.reads(number_)
        return replace(base, type=of, path=None if base.path is None else f"{base.path}[*]", weak=True, reads=seen)

    def _of_tuple(self, place: Node, base: Ref) -> Ref:
        held, k = self.unit.members[base.type.name], self.unit.value(place)
        if str(k) not in held:
            raise self.unit.error(place, f"there is no part {k} in {base.type}", "number from 0")
        return replace(base, type=held[str(k)], path=None if base.path is None else f"{base.path}.{k}")

    def constant(self, node: Node) -> bool:
        """Whether an expression consists of constants."""
        if node.data in ("name", "member"):
            return self.ref(node).value is not None
        if node.data in ("number", "true", "false"):
            return True
        inner = [
            c for c in node.children if isinstance(c, Tree) and c.data not in ("bits", "signed", "named", "boolean")
        ]
        return node.data != "invoke" and bool(inner) and all(self.constant(c) for c in inner)

    def _spelled(self, node: Node) -> str:
        if node.data in ("name", "type_name"):
            return str(node.children[0])
        owner = self._spelled(node.children[0])  # type: ignore[arg-type]
        return f"{owner}.{node.children[1]}" if node.data == "member" else f"{owner}[...]"

    def path(self, node: Node) -> str:
        """Dotted name of a field or of a structure of fields."""
        path = self.ref(node).path
        if path is None:
            raise self.unit.error(node, "this is no field", "name a field of a header or of metadata")
        return path

    def field(self, node: Node) -> str:
        """The field that an expression refers to."""
        path = self.path(node)
        if path not in self.unit.fields:
            raise self.unit.error(node, "this is no single field", "name a field")
        return path

    def header(self, node: Node) -> str:
        """The validity field of the header that an expression refers to."""
        of = self.ref(node)
        if of.type.kind != "header":
            raise self.unit.error(node, f'"{self._spelled(node)}" is no header', "name a header of the headers' struct")
        return f"{of.path}.{VALID}"

    def looked(self, ref: Ref) -> set[str]:
        """The fields on which a read of ``ref`` depends."""
        if ref.path is None:
            return set(ref.reads)
        return frontend.looked(self.unit.leaves(ref.path), self.control.egress) | ref.reads

    def written(self, ref: Ref) -> set[str]:
        """The fields that a write to ``ref`` may change."""
        return frontend.changed(self.unit.leaves(ref.path), self.control.egress) if ref.path else set()

    def reads(self, node: Node) -> set[str]:
        """The fields that an expression reads."""
        if node.data in ("name", "member", "index"):
            ref = self.ref(node)
            return set() if ref.value is not None else self.looked(ref)
        if node.data == "slice":
            return self.reads(node.children[0])  # type: ignore[arg-type]
        if node.data == "invoke":
            return self._invoked(node)
        if node.data == "named":
            return self.reads(node.children[1])  # type: ignore[arg-type]
        inner = node.children[1:] if node.data == "cast" else node.children
        return {name for child in inner if isinstance(child, Tree) for name in self.reads(child)}

    def _invoked(self, node: Node) -> set[str]:
        callee = node.children[0]
        assert isinstance(callee, Tree)
        given = {name for arg in arguments(node) for name in self.reads(arg)}
        if callee.data == "member":
            owner, method = callee.children
            assert isinstance(owner, Tree)
            if method == "isValid":
                if arguments(node):
                    raise self.unit.error(node, "isValid() takes no operands", "give none")
                return self._valid(owner)
            if method in ("minSizeInBits", "minSizeInBytes"):
                return set()
            if is_a(owner, "name") and str(owner.children[0]) in self.control.externs and method == "get":
                return given
            what = f"{method}() cannot stand in an expression"
            if method == "apply":
                hint = "keep its outcome first: bool hit = t.apply().hit;"
                raise self.unit.error(node, "a table is applied inside an expression", hint)
            raise self.unit.error(node, what, "only isValid() and functions can")
        name = str(callee.children[0])
        if any(p.direction in ("out", "inout") for p in self.function(node, name).taken):
            what = f"{name}() writes its operands where its value is used"
            raise self.unit.error(node, what, "call it in a statement of its own, with its result as an out operand")
        return given

    def _valid(self, owner: Node) -> set[str]:
        ref = self.ref(owner)
        if ref.type.kind not in ("header", "union"):
            raise self.unit.error(
                owner, f'"{self._spelled(owner)}" is no header', "name a header of the headers' struct"
            )
        if ref.path is None:
            return set(ref.reads)
        return {leaf for leaf in self.unit.leaves(ref.path) if leaf.endswith(VALID)} | ref.reads

    def width(self, node: Node) -> int | None:
        """Width of an expression, bits; ``None`` for a number without a width."""
        return self.type(node).width

    def numeric(self, node: Node) -> Type:
        """The type of an expression that must be a number."""
        of = self.type(node)
        if of.kind not in ("bit", "int", "number", "enum", "error"):
            raise self.unit.error(node, f"{of} stands where a number should", "give a bit<N>")
        return of

    def boolean(self, node: Node) -> None:
        """Raises an error unless an expression is boolean."""
        of = self.type(node)
        if of.kind != "bool":
            raise self.unit.error(node, f"{of} stands where a condition should", "compare it: ... == 1")

    def type(self, node: Node) -> Type:
        """The type of an expression; incompatible types are an error."""
        data = str(node.data)
        if data == "number":
            return number(str(node.children[0]))[1]
        if data in ("name", "member", "index"):
            return self.ref(node).type
        if data in ("true", "false"):
            return BOOL
        if data == "text":
            return STRING
        if data == "list":
            for inner in (c for c in node.children if isinstance(c, Tree) and c.data == "arguments"):
                for part in inner.children:
                    if isinstance(part, Tree):
                        self.type(part.children[1] if part.data == "named" else part)  # type: ignore[arg-type]
            return LIST
        if data == "slice":
            high, low = self.bounds(node)
            return bits(high - low + 1)
        if data == "cast":
            return self._cast(node)
        if data == "invoke":
            return self._invocation(node)
        if data in LOGIC:
            for child in parts(node):
                self.boolean(child)
            return BOOL
        if data == "named":
            raise self.unit.error(node, "operands by their names are not read", "give them in their order")
        if data == "construct":
            raise self.unit.error(node, "nothing is made inside an expression", "declare it in the control")
        return self._operation(node)

    def _operation(self, node: Node) -> Type:
        data, held = str(node.data), [c for c in parts(node) if isinstance(c, Tree)]
        if data == "choice":
            self.boolean(held[0])
            return self._common(node, held[1], held[2])
        if data in COMPARED:
            if data not in ("eq", "ne"):
                for child in held:
                    self.numeric(child)
            self._common(node, *held)
            return BOOL
        if data in ("shl", "shr"):
            self._check_shift(held[1])
            return self.numeric(held[0])
        if data == "concat":
            widths = [self.numeric(child).width for child in held]
            if None in widths:
                raise self.unit.error(node, "++ of a number without a width", "write its width, such as 8w5")
            return bits(sum(w or 0 for w in widths))
        types = [self.numeric(child) for child in held]
        if data in ("div", "mod") and not self.constant(node):
            raise self.unit.error(node, "v1model divides constants only", "divide by a table of reciprocals, or shift")
        return self._common(node, *held) if len(types) == 2 else types[0]

    def _check_shift(self, by: Node) -> None:
        of = self.numeric(by)
        if of.kind == "int" or (self.constant(by) and self.unit.value(by) < 0):
            raise self.unit.error(by, "a shift by what may be negative", "shift by 0 or more, or by a bit<N>")

    def _common(self, node: Node, left: Node, right: Node) -> Type:
        one, other = self.type(left), self.type(right)
        for value, to in ((left, other), (right, one)):
            self._check_list(value, to)
        if one == other or (other.kind == "number" and one.kind in ("bit", "int", "number")):
            return one
        if one.kind == "number" and other.kind in ("bit", "int"):
            return other
        if "list" in (one.kind, other.kind) or ((one.kind, one.width) == (other.kind, other.width) and one.scalar):
            return one if one.kind != "list" else other
        raise self.unit.error(node, f"{one} and {other} meet here", "cast one to the type of the other")

    def _cast(self, node: Node) -> Type:
        to = self.unit.type(node.children[0])
        of = self.type(node.children[1])  # type: ignore[arg-type]
        plain = ("bit", "int", "bool", "number", "enum")
        self._check_list(node.children[1], to)  # type: ignore[arg-type]
        if of.kind == "list" or of == to:
            return to
        one_bit = "bool" not in (of.kind, to.kind) or {of.width, to.width} <= {1, None}
        if of.kind not in plain or to.kind not in plain or not one_bit:
            raise self.unit.error(node, f"{of} is not cast to {to}", "cast numbers, or bool and bit<1>")
        return to

    def _invocation(self, node: Node) -> Type:
        callee = node.children[0]
        assert isinstance(callee, Tree)
        self._invoked(node)
        if callee.data == "member":
            method = str(callee.children[1])
            return BOOL if method == "isValid" else bits(16) if method == "get" else NUMBER
        function = self.function(node, str(callee.children[0]))
        self.operands(node, function, arguments(node))
        return function.result or NUMBER

    def operands(self, node: Node, called: Action, given: list[Node]) -> list[Node]:
        """The operands of a call in the order of the parameters; omitted ones have their defaults."""
        by_name = {str(arg.children[0]): arg.children[1] for arg in given if arg.data == "named"}
        in_order = [arg for arg in given if arg.data != "named"]
        if by_name and in_order:
            raise self.unit.error(node, "operands by name and by place in one call", "write all one way")
        if len(in_order) > len(called.taken):
            what = f"{called.name} takes {len(called.taken)} operands, and {len(given)} are given"
            raise self.unit.error(node, what, "give as many")
        if strange := by_name.keys() - {p.name for p in called.taken}:
            hint = f"use {', '.join(p.name for p in called.taken)}"
            raise self.unit.error(node, f'{called.name} has no parameter "{min(strange)}"', hint)
        found = []
        for k, parameter in enumerate(called.taken):
            arg = in_order[k] if k < len(in_order) else by_name.get(parameter.name, parameter.default)
            if not isinstance(arg, Tree):
                missing = f'"{parameter.name}" is not given' if by_name else f"{len(given)} are given"
                what = f"{called.name} takes {len(called.taken)} operands, and {missing}"
                raise self.unit.error(node, what, "give as many")
            if parameter.direction in ("out", "inout"):
                self.target(arg)
            self.fits(arg, parameter.type)
            found.append(arg)
        return found

    def fits(self, node: Node, to: Type) -> None:
        """Raises an error for a value that cannot be converted to the type ``to``."""
        of = self.type(node)
        self._check_list(node, to)
        if of == to or of.kind == "list" or (of.kind == "number" and to.kind in ("bit", "int", "number")):
            return
        if of.kind == to.kind and of.width == to.width and (of.scalar or of.name == to.name):
            return
        raise self.unit.error(node, f"{of} goes into {to}", f"cast it: ({to})(...)")

    def _check_list(self, node: Node, to: Type) -> None:
        """Raises an error for a list in braces that does not match the type ``to``."""
        if node.data != "list" or to.kind == "list":
            return
        given = [p for c in node.children if is_a(c, "arguments") for p in parts(c)]
        held = self.unit.members.get(to.name, {}) if to.kind in ("header", "struct") else None
        if to.kind == "stack":
            held = {str(k): self.unit.types[to.name] for k in range(to.width or 0)}
        if held is None:
            raise self.unit.error(node, f"a list goes into {to}", "give a single value")
        if len(given) != len(held):
            raise self.unit.error(node, f"a list of {len(given)} goes into {to} of {len(held)}", "give as many")
        for part, (name, of) in zip(given, held.items(), strict=True):
            if part.data == "named":
                name, part = str(part.children[0]), part.children[1]
                if name not in held:
                    raise self.unit.error(part, f'{to} has no "{name}"', f"use one of: {', '.join(held)}")
            self.fits(part, held[name] if to.kind != "stack" else of)

    def handed(self, node: Node, of: Type) -> Ref:
        """The target of an output argument. For a slice it is the whole field, whose other bits keep their value."""
        ref = self.target(node)
        if node.data != "slice":
            return ref
        return replace(ref, type=of, weak=True, reads=ref.reads | frozenset(self.looked(ref)))

    def target(self, node: Node) -> Ref:
        """Target of an assignment: a field, a structure or a variable; raises an error for other expressions."""
        if node.data == "slice":
            self.bounds(node)
            return self.target(node.children[0])  # type: ignore[arg-type]
        if node.data not in ("name", "member", "index"):
            raise self.unit.error(node, "this cannot be written to", "name a field or a variable")
        ref = self.ref(node)
        if not ref.writable or ref.value is not None:
            what = f'"{self._spelled(node)}" cannot be written to'
            raise self.unit.error(node, what, "it is a constant, or only read: write to a field or a variable")
        return ref

    def bounds(self, node: Node) -> tuple[int, int]:
        """Highest and lowest bit of a slice."""
        high, low = self.unit.value(node.children[1]), self.unit.value(node.children[2])
        width = self.numeric(node.children[0]).width  # type: ignore[arg-type]
        if not 0 <= low <= high or (width is not None and high >= width):
            raise self.unit.error(node, f"bits {high} to {low} are not all there", f"the value has {width} bits")
        return high, low
