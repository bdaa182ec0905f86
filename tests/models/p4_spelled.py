"""The random programs of ``p4_random``, in the style of hand-written P4 and of p4c's JSON."""

from __future__ import annotations

from typing import Any

from p4_random import META, STATES, Item, Maker, Op, act, number, pair, told

KINDS = {"exact": "exact", "lpm": "lpm", "ternary": "ternary", "range": "range", "optional": "optional"}
HEAD = """#include <core.p4>
#include <v1model.p4>
#define WIDE 8
#define LEFT(n) meta_t meta_##n
typedef bit<WIDE> byte_t; // a byte
@name("pair") header pair_t { byte_t x; bit<(4 + 4)> y; }
struct headers_t { pair_t a; pair_t b; pair_t[2] s; }
#ifdef NEVER
this is no P4
#endif
struct meta_t { @field_list(1) byte_t m0; byte_t m1; byte_t m2; byte_t m3; }
byte_t pick(in byte_t one, in byte_t other) { return one < other ? one : other; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<8>>(4) some;
    state start { p.extract(hdr.a); transition select(hdr.a.x, hdr.a.y) { (1, _): next; default: accept; } }
    state next { p.extract(hdr.s.next); verify(hdr.s.last.x > 0, error.NoMatch); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply { verify_checksum(hdr.a.isValid(), { hdr.a.x, hdr.a.y }, hdr.b.x, HashAlgorithm.csum16); }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.a); p.emit(hdr.s); } }
"""
TAIL = "V1Switch(P(), V(), I(), E(), V(), D()) main;\n"
PARAMETERS = "inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std"


class P4:
    """Writes P4, and names conditions and steps by their line numbers."""

    def __init__(self, made: Maker) -> None:
        self.made = made
        self.lines = HEAD.rstrip("\n").split("\n")
        for name, items in made.declared.items():
            self.control(name, items)
        for name, items in zip("IE", made.flows, strict=True):
            self.control(name, items)
        self.text = "\n".join(self.lines) + "\n" + TAIL

    def put(self, line: str) -> int:
        self.lines.append(line)
        return len(self.lines)

    def control(self, name: str, items: list[Item]) -> None:
        self.put(f"control {name}({PARAMETERS}) {{")
        self.declare(items)
        self.put("apply {")
        self.block(items)
        self.put("} }")

    def declare(self, items: list[Item]) -> None:
        for item in items:
            for ops in item.actions:
                for state in (o.state for op in ops for o in (op, *op.inner) if o.state):
                    kind = STATES[state[0]]
                    made = {
                        "register": f"register<byte_t>(16) {state};",
                        "counter": f"counter(16, CounterType.bytes) {state};",
                    }
                    self.put(made.get(kind, f"meter(16, MeterType.packets) {state};"))
            if item.kind == "sub":
                self.put(f"{item.name}() {item.name}_made;")
                continue
            if item.kind == "table":
                self.table(item)
            elif item.kind == "call":
                self.action(item.name, item.actions[0])
            for branch in item.branches.values():
                self.declare(branch)

    def action(self, name: str, ops: list[Op], data: str = "") -> None:
        self.put(f"action {name}({data}) {{ {' '.join(map(self.op, ops))} }}")

    def op(self, op: Op) -> str:
        return f"if ({op.p4}) {{ {' '.join(map(self.op, op.inner))} }}" if op.inner else op.p4

    def table(self, item: Item) -> None:
        names = [f"{item.name}_a{k}" for k in range(len(item.actions))]
        more = ""
        if item.direct:
            self.put(f"direct_meter<byte_t>(MeterType.bytes) {item.name}_m;")
            more += f" meters = {item.name}_m;"
        for k, (name, ops) in enumerate(zip(names, item.actions, strict=True)):
            self.action(name, ops, "bit<9> data" if k else "")
        keys = [f"{told(f)}: {KINDS[kind]}" for f, kind in item.keys]
        if item.text:
            keys.append(f"{told(item.text)}: selector")
            more += " implementation = action_selector(HashAlgorithm.crc16, 32w64, 32w8);"
        listed = "".join(f"{name}; " for name in names)
        default = f"default_action = {names[0]};"
        key = f"key = {{ {''.join(k + '; ' for k in keys)}}} " if keys else ""
        self.put(f"table {item.name} {{ {key}actions = {{ {listed}}} {default} size = 16;{more} }}")

    def block(self, items: list[Item]) -> None:
        for item in items:
            getattr(self, f"_{item.kind}")(item)

    def _return(self, item: Item) -> None:
        self.put("return;")

    def _exit(self, item: Item) -> None:
        self.put("exit;")

    def _sub(self, item: Item) -> None:
        self.put(f"{item.name}_made.apply(hdr, meta, std);")

    def _call(self, item: Item) -> None:
        self.put(f"{item.name}();")

    def _step(self, item: Item) -> None:
        first = len(self.lines) + 1
        for op in item.actions[0]:
            self.put(self.op(op))
        item.name = f"step_{first}"

    def _if(self, item: Item) -> None:
        line = self.put(f"if ({item.text}) {{")
        item.name = f"if_{line}"
        self.block(item.branches["true"])
        self.put("} else {")
        self.block(item.branches["false"])
        self.put("}")

    def _table(self, item: Item) -> None:
        if "hit" in item.branches:
            self.put(f"if ({item.name}.apply().hit) {{")
            self.block(item.branches["hit"])
            self.put("} else {")
            self.block(item.branches["miss"])
            self.put("}")
        elif item.branches:
            self.put(f"switch ({item.name}.apply().action_run) {{")
            for name, branch in item.branches.items():
                self.put(f"{name}: {{")
                self.block(branch)
                self.put("}")
            self.put("}")
        else:
            self.put(f"{item.name}.apply();")


class Json:
    """Writes JSON as p4c does; with ``old`` as compilers of 2016 did, with actions by name."""

    def __init__(self, made: Maker, old: bool) -> None:
        self.made, self.old = made, old
        self.actions: list[dict[str, Any]] = []
        self.meters: list[dict[str, Any]] = []
        self.states: set[str] = set()
        pipelines = [self.pipeline(name, items) for name, items in zip(("ingress", "egress"), made.flows, strict=True)]
        types = [("pair_t", [["x", 8, False], ["y", 8, False]]), ("scalars_t", [[m, 8, False] for m in META])]
        widths = {
            "egress_spec": 9,
            "egress_port": 9,
            "mcast_grp": 16,
            "egress_rid": 16,
            "priority": 3,
            "deq_qdepth": 19,
        }
        types.append(("standard_metadata", [[n, w, False] for n, w in widths.items()]))
        named = [("a", "pair_t"), ("b", "pair_t"), ("s[0]", "pair_t"), ("s[1]", "pair_t")]
        named += [("scalars", "scalars_t"), ("standard_metadata", "standard_metadata")]
        headers = [{"name": n, "id": k, "header_type": t} for k, (n, t) in enumerate(named)]
        arrays: dict[str, list[dict[str, Any]]] = {f"{kind}_arrays": [] for kind in STATES.values()}
        for k, state in enumerate(sorted(self.states)):
            held = {"name": f"C.{state}", "id": k, "size": 16, "bitwidth": 8, "is_direct": False}
            arrays[f"{STATES[state[0]]}_arrays"].append(held)
        arrays["meter_arrays"] += self.meters
        calculations = [
            {"name": n, "id": k, "algo": "crc16", "input": [{"type": "field", "value": pair(f)} for f in fields]}
            for k, (n, fields) in enumerate(getattr(made, "calculations", []))
        ]
        self.told = {
            "header_types": [{"name": n, "id": k, "fields": f} for k, (n, f) in enumerate(types)],
            "headers": headers,
            "header_stacks": [{"name": "s", "id": 0, "header_type": "pair_t", "header_ids": [2, 3]}],
            "calculations": calculations,
            "actions": self.actions,
            "pipelines": pipelines,
            **arrays,
        }

    def pipeline(self, name: str, items: list[Item]) -> dict[str, Any]:
        self.tables: list[dict[str, Any]] = []
        self.conditions: list[dict[str, Any]] = []
        self.profiles: list[dict[str, Any]] = []
        start = self.block(items, None, None)
        return {
            "name": name,
            "init_table": start,
            "tables": self.tables,
            "conditionals": self.conditions,
            "action_profiles": self.profiles,
        }

    def block(self, items: list[Item], follow: str | None, end: str | None) -> str | None:
        for item in reversed(items):
            if item.kind == "return":
                follow = end
            elif item.kind == "exit":
                follow = None
            elif item.kind == "sub":
                follow = self.block(item.branches[""], follow, follow)
            elif item.kind == "if":
                yes, no = (self.block(item.branches[way], follow, end) for way in ("true", "false"))
                held = {"type": "expression", "value": item.json}
                self.conditions.append({"name": item.name, "expression": held, "true_next": yes, "false_next": no})
                follow = item.name
            else:
                follow = self.table(item, follow, end)
        return follow

    def table(self, item: Item, follow: str | None, end: str | None) -> str:
        names = [f"{item.name}_a{k}" for k in range(len(item.actions))]
        ids = [self.action(name, ops, k) for k, (name, ops) in enumerate(zip(names, item.actions, strict=True))]
        branches = {name: self.block(branch, follow, end) for name, branch in item.branches.items()}
        outcomes = {f"__{n.upper()}__" if n in ("hit", "miss") else n: to for n, to in branches.items()}
        made: dict[str, Any] = {
            "name": item.name,
            "match_type": "ternary",
            "type": "simple",
            "max_size": 16,
            "with_counters": False,
            "direct_meters": None,
            "key": [{"match_type": kind, "target": pair(f), "mask": None} for f, kind in item.keys],
            "next_tables": outcomes or dict.fromkeys(names, follow),
            "base_default_next": follow,
        }
        made |= {"actions": names} if self.old else {"action_ids": ids, "actions": names}
        if item.text:
            made |= {"type": "indirect_ws", "action_profile": f"{item.name}_p"}
            chosen = {"algo": "crc16", "input": [{"type": "field", "value": pair(item.text)}]}
            self.profiles.append({"name": f"{item.name}_p", "id": 1, "max_size": 64, "selector": chosen})
        if item.direct:
            made["direct_meters"] = f"{item.name}_m"
            held = {"name": f"{item.name}_m", "id": 9, "is_direct": True, "result_target": pair(item.direct)}
            self.meters.append(held)
        self.tables.append(made)
        return item.name

    def action(self, name: str, ops: list[Op], data: int) -> int:
        primitives: list[dict[str, Any]] = []
        for op in ops:
            for one in (op, *op.inner):
                self.states |= {one.state} - {""}
            if op.inner:
                assert op.json
                inside = [p for one in op.inner for p in one.json or []]
                held = {"type": "expression", "value": op.json[0]}
                primitives.append(act("_jump_if_zero", held, number(len(primitives) + 1 + len(inside))))
                primitives += inside
            else:
                primitives += op.json or []
        taken = [{"name": "data", "bitwidth": 9}] if data else []
        self.actions.append({"name": name, "id": len(self.actions), "runtime_data": taken, "primitives": primitives})
        return len(self.actions) - 1
