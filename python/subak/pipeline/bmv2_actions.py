"""Fields that the actions and expressions of bmv2's JSON read and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from subak.errors import InputError
from subak.pipeline.bmv2_fields import INDEX, Fields
from subak.pipeline.frontend import ALWAYS, COPIES, DROPPED, MAYBE, NEVER, STANDARD, again, changed, looked
from subak.pipeline.reading import Node

READS, WRITES, BOTH, VALIDITY, STATE, CALCULATION, LEARNS, LISTS = "r", "w", "b", "v", "s", "c", "l", "f"
PRIMITIVES = {
    **dict.fromkeys(("assign", "assign_VL", "assign_header", "assign_header_stack"), "wr"),
    **dict.fromkeys(("assign_union", "assign_union_stack", "copy_header"), "wr"),
    **dict.fromkeys(("add_header", "remove_header", "add_header_fast"), "v"),
    **dict.fromkeys(("push", "pop"), "br"),
    **dict.fromkeys(("drop", "mark_to_drop", "exit", "no_op"), ""),
    **dict.fromkeys(("assert", "assume", "truncate", "_jump"), "r"),
    **dict.fromkeys(("log_msg", "_jump_if_zero"), "rr"),
    **dict.fromkeys(("add_to_field", "subtract_from_field"), "br"),
    **dict.fromkeys(("add", "subtract", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"), "wrr"),
    **dict.fromkeys(("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"), "rf"),
    **dict.fromkeys(("resubmit", "recirculate"), "f"),
    "modify_field": "wr",
    "modify_field_with_hash_based_offset": "wrcr",
    "modify_field_rng_uniform": "wrr",
    "register_read": "wsr",
    "register_write": "srr",
    "count": "sr",
    "execute_meter": "srw",
    "generate_digest": "rl",
}
"""For each primitive, how it uses its parameters, in order."""
COPYING = ("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress", "resubmit", "recirculate", "truncate")
AGAIN = ("resubmit", "recirculate")
OPERATORS = (
    *("+", "-", "*", "/", "%", "<<", ">>", "==", "!=", ">", ">=", "<", "<=", "and", "or", "not", "&", "|", "^", "~"),
    *("valid", "valid_union", "d2b", "b2d", "two_comp_mod", "sat_cast", "usat_cast", "?", "sat_add", "sat_sub"),
    *("dereference_header_stack", "last_stack_index", "size_stack", "access_field"),
    *("dereference_union_stack", "access_union_header"),
)
NOTHING = ("hexstr", "bool", "string")
"""Types of values that are not fields."""
DATA = ("runtime_data", "local")
"""Types of values for action data of an entry; ``local`` is used inside expressions."""
JUMPS = ("_jump", "_jump_if_zero")
NUMBERED = ("access_field", "access_union_header")
"""Operations whose second operand is a plain number."""


@dataclass
class Effect:
    """Fields that an action reads and writes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    states: set[str] = field(default_factory=set)
    exits: int = NEVER
    notes: set[str] = field(default_factory=set)


class Actions:
    """Reader of the actions and expressions of a bmv2 program."""

    def __init__(self, top: Mapping[str, Node], fields: Fields) -> None:
        self.fields = fields
        self._calculations = _inputs(top, "calculations", "input", "name")
        self._learned = _inputs(top, "learn_lists", "elements", "id")
        self._listed = _inputs(top, "field_lists", "elements", "id")
        self.states = _states(top)
        self.bound = _bound(self.states)
        """Direct counters and meters by the table to which they are bound."""
        self._data = 0

    def effect(self, action: Node, egress: bool) -> tuple[Effect, int]:
        """Effect of an action, and the width of its data in bits."""
        told, found = action.mapping(), Effect()
        primitives = [node.mapping() for node in told["primitives"].items()]
        data = told["runtime_data"].items() if "runtime_data" in told else []
        self._data = len(data)
        jumps = False
        sure: set[str] = set()
        for k, one in enumerate(primitives):
            if one["op"].value in JUMPS:
                _check_jump(one, k, len(primitives))
        for one in primitives:
            if found.exits == ALWAYS:
                break
            reads, writes, surely = self._primitive(one, egress, found)
            found.reads |= looked(reads, egress) - sure
            found.writes |= changed(writes, egress)
            if surely and not jumps:
                sure |= changed(writes, egress)
            # Code after a jump is executed on some paths only.
            jumps = jumps or one["op"].value in JUMPS
            if one["op"].value == "exit":
                found.exits = MAYBE if jumps else ALWAYS
        self._data = 0
        return found, sum(one.mapping()["bitwidth"].whole(1) for one in data)

    def _primitive(self, one: Mapping[str, Node], egress: bool, found: Effect) -> tuple[set[str], set[str], bool]:
        """Fields that a primitive reads and writes, and whether it always writes all of them."""
        op = one["op"].text()
        given = one["parameters"].items() if "parameters" in one else []
        if op not in PRIMITIVES:
            raise one["op"].error(f'the primitive "{op}" is not modelled', "do without it, or give tables as JSON")
        ways = PRIMITIVES[op]
        least = 0 if op in ("mark_to_drop", "drop") else len(ways.rstrip("f"))
        if not least <= len(given) <= max(len(ways), 1) and op not in ("modify_field", "execute_meter"):
            raise one["op"].error(f"{op} of {len(given)} parameters", f"give {len(ways)}")
        reads: set[str] = set()
        writes: set[str] = set()
        surely = op not in ("push", "pop")
        for way, parameter in zip(ways.ljust(len(given), READS), given, strict=False):
            if way == STATE:
                found.states.add(self._state(parameter))
                continue
            names = self._listed_in(way, parameter) if way in (CALCULATION, LEARNS, LISTS) else None
            if names is None:
                names = self.mentioned(parameter, found.states)
            if way == WRITES and (one_of := self._one_of(parameter, found.states)):
                writes |= one_of[0]
                reads |= one_of[1]
                surely = False
                continue
            if way == VALIDITY:
                writes |= self.fields.validity(parameter)
                continue
            if way in (WRITES, BOTH) and not names and parameter.mapping()["type"].value != "register":
                raise parameter.error(f"{op} cannot write to this", "name a field or a header")
            reads |= names if way not in (WRITES,) else set()
            writes |= names if way in (WRITES, BOTH) else set()
        if op in ("drop", "mark_to_drop"):
            writes, reads = {f"{STANDARD}.{name}" for name in DROPPED}, set()
        if op in COPYING and not egress:
            writes.add(COPIES)
        if op in AGAIN:
            found.notes.add(again(op))
        return reads, writes, surely

    def _listed_in(self, way: str, node: Node) -> set[str]:
        """Fields of a calculation, or of the field list with this number; 0 means none."""
        lists = {CALCULATION: self._calculations, LEARNS: self._learned, LISTS: self._listed}[way]
        value = node.mapping()["value"] if isinstance(node.value, dict) else node
        key = value.value
        if isinstance(key, dict | list):
            raise value.error("this names no list or calculation", "give its name or its id")
        if isinstance(key, str) and way != CALCULATION:
            try:
                key = int(key, 16)
            except ValueError:
                raise value.error(f'"{key}" is no number', "name a list of fields by its id") from None
        if key in lists:
            held, self._data = self._data, 0
            names = {name for part in lists[key] for name in self.mentioned(part, set())}
            self._data = held
            return names
        if way != CALCULATION and key in (0, None):
            return set()
        raise value.error(f'there is no list or calculation "{value.value}"', "declare it")

    def _state(self, node: Node) -> str:
        told = node.mapping()
        name = told["value"].text()
        if name not in self.states:
            raise told["value"].error(f'there is no register, counter or meter "{name}"', "declare its array")
        return name

    def _one_of(self, node: Node, states: set[str]) -> tuple[set[str], set[str]] | None:
        """For a header of a stack selected at run time: the candidate fields, and the fields that select."""
        told = node.mapping() if isinstance(node.value, dict) else {}
        if "type" in told:
            return self._one_of(told["value"], states) if told["type"].value == "expression" else None
        op = told["op"].value if {"op", "left", "right"} <= told.keys() else ""
        if op in ("dereference_header_stack", "dereference_union_stack"):
            names = {name for name in self.mentioned(told["left"], states, True) if not name.endswith(INDEX)}
            return names, self.mentioned(told["right"], states, True)
        if op in ("access_field", "access_union_header") and (inner := self._one_of(told["left"], states)):
            return (self.fields.numbered(inner[0], told["right"]) if op == "access_field" else inner[0]), inner[1]
        return None

    def mentioned(self, node: Node, states: set[str], inside: bool = False) -> set[str]:
        """Fields in a parameter, or ``inside`` an expression; accessed registers are added to ``states``."""
        if node.value is None:
            return set()
        told = node.mapping()
        if "type" not in told:
            return self._operation(node, states)
        kind = told["type"].text()
        if kind in NOTHING:
            return set()
        value = told["value"]
        if kind in DATA:
            self._check_data(told, inside)
            return set()
        if kind == "field":
            return {self.fields.field(value)}
        if kind in ("header", "header_stack", "header_union", "header_union_stack"):
            return self.fields.leaves(value)
        if kind in ("stack_field", "union_stack_field"):
            return self.fields.stack_field(value)
        if kind in ("register_array", "counter_array", "meter_array"):
            states.add(self._state(node))
            return set()
        if kind == "register":
            parts = value.items()
            states.add(parts[0].text())
            return self.mentioned(parts[1], states, True)
        if kind == "calculation":
            return self._listed_in(CALCULATION, node)
        if kind == "parameters_vector":
            return {name for part in value.items() for name in self.mentioned(part, states)}
        if kind == "expression":
            return self.mentioned(value, states, True)
        raise told["type"].error(f'a value of the type "{kind}" is not modelled', "do without it")

    def _check_data(self, told: Mapping[str, Node], inside: bool) -> None:
        """Raises an error for action data that the action lacks or that is not allowed here."""
        if told["type"].value == "local" and not inside:
            raise told["type"].error("local stands outside of an expression", "write runtime_data")
        if told["value"].whole() >= self._data:
            what = f"there is no action data {told['value'].value} here"
            hint = f"the action has {self._data}, counted from 0" if self._data else "only actions with runtime_data do"
            raise told["value"].error(what, hint)

    def _operation(self, node: Node, states: set[str]) -> set[str]:
        told = node.mapping()
        if "op" not in told:
            raise node.error("this is no expression", "give type and value, or op, left and right")
        op = told["op"].text()
        if op not in OPERATORS:
            raise told["op"].error(f'the operation "{op}" is not modelled', "do without it")
        if one_of := self._one_of(node, states):
            return one_of[0] | one_of[1]
        if op in ("valid", "valid_union"):
            return self.fields.validity(told["right"])
        found: set[str] = set()
        for side in ("left", "right", "cond"):
            if side in told and told[side].value is not None and not (side == "right" and op in NUMBERED):
                found |= self.mentioned(told[side], states, True)
        return found


def _check_jump(one: Mapping[str, Node], place: int, count: int) -> None:
    """Raises an error unless a jump goes forward within its action."""
    given = one["parameters"].items()
    told = given[-1].mapping() if given else {}
    if not told or told["type"].value != "hexstr":
        raise one["op"].error("where it jumps is no number", "give the place of a primitive as hexstr")
    try:
        to = int(told["value"].text(), 16)
    except ValueError:
        raise told["value"].error(f'"{told["value"].value}" is no number', "write it as 0x...") from None
    if not place < to <= count:
        what = f"the primitive {place} jumps to {to}"
        raise told["value"].error(what, f"jump forward, to {place + 1} up to {count}, the end of the action")


def _inputs(top: Mapping[str, Node], key: str, inner: str, by: str) -> dict[object, list[Node]]:
    """Input fields of each calculation or field list, by name or number."""
    found: dict[object, list[Node]] = {}
    for node in top[key].items() if key in top else []:
        told = node.mapping()
        if by in told and inner in told:
            parts = [part for part in told[inner].items() if part.mapping()["type"].value not in ("payload", "hexstr")]
            found[told[by].text() if by == "name" else told[by].whole()] = parts
    return found


def _states(top: Mapping[str, Node]) -> dict[str, tuple[str, Node]]:
    """Kind and description of each array of registers, counters and meters."""
    found: dict[str, tuple[str, Node]] = {}
    for key, kind in (("register_arrays", "register"), ("counter_arrays", "counter"), ("meter_arrays", "meter")):
        for node in top[key].items() if key in top else []:
            name = node.mapping(needed=("name",))["name"].text()
            if name in found:
                raise InputError(node.file, node.place, f'there are two arrays "{name}"', "give each its own name")
            found[name] = (kind, node)
    return found


def _bound(states: Mapping[str, tuple[str, Node]]) -> dict[str, list[tuple[str, Node]]]:
    """Kind and description of direct counters and meters, by the table to which they are bound."""
    found: dict[str, list[tuple[str, Node]]] = {}
    for kind, node in states.values():
        table = node.mapping().get("binding")
        if table is not None and table.value is not None:
            found.setdefault(table.text(), []).append((kind, node))
    return found
