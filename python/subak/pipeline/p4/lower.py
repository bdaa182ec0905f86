"""From a P4 program to its table dependency graph.

Each table, each condition and each action or step that the apply block runs by itself is a table of the graph: the
first with its keys, the others with a single entry. An action counts as one step, however long: the model has no ALUs.
A condition matches the fields that it looks at, exactly where it only compares for equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Token, Tree

from subak.pipeline import derive, program
from subak.pipeline.p4.parse import Node, parse
from subak.pipeline.p4.scope import Scope
from subak.pipeline.p4.unit import Table, Unit, parts, walk

KINDS = {"exact": program.EXACT, "lpm": program.PREFIX, "ternary": program.TERNARY, "range": program.TERNARY}
MOST_ENTRIES = 1024
"""Of a table that does not say: as bmv2 has it."""
ORDERED = ("lt", "gt", "le", "ge")
Next = tuple[tuple[str, str | None], ...]


def read(data: bytes, file: str) -> Unit:
    """A program with its declarations."""
    return Unit(parse(data, file), file)


def lower(data: bytes, file: str) -> program.Program:
    """The dependency graph of a program's text."""
    unit = read(data, file)
    lowering = Lowering(unit)
    tables = lowering.run()
    name = file.rsplit("/", 1)[-1].removesuffix(".p4")
    if not tables:
        raise unit.error(unit.controls[0].body, "no table, condition or action is applied", "apply at least one")
    return program.Program(name, tables, derive.dependencies(tables), "", derive.exclusive_pairs(tables))


@dataclass
class Effect:
    """What a piece of code reads and writes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    registers: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)
    """Written on every way so far: what is read of it after that comes from inside."""

    def read(self, names: set[str]) -> None:
        """The code looks at these fields."""
        self.reads |= names - self.sure

    def write(self, name: str) -> None:
        """The code writes this field."""
        self.writes.add(name)
        self.sure.add(name)


class Lowering:
    """Walks the apply blocks from behind, as each step has to know what follows it."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self._made: list[program.Table] = []
        self._applied: set[str] = set()
        self._owner: dict[str, str] = {}
        self._count: dict[str, int] = {}

    def run(self) -> tuple[program.Table, ...]:
        """The tables, in the order of the program."""
        follow: str | None = None
        for control in reversed(self.unit.controls):
            scope = Scope(self.unit, control)
            body = [*control.starts, *parts(control.body)]
            follow = self._block(body, scope, follow, follow)
        return tuple(reversed(self._made))

    def _block(self, nodes: list[Node], scope: Scope, follow: str | None, end: str | None) -> str | None:
        """Lowers statements that ``follow`` comes after; ``end`` is where a return leads. Says where they begin."""
        declare(self.unit, scope, nodes)
        step: list[Node] = []
        for node in reversed(nodes):
            if node.data in ("assignment", "variable", "call") and not runs_something(node, scope):
                if node.data != "variable" or len(parts(node)) > 2:
                    step.insert(0, node)
                continue
            if step:
                follow, step = self._step(step, scope, follow), []
            follow = self._statement(node, scope, follow, end)
        return self._step(step, scope, follow) if step else follow

    def _statement(self, node: Node, scope: Scope, follow: str | None, end: str | None) -> str | None:
        if node.data == "block":
            return self._block(parts(node), scope, follow, end)
        if node.data == "empty":
            return follow
        if node.data == "return":
            return end
        if node.data == "exit":
            return None
        if node.data == "call":
            callee = node.children[0]
            assert isinstance(callee, Tree)
            if callee.data == "member":
                return self._table(callee, scope, (("default", follow),))
            return self._action(str(callee.children[0]), node, scope, follow)
        if node.data == "conditional":
            return self._conditional(node, scope, follow, end)
        if node.data == "switch":
            return self._switch(node, scope, follow, end)
        raise self.unit.error(node, f"a {node.data} is outside the P4 that is read", "use tables, actions and if")

    def _conditional(self, node: Node, scope: Scope, follow: str | None, end: str | None) -> str | None:
        condition, then, *otherwise = parts(node)
        # Variables that a branch declares are known in it only, and nothing else may use them.
        no = self._statement(otherwise[0], scope, follow, end) if otherwise else follow
        yes = self._statement(then, scope, follow, end)
        asked = applied_table(condition)
        if asked:
            table, hit = asked
            outcomes = (("hit", yes if hit else no), ("miss", no if hit else yes))
            return self._table(table, scope, outcomes)
        name = self._name(f"if_{condition.meta.line}")
        reads = sorted(scope.reads(condition))
        ordered = any(inner.data in ORDERED for inner in walk(condition))
        kind = program.TERNARY if ordered else program.EXACT
        keys = tuple(program.Key(f, self.unit.fields[f], kind) for f in reads)
        self._made.append(program.Table(name, keys, 1, next=(("true", yes), ("false", no))))
        return name

    def _switch(self, node: Node, scope: Scope, follow: str | None, end: str | None) -> str | None:
        selector, *cases = parts(node)
        table = run_table(selector)
        if table is None:
            raise self.unit.error(
                selector, "this switch is outside the P4 that is read", "switch on t.apply().action_run"
            )
        outcomes: dict[str, str | None] = {}
        shared: str | None = follow
        for case in reversed(cases):
            label = str(case.children[0])
            # A case without a block runs that of the next one.
            if len(case.children) > 1 and case.children[1] is not None:
                shared = self._statement(case.children[1], scope, follow, end)
            outcomes[label] = shared
        outcomes.setdefault("default", follow)
        return self._table(table, scope, tuple(outcomes.items()))

    def _table(self, callee: Node, scope: Scope, outcomes: Next) -> str:
        owner = callee.children[0]
        assert isinstance(owner, Tree)
        name = str(owner.children[0]) if owner.data == "name" else ""
        if name not in scope.control.tables:
            raise self.unit.error(owner, f'there is no table "{name}"', f"declare it in {scope.control.name}")
        if scope.control.prefix + name in self._applied:
            raise self.unit.error(owner, f'table "{name}" is applied twice', "apply a table in one place only")
        self._applied.add(scope.control.prefix + name)
        table = scope.control.tables[name]
        effect = Effect()
        widest = 0
        for action in dict.fromkeys((*table.actions, table.default[0])):
            if action != "NoAction":
                effect.sure.clear()
                self._effect(scope.control.actions[action].body, scope.inside(action), effect)
                widest = max(widest, sum(width for _, width in scope.control.actions[action].parameters))
        keys = tuple(self._key(expression, kind, scope) for expression, kind in table.keys)
        return self._make(name, owner, scope, keys, self._entries(table), widest, effect, outcomes)

    def _entries(self, table: Table) -> int:
        if not table.keys:
            return 1
        return table.size or len(table.entries) or MOST_ENTRIES

    def _key(self, node: Node, kind: str, scope: Scope) -> program.Key:
        reads = sorted(scope.reads(node))
        width = scope.width(node)
        if len(reads) != 1 or width is None:
            raise self.unit.error(node, "a key looks at one field", "compute it into a field first")
        return program.Key(reads[0], width, KINDS[kind])

    def _action(self, name: str, node: Node, scope: Scope, follow: str | None) -> str:
        effect = Effect()
        args = node.children[-1]
        if isinstance(args, Tree) and args.data == "arguments":
            for arg in args.children:
                effect.read(scope.reads(arg))  # type: ignore[arg-type]
        self._effect(scope.control.actions[name].body, scope.inside(name), effect)
        return self._make(self._name(name), node, scope, (), 1, 0, effect, (("default", follow),))

    def _step(self, nodes: list[Node], scope: Scope, follow: str | None) -> str:
        effect = Effect()
        for node in nodes:
            self._effect(node, scope, effect)
        name = self._name(f"step_{nodes[0].meta.line}")
        return self._make(name, nodes[0], scope, (), 1, 0, effect, (("default", follow),))

    def _make(
        self,
        name: str,
        node: Node | Token,
        scope: Scope,
        keys: tuple[program.Key, ...],
        entries: int,
        action_width: int,
        effect: Effect,
        outcomes: Next,
    ) -> str:
        full = name if name not in (t.name for t in self._made) else scope.control.prefix + name
        registers = []
        for register in sorted(effect.registers):
            if register in self._owner:
                what = f'register "{register}" is used by {self._owner[register]} and by {full}'
                raise self.unit.error(node, what, "a register lies in one stage: use it in the actions of one table")
            self._owner[register] = full
            registers.append(program.Register(register, *scope.control.registers[register]))
        self._made.append(
            program.Table(
                name=full,
                keys=keys,
                entries=entries,
                action_width=action_width,
                modifies=frozenset(effect.writes),
                reads=frozenset(effect.reads),
                next=outcomes,
                registers=tuple(registers),
            )
        )
        return full

    def _name(self, name: str) -> str:
        self._count[name] = self._count.get(name, 0) + 1
        return name if self._count[name] == 1 else f"{name}_{self._count[name]}"

    def _effect(self, node: Node, scope: Scope, effect: Effect) -> None:
        """Adds what a statement of an action, or a plain one, reads and writes."""
        if node.data == "block":
            for inner in parts(node):
                self._effect(inner, scope, effect)
        elif node.data == "assignment":
            target, value = parts(node)
            effect.read(scope.reads(value))
            self._write(target, scope, effect)
        elif node.data == "variable":
            self._variable(node, scope, effect)
        elif node.data == "conditional":
            self._branches(node, scope, effect)
        elif node.data == "call":
            self._call(node, scope, effect)
        elif node.data != "empty":
            raise self.unit.error(node, f"a {node.data} here is outside the P4 that is read", "assign, or use if")

    def _branches(self, node: Node, scope: Scope, effect: Effect) -> None:
        condition, *branches = parts(node)
        effect.read(scope.reads(condition))
        before = set(effect.sure)
        ends = []
        for branch in branches:
            effect.sure = set(before)
            self._effect(branch, scope, effect)
            ends.append(effect.sure)
        effect.sure = ends[0] & ends[1] if len(ends) == 2 else before

    def _variable(self, node: Node, scope: Scope, effect: Effect) -> None:
        """A variable of the action's own is nobody else's field."""
        kind, name, *value = parts(node)
        if value:
            effect.read(scope.reads(value[0]))
        if scope.in_action:
            scope.parameters[str(name)] = self.unit.width(kind)
        elif value:
            effect.write(scope.control.prefix + str(name))

    def _write(self, target: Node, scope: Scope, effect: Effect) -> None:
        sliced = target.data == "slice"
        held = target.children[0] if sliced else target
        assert isinstance(held, Tree)
        if held.data == "name" and str(held.children[0]) in scope.parameters:
            return
        name = scope.field(held)
        if sliced:
            effect.read({name})
        effect.write(name)

    def _call(self, node: Node, scope: Scope, effect: Effect) -> None:
        callee = node.children[0]
        given = node.children[-1]
        args: list[Node] = list(given.children) if isinstance(given, Tree) and given.data == "arguments" else []  # type: ignore[arg-type]
        assert isinstance(callee, Tree)
        if callee.data == "name" and str(callee.children[0]) == "mark_to_drop":
            effect.write("standard_metadata.egress_spec")
            return
        method = str(callee.children[1]) if callee.data == "member" else ""
        owner = callee.children[0]
        if method in ("read", "write") and isinstance(owner, Tree) and (register := scope.register(owner)):
            if len(args) != 2:
                raise self.unit.error(node, f"{method} of {len(args)} operands", "give two")
            effect.registers.add(register)
            index, other = (args[1], args[0]) if method == "read" else (args[0], args[1])
            effect.read(scope.reads(index))
            if method == "read":
                self._write(other, scope, effect)
            else:
                effect.read(scope.reads(other))
            return
        if method in ("setValid", "setInvalid") and isinstance(owner, Tree):
            effect.write(scope.header(owner))
            return
        shown = str(callee.children[-1])
        raise self.unit.error(
            node, f"{shown}() is outside the P4 that is read", "use registers, isValid, setValid, mark_to_drop"
        )


def declare(unit: Unit, scope: Scope, nodes: list[Node]) -> None:
    """Makes the variables of a block known; one name is one variable in a control."""
    for node in nodes:
        if node.data == "variable":
            width, name = unit.width(parts(node)[0]), str(parts(node)[1])
            if scope.control.variables.setdefault(name, width) != width:
                raise unit.error(node, f'"{name}" has another width elsewhere', "give it another name")
            unit.fields[scope.control.prefix + name] = width


def runs_something(node: Node, scope: Scope) -> bool:
    """Whether a statement applies a table or runs an action."""
    if node.data != "call":
        return False
    callee = node.children[0]
    assert isinstance(callee, Tree)
    if callee.data == "member":
        return str(callee.children[1]) == "apply"
    return str(callee.children[0]) in scope.control.actions


def applied_table(condition: Node) -> tuple[Node, bool] | None:
    """The table whose hit or miss a condition asks for, and which of the two makes it true."""
    if condition.data == "not":
        inner = applied_table(condition.children[0])  # type: ignore[arg-type]
        return (inner[0], not inner[1]) if inner else None
    if condition.data == "member" and str(condition.children[1]) in ("hit", "miss"):
        table = apply_call(condition.children[0])
        return (table, str(condition.children[1]) == "hit") if table else None
    return None


def run_table(selector: Node) -> Node | None:
    """The table whose action a switch asks for."""
    if selector.data == "member" and str(selector.children[1]) == "action_run":
        return apply_call(selector.children[0])
    return None


def apply_call(node: object) -> Node | None:
    """What ``t.apply`` is called in an expression, if it is."""
    if isinstance(node, Tree) and node.data == "invoke":
        callee = node.children[0]
        if isinstance(callee, Tree) and callee.data == "member" and str(callee.children[1]) == "apply":
            return callee
    return None
