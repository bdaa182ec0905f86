"""Lowers a P4 program to its table dependency graph.

The graph has a table for each table, each condition, and each action or statement that the apply block runs directly.
Tables have their keys, the others a single entry. An action counts as one step of any length, since the model has no
action units. A condition matches the fields that it reads, exactly if it only tests equality. Controls that a control
applies are inlined. The traffic manager sets its fields by egress_spec, mcast_grp, priority and the requested copies.
An egress read of one of its fields therefore depends on all of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from lark import Tree

from subak.errors import InputError
from subak.pipeline import derive, program
from subak.pipeline.frontend import NEVER, STANDARD, Next, leaving, members, met
from subak.pipeline.p4 import keys as table_keys
from subak.pipeline.p4.controls import read_control, read_unit
from subak.pipeline.p4.declared import NO_ACTION, Action, Control, Table, arguments, parts, walk
from subak.pipeline.p4.effects import Effect
from subak.pipeline.p4.flow import Ways, applied_table, run_table
from subak.pipeline.p4.functions import check
from subak.pipeline.p4.parse import Node, deepest, fault, parse
from subak.pipeline.p4.preprocess import Flags, Source
from subak.pipeline.p4.scope import COMPARED, Ref, Scope
from subak.pipeline.p4.unit import Unit

T = TypeVar("T")
MOST_ENTRIES = 1024
"""Number of entries of a table without a size, as in bmv2."""


def read(data: bytes, file: str) -> Unit:
    """Reads a program's text and its declarations."""
    return _shallow(data, file, read_unit)


def lower(data: bytes, file: str, flags: Flags | None = None) -> program.Program:
    """The dependency graph of a program's text; a syntax error or an unsupported construct raises an error."""
    return _shallow(data, file, lambda tree, source: lower_unit(read_unit(tree, source), file), flags)


def _shallow(data: bytes, file: str, made: Callable[[Node, Source], T], flags: Flags | None = None) -> T:
    """Runs a function on a program's tree; too deep nesting is an error with its place."""
    tree, source = parse(data, file, flags)
    try:
        return made(tree, source)
    except RecursionError:
        hint = "nest less, or split its longest expression"
        raise fault(deepest(tree), source, "it nests too deep", hint) from None


def lower_unit(unit: Unit, file: str) -> program.Program:
    """The dependency graph of a program."""
    lowering = Lowering(unit)
    tables = lowering.run()
    name = file.rsplit("/", 1)[-1].removesuffix(".p4")
    if not tables:
        raise unit.error(unit.controls[0].body, "no table, condition or action is applied", "apply at least one")
    return program.Program(
        name, tables, derive.dependencies(tables), notes=tuple(sorted({*lowering.notes, *unit.source.notes}))
    )


class Lowering:
    """Converts apply blocks to tables, last statement first, since each step needs its successor."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.notes: set[str] = set()
        self._made: list[program.Table] = []
        self._names: set[str] = set()
        self._shared: set[str] = set()
        """Names that occur in tables of several controls."""
        self._prefixes: dict[str, str] = {}
        self._applied: set[str] = set()
        self._count: dict[str, int] = {}
        self._states: dict[tuple[str, str], str] = {}
        self._variables: dict[tuple[str, int], str] = {}
        self._inside: list[str] = []

    def run(self) -> tuple[program.Table, ...]:
        """The tables of the graph, in the order of the program."""
        follow: str | None = None
        for function in (one for named in self.unit.functions.values() for one in named):
            check(self.unit, function)
        for control in reversed(self.unit.controls):
            roles = zip(control.taken, ("hdr", "meta", STANDARD), strict=False)
            names = {p.name: Ref(p.type, role) for p, role in roles}
            follow = self.control(control, names, Ways(follow, follow, follow))
        tables, notes = met(*self._told_apart(follow))
        self.notes |= notes
        return tables

    def _told_apart(self, start: str | None) -> tuple[tuple[program.Table, ...], str | None]:
        """The tables in order, and the first one; tables that share a name get their control's name as prefix."""
        named: dict[str | None, str] = {name: self._prefixes[name] + name for name in self._shared}
        tables = tuple(
            replace(
                table,
                name=named.get(table.name, table.name),
                next=tuple((outcome, named.get(to, to)) for outcome, to in table.next or ()),
            )
            for table in reversed(self._made)
        )
        return tables, named.get(start, start)

    def control(self, control: Control, names: dict[str, Ref], ways: Ways) -> str | None:
        """Lowers a control whose parameters are bound to ``names``; returns its first node."""
        scope = self.scope(control, names)
        if control.name in self._inside:
            raise self.unit.error(control.body, f"{control.name} applies itself", "let packets only go forward")
        self._inside.append(control.name)
        for name in control.actions:
            # Declarations that no table uses must be valid too.
            action = control.actions[name]
            Effect().add(action.body, scope.inside(name))
        starts = [node for node in control.variables if len(parts(node)) > 2]
        first = self._block([*starts, *parts(control.body)], scope, ways._replace(end=ways.follow))
        for table in (t for name, t in control.tables.items() if control.prefix + name not in self._applied):
            self._actions(table, scope)
            table_keys.check_table(scope, table)
            table_keys.of_table(scope, table)
        self._inside.pop()
        return first

    def scope(self, control: Control, names: dict[str, Ref]) -> Scope:
        """The scope of a control, with its constants and variables."""
        scope = Scope(self.unit, control, dict(names))
        for node in (*control.constants, *control.variables):
            self.declare(node, scope)
        return scope

    def declare(self, node: Node, scope: Scope) -> None:
        """Registers a variable or a constant."""
        told, name, *value = parts(node)
        of = self.unit.type(told)
        if node.data == "constant":
            scope.names[str(name)] = Ref(of, None, False, self.unit.value(value[0]))
            self.unit.constants.setdefault(str(name), (self.unit.value(value[0]), of))
            return
        # Instances of one control share nodes, but have variables of their own.
        place = (scope.control.prefix, id(node))
        if place not in self._variables:
            path = scope.control.prefix + str(name)
            if path in self._variables.values():
                path = f"{path}_{self.unit.line(name)}"
            self._variables[place] = path
            self.unit.expand(path, of)
        scope.names[str(name)] = Ref(of, self._variables[place])

    def _block(self, nodes: list[Node], outer: Scope, ways: Ways) -> str | None:
        """Lowers statements; returns their first node."""
        scope = outer.child({})
        for node in nodes:
            if node.data == "constant" or (node.data == "variable" and node not in outer.control.variables):
                self.declare(node, scope)
        step: list[Node] = []
        for node in reversed(nodes):
            if node.data in ("assignment", "compound", "variable", "call") and not self._runs(node, scope):
                if node.data != "variable" or len(parts(node)) > 2:
                    step.insert(0, node)
                continue
            if step:
                ways, step = ways.then(self._step(step, scope, ways)), []
            ways = ways.then(self._statement(node, scope, ways))
        return self._step(step, scope, ways) if step else ways.follow

    def _runs(self, node: Node, scope: Scope) -> bool:
        """Whether a statement applies a table or a control, or runs an action."""
        if node.data in ("assignment", "variable"):
            value = parts(node)[-1]
            return isinstance(value, Tree) and applied_table(value) is not None
        if node.data != "call":
            return False
        callee = node.children[0]
        assert isinstance(callee, Tree)
        if callee.data == "member":
            return str(callee.children[1]) == "apply"
        return scope.called(node) is not None

    def _statement(self, node: Node, scope: Scope, ways: Ways) -> str | None:
        kind = str(node.data)
        if kind == "block":
            return self._block(parts(node), scope, ways)
        if kind in ("empty", "constant"):
            return ways.follow
        if kind == "return":
            return ways.end
        if kind == "exit":
            return ways.stop
        if kind == "call":
            callee = node.children[0]
            assert isinstance(callee, Tree)
            if callee.data == "member":
                return self._apply(node, callee, scope, ways)
            action = scope.called(node)
            assert action is not None
            if action is NO_ACTION:
                scope.operands(node, action, arguments(node))
                return ways.follow
            return self._action(action, node, scope, ways)
        if kind in ("assignment", "variable"):
            return self._outcome(node, scope, ways)
        if kind == "conditional":
            return self._conditional(node, scope, ways)
        if kind == "switch":
            return self._switch(node, scope, ways)
        raise self.unit.error(node, f"a {kind} cannot stand here", "use tables, actions and if")

    def _apply(self, node: Node, callee: Node, scope: Scope, ways: Ways) -> str | None:
        owner = callee.children[0]
        assert isinstance(owner, Tree)
        name = str(owner.children[0]) if owner.data in ("name", "type_name") else ""
        if name in scope.control.instances:
            return self._inline(node, scope.control.instances[name], name, scope, ways)
        if name in self.unit.declared and name not in scope.control.tables:
            return self._inline(node, name, name, scope, ways)
        if arguments(node):
            raise self.unit.error(node, "a table takes no operands", "write apply()")
        return self._table(callee, scope, (("default", ways.follow),), ways)

    def _inline(self, node: Node, name: str, instance: str, scope: Scope, ways: Ways) -> str | None:
        inner = read_control(self.unit, name, f"{scope.control.prefix}{instance}.", scope.control.egress)
        given = scope.operands(node, Action(name, inner.taken, inner.body), arguments(node))
        paths = {
            leaf
            for p, arg in zip(inner.taken, given, strict=True)
            if p.direction in ("out", "inout")
            for leaf in scope.written(scope.target(arg))
        }
        names, copied = {}, Effect()
        for parameter, arg in zip(inner.taken, given, strict=True):
            held = scope.ref(arg) if arg.data in ("name", "member", "index") else None
            if parameter.direction in ("out", "inout"):
                names[parameter.name] = scope.handed(arg, parameter.type)
            elif held and not (parameter.type.scalar and set(scope.looked(held)) & paths):
                names[parameter.name] = Ref(held.type, held.path, False, held.value, held.weak, held.reads)
            else:
                path = inner.prefix + parameter.name
                self.unit.expand(path, parameter.type)
                copied.read(scope.reads(arg))
                names[parameter.name] = Ref(parameter.type, path, False)
                copied.write(set(self.unit.leaves(path)))
        first = self.control(inner, names, ways)
        if not copied.writes:
            return first
        return self._make(self._name(f"{instance}_operands"), scope, copied, (("default", first),))

    def _outcome(self, node: Node, scope: Scope, ways: Ways) -> str | None:
        """Lowers a table whose hit or miss a variable stores: adds a step for each outcome."""
        target, asked = parts(node)[-2], applied_table(parts(node)[-1])
        assert asked is not None
        ref = scope.names[str(target)] if node.data == "variable" else scope.target(target)
        if ref.type.kind != "bool":
            raise self.unit.error(node, f"hit or miss goes into {ref.type}", "declare a bool")
        told = Effect()
        told.write(scope.written(ref), surely=not ref.weak)
        line = f"outcome_{self.unit.line(node)}"
        ends = [self._make(self._name(line), scope, told, (("default", ways.follow),)) for _ in range(2)]
        return self._table(asked[0], scope, (("hit", ends[0]), ("miss", ends[1])), ways)

    def _conditional(self, node: Node, scope: Scope, ways: Ways) -> str | None:
        condition, then, *otherwise = parts(node)
        no = self._block([otherwise[0]], scope, ways) if otherwise else ways.follow
        yes = self._block([then], scope, ways)
        asked = applied_table(condition)
        if asked:
            table, hit = asked
            outcomes = (("hit", yes if hit else no), ("miss", no if hit else yes))
            return self._table(table, scope, outcomes, ways)
        scope.boolean(condition)
        return self._condition(f"if_{self.unit.line(condition)}", condition, scope, 1, (("true", yes), ("false", no)))

    def _condition(self, called: str, node: Node, scope: Scope, entries: int, outcomes: Next) -> str:
        ordered = any(inner.data in COMPARED[2:] for inner in walk(node))
        held, through = table_keys.condition(scope, node, program.TERNARY if ordered else program.EXACT)
        name = self._name(called)
        self._add(program.Table(name, held, entries, next=outcomes, through=through))
        return name

    def _switch(self, node: Node, scope: Scope, ways: Ways) -> str | None:
        selector, *cases = parts(node)
        table = run_table(selector)
        outcomes: dict[str, str | None] = {}
        shared: str | None = ways.follow
        for case in reversed(cases):
            label, body = case.children[0], case.children[1] if len(case.children) > 1 else None
            # A case without a block runs the block of the next case.
            if body is not None:
                shared = self._block([body], scope, ways)
            if table is None and isinstance(label, Tree):
                scope.fits(label, scope.numeric(selector))
            called = self._label(label)
            if called in outcomes:
                raise self.unit.error(case, f"there are two cases {called}", "keep one")
            outcomes[called] = shared
        outcomes.setdefault("default", ways.follow)
        known = scope.control.tables.get(str(table.children[0].children[0])) if table else None  # type: ignore[union-attr]
        if known and {*known.actions, known.default[0]} <= outcomes.keys():
            del outcomes["default"]
        if table is None:
            scope.numeric(selector)
            return self._condition(
                f"switch_{self.unit.line(node)}", selector, scope, len(outcomes), tuple(outcomes.items())
            )
        return self._table(table, scope, tuple(outcomes.items()), ways, by_action=True)

    def _label(self, label: object) -> str:
        if not isinstance(label, Tree):
            return str(label)
        return str(label.children[0]) if label.data in ("name", "number") else str(self.unit.value(label))

    def _table(self, callee: Node, scope: Scope, outcomes: Next, ways: Ways, by_action: bool = False) -> str:
        owner = callee.children[0]
        assert isinstance(owner, Tree)
        name = str(owner.children[0]) if owner.data == "name" else ""
        if name not in scope.control.tables:
            raise self.unit.error(owner, f'there is no table "{name}"', f"declare it in {scope.control.name}")
        if scope.control.prefix + name in self._applied:
            what = f'table "{name}" is applied twice'
            raise self.unit.error(owner, what, "it lies in one place of the pipeline: apply it there, or declare two")
        self._applied.add(scope.control.prefix + name)
        table = scope.control.tables[name]
        effect, widest, exits = self._actions(table, scope)
        table_keys.check_table(scope, table)
        if by_action:
            for label, _ in outcomes:
                if label not in (*table.actions, table.default[0], "default"):
                    raise self.unit.error(owner, f'"{label}" is no action of {name}', f"use {', '.join(table.actions)}")
        held, through, selects = table_keys.of_table(scope, table)
        statistics = sum(e.width for e in table.attached if e.kind.startswith("direct"))
        if any(e.kind.startswith("action_") for e in table.attached):
            self.notes.add(members(name, selects))
        return self._make(
            name,
            scope,
            effect,
            leaving(outcomes, exits, by_action, ways.stop),
            held,
            self._entries(table),
            widest,
            statistics,
            through,
        )

    def _actions(self, table: Table, scope: Scope) -> tuple[Effect, int, dict[str, int]]:
        """Effects of all actions of a table, the width of the widest action's data, and which actions exit."""
        effect, widest, exits = Effect(), 0, {}
        for name in dict.fromkeys((*table.actions, table.default[0])):
            exits[name] = NEVER
            if scope.action(name) is not NO_ACTION:
                effect.sure.clear()
                effect.exits = NEVER
                action = scope.action(name)
                effect.add(action.body, table_keys.bound(scope, table, action, effect))
                exits[name] = effect.exits
                widest = max(widest, sum(width for _, width in action.parameters))
        effect.exits = NEVER
        attached = {e.name for e in table.attached}
        for one in sorted(effect.direct - attached):
            raise self._foreign(table, one, scope)
        return effect, widest, exits

    def _foreign(self, table: Table, called: str, scope: Scope) -> Exception:
        """The error for an action that uses a direct counter or meter of another table, or of none."""
        extern = scope.control.externs[called]
        owner = next((other.name for other in scope.control.tables.values() if extern in other.attached), None)
        if owner is not None:
            what = f'"{called}" belongs to {owner}, and an action of {table.name} uses it'
            hint = f"declare another {extern.kind} for {table.name}, and an action that uses it"
            return self.unit.error(table.node, what, hint)
        what = f'"{called}" is used by an action of {table.name}, and not attached to it'
        named = "counters" if extern.kind == "direct_counter" else "meters"
        return self.unit.error(table.node, what, f"write {named} = {called}; in {table.name}")

    def _entries(self, table: Table) -> int:
        if not table.keys:
            return 1
        return table.size or len(table.entries) or MOST_ENTRIES

    def _action(self, action: Action, node: Node, scope: Scope, ways: Ways) -> str:
        effect = Effect()
        effect.run(node, action, arguments(node), scope)
        for one in sorted(effect.direct):
            raise self.unit.error(node, f'"{one}" counts entries of a table', "use it in the actions of that table")
        outcomes = leaving((("default", ways.follow),), {"": effect.exits}, False, ways.stop)
        return self._make(self._name(action.name), scope, effect, outcomes)

    def _step(self, nodes: list[Node], scope: Scope, ways: Ways) -> str | None:
        effect = Effect()
        for node in nodes:
            effect.add(node, scope)
        for one in sorted(effect.direct):
            raise self.unit.error(nodes[0], f'"{one}" counts entries of a table', "use it in the actions of that table")
        self.notes |= effect.notes
        if not effect.reads and not effect.writes and not effect.states:
            return ways.follow
        return self._make(self._name(f"step_{self.unit.line(nodes[0])}"), scope, effect, (("default", ways.follow),))

    def _make(
        self,
        name: str,
        scope: Scope,
        effect: Effect,
        outcomes: Next,
        held: tuple[program.Key, ...] = (),
        entries: int = 1,
        action_width: int = 0,
        statistics_width: int = 0,
        through: frozenset[str] = frozenset(),
    ) -> str:
        full = name
        if name in self._names:
            full = scope.control.prefix + name
            self._shared.add(name)
        self._prefixes.setdefault(name, scope.control.prefix)
        self.notes |= effect.notes
        table = program.Table(
            name=full,
            keys=held,
            entries=entries,
            action_width=action_width,
            statistics_width=statistics_width,
            modifies=frozenset(effect.writes),
            reads=frozenset(effect.reads),
            next=outcomes,
            registers=tuple(self._state(scope, state) for state in sorted(effect.states)),
            through=through,
        )
        self._add(table)
        return full

    def _add(self, table: program.Table) -> None:
        if len(self._made) == program.MOST_TABLES:
            what = f"it has more than {program.MOST_TABLES} tables, conditions and steps"
            raise InputError(self.unit.file, "", what, "leave some out")
        self._made.append(table)
        self._names.add(table.name)

    def _state(self, scope: Scope, name: str) -> program.Register:
        """A register, counter or meter of the graph; equal names in different controls get a prefix."""
        extern = scope.control.externs[name]
        prefix = "" if self.unit.externs.get(name) is extern else scope.control.prefix
        place = (prefix, name)
        if place not in self._states:
            self._states[place] = name if name not in self._states.values() else scope.control.prefix + name
        return program.Register(self._states[place], extern.width, extern.cells)

    def _name(self, name: str) -> str:
        self._count[name] = self._count.get(name, 0) + 1
        return name if self._count[name] == 1 else f"{name}_{self._count[name]}"
