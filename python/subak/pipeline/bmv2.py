"""Reads the JSON that p4c's v1model back end writes for the bmv2 switch, also that of older compilers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subak.errors import InputError
from subak.pipeline import derive
from subak.pipeline.bmv2_actions import Actions, Effect
from subak.pipeline.bmv2_fields import VALID, Fields
from subak.pipeline.frontend import (
    COUNTER_BITS,
    DESTINED,
    MAYBE,
    METER_BITS,
    Next,
    changed,
    leaving,
    looked,
    members,
    met,
)
from subak.pipeline.ordering import order
from subak.pipeline.program import EXACT, MOST_TABLES, PREFIX, TERNARY, Key, Program, Register, Table
from subak.pipeline.reading import Node

KINDS = {
    "exact": EXACT,
    "valid": EXACT,
    "lpm": PREFIX,
    "ternary": TERNARY,
    "range": TERNARY,
    "optional": TERNARY,
}
ORDERED = ("<", ">", "<=", ">=")
NODES = ("tables", "conditionals", "action_calls")
"""Keys of a pipeline in bmv2's JSON that list nodes of its control flow."""
HIT = ("__HIT__", "__MISS__")

DEFAULT_SIZE = 1024
"""Number of entries of a table whose program states none."""


def program_of(told: Any, file: str) -> Program:
    """The dependency graph of a bmv2 program."""
    top = Node(told, file).mapping()
    for key in ("header_types", "headers", "actions", "pipelines"):
        if key not in top:
            raise InputError(file, "", f'"{key}" is missing', "give the JSON that p4c-bm2-ss wrote")
    for node in top["headers"].items():
        if str(node.mapping().get("name", node).value).startswith(("psa_", "pna_")):
            raise node.error("this is the JSON of a PSA or PNA program", "give that of a v1model program")
    return _Reader(top, file).program()


class _Reader:
    def __init__(self, top: Mapping[str, Node], file: str) -> None:
        self.file = file
        self.fields = Fields(top)
        self.actions = Actions(top, self.fields)
        nodes = top["actions"].items()
        self.by_id = _by_id(nodes)
        self.by_name: dict[str, list[Node]] = {}
        for node in nodes:
            self.by_name.setdefault(node.mapping(needed=("name",))["name"].text(), []).append(node)
        self.pipelines = top["pipelines"].items()
        self.notes: set[str] = set()

    def program(self) -> Program:
        """Tables and conditions of all pipelines, in order."""
        tables: list[Table] = []
        starts = [self._start(p) for p in self.pipelines]
        for k, pipeline in enumerate(self.pipelines):
            follow = next((s for s in starts[k + 1 :] if s), None)
            tables += self._pipeline(pipeline, follow)
        if not 1 <= len(tables) <= MOST_TABLES:
            hint = f"give a program that applies 1 to {MOST_TABLES}"
            raise InputError(self.file, "pipelines", f"there are {len(tables) or 'no'} tables and conditions", hint)
        held, notes = met(self._in_order(tables), next((s for s in starts if s), None))
        self.notes |= notes
        self._check_bound({t.name for t in tables})
        name = self.file.rsplit("/", 1)[-1].removesuffix(".json")
        return Program(name, held, derive.dependencies(held), notes=tuple(sorted(self.notes)))

    def _in_order(self, tables: list[Table]) -> tuple[Table, ...]:
        by_name = {t.name: t for t in tables}
        if len(by_name) < len(tables):
            twice = next(t.name for k, t in enumerate(tables) if t.name in (u.name for u in tables[:k]))
            raise InputError(self.file, "pipelines", f'there are two tables "{twice}"', "give each its own name")
        edges = [(t.name, to) for t in tables for _, to in t.next or () if to]
        for before, after in edges:
            if after not in by_name:
                what = f'{before} leads to "{after}", which is not there'
                raise InputError(self.file, "pipelines", what, "name a table")
        line, cycle = order(by_name, edges)
        if cycle:
            what = f"the control flow goes in a circle: {' -> '.join(cycle)}"
            raise InputError(self.file, "pipelines", what, "let packets only go forward")
        return tuple(by_name[name] for name in line)

    def _check_bound(self, names: set[str]) -> None:
        for table, arrays in self.actions.bound.items():
            if table not in names:
                bound = arrays[0][1].mapping()["binding"]
                raise bound.error(f'there is no table "{table}"', "bind it to a table of a pipeline")

    def _start(self, pipeline: Node) -> str | None:
        init = pipeline.mapping().get("init_table")
        if init is None or init.value is None:
            return None
        told = pipeline.mapping()
        nodes = [node for key in NODES if key in told for node in told[key].items()]
        if init.value not in [node.mapping()["name"].value for node in nodes]:
            raise init.error(f'there is no table or condition "{init.value}"', "name one of this pipeline")
        return init.text()

    def _pipeline(self, pipeline: Node, follow: str | None) -> list[Table]:
        told = pipeline.mapping(needed=("name", "tables"))
        egress = told["name"].value == "egress"
        profiles = told["action_profiles"].items() if "action_profiles" in told else []
        by_name = {p["name"].text(): p for p in (node.mapping() for node in profiles)}
        found = [self._table(node, follow, egress, by_name) for node in told["tables"].items()]
        conditions = told["conditionals"].items() if "conditionals" in told else []
        found += [self._condition(node, follow, egress) for node in conditions]
        calls = told["action_calls"].items() if "action_calls" in told else []
        return found + [self._call(node, follow, egress) for node in calls]

    def _to(self, node: Node | None, follow: str | None) -> str | None:
        return follow if node is None or node.value is None else node.text()

    def _table(self, node: Node, follow: str | None, egress: bool, profiles: Mapping[str, Mapping[str, Node]]) -> Table:
        told = node.mapping(needed=("name", "key"))
        name = told["name"].text()
        keys = tuple(self._key(key) for key in told["key"].items())
        whole, widest = Effect(), 0
        exits: dict[str, int] = {}
        for action in self._actions_of(told):
            effect, width = self.actions.effect(action, egress)
            whole.reads |= effect.reads
            whole.writes |= effect.writes
            whole.states |= effect.states
            self.notes |= effect.notes
            called = action.mapping()["name"].text()
            exits[called] = effect.exits if exits.get(called, effect.exits) == effect.exits else MAYBE
            widest = max(widest, width)
        meters = self._meters(told)
        whole.writes |= changed({name for meter in meters for name in self._result(meter)}, egress)
        statistics = COUNTER_BITS * self._counted(told) + METER_BITS * len(meters)
        matched = looked({key.field for key in keys}, egress) | looked(self._selected(told, profiles), egress)
        return Table(
            name=name,
            keys=keys,
            entries=_size(told) if keys else 1,
            action_width=widest,
            statistics_width=statistics,
            modifies=frozenset(whole.writes),
            reads=frozenset(whole.reads),
            next=self._outcomes(told, exits, follow),
            registers=tuple(self._register(state) for state in sorted(whole.states)),
            through=frozenset(matched - {key.field for key in keys}),
        )

    def _actions_of(self, told: Mapping[str, Node]) -> list[Node]:
        """Actions of a table, with those of its default and constant entries.

        Older JSON refers to actions by name, not number.
        """
        if "action_ids" in told:
            found = [self._numbered(node) for node in told["action_ids"].items()]
            _check_names(found, told)
        else:
            found = [self._called(node) for node in (told["actions"].items() if "actions" in told else [])]
        numbers = []
        default = told.get("default_entry")
        if default is not None and default.value is not None and "action_id" in default.mapping():
            numbers.append(default.mapping()["action_id"])
        entries = told.get("entries")
        for entry in entries.items() if entries is not None and entries.value is not None else []:
            numbers.append(entry.mapping()["action_entry"].mapping()["action_id"])
        for node in map(self._numbered, numbers):
            found += [node] if all(node is not other for other in found) else []
        return found

    def _numbered(self, number: Node) -> Node:
        if number.whole() not in self.by_id:
            raise number.error(f"there is no action {number.value}", "declare it in actions")
        return self.by_id[number.whole()]

    def _called(self, name: Node) -> Node:
        known = self.by_name.get(name.text(), [])
        if len(known) != 1:
            what = f'there are {len(known)} actions "{name.value}"' if known else f"there is no action {name.value}"
            raise name.error(what, "name one by its id in action_ids" if known else "declare it in actions")
        return known[0]

    def _outcomes(self, told: Mapping[str, Node], exits: Mapping[str, int], follow: str | None) -> Next:
        after = told["next_tables"].mapping() if "next_tables" in told else {}
        if not after:
            base = self._to(told.get("base_default_next"), follow)
            return leaving((("default", base),), exits, False, follow) if exits else (("default", base),)
        outcomes = tuple((key, self._to(to, follow)) for key, to in after.items())
        by_action = not any(key in HIT for key in after)
        return leaving(outcomes, exits, by_action, follow) if exits else outcomes

    def _meters(self, told: Mapping[str, Node]) -> list[Node]:
        """Direct meters of a table: the one that the table names, and those bound to the table."""
        table = told["name"].text()
        found = [node for kind, node in self.actions.bound.get(table, []) if kind == "meter"]
        named = told.get("direct_meters")
        if named is None or named.value is None:
            return found
        kind, meter = self.actions.states.get(named.text(), ("", named))
        if kind != "meter":
            raise named.error(f'there is no meter "{named.value}"', "declare it in meter_arrays")
        bound = meter.mapping().get("binding")
        if bound is not None and bound.value not in (None, table):
            raise named.error(f'the meter "{named.value}" is bound to "{bound.value}"', "name one of this table")
        return found if any(meter is node for node in found) else [*found, meter]

    def _counted(self, told: Mapping[str, Node]) -> bool:
        """Whether a table has a direct counter, by the table's own key or by a counter bound to the table."""
        bound = self.actions.bound.get(told["name"].text(), [])
        return ("with_counters" in told and told["with_counters"].value is True) or "counter" in (k for k, _ in bound)

    def _result(self, meter: Node) -> set[str]:
        """Field that a direct meter writes."""
        target = meter.mapping().get("result_target")
        return set() if target is None or target.value is None else {self.fields.field(target)}

    def _selected(self, told: Mapping[str, Node], profiles: Mapping[str, Mapping[str, Node]]) -> set[str]:
        """Fields by which the selector of a table's action profile chooses an action."""
        called = told.get("action_profile") or told.get("act_prof_name")
        if called is None or called.value is None:
            if "type" in told and told["type"].value not in ("simple", None):
                raise told["type"].error("it has no action profile", "name one in action_profile")
            return set()
        # In older JSON, the selector is part of the table.
        profile = profiles.get(called.text(), told)
        if called.text() not in profiles and "selector" not in told:
            raise called.error(f'there is no action profile "{called.value}"', "declare it in action_profiles")
        selector = profile.get("selector")
        selects = selector is not None and selector.value is not None
        self.notes.add(members(told["name"].text(), selects))
        inputs = selector.mapping(needed=("input",))["input"].items() if selector is not None and selects else []
        return {name for part in inputs for name in self.actions.mentioned(part, set())}

    def _register(self, name: str) -> Register:
        kind, node = self.actions.states[name]
        told = node.mapping()
        if "size" not in told:
            raise node.error(f"the {kind}s have no size", 'give "size"')
        width = {"counter": COUNTER_BITS, "meter": METER_BITS}.get(kind) or told["bitwidth"].whole(1)
        return Register(name, width, told["size"].whole(1))

    def _key(self, node: Node) -> Key:
        told = node.mapping(needed=("match_type", "target"))
        kind = told["match_type"].one_of(KINDS)
        target = told["target"]
        if isinstance(target.value, str):
            self.fields.leaves(target)
            return Key(f"{target.value}.{VALID}", 1, KINDS[kind])
        name = self.fields.field(target)
        return Key(name, max(self.fields.widths[name], 1), KINDS[kind])

    def _condition(self, node: Node, follow: str | None, egress: bool) -> Table:
        told = node.mapping(needed=("name", "expression"))
        states: set[str] = set()
        reads = looked(self.actions.mentioned(told["expression"], states), egress)
        if states:
            raise told["expression"].error("a condition looks at a register", "read it into a field first")
        kind = TERNARY if _ordered(told["expression"].value) else EXACT
        sides = (("true", "true_next"), ("false", "false_next"))
        outcomes = tuple((side, self._to(told.get(key), follow)) for side, key in sides)
        keys = tuple(Key(name, self.fields.widths[name], kind) for name in sorted(reads) if name in self.fields.widths)
        through = frozenset(name for name in reads if name.endswith(DESTINED))
        return Table(told["name"].text(), keys, 1, next=outcomes, through=through)

    def _call(self, node: Node, follow: str | None, egress: bool) -> Table:
        told = node.mapping(needed=("name", "action_id"))
        effect, _ = self.actions.effect(self._numbered(told["action_id"]), egress)
        self.notes |= effect.notes
        after = (("default", self._to(told.get("next_node"), follow)),)
        return Table(
            told["name"].text(),
            (),
            1,
            modifies=frozenset(effect.writes),
            reads=frozenset(effect.reads),
            next=leaving(after, {"": effect.exits}, False, follow),
            registers=tuple(self._register(state) for state in sorted(effect.states)),
        )


def _by_id(actions: list[Node]) -> dict[int, Node]:
    found: dict[int, Node] = {}
    for node in actions:
        number = node.mapping(needed=("id",))["id"]
        if number.whole() in found:
            raise number.error(f"there are two actions of the id {number.value}", "give each its own")
        found[number.whole()] = node
    return found


def _size(told: Mapping[str, Node]) -> int:
    """Number of entries of a table. A table of constant entries without a size has p4c's default size in JSON."""
    size = told["max_size"].whole(1) if "max_size" in told else 1
    constant = told.get("entries")
    held = len(constant.items()) if constant is not None and constant.value is not None else 0
    return held if held and size == DEFAULT_SIZE else size


def _check_names(actions: list[Node], told: Mapping[str, Node]) -> None:
    """Raises an error for a table whose action names differ from those of its action numbers."""
    if "actions" not in told:
        return
    names = told["actions"].items()
    if len(names) != len(actions):
        what = f"there are {len(names)} names for {len(actions)} ids of actions"
        raise told["actions"].error(what, "name those of action_ids in their order")
    for name, action in zip(names, actions, strict=True):
        meant = action.mapping()["name"].text()
        if name.text() != meant:
            raise name.error(f'"{name.value}" stands where its id says "{meant}"', "name those of action_ids in order")


def _ordered(told: Any) -> bool:
    if isinstance(told, dict):
        return told.get("op") in ORDERED or any(_ordered(inner) for inner in told.values())
    return False
