"""Random v1model programs with every supported construct, as P4 and as bmv2's JSON; and their dependencies by
enumeration of paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

META = [f"meta.m{k}" for k in range(4)]
HEADERS = ("hdr.a", "hdr.b", "hdr.s[0]", "hdr.s[1]")
HEADER_FIELDS = [f"{h}.{f}" for h in HEADERS for f in ("x", "y")]
STACK = {f"hdr.s[{k}].{f}" for k in (0, 1) for f in ("x", "y", "$valid$")} | {"hdr.s.$index$"}
IN_EGRESS = ("standard_metadata.egress_port", "standard_metadata.deq_qdepth", "standard_metadata.egress_rid")
QUEUES = {f"the queue's {name}" for name in ("egress_spec", "mcast_grp", "priority", "copies")}
STATES = {"r": "register", "c": "counter", "q": "meter"}


@dataclass
class Op:
    """A statement: the fields that it reads, then those that it writes, and its text as P4 and as JSON."""

    reads: set[str]
    writes: set[str]
    p4: str
    json: list[dict[str, Any]] | None
    state: str = ""
    surely: bool = True
    inner: list[Op] = field(default_factory=list)
    """Statements inside an ``if`` of an action."""
    exits: bool = False


@dataclass
class Item:
    """A node of the control flow, with the branches after its outcomes."""

    kind: str
    name: str = ""
    matched: set[str] = field(default_factory=set)
    keys: list[tuple[str, str]] = field(default_factory=list)
    actions: list[list[Op]] = field(default_factory=list)
    branches: dict[str, list[Item]] = field(default_factory=dict)
    text: str = ""
    json: Any = None
    direct: str = ""
    """The field that a direct meter writes."""


def told(name: str) -> str:
    """Name of a field in P4."""
    return name.replace("standard_metadata", "std")


def pair(name: str) -> list[str]:
    """Name of a field in bmv2's JSON."""
    if name.startswith("meta."):
        return ["scalars", name]
    head, _, tail = name.rpartition(".")
    return [head.removeprefix("hdr."), tail]


def value(name: str) -> dict[str, Any]:
    return {"type": "field", "value": pair(name)}


class Maker:
    """Generates one random program."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.count = 0
        self.states: set[str] = set()
        self.json_too = True
        self.p4_only = self.random.random() < 0.5
        self.controls: list[tuple[str, list[Item]]] = []
        self.declared: dict[str, list[Item]] = {}
        self.flows = [self.items(egress, 3, 3) for egress in (False, True)]

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def field(self) -> str:
        return self.random.choice(META + HEADER_FIELDS)

    def items(self, egress: bool, most: int, depth: int) -> list[Item]:
        found: list[Item] = []
        for _ in range(self.random.randint(1, most)):
            kinds = ["table", "table", "table", "if", "if", "call", "step", "sub"]
            kind = self.random.choice(kinds if depth > 1 else ["table", "call"])
            if kind == "step" and found and found[-1].kind == "step":
                kind = "table"
            found.append(getattr(self, f"_{kind}")(egress, depth))
        if depth < 3 and self.random.random() < 0.25:
            found.append(Item(self.random.choice(("return", "exit"))))
        return found

    def _branch(self, egress: bool, depth: int) -> list[Item]:
        return self.items(egress, 2, depth - 1) if depth > 1 and self.random.random() < 0.7 else []

    def _looked(self, egress: bool) -> str:
        return self.random.choice(IN_EGRESS) if egress and self.random.random() < 0.2 else self.field()

    def _table(self, egress: bool, depth: int) -> Item:
        kinds = ("exact", "lpm", "ternary", "range", "optional")
        keys = [(self._looked(egress), self.random.choice(kinds)) for _ in range(self.random.randint(0, 2))]
        keys = [k for i, k in enumerate(keys) if k[0] not in [name for name, _ in keys[:i]]]
        if sum(kind == "lpm" for _, kind in keys) > 1:
            keys[-1] = (keys[-1][0], "exact")
        item = Item("table", self.fresh("t"), seen({name for name, _ in keys}, egress), keys)
        item.actions = [self.action(egress) for _ in range(self.random.randint(1, 2))]
        if keys and self.random.random() < 0.15:
            chosen = self.field()
            item.matched |= {chosen}
            item.text = chosen
        elif self.random.random() < 0.15:
            item.direct = self.field()
            item.actions[0] = [Op(set(), {item.direct}, f"{item.name}_m.read({told(item.direct)});", [])]
        how = self.random.choice(("plain", "hit", "switch")) if depth > 1 else "plain"
        if how == "hit":
            item.branches = {"hit": self._branch(egress, depth), "miss": self._branch(egress, depth)}
        elif how == "switch":
            item.branches = {f"{item.name}_a{k}": self._branch(egress, depth) for k in range(len(item.actions))}
        return item

    def _if(self, egress: bool, depth: int) -> Item:
        item = Item("if")
        one, other = self._looked(egress), self.field()
        made = self.random.randint(0, 2)
        if made == 0:
            item.text, reads = f"{told(one)} == 3", {one}
            item.json = {"op": "==", "left": value(one), "right": {"type": "hexstr", "value": "0x03"}}
        elif made == 1:
            item.text, reads = f"{told(other)} < 7 && hdr.a.isValid()", {other, "hdr.a.$valid$"}
            less = {"op": "<", "left": value(other), "right": {"type": "hexstr", "value": "0x07"}}
            valid = {"op": "d2b", "left": None, "right": value("hdr.a.$valid$")}
            sides = [{"type": "expression", "value": part} for part in (less, valid)]
            item.json = {"op": "and", "left": sides[0], "right": sides[1]}
        else:
            mine = self.field()
            item.text, reads = f"!({told(other)} != {told(mine)})", {other, mine}
            unlike = {"op": "!=", "left": value(other), "right": value(mine)}
            item.json = {"op": "not", "left": None, "right": {"type": "expression", "value": unlike}}
        item.matched = seen(reads, egress)
        item.branches = {"true": self._branch(egress, depth), "false": self._branch(egress, depth)}
        return item

    def _call(self, egress: bool, depth: int) -> Item:
        return Item("call", self.fresh("act"), actions=[self.action(egress)])

    def _step(self, egress: bool, depth: int) -> Item:
        ops = [self.op(egress) for _ in range(self.random.randint(1, 2))]
        return Item("step", actions=[[op for op in ops if op.writes or op.state] or [self.assign()]])

    def _sub(self, egress: bool, depth: int) -> Item:
        item = Item("sub", self.fresh("sub"), branches={"": self.items(egress, 2, depth - 1)})
        self.declared[item.name] = item.branches[""]
        return item

    def action(self, egress: bool) -> list[Op]:
        ops = [self.op(egress) for _ in range(self.random.randint(0, 3))]
        if self.random.random() < 0.2:
            looked, inner = self.field(), [self.op(egress)]
            if self.random.random() < 0.4:
                inner = [Op(set(), set(), "exit;", [{"op": "exit", "parameters": []}], exits=True)]
            equal = {"op": "==", "left": value(looked), "right": {"type": "hexstr", "value": "0x01"}}
            ops.append(Op({looked}, set(), f"{told(looked)} == 1", [equal], inner=inner))
        elif self.random.random() < 0.15:
            ops.append(Op(set(), set(), "exit;", [{"op": "exit", "parameters": []}], exits=True))
        return ops

    def assign(self) -> Op:
        to, one, other = self.field(), self.field(), self.field()
        made = self.random.randint(0, 3)
        if made == 0:
            return Op({one}, {to}, f"{told(to)} = {told(one)};", [act("assign", value(to), value(one))])
        if made == 1:
            total = {"op": "+", "left": value(one), "right": value(other)}
            held = {"type": "expression", "value": {"type": "expression", "value": total}}
            return Op(
                {one, other}, {to}, f"{told(to)} = {told(one)} + {told(other)};", [act("assign", value(to), held)]
            )
        either = {"type": "expression", "value": {"op": "|", "left": value(to), "right": value(one)}}
        spelled = f"{told(to)} |= {told(one)};" if made == 2 else f"{told(to)}[3:0] = {told(one)}[7:4];"
        return Op({to, one}, {to}, spelled, [act("assign", value(to), either)])

    def op(self, egress: bool) -> Op:
        made = self.random.randint(0, 16)
        to, one, other = self.field(), self.field(), self.field()
        if made == 0:
            way = self.random.choice(("setValid", "setInvalid"))
            op = {"setValid": "add_header", "setInvalid": "remove_header"}[way]
            header = self.random.choice(HEADERS)
            held = {"type": "header", "value": header.removeprefix("hdr.")}
            return Op(set(), {f"{header}.$valid$"}, f"{header}.{way}();", [act(op, held)])
        if made == 1:
            a, b = self.random.sample(HEADERS, 2)
            parts = [{"type": "header", "value": h.removeprefix("hdr.")} for h in (a, b)]
            leaves = [{f"{h}.{f}" for f in ("x", "y", "$valid$")} for h in (a, b)]
            return Op(leaves[1], leaves[0], f"{a} = {b};", [act("assign_header", *parts)])
        if made == 2:
            way = self.random.choice(("push", "pop"))
            held = [{"type": "header_stack", "value": "s"}, {"type": "hexstr", "value": "0x1"}]
            return Op(set(STACK), set(STACK), f"hdr.s.{way}_front(1);", [act(way, *held)], surely=False)
        if made in (3, 4, 5, 6):
            return self._stateful(egress, made, to, one, other)
        if made == 7:
            name = self.fresh("calc")
            spelled = f"hash({told(to)}, HashAlgorithm.crc16, 8w0, {{ {told(one)}, {told(other)} }}, 8w16);"
            held = [value(to), number(0), {"type": "calculation", "value": name}, number(16)]
            found = Op({one, other}, {to}, spelled, [act("modify_field_with_hash_based_offset", *held)])
            self.calculations = [*getattr(self, "calculations", []), (name, (one, other))]
            return found
        if made == 8:
            held = [value(to), number(0), number(9)]
            return Op(set(), {to}, f"random({told(to)}, 8w0, 8w9);", [act("modify_field_rng_uniform", *held)])
        if made == 9:
            names = ("egress_spec", "mcast_grp")
            held = act("mark_to_drop", {"type": "header", "value": "standard_metadata"})
            return Op(set(), sent(names, egress), "mark_to_drop(std);", [held])
        if made == 10 and not egress:
            name, bits = self.random.choice((("egress_spec", 9), ("mcast_grp", 16), ("priority", 3)))
            held = {"type": "expression", "value": {"op": "&", "left": value(one), "right": number(1)}}
            cast = f"(bit<{bits}>)(bit<1>){told(one)}"
            to_json = act("assign", value(f"standard_metadata.{name}"), held)
            return Op({one}, sent((name,), egress), f"std.{name} = {cast};", [to_json])
        if made in (11, 14) and not self.p4_only:
            return self.assign()
        if made == 11 and not egress:
            self.json_too = False
            held_p4 = self.random.choice(("clone(CloneType.I2E, 32w5);", "truncate(32w64);"))
            return Op(set(), {"the queue's copies"}, held_p4, None)
        if made == 12:
            index = self.field()
            every = {f"hdr.s[{k}].x" for k in (0, 1)}
            held = [act("assign", numbered(index, 0), value(one))]
            return Op({one, index}, every, f"hdr.s[{told(index)}].x = {told(one)};", held, surely=False)
        if made == 13:
            index = self.field()
            every = {f"hdr.s[{k}].y" for k in (0, 1)}
            held = [act("assign", value(to), numbered(index, 1))]
            return Op({index} | every, {to}, f"{told(to)} = hdr.s[{told(index)}].y;", held)
        if made == 14:
            self.json_too = False
            return Op({one, other}, {to}, f"{told(to)} = pick({told(one)}, {told(other)});", None)
        return self.assign()

    def _stateful(self, egress: bool, made: int, to: str, one: str, other: str) -> Op:
        name = self.fresh({3: "r", 4: "r", 5: "c", 6: "q"}[made])
        self.states.add(name)
        array = {"type": f"{STATES[name[0]]}_array", "value": f"C.{name}"}
        index = f"(bit<32>){told(one)}"
        if made == 3:
            held = act("register_read", value(to), array, value(one))
            return Op({one}, {to}, f"{name}.read({told(to)}, {index});", [held], name)
        if made == 4:
            held = act("register_write", array, value(one), value(other))
            return Op({one, other}, set(), f"{name}.write({index}, {told(other)});", [held], name)
        if made == 5:
            return Op({one}, set(), f"{name}.count({index});", [act("count", array, value(one))], name)
        held = act("execute_meter", array, value(one), value(to))
        return Op({one}, {to}, f"{name}.execute_meter({index}, {told(to)});", [held], name)


def act(op: str, *parameters: Any) -> dict[str, Any]:
    return {"op": op, "parameters": list(parameters)}


def numbered(index: str, field: int) -> dict[str, Any]:
    """A field of a header stack's header, whose index is in another field."""
    stack = {"type": "header_stack", "value": "s"}
    header = {"op": "dereference_header_stack", "left": stack, "right": value(index)}
    held = {"op": "access_field", "left": {"type": "expression", "value": header}, "right": field}
    return {"type": "expression", "value": held}


def number(n: int) -> dict[str, Any]:
    return {"type": "hexstr", "value": hex(n)}


def seen(names: set[str], egress: bool) -> set[str]:
    """Fields on which a read depends. In egress, fields of the traffic manager depend on all fields that determine
    them."""
    return names | (QUEUES if egress and names & set(IN_EGRESS) else set())


def sent(names: tuple[str, ...], egress: bool) -> set[str]:
    found = {f"standard_metadata.{name}" for name in names}
    return found if egress else found | {f"the queue's {name}" for name in names}


# Dependencies of the program, by enumeration of every path.


def walks(ops: list[Op]) -> Iterator[tuple[set[str], set[str], bool]]:
    """For every path through an action: fields read that the action has not written before, fields written, and
    whether the path exits."""
    ways: list[tuple[set[str], set[str], set[str], bool]] = [(set(), set(), set(), False)]
    for op in ops:
        longer = []
        for reads, writes, sure, over in ways:
            if over:
                longer.append((reads, writes, sure, over))
                continue
            reads = reads | (op.reads - sure)
            if not op.inner:
                held = sure | op.writes if op.surely else sure
                longer.append((reads, writes | op.writes, held, op.exits))
                continue
            longer.append((reads, writes, sure, False))
            for more, made, ends in walks(op.inner):
                longer.append((reads | (more - sure), writes | made, sure | made, ends))
        ways = longer
    for reads, writes, _, over in ways:
        yield reads, writes, over


Way = tuple[tuple[str, ...], str]
"""Nodes that a packet traverses, and how this path ends: ``on`` (continues), ``return`` or ``exit``."""


@dataclass
class Visit:
    """Fields that a node of the control flow matches, reads and writes, over all of its actions."""

    matched: set[str]
    reads: set[str]
    writes: set[str]


class Paths:
    """Every path of a packet, as names of the traversed nodes."""

    def __init__(self, flows: list[list[Item]]) -> None:
        self.nodes: dict[str, Visit] = {}
        self.all: list[tuple[str, ...]] = []
        first = [way for way, _ in self._through(flows[0])]
        second = [way for way, _ in self._through(flows[1])]
        self.all = sorted({a + b for a in first for b in second})
        self.nodes = {name: visit for name, visit in self.nodes.items() if any(name in way for way in self.all)}

    def _through(self, items: list[Item]) -> list[Way]:
        """Paths through the items, and how each path ends: ``on`` (continues), ``return`` or ``exit``."""
        ways: list[Way] = [((), "on")]
        for item in items:
            longer = [way for way in ways if way[1] != "on"]
            steps = self._item(item)
            longer += [(way + more, how) for way, end in ways if end == "on" for more, how in steps]
            ways = list(dict.fromkeys(longer))
        return ways

    def _item(self, item: Item) -> list[Way]:
        if item.kind in ("return", "exit"):
            return [((), item.kind)]
        if item.kind == "sub":
            return [(way, "on" if how == "return" else how) for way, how in self._through(item.branches[""])]
        held = [list(walks(ops)) for ops in item.actions]
        whole = Visit(set(item.matched), set(), {item.direct} - {""})
        for ways in held:
            for reads, writes, _ in ways:
                whole.reads |= reads
                whole.writes |= writes
        self.nodes[item.name] = whole
        outcomes = self._outcomes(item, held)
        return [((item.name, *way), how) for way, how in dict.fromkeys(outcomes)]

    def _outcomes(self, item: Item, held: list[list[tuple[set[str], set[str], bool]]]) -> list[Way]:
        found: list[Way] = []
        if any(over for ways in held for *_, over in ways):
            found.append(((), "exit"))
        if item.kind == "if":
            return [way for branch in item.branches.values() for way in self._through(branch)]
        goes_on = [any(not over for *_, over in ways) for ways in held]
        if not item.branches:
            return found + ([((), "on")] if any(goes_on) else [])
        if "hit" in item.branches:
            return found + [way for b in item.branches.values() if any(goes_on) for way in self._through(b)]
        for goes, branch in zip(goes_on, item.branches.values(), strict=True):
            found += self._through(branch) if goes else []
        return found

    def dependencies(self) -> set[tuple[str, str, str]]:
        """The strictest dependency of each pair of nodes that some path traverses one after the other."""
        found = set()
        suffixes: dict[str, set[tuple[str, ...]]] = {name: set() for name in self.nodes}
        for way in self.all:
            for k, name in enumerate(way):
                suffixes[name].add(way[k + 1 :])
        for before, rests in suffixes.items():
            for after in {name for rest in rests for name in rest}:
                kind = self._kind(before, after, rests)
                if kind:
                    found.add((before, after, kind))
        return found

    def _kind(self, before: str, after: str, rests: set[tuple[str, ...]]) -> str:
        one, other = self.nodes[before], self.nodes[after]
        if one.writes & other.matched:
            return "match"
        if one.writes & (other.writes | other.reads):
            return "action"
        if not all(after in rest for rest in rests):
            for first in {rest[0] for rest in rests if rest}:
                if all(after in rest for rest in rests if rest and rest[0] == first):
                    return "successor"
        return "reverse-match" if (one.matched | one.reads) & other.writes else ""
