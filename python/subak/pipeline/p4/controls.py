"""Reads the declarations of a P4 control."""

from __future__ import annotations

from typing import Any

from lark import Token, Tree

from subak.pipeline.frontend import COUNTER_BITS, METER_BITS
from subak.pipeline.p4.declared import Control, Extern, Table, arguments, is_a, parts, token_of
from subak.pipeline.p4.parse import Node
from subak.pipeline.p4.preprocess import Source
from subak.pipeline.p4.types import EXTERNS
from subak.pipeline.p4.unit import Unit

MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional", "selector")
MOST_CELLS = 1 << 24
DIRECT: dict[str, tuple[str, ...]] = {"counters": ("direct_counter",), "meters": ("direct_meter",)}
DIRECT |= {"implementation": ("action_profile", "action_selector")}
IGNORED = ("support_timeout", "largest_priority_wins", "priority_delta")
"""Properties of a table that do not affect placement."""


def read_unit(tree: Node, source: Source) -> Unit:
    """Reads a program's declarations and controls."""
    unit = Unit(tree, source)
    for node in unit.instances:
        _global(unit, node)
    unit.hold([read_control(unit, name, f"{name}.", bool(k)) for k, name in enumerate(unit.pipeline())])
    return unit


def read_control(unit: Unit, name: str, prefix: str, egress: bool) -> Control:
    """Reads the control ``name`` as an instance whose variables' names begin with ``prefix``."""
    node = unit.declared[name]
    if not is_a(node, "control"):
        raise unit.error(node, f'"{name}" is no control', "apply a control")
    held = parts(node)
    if any(is_a(part, "construct_parameters") for part in held):
        raise unit.error(node, f"{name} takes parameters when it is made", "pass them to its apply")
    control = Control(name, prefix, egress, unit.parameters(held[1]), held[-1], externs=dict(unit.externs))
    names: set[str] = {p.name for p in control.taken}
    for item in held[2:-1]:
        if isinstance(item, Tree):
            _item(unit, control, item, names)
    return control


def _item(unit: Unit, control: Control, node: Node, names: set[str]) -> None:
    held = parts(node)
    name = held[-1] if node.data == "instance" else token_of(node) if node.data != "variable" else held[1]
    if str(name) in names:
        raise unit.error(name, f'there are two of the name "{name}" in {control.name}', "give each its own name")
    names.add(str(name))
    if node.data == "constant":
        control.constants.append(node)
    elif node.data == "variable":
        control.variables.append(node)
    elif node.data == "action":
        unit.add_action(control.actions, node)
    elif node.data == "table":
        control.tables[str(name)] = _table(unit, control, node)
    elif node.data == "instance":
        _instance(unit, control, node, str(name))


def _global(unit: Unit, node: Node) -> None:
    """Registers an extern that is declared outside of controls."""
    name, called = str(parts(node)[-1]), _called(unit, node)[0]
    if called not in EXTERNS:
        hint = "declare it in the control that applies it"
        raise unit.error(node, f"an instance of {called} outside of a control", hint)
    if name in unit.externs:
        raise unit.error(parts(node)[-1], f'there are two externs "{name}"', "give each its own name")
    unit.externs[name] = _made(unit, node, name)


def _called(unit: Unit, node: Node) -> tuple[str, Any]:
    """The type of a named instance with typedefs resolved, and the node that names it."""
    made = parts(node)[0]
    made = unit.extern_types.get(str(made) if isinstance(made, Token) else str(made.children[0]), made)
    return str(made) if isinstance(made, Token) else str(made.children[0]), made


def _made(unit: Unit, node: Node, name: str) -> Extern:
    called, made = _called(unit, node)
    given: list[Any] = next((p.children for p in parts(node) if is_a(p, "arguments")), [])
    return _extern(unit, node, called, name, made, list(given))


def _instance(unit: Unit, control: Control, node: Node, name: str) -> None:
    called = _called(unit, node)[0]
    if called in EXTERNS:
        control.externs[name] = _made(unit, node, name)
    elif called in unit.declared:
        control.instances[name] = called
    else:
        raise unit.error(node, f'there is no control or extern "{called}"', f"use one of: {', '.join(EXTERNS)}")


def _extern(unit: Unit, node: Node, kind: str, name: str, made: Any, given: list[Any]) -> Extern:
    width = cells = 0
    if kind == "register":
        told = next((c for c in made.children if is_a(c, "type_arguments")), None) if isinstance(made, Tree) else None
        if told is None:
            raise unit.error(node, "the type of a register's cells is missing", "write register<bit<32>>(1024) name;")
        of = unit.type(next(c for c in told.children if isinstance(c, Tree)))
        width = (
            sum(unit.members[of.name][f].width or 0 for f in unit.members[of.name]) if of.name in unit.members else 0
        )
        width = width or of.width or 0
    elif kind in ("counter", "direct_counter"):
        width = _counted(unit, node, _argument(given, "type", int(kind == "counter")))
    elif kind in ("meter", "direct_meter"):
        width = METER_BITS
    if kind in ("register", "counter", "meter"):
        size = _argument(given, "size", 0)
        if size is None:
            raise unit.error(node, f"a {kind} of no size", "say how many cells it has")
        cells = unit.value(size)
        if not 1 <= cells <= MOST_CELLS:
            raise unit.error(node, f"{cells} cells are out of range", "give 1 to 2^24")
    return Extern(kind, name, width, cells)


def _argument(given: list[Any], name: str, place: int) -> Any:
    """The operand of this name, or at this position if operands have no names; ``None`` if there is none."""
    by_name = [one.children[1] for one in given if is_a(one, "named") and str(one.children[0]) == name]
    in_order = [one for one in given if not is_a(one, "named")]
    return next(iter(by_name or in_order[place : place + 1]), None)


def _counted(unit: Unit, node: Node, kind: Any) -> int:
    """Width of a counter's cell, bits, by what the counter counts: packets, bytes, or both."""
    if (
        not (is_a(kind, "member") and is_a(kind.children[0], "type_name"))
        or unit.enum_value(kind)[1].name != "CounterType"
    ):
        raise unit.error(
            node, "what the counter counts is missing", "give CounterType.packets, bytes or packets_and_bytes"
        )
    both = str(kind.children[1]) == "packets_and_bytes"
    return COUNTER_BITS * (2 if both else 1)


def _table(unit: Unit, control: Control, node: Node) -> Table:
    held = parts(node)
    table, chosen = Table(str(held[0]), node), False
    properties: set[str] = set()
    for item in held[1:]:
        kind = str(token_of(item)) if item.data == "other_property" else str(item.data)
        if kind in properties:
            raise unit.error(item, f'{table.name} has two properties "{kind}"', "keep one")
        properties.add(kind)
        inner = [c for c in parts(item) if str(c) != "const" or isinstance(c, Tree)]
        if item.data == "key":
            table.keys = [_key(unit, k) for k in inner if isinstance(k, Tree)]
        elif item.data == "actions":
            for ref in (c for c in inner if isinstance(c, Tree)):
                name = known_action(unit, control, ref)
                if name in table.actions:
                    raise unit.error(ref, f'{table.name} names the action "{name}" twice', "name it once")
                table.actions.append(name)
                table.given[name] = arguments(ref)
        elif item.data == "default_action":
            table.default = (known_action(unit, control, item), arguments(item))
            chosen = True
        elif item.data == "size":
            table.size = unit.value(next(c for c in inner if isinstance(c, Tree)))
            if not 1 <= table.size <= 1 << 32:
                raise unit.error(item, f"{table.size} entries are out of range", "give 1 to 2^32")
        elif item.data == "entries":
            table.entries = [c for c in inner if isinstance(c, Tree)]
        else:
            _property(unit, control, table, item)
    if "actions" not in properties:
        raise unit.error(node, f"{table.name} has no list of actions", "write actions = { ... }")
    if chosen and table.default[0] not in table.actions:
        what = f'the default action "{table.default[0]}" is not among the actions of {table.name}'
        raise unit.error(node, what, "add it to them")
    return table


def _key(unit: Unit, node: Node) -> tuple[Node, str]:
    expression, kind = parts(node)[:2]
    if str(kind) not in MATCH_KINDS:
        raise unit.error(kind, f'"{kind}" is no match kind of v1model', f"use one of: {', '.join(MATCH_KINDS)}")
    return expression, str(kind)


def known_action(unit: Unit, control: Control, node: Node) -> str:
    """Name of the action to which a node refers; raises an error if the action is not declared."""
    name = next(c for c in node.children if isinstance(c, Token) and c.type == "NAME")
    if str(name) not in control.actions and str(name) not in unit.actions and str(name) != "NoAction":
        raise unit.error(name, f'there is no action "{name}"', f"declare it in {control.name}, before the table")
    return str(name)


def _property(unit: Unit, control: Control, table: Table, node: Node) -> None:
    name = next(c for c in node.children if isinstance(c, Token) and c.type == "NAME")
    value = node.children[-1]
    if str(name) in IGNORED:
        return
    if str(name) not in DIRECT:
        raise unit.error(name, f'tables of v1model have no property "{name}"', f"use one of: {', '.join(DIRECT)}")
    kinds = DIRECT[str(name)]
    if is_a(value, "construct"):
        made = value.children[0]  # type: ignore[union-attr]
        extern = _extern(unit, node, str(made.children[0]), f"{table.name}.{name}", made, arguments(value))  # type: ignore[union-attr]
    else:
        called = str(value.children[0]) if is_a(value, "name") else ""  # type: ignore[union-attr]
        if called not in control.externs:
            raise unit.error(node, f'there is no extern "{called}"', f"declare it in {control.name}, before the table")
        extern = control.externs[called]
    if extern.kind not in kinds:
        raise unit.error(node, f"{name} of a table is no {extern.kind}", f"give a {' or a '.join(kinds)}")
    if extern.kind.startswith("direct"):
        for other in (t for t in control.tables.values() if extern in t.attached):
            what = f'"{extern.name}" belongs to {other.name} already'
            raise unit.error(node, what, f"declare another {extern.kind} for {table.name}")
    table.attached.append(extern)
