"""Reading the JSON that p4c's v1model back end writes for the bmv2 switch."""

from __future__ import annotations

from typing import Any

from subak.errors import InputError
from subak.pipeline import derive
from subak.pipeline.graph import order
from subak.pipeline.program import EXACT, PREFIX, TERNARY, Key, Program, Register, Table
from subak.pipeline.reading import Node

KINDS = {
    "exact": EXACT,
    "valid": EXACT,
    "lpm": PREFIX,
    "ternary": TERNARY,
    "range": TERNARY,
    "optional": TERNARY,
}
COUNTER_BITS = 64
"""Of a direct counter's bytes and packets, an entry."""
ORDERED = ("<", ">", "<=", ">=")


def program_of(told: Any, file: str) -> Program:
    """The dependency graph of a bmv2 program."""
    top = Node(told, file).mapping()
    for key in ("header_types", "headers", "actions", "pipelines"):
        if key not in top:
            raise InputError(file, "", f'"{key}" is missing', "give the JSON that p4c-bm2-ss wrote")
    return _Reader(top, file).program()


class _Reader:
    def __init__(self, top: dict[str, Node], file: str) -> None:
        self.file = file
        self.widths = self._widths(top)
        self.registers = {
            one["name"].text(): Register(one["name"].text(), one["bitwidth"].whole(1), one["size"].whole(1))
            for one in (n.mapping() for n in (top["register_arrays"].items() if "register_arrays" in top else []))
        }
        self.actions = {node.mapping()["id"].whole(): node for node in top["actions"].items()}
        self.pipelines = top["pipelines"].items()
        self._owner: dict[str, str] = {}

    def program(self) -> Program:
        """The tables and conditions of all pipelines, one after the other."""
        tables: list[Table] = []
        starts = [self._start(p) for p in self.pipelines]
        for k, pipeline in enumerate(self.pipelines):
            follow = next((s for s in starts[k + 1 :] if s), None)
            tables += self._pipeline(pipeline, follow)
        names = [t.name for t in tables]
        if not tables:
            raise InputError(self.file, "pipelines", "there is no table", "give a program that applies one")
        edges = [(t.name, to) for t in tables for _, to in t.next or () if to]
        for before, after in edges:
            if after not in names:
                raise InputError(
                    self.file, "pipelines", f'{before} leads to "{after}", which is not there', "name a table"
                )
        line, cycle = order(names, edges)
        if cycle:
            what = f"the control flow goes in a circle: {' -> '.join(cycle)}"
            raise InputError(self.file, "pipelines", what, "let packets only go forward")
        held = tuple(sorted(tables, key=lambda t: line.index(t.name)))
        name = self.file.rsplit("/", 1)[-1].removesuffix(".json")
        return Program(name, held, derive.dependencies(held), "", derive.exclusive_pairs(held))

    def _widths(self, top: dict[str, Node]) -> dict[str, int]:
        types = {}
        for node in top["header_types"].items():
            told = node.mapping()
            fields = [[part.value for part in one.items()] for one in told["fields"].items()]
            types[told["name"].text()] = {f[0]: f[1] for f in fields if isinstance(f[1], int)}
        widths: dict[str, int] = {}
        for node in top["headers"].items():
            told = node.mapping()
            kind = told["header_type"].text()
            if kind not in types:
                raise told["header_type"].error(f'there is no header type "{kind}"', "declare it in header_types")
            widths |= {f"{told['name'].text()}.{field}": width for field, width in types[kind].items()}
            widths[f"{told['name'].text()}.$valid$"] = 1
        return widths

    def _start(self, pipeline: Node) -> str | None:
        init = pipeline.mapping().get("init_table")
        return None if init is None or init.value is None else init.text()

    def _pipeline(self, pipeline: Node, follow: str | None) -> list[Table]:
        told = pipeline.mapping()
        tables = [self._table(node, follow) for node in told["tables"].items()]
        conditions = told["conditionals"].items() if "conditionals" in told else []
        return tables + [self._condition(node, follow) for node in conditions]

    def _to(self, node: Node | None, follow: str | None) -> str | None:
        return follow if node is None or node.value is None else node.text()

    def _table(self, node: Node, follow: str | None) -> Table:
        told = node.mapping()
        name = told["name"].text()
        keys = tuple(self._key(key) for key in told["key"].items())
        reads: set[str] = set()
        writes: set[str] = set()
        registers: set[str] = set()
        widest = 0
        for number in told["action_ids"].items():
            action = self.actions.get(number.whole())
            if action is None:
                raise number.error(f"there is no action {number.value}", "declare it in actions")
            widest = max(widest, self._action(action, reads, writes, registers))
        after = told["next_tables"].mapping() if "next_tables" in told else {}
        outcomes = tuple((key, self._to(to, follow)) for key, to in after.items())
        base = told.get("base_default_next")
        counted = "with_counters" in told and told["with_counters"].value is True
        return Table(
            name=name,
            keys=keys,
            entries=told["max_size"].whole(1) if keys and "max_size" in told else 1,
            action_width=widest,
            statistics_width=COUNTER_BITS if counted else 0,
            modifies=frozenset(writes),
            reads=frozenset(reads),
            next=outcomes or (("default", self._to(base, follow)),),
            registers=tuple(self._own(r, name, node) for r in sorted(registers)),
        )

    def _own(self, register: str, table: str, node: Node) -> Register:
        if register not in self.registers:
            raise node.error(f'there is no register "{register}"', "declare it in register_arrays")
        if self._owner.setdefault(register, table) != table:
            what = f'register "{register}" is used by {self._owner[register]} and by {table}'
            raise node.error(what, "a register lies in one stage: use it in the actions of one table")
        return self.registers[register]

    def _key(self, node: Node) -> Key:
        told = node.mapping()
        kind = told["match_type"].one_of(KINDS)
        target = told["target"]
        name = target.text() + ".$valid$" if isinstance(target.value, str) else self._field(target)
        return Key(name, self._width(name, target), KINDS[kind])

    def _field(self, node: Node) -> str:
        parts = node.items()
        if len(parts) != 2:
            raise node.error("this names no field", "write [header, field]")
        return f"{parts[0].text()}.{parts[1].text()}"

    def _width(self, name: str, node: Node) -> int:
        if name not in self.widths:
            raise node.error(f'there is no field "{name}"', "declare it in header_types and headers")
        return self.widths[name]

    def _action(self, node: Node, reads: set[str], writes: set[str], registers: set[str]) -> int:
        told = node.mapping()
        for primitive in told["primitives"].items():
            one = primitive.mapping()
            op = one["op"].text()
            parameters = one["parameters"].items() if "parameters" in one else []
            # What comes first is written; of a register, it is the array.
            writing = op not in ("register_write", "count", "execute_meter", "drop", "mark_to_drop", "exit")
            for k, parameter in enumerate(parameters):
                found = self._mentioned(parameter, registers)
                (writes if k == 0 and writing else reads).update(found)
            if op in ("mark_to_drop", "drop"):
                writes.add("standard_metadata.egress_spec")
        data = told["runtime_data"].items() if "runtime_data" in told else []
        return sum(one.mapping()["bitwidth"].whole(1) for one in data)

    def _mentioned(self, node: Node, registers: set[str]) -> set[str]:
        """Fields in a parameter or an expression."""
        value = node.value
        if not isinstance(value, dict):
            return set()
        kind, inner = value.get("type"), value.get("value")
        held = node.mapping()
        if kind == "field":
            name = self._field(held["value"])
            self._width(name, held["value"])
            return {name}
        if kind == "header" and isinstance(inner, str):
            return {f"{inner}.$valid$"}
        if kind == "register_array" and isinstance(inner, str):
            registers.add(inner)
            return set()
        found: set[str] = set()
        if kind == "expression" and isinstance(inner, dict):
            for part in ("left", "right", "cond"):
                if part in inner:
                    found |= self._mentioned(held["value"].mapping()[part], registers)
            if inner.get("type") == "expression":
                found |= self._mentioned(held["value"], registers)
        return found

    def _condition(self, node: Node, follow: str | None) -> Table:
        told = node.mapping()
        reads = sorted(self._mentioned(told["expression"], set()))
        ordered = any(f'"op": "{op}"' in str(told["expression"].value).replace("'", '"') for op in ORDERED)
        kind = TERNARY if ordered else EXACT
        outcomes = (
            ("true", self._to(told.get("true_next"), follow)),
            ("false", self._to(told.get("false_next"), follow)),
        )
        keys = tuple(Key(name, self.widths[name], kind) for name in reads)
        return Table(told["name"].text(), keys, 1, next=outcomes)
