"""Executes a P4 program: its controls become one Python function from a packet's fields to their new values.

Every value is an integer below 2^width. As in bmv2, a shift by more than the width has the value 0, as has a register
read past the end; a write past the end has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lark import Tree

from subak.errors import InputError
from subak.pipeline.frontend import STANDARD
from subak.pipeline.p4.declared import NO_ACTION, Action, Table, arguments, parts, walk
from subak.pipeline.p4.flow import applied_table, run_table
from subak.pipeline.p4.lower import Lowering, lower_unit
from subak.pipeline.p4.parse import Node
from subak.pipeline.p4.scope import Ref, Scope
from subak.pipeline.p4.tables import Entries
from subak.pipeline.p4.types import number
from subak.pipeline.p4.unit import Unit

DROP_PORT = 511
ORDER = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
BITS = {"bitor": "|", "bitand": "&", "xor": "^"}
SUMS = {"add": "+", "sub": "-", "mul": "*"}


class Machine:
    """A program with its registers and the entries of its tables."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.registers: dict[str, list[int]] = {}
        self.tables: dict[str, Entries] = {}
        self.actions: dict[str, list[Action]] = {}
        generated = _Writer(self)
        self.source = generated.text()
        self.fields = generated.slots
        """Index of each field in a packet's list."""
        self._process: Callable[[list[int]], None] | None = None

    def start(self) -> Callable[[list[int]], None]:
        """Creates the registers, all 0, and the function that processes a packet."""
        for control in self.unit.controls:
            self.registers |= {name: [0] * cells for name, (_, cells) in control.registers.items()}
        space: dict[str, Any] = {"T": self.tables, "R": self.registers}
        exec(compile(self.source, self.unit.file, "exec"), space)
        self._process = space["process"]
        return self._process

    def packet(self, values: Mapping[str, int] | None = None) -> list[int]:
        """A packet with these fields, all others 0."""
        fields = [0] * len(self.fields)
        for name, value in (values or {}).items():
            fields[self.fields[name]] = value
        return fields

    def process(self, packet: list[int]) -> None:
        """Sends a packet through ingress and egress; its list has the new values of the fields afterwards."""
        (self._process or self.start())(packet)

    def add(self, table: str, keys: Sequence[Any], action: str, data: Sequence[int] = (), priority: int = 0) -> None:
        """Adds an entry to a table.

        One value per key; for lpm (value, prefix length), for ternary (value, mask), for range (low, high); None for
        any.
        """
        if table not in self.tables:
            raise InputError(None, table, "there is no such table", f"choose one of: {', '.join(self.tables)}")
        names = [a.name for a in self.actions[table]]
        if action not in names:
            raise InputError(None, table, f'it has no action "{action}"', f"choose one of: {', '.join(names)}")
        chosen = self.actions[table][names.index(action)]
        if len(data) != len(chosen.parameters):
            raise InputError(None, table, f"{action} takes {len(chosen.parameters)} values", "give as many")
        for value, (name, width) in zip(data, chosen.parameters, strict=True):
            if not 0 <= int(value) < 1 << width:
                raise InputError(None, table, f"{name} of {action} is {value}", f"write a value of {width} bits")
        held = tuple(map(int, data))
        self.tables[table].add(keys, (names.index(action), held), priority)


class _Writer:
    """Generates the source of ``process``."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.unit = machine, machine.unit
        self.slots: dict[str, int] = {}
        self._lines: list[str] = []
        self._written: set[str] = set()
        self._fresh = 0
        # Errors are raised before any code is generated.
        lower_unit(self.unit, self.unit.file)
        self._names = Lowering(self.unit)
        self._exits = any(n.data == "exit" for c in self.unit.controls for n in walk(c.body))

    def text(self) -> str:
        """Source of the generated function ``process``."""
        for control in self.unit.controls:
            roles = zip(control.taken, ("hdr", "meta", STANDARD), strict=False)
            scope = self._names.scope(control, {p.name: Ref(p.type, role) for p, role in roles})
            # An exit ends ingress or egress only: after an exit in ingress, egress still runs.
            self._put(1, "exited = False") if self._exits else None
            self._put(1, "while True:")
            for start in control.variables:
                self._statement(start, scope, 2)
            self._statement(control.body, scope, 2)
            self._put(2, "break")
        body = "\n".join("    " + line for line in self._lines)
        head = "".join(f"    f{slot} = F[{slot}]\n" for slot in self.slots.values())
        tail = "".join(f"    F[{self.slots[n]}] = f{self.slots[n]}\n" for n in sorted(self._written))
        for name in self.unit.fields:
            self._slot(name)
        return f"def process(F):\n{head}    while True:\n{body}\n        break\n{tail}"

    def _put(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _slot(self, name: str) -> str:
        return f"f{self.slots.setdefault(name, len(self.slots))}"

    def _new(self) -> str:
        self._fresh += 1
        return f"v{self._fresh}"

    def _statement(self, node: Node, scope: Scope, depth: int) -> None:
        if node.data == "block":
            inside = scope.child({})
            if not scope.in_action:
                for inner in (n for n in parts(node) if n.data in ("variable", "constant")):
                    self._names.declare(inner, inside)
            for inner in parts(node):
                self._statement(inner, inside, depth)
            if not parts(node):
                self._put(depth, "pass")
        elif node.data == "assignment":
            target, value = parts(node)
            self._assign(target, value, scope, depth)
        elif node.data == "variable":
            self._variable(node, scope, depth)
        elif node.data == "call":
            self._call(node, scope, depth)
        elif node.data == "conditional":
            self._conditional(node, scope, depth)
        elif node.data == "switch":
            self._switch(node, scope, depth)
        elif node.data == "return":
            self._put(depth, "break")
        elif node.data == "exit":
            self._put(depth, "exited = True")
            self._put(depth, "break")
        elif node.data in ("empty", "constant"):
            self._put(depth, "pass")
        else:
            raise self._cannot(node)

    def _cannot(self, node: Node) -> Exception:
        return self.unit.error(node, "this is placed, and not run", "run registers, tables and plain statements only")

    def _conditional(self, node: Node, scope: Scope, depth: int) -> None:
        condition, then, *otherwise = parts(node)
        asked = applied_table(condition)
        if asked:
            hit = self._apply(asked[0], scope, depth)[0]
            self._put(depth, f"if {hit if asked[1] else f'not {hit}'}:")
        else:
            self._put(depth, f"if {self._value(condition, scope)}:")
        self._statement(then, scope, depth + 1)
        if otherwise:
            self._put(depth, "else:")
            self._statement(otherwise[0], scope, depth + 1)

    def _switch(self, node: Node, scope: Scope, depth: int) -> None:
        selector, *cases = parts(node)
        callee = run_table(selector)
        if callee is None:
            raise self._cannot(node)
        ran, table = self._apply(callee, scope, depth)[1:]
        names = [a.name for a in self.machine.actions[table]]
        labels: list[str] = []
        word = "if"
        for case in cases:
            label = case.children[0]
            labels.append(str(label.children[0] if isinstance(label, Tree) else label))
            if len(case.children) < 2 or case.children[1] is None:
                continue
            numbers = [names.index(label) for label in labels if label in names]
            self._put(depth, "else:" if "default" in labels and word == "elif" else f"{word} {ran} in {numbers}:")
            if "default" in labels and word == "if":
                self._lines[-1] = "    " * depth + "if True:"
            self._statement(case.children[1], scope, depth + 1)
            labels, word = [], "elif"

    def _variable(self, node: Node, scope: Scope, depth: int) -> None:
        kind, name, *value = parts(node)
        of = self.unit.type(kind)
        if scope.in_action:
            scope.names[str(name)] = Ref(of)
            target = self._local(str(name), scope)
        else:
            path = scope.names[str(name)].path or ""
            self._written.add(path)
            target = self._slot(path)
        said = self._fitted(value[0], scope, of.width or 0) if value else "0"
        self._put(depth, f"{target} = {said}")

    def _local(self, name: str, scope: Scope) -> str:
        return f"p_{name}"

    def _assign(self, target: Node, value: Node, scope: Scope, depth: int) -> None:
        if target.data == "slice":
            held = target.children[0]
            assert isinstance(held, Tree)
            high, low = scope.bounds(target)
            mask = ((1 << (high - low + 1)) - 1) << low
            name = self._target(held, scope)
            said = self._fitted(value, scope, high - low + 1)
            self._put(depth, f"{name} = ({name} & ~{mask}) | ({said} << {low})")
            return
        width = scope.width(target)
        said = self._fitted(value, scope, width or 0)
        self._put(depth, f"{self._target(target, scope)} = {said}")

    def _target(self, node: Node, scope: Scope) -> str:
        if node.data == "name" and str(node.children[0]) in scope.parameters:
            return self._local(str(node.children[0]), scope)
        name = scope.field(node)
        self._written.add(name)
        return self._slot(name)

    def _call(self, node: Node, scope: Scope, depth: int) -> None:
        callee, args = node.children[0], arguments(node)
        assert isinstance(callee, Tree)
        if callee.data == "member" and str(callee.children[1]) == "apply":
            self._apply(callee, scope, depth)
            return
        if callee.data == "name" and (action := scope.called(node)):
            if any(p.direction for p in action.taken):
                raise self._cannot(node)
            self._run(action, scope.operands(node, action, args), scope, depth)
            return
        if callee.data == "name":
            if str(callee.children[0]) != "mark_to_drop":
                raise self._cannot(node)
            for name, value in (("egress_spec", DROP_PORT), ("mcast_grp", 0)):
                self._written.add(f"{STANDARD}.{name}")
                self._put(depth, f"{self._slot(f'{STANDARD}.{name}')} = {value}")
            return
        owner, method = callee.children
        assert isinstance(owner, Tree)
        if str(method) in ("setValid", "setInvalid"):
            name = scope.header(owner)
            self._written.add(name)
            self._put(depth, f"{self._slot(name)} = {int(str(method) == 'setValid')}")
            return
        register = str(owner.children[0])
        if register not in scope.control.registers:
            raise self._cannot(node)
        width, cells = scope.control.registers[register]
        index = self._value(args[1] if str(method) == "read" else args[0], scope)
        if str(method) == "read":
            self._put(depth, f"i = {index}")
            self._put(depth, f"{self._target(args[0], scope)} = R[{register!r}][i] if i < {cells} else 0")
        else:
            self._put(depth, f"i = {index}")
            self._put(depth, f"if i < {cells}:")
            self._put(depth + 1, f"R[{register!r}][i] = {self._fitted(args[1], scope, width)}")

    def _run(self, action: Action, args: list[Node], scope: Scope, depth: int) -> None:
        for (name, width), arg in zip(action.parameters, args, strict=True):
            self._put(depth, f"p_{name} = {self._fitted(arg, scope, width)}")
        self._statement(action.body, scope.inside(action.name), depth)

    def _apply(self, callee: Node, scope: Scope, depth: int) -> tuple[str, str, str]:
        owner = callee.children[0]
        assert isinstance(owner, Tree)
        table = scope.control.tables.get(str(owner.children[0]))
        if table is None:
            raise self.unit.error(
                owner, f'there is no table "{owner.children[0]}"', f"declare it in {scope.control.name}"
            )
        self._known(table, scope)
        hit, ran, data = self._new(), self._new(), self._new()
        keys = ", ".join(self._value(expression, scope) for expression, _ in table.keys)
        self._put(depth, f"{hit}, ({ran}, {data}) = T[{table.name!r}].find({keys})")
        word = "if"
        for k, action in enumerate(self.machine.actions[table.name]):
            if action is NO_ACTION:
                continue
            self._put(depth, f"{word} {ran} == {k}:")
            if action.parameters:
                self._put(depth + 1, f"{', '.join(f'p_{name}' for name, _ in action.parameters)}, = {data}")
            self._statement(action.body, scope.inside(action.name), depth + 1)
            word = "elif"
        return hit, ran, table.name

    def _known(self, table: Table, scope: Scope) -> None:
        if table.name in self.machine.tables:
            raise self.unit.error(
                table.node, f'table "{table.name}" is applied twice', "apply a table in one place only"
            )
        names = list(dict.fromkeys((*table.actions, table.default[0])))
        actions = [scope.action(name) for name in names]
        self.machine.actions[table.name] = actions
        widths = [scope.width(expression) or 0 for expression, _ in table.keys]
        default = actions[names.index(table.default[0])]
        if len(default.parameters) != len(table.default[1]):
            raise self._cannot(table.node)
        data = tuple(self.unit.value(v) for v in table.default[1])
        entries = Entries([kind for _, kind in table.keys], widths, (names.index(default.name), data))
        self.machine.tables[table.name] = entries
        for place, entry in enumerate(table.entries):
            self._entry(table, entry, entries, actions, len(table.entries) - place)

    def _entry(self, table: Table, node: Node, entries: Entries, actions: list[Action], priority: int) -> None:
        keys, name, *given = parts(node)
        names = [a.name for a in actions]
        data = tuple(self.unit.value(v) for v in given[0].children) if given else ()
        entries.add([self._key_value(v) for v in keys.children], (names.index(str(name)), data), priority)

    def _key_value(self, node: Node) -> Any:
        if node.data == "any":
            return None
        if node.data in ("masked", "range"):
            return tuple(self.unit.value(child) for child in node.children)
        return self.unit.value(node)

    def _fitted(self, node: Node, scope: Scope, width: int) -> str:
        """Code for the value of an expression, truncated to ``width`` bits."""
        held = scope.width(node)
        if held is not None and held != width:
            raise self.unit.error(node, f"bit<{held}> goes into bit<{width}>", f"cast it: (bit<{width}>)(...)")
        said = self._value(node, scope)
        return said if held is not None else f"({said}) & {(1 << width) - 1}"

    def _value(self, node: Node, scope: Scope) -> str:
        data = str(node.data)
        if data == "number":
            return str(number(str(node.children[0]))[0])
        if data in ("true", "false"):
            return str(int(data == "true"))
        if data == "name" and str(node.children[0]) in scope.parameters:
            return self._local(str(node.children[0]), scope)
        if data == "name" and str(node.children[0]) in self.unit.constants:
            return str(self.unit.constants[str(node.children[0])][0])
        if data in ("name", "member"):
            value = scope.ref(node).value
            return self._slot(scope.field(node)) if value is None else str(value)
        if data == "invoke":
            scope.reads(node)
            callee = node.children[0]
            assert isinstance(callee, Tree)
            if str(callee.children[-1]) != "isValid":
                raise self._cannot(node)
            return self._slot(scope.header(callee.children[0]))  # type: ignore[arg-type]
        if data == "slice":
            high, low = scope.bounds(node)
            inner = self._value(node.children[0], scope)  # type: ignore[arg-type]
            return f"(({inner} >> {low}) & {(1 << (high - low + 1)) - 1})"
        if data == "cast":
            inner, width = self._value(node.children[1], scope), self.unit.type(node.children[0]).width or 0  # type: ignore[arg-type]
            held = scope.width(node.children[1])  # type: ignore[arg-type]
            return inner if held is not None and held <= width else f"({inner} & {(1 << width) - 1})"
        if data == "choice":
            condition, yes, no = (self._value(child, scope) for child in parts(node))
            scope.width(node)
            return f"({yes} if {condition} else {no})"
        return self._operation(node, scope)

    def _operation(self, node: Node, scope: Scope) -> str:
        data = str(node.data)
        width = scope.width(node)
        values = [self._value(child, scope) for child in parts(node) if isinstance(child, Tree)]
        mask = f" & {(1 << width) - 1}" if width is not None else ""
        if data in SUMS:
            return f"(({values[0]} {SUMS[data]} {values[1]}){mask})"
        if data in BITS:
            return f"({values[0]} {BITS[data]} {values[1]})"
        if data in ORDER:
            return f"({values[0]} {ORDER[data]} {values[1]})"
        if data in ("and", "or"):
            return f"({values[0]} {data} {values[1]})"
        if data == "not":
            return f"(not {values[0]})"
        if data == "shr":
            return f"({values[0]} >> {values[1]})"
        if data == "concat":
            return f"(({values[0]} << {scope.width(node.children[1])}) | {values[1]})"  # type: ignore[arg-type]
        if width is None or data in ("div", "mod", "list", "index", "construct"):
            raise self._cannot(node)
        full = (1 << width) - 1
        if data == "shl":
            return f"(({values[0]} << {values[1]}) & {full} if {values[1]} < {width} else 0)"
        if data == "satadd":
            return f"min({values[0]} + {values[1]}, {full})"
        if data == "satsub":
            return f"max({values[0]} - {values[1]}, 0)"
        return f"(~{values[0]} & {full})" if data == "inv" else f"(-{values[0]} & {full})"
