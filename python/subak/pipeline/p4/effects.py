"""Fields that P4 code reads and writes: statements of an action, or of an apply block."""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Tree

from subak.pipeline import frontend
from subak.pipeline.frontend import ALWAYS, COPIES, DROPPED, MAYBE, NEVER, STANDARD
from subak.pipeline.p4.declared import Action, arguments, is_a, parts
from subak.pipeline.p4.externs import AGAIN, CHECKSUMS, COPYING, FUNCTIONS, METHODS, STATE, TAKEN
from subak.pipeline.p4.parse import Node
from subak.pipeline.p4.scope import Ref, Scope
from subak.pipeline.p4.types import VALID


@dataclass
class Effect:
    """Fields that a piece of code reads and writes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    states: set[str] = field(default_factory=set)
    """Registers, counters and meters that the code uses."""
    direct: set[str] = field(default_factory=set)
    """Direct counters and meters that the code uses."""
    sure: set[str] = field(default_factory=set)
    """Fields written on every path so far: a later read gets that value, so it depends on no table before."""
    exits: int = NEVER
    notes: set[str] = field(default_factory=set)
    running: list[Node] = field(default_factory=list)
    """Bodies of the actions being called, outermost first."""

    def read(self, names: set[str]) -> None:
        """Records that the code reads these fields."""
        self.reads |= names - self.sure

    def write(self, names: set[str], surely: bool = True) -> None:
        """Records that the code writes these fields, or one of them."""
        self.writes |= names
        if surely:
            self.sure |= names

    def add(self, node: Node, scope: Scope) -> None:
        """Adds the effect of a statement."""
        scope.unit.spend(node)
        kind = str(node.data)
        if kind == "block":
            self._block(node, scope)
        elif kind in ("assignment", "compound"):
            self._assign(node, scope)
        elif kind == "variable":
            self._variable(node, scope)
        elif kind == "conditional":
            self._branches(node, scope)
        elif kind == "call":
            self._call(node, scope)
        elif kind == "exit":
            self.exits = ALWAYS
        elif kind == "return":
            self._return(node, scope)
        elif kind == "constant":
            told, name, value = parts(node)
            scope.names[str(name)] = Ref(scope.unit.type(told), None, False, scope.unit.value(value))
        elif kind != "empty":
            raise scope.unit.error(node, f"a {kind} cannot stand in an action", "assign, call, or use if")

    def _return(self, node: Node, scope: Scope) -> None:
        for value in parts(node):
            if scope.result is None or scope.result.kind == "void":
                raise scope.unit.error(node, "an action returns nothing", "write return;")
            scope.fits(value, scope.result)
            self.read(scope.reads(value))

    def _block(self, node: Node, scope: Scope) -> None:
        inner = scope.child({})
        for statement in parts(node):
            if self.exits == ALWAYS:
                break
            self.add(statement, inner)
            if statement.data == "return":
                break

    def _assign(self, node: Node, scope: Scope) -> None:
        target, value = (c for c in parts(node) if isinstance(c, Tree))
        ref = scope.target(target)
        if target.data == "slice":
            high, low = scope.bounds(target)
            held = scope.type(value)
            if held.width not in (None, high - low + 1):
                raise scope.unit.error(value, f"{held} goes into {high - low + 1} bits", "cast it")
        else:
            scope.fits(value, ref.type)
        self.read(scope.reads(value))
        if node.data == "compound":
            scope.numeric(target)
            self.read(scope.looked(ref))
        self._write(target, ref, scope)

    def _write(self, target: Node, ref: Ref, scope: Scope) -> None:
        self.read(set(ref.reads))
        if target.data == "slice":
            self.read(scope.looked(ref))
        self.write(scope.written(ref), surely=not ref.weak)

    def _variable(self, node: Node, scope: Scope) -> None:
        """Adds the effect of a declaration. A variable of an action is no field outside the action."""
        told, name, *value = parts(node)
        of = scope.unit.type(told)
        if value:
            scope.fits(value[0], of)
            self.read(scope.reads(value[0]))
        if scope.in_action:
            scope.names[str(name)] = Ref(of)
        elif value:
            self.write(scope.written(scope.names[str(name)]))

    def _branches(self, node: Node, scope: Scope) -> None:
        condition, *branches = parts(node)
        scope.boolean(condition)
        self.read(scope.reads(condition))
        before = set(self.sure)
        ends, exits = [], []
        for branch in branches:
            self.sure, self.exits = set(before), NEVER
            self.add(branch, scope.child({}))
            ends.append(self.sure)
            exits.append(self.exits)
        self.sure = ends[0] & ends[1] if len(ends) == 2 else before
        always = len(exits) == 2 and min(exits) == ALWAYS
        self.exits = ALWAYS if always else MAYBE if max(exits) else NEVER

    def _call(self, node: Node, scope: Scope) -> None:
        callee, given = node.children[0], arguments(node)
        assert isinstance(callee, Tree)
        if callee.data == "member":
            self._method(node, callee, given, scope)
            return
        name = str(callee.children[0])
        if action := scope.called(node):
            self.run(node, action, given, scope)
        elif name in scope.unit.functions:
            self.run(node, scope.function(node, name), given, scope)
        elif name in FUNCTIONS:
            self._function(node, name, given, scope)
        elif name in CHECKSUMS:
            hint = "call it in the control for it; in the pipeline no stage can"
            raise scope.unit.error(node, f"{name}() is computed outside the pipeline", hint)
        else:
            known = ", ".join(FUNCTIONS)
            raise scope.unit.error(node, f'there is no action or function "{name}"', f"v1model has {known}")

    def run(self, node: Node, action: Action, given: list[Node], scope: Scope) -> None:
        """Adds the effect of calling an action or function with operands."""
        if any(action.body is body for body in self.running):
            raise scope.unit.error(node, f'"{action.name}" calls itself', "let actions only call others")
        names = {}
        for parameter, arg in zip(action.taken, scope.operands(node, action, given), strict=True):
            if parameter.direction in ("out", "inout"):
                names[parameter.name] = scope.handed(arg, parameter.type)
            else:
                self.read(scope.reads(arg))
                names[parameter.name] = Ref(parameter.type, None, False)
        self.running.append(action.body)
        self.add(action.body, scope.child(names, in_action=True, result=action.result))
        self.running.pop()

    def _function(self, node: Node, name: str, given: list[Node], scope: Scope) -> None:
        ways = next((w for w in FUNCTIONS[name] if len(w) == len(given)), None)
        if ways is None:
            counts = " or ".join(str(len(w)) for w in FUNCTIONS[name])
            raise scope.unit.error(
                node, f"{name}() takes {counts} operands, and {len(given)} are given", "give as many"
            )
        if name == "mark_to_drop":
            for arg in given:
                if scope.type(arg).name != "standard_metadata_t":
                    raise scope.unit.error(arg, f"mark_to_drop() of {scope.type(arg)}", "hand it standard_metadata_t")
            self.write(frontend.changed([f"{STANDARD}.{one}" for one in DROPPED], scope.control.egress))
            return
        self._check_operands(name, given, scope)
        self._operands(given, ways, scope)
        if name in COPYING and not scope.control.egress:
            self.write({COPIES})
        if name.endswith("preserving_field_list"):
            self.notes.add("fields kept by a field list are copied at the end of ingress: no table waits for them")
        if name in AGAIN:
            self.notes.add(frontend.again(name))

    def _check_operands(self, name: str, given: list[Node], scope: Scope) -> None:
        """Raises an error if an operand of a v1model function has the wrong type."""
        for arg, wanted in zip(given, TAKEN.get(name, ()), strict=False):
            if wanted == "number":
                scope.numeric(arg)
            elif wanted == "bool":
                scope.boolean(arg)
            elif wanted and str(scope.type(arg)) != wanted:
                raise scope.unit.error(arg, f"{scope.type(arg)} stands where a {wanted} should", f"name a {wanted}")

    def _operands(self, given: list[Node], ways: str, scope: Scope) -> None:
        for arg, way in zip(given, ways, strict=True):
            if way == "i":
                scope.type(arg)
                self.read(scope.reads(arg))
        for arg, way in zip(given, ways, strict=True):
            if way == "o":
                self._write(arg, scope.target(arg), scope)

    def _method(self, node: Node, callee: Node, given: list[Node], scope: Scope) -> None:
        owner, method = callee.children[0], str(callee.children[1])
        assert isinstance(owner, Tree)
        name = str(owner.children[0]) if owner.data == "name" else ""
        if name in scope.control.externs and name not in scope.names:
            self._extern(node, name, method, given, scope)
        elif method == "apply":
            raise scope.unit.error(node, "an action applies a table or a control", "apply it in the apply block")
        elif method in ("setValid", "setInvalid"):
            if given:
                raise scope.unit.error(node, f"{method}() takes no operands", "give none")
            self._validity(owner, scope)
        elif method in ("push_front", "pop_front"):
            ref = scope.target(owner)
            if ref.type.kind != "stack":
                raise scope.unit.error(node, f"{method}() of {ref.type}", "call it on a stack of headers")
            if len(given) != 1 or scope.unit.value(given[0]) < 1:
                raise scope.unit.error(node, f"{method}() of less than 1 header", "give one number of 1 or more")
            self.read(scope.looked(ref))
            self.write(scope.written(ref), surely=False)
        else:
            hint = "use v1model's externs, setValid, setInvalid, push_front, pop_front"
            raise scope.unit.error(node, f'there is no "{method}" to call here', hint)

    def _validity(self, owner: Node, scope: Scope) -> None:
        scope.header(owner)
        ref = scope.target(owner)
        self.read(set(ref.reads))
        found = scope.written(ref)
        if owner.data == "member" and (within := scope.ref(owner.children[0])).type.kind == "union":  # type: ignore[arg-type]
            # At most one header of a union is valid.
            found = scope.written(within)
        self.write({leaf for leaf in found if leaf.endswith(VALID)}, surely=not ref.weak)

    def _extern(self, node: Node, name: str, method: str, given: list[Node], scope: Scope) -> None:
        extern = scope.control.externs[name]
        methods = METHODS[extern.kind]
        if method not in methods:
            hint = f"it has {', '.join(methods)}" if methods else "name it in a table"
            raise scope.unit.error(node, f'a {extern.kind} has no "{method}"', hint)
        if len(given) != len(methods[method]):
            what = f"{method} of {len(given)} operands"
            raise scope.unit.error(node, what, f"give {len(methods[method])}")
        if extern.kind == "register":
            index, value = given if method == "write" else reversed(given)
            scope.numeric(index)
            if not is_a(value, "list") and scope.type(value).width not in (None, extern.width):
                what = f"{scope.type(value)} and cells of {extern.width} bits meet here"
                raise scope.unit.error(value, what, "cast it to the width of the register's cells")
        if extern.kind in ("counter", "meter", "direct_meter"):
            for arg in given:
                scope.numeric(arg)
        self._operands(given, methods[method], scope)
        if extern.kind in STATE:
            self.states.add(name)
        elif extern.kind.startswith("direct"):
            self.direct.add(name)
