"""Keys of a P4 table, arguments of its actions, and checks of its entries."""

from __future__ import annotations

from lark import Tree

from subak.pipeline import program
from subak.pipeline.frontend import DESTINED
from subak.pipeline.p4.declared import NO_ACTION, Action, Table, parts
from subak.pipeline.p4.effects import Effect
from subak.pipeline.p4.parse import Node
from subak.pipeline.p4.scope import Ref, Scope

KINDS = {"exact": program.EXACT, "lpm": program.PREFIX, "ternary": program.TERNARY, "range": program.TERNARY}
KINDS |= {"optional": program.TERNARY}
RANGED = {"masked": ("ternary", "lpm"), "range": ("range",)}
"""Match kinds that allow each form of entry."""


def condition(scope: Scope, node: Node, kind: str) -> tuple[tuple[program.Key, ...], frozenset[str]]:
    """Fields that a condition matches; and, in egress, the copies of ingress fields that determined them."""
    reads = sorted(scope.reads(node))
    held = tuple(program.Key(name, scope.unit.fields[name], kind) for name in reads if name in scope.unit.fields)
    return held, frozenset(name for name in reads if name.endswith(DESTINED))


def of_table(scope: Scope, table: Table) -> tuple[tuple[program.Key, ...], frozenset[str], bool]:
    """Keys of a table, other fields that it reads, and whether a selector chooses among its actions."""
    held, through, selects = [], set(), False
    for node, kind in table.keys:
        reads = scope.reads(node)
        of = scope.type(node)
        if of.width is None or not of.scalar:
            raise scope.unit.error(node, f"{of} is no key", "match a field")
        if kind == "selector":
            if all(extern.kind != "action_selector" for extern in table.attached):
                hint = "write implementation = and an action_selector"
                raise scope.unit.error(node, f"{table.name} has no selector that goes by this", hint)
            through |= reads
            selects = True
            continue
        name = _named(scope, node, reads)
        held.append(program.Key(name, of.width, KINDS[kind]))
        through |= reads - {name}
    return tuple(held), frozenset(through), selects


def _named(scope: Scope, node: Node, reads: set[str]) -> str:
    if node.data in ("name", "member") and (path := scope.ref(node).path) in reads:
        return path or ""
    return min(reads) if len(reads) == 1 else ", ".join(sorted(reads)) or "constant"


def bound(scope: Scope, table: Table, action: Action, effect: Effect) -> Scope:
    """Scope of an action's body when the table runs it, with the arguments from the table's list of actions."""
    given = table.given.get(action.name, [])
    directed = [p for p in action.taken if p.direction]
    if len(given) != len(directed):
        what = f"{action.name} takes {len(directed)} operands with a direction, and {len(given)} are given"
        raise scope.unit.error(table.node, what, "give them in the list of actions")
    names = {p.name: Ref(p.type, None, False) for p in action.taken}
    for parameter, arg in zip(directed, given, strict=True):
        scope.fits(arg, parameter.type)
        if parameter.direction == "in":
            effect.read(scope.reads(arg))
        else:
            names[parameter.name] = scope.handed(arg, parameter.type)
    return scope.child(names, in_action=True)


def check_table(scope: Scope, table: Table) -> None:
    """Raises an error for a default action or entries with invalid operands."""
    _check_data(scope, table, table.default[0], table.default[1], table.node)
    for node in table.entries:
        held = [c for c in parts(node) if str(c) != "const" or isinstance(c, Tree)]
        keys = next(c for c in held if isinstance(c, Tree) and c.data == "key_set")
        name = next(c for c in held if not isinstance(c, Tree))
        if str(name) not in table.actions:
            hint = f"use one of: {', '.join(table.actions)}"
            raise scope.unit.error(name, f'"{name}" is no action of {table.name}', hint)
        values = keys.children
        if len(values) != len(table.keys) and not (len(values) == 1 and values[0].data == "any"):
            raise scope.unit.error(node, f"{len(values)} values for {len(table.keys)} keys", "give one a key")
        for value, (key, kind) in zip(values, table.keys, strict=False):
            _check_value(scope, value, key, kind)
        given = [c for c in held if isinstance(c, Tree) and c.data == "arguments"]
        _check_data(scope, table, str(name), list(given[0].children) if given else [], node)


def _check_value(scope: Scope, value: Node, key: Node, kind: str) -> None:
    if value.data == "any":
        return
    if value.data in RANGED and kind not in RANGED[str(value.data)]:
        sign = "&&&" if value.data == "masked" else ".."
        hint = f"give a value, or match it {' or '.join(RANGED[str(value.data)])}"
        raise scope.unit.error(value, f"{sign} stands in an entry, and the key is {kind}", hint)
    of = scope.type(key)
    for one in value.children if value.data in ("masked", "range") else [value]:
        scope.fits(one, of)  # type: ignore[arg-type]
        scope.unit.value(one)


def _check_data(scope: Scope, table: Table, name: str, given: list[Node], node: Node) -> None:
    if scope.action(name) is NO_ACTION:
        if given:
            raise scope.unit.error(node, "NoAction takes no operands", "give none")
        return
    taken = scope.action(name).taken
    data = [p for p in taken if not p.direction]
    wanted = taken if len(given) == len(taken) and len(taken) != len(data) else data
    if len(given) != len(wanted):
        what = f"{name} takes {len(data)} values, and {len(given)} are given in {table.name}"
        raise scope.unit.error(node, what, "give as many")
    for parameter, arg in zip(wanted, given, strict=True):
        scope.fits(arg, parameter.type)
        if not parameter.direction and arg.data != "list" and not scope.constant(arg):
            what = f"{parameter.name} of {name} is what an entry holds, and no constant is given in {table.name}"
            raise scope.unit.error(arg, what, "give a number, or make it a parameter with the direction in")
