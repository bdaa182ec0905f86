"""Reads a program: JSON of tables, a built-in benchmark program, bmv2's JSON, or P4."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from subak import inputs
from subak.errors import InputError
from subak.pipeline import derive
from subak.pipeline.ordering import order
from subak.pipeline.program import DEPENDENCY_KINDS, MATCH_KINDS, MOST_TABLES, Dependency, Key, Program, Register, Table
from subak.pipeline.reading import Node

FOLDER = Path(__file__).parent / "programs"
_END = "end"


def built_in() -> list[str]:
    """Names of the built-in programs."""
    return sorted(path.stem for path in FOLDER.iterdir() if path.suffix in (".json", ".p4") and "@" not in path.stem)


def load(name: str, switch: str = "", defines: Mapping[str, str] | None = None, folders: Sequence[str] = ()) -> Program:
    """The built-in program of this name, or the program in this file.

    A built-in one may have its own table sizes for ``switch``.

    ``defines`` are macros of a P4 program by name, as ``-D NAME=VALUE`` of a C preprocessor. Included files are
    searched in ``folders``, as by ``-I``.
    """
    if name in built_in():
        sizes = switch.removesuffix("-release")
        for path in (FOLDER / f"{name}@{sizes}.json", FOLDER / f"{name}.json", FOLDER / f"{name}.p4"):
            if path.exists():
                return read(path.read_bytes(), path.name, defines, folders)
    if "/" not in name and "." not in name and name != "-" and not Path(name).exists():
        hint = f"choose one of: {', '.join(built_in())}, or name a file"
        raise InputError(None, "PROGRAM", f'there is no program "{name}"', hint)
    data, file = inputs.read(name)
    return read(data, file, defines, folders)


def read(data: bytes, file: str, defines: Mapping[str, str] | None = None, folders: Sequence[str] = ()) -> Program:
    """The program in ``data``: P4 by file name, otherwise JSON of tables or of bmv2."""
    try:
        return _read(data, file, defines or {}, folders)
    except RecursionError:
        raise InputError(file, "", "it nests too deep", "nest less, or split its longest expression") from None


def _read(data: bytes, file: str, defines: Mapping[str, str], folders: Sequence[str]) -> Program:
    if Path(file).suffix == ".p4":
        from subak.pipeline.p4.lower import lower
        from subak.pipeline.p4.preprocess import Flags

        return lower(data, file, Flags(defines, folders))
    if defines:
        raise InputError(file, "-D", f"macros ({', '.join(defines)}) are for P4, and this is JSON", "leave -D out")
    if folders:
        what = f"folders of included files ({', '.join(folders)}) are for P4, and this is JSON"
        raise InputError(file, "-I", what, "leave -I out")
    try:
        told = json.loads(data)
        # A lone surrogate is valid in JSON, but cannot be encoded as text.
        json.dumps(told, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(file, "", f"it is not JSON: {error}", "give JSON, or P4 in a file called .p4") from None
    if isinstance(told, dict) and "pipelines" in told:
        from subak.pipeline.bmv2 import program_of

        return program_of(told, file)
    return from_json(told, file)


def from_json(told: Any, file: str | None) -> Program:
    """A program from a table dependency graph in JSON."""
    top = Node(told, file).mapping(
        ("schema", "name", "source", "fields", "tables", "dependencies", "exclusive"), ("tables",)
    )
    if "schema" in top and top["schema"].value != 1:
        raise top["schema"].error(f"schema {top['schema'].value} is not known", 'write "schema": 1')
    nodes = top["tables"].items()
    if not 1 <= len(nodes) <= MOST_TABLES:
        raise top["tables"].error(f"{len(nodes)} tables", f"give 1 to {MOST_TABLES}")
    widths = _widths(top, nodes)
    given = "dependencies" in top
    tables = tuple(_table(node, widths, given) for node in nodes)
    names = [table.name for table in tables]
    for k, (table, node) in enumerate(zip(tables, nodes, strict=True)):
        if table.name in names[:k]:
            raise node.error(f'there are two tables "{table.name}"', "give each its own name")
    _check_registers(tables, nodes)
    name = top["name"].text() if "name" in top else Path(file or "program").stem
    source = top["source"].text() if "source" in top else ""
    flows = [_has(node, "next") for node in nodes]
    if any(flows) and not all(flows):
        missing = nodes[flows.index(False)]
        raise missing.error("it does not say which table is next", 'give "next", such as {"default": "end"}')
    if any(flows):
        _check_flow(tables, nodes)
    if given:
        found = _given(top["dependencies"], names)
    elif all(flows):
        found = derive.dependencies(tables)
    else:
        raise nodes[0].error("nothing says what depends on what", 'give "next" in each table, or "dependencies"')
    apart = _apart(top["exclusive"], names) if "exclusive" in top else frozenset()
    if apart and any(flows):
        raise top["exclusive"].error("the control flow tells which tables exclude each other", "leave it out")
    return Program(name, tables, found, source, apart)


def _has(node: Node, key: str) -> bool:
    return isinstance(node.value, dict) and key in node.value


def _widths(top: dict[str, Node], nodes: list[Node]) -> dict[str, int] | None:
    """Declared widths by field; ``None`` if the program declares none."""
    if "fields" not in top:
        return None
    return {name: node.whole(1) for name, node in top["fields"].mapping().items()}


_TABLE = ("name", "match", "entries", "action_width", "statistics_width", "modifies", "reads", "next", "registers")


def _table(node: Node, widths: dict[str, int] | None, given: bool) -> Table:
    told = node.mapping(_TABLE, ("name", "match", "entries"))
    name = told["name"].text()
    keys = tuple(_key(key, name, widths, given) for key in told["match"].items())
    modifies = _fields(told.get("modifies"), widths)
    reads = _fields(told.get("reads"), widths)
    if "action_width" in told:
        action = told["action_width"].whole()
    elif widths is not None:
        action = sum(widths[f] for f in modifies)
    elif modifies:
        raise told["modifies"].error("the width of its action data is not known", 'give "action_width", or "fields"')
    else:
        action = 0
    return Table(
        name=name,
        keys=keys,
        entries=told["entries"].whole(1),
        action_width=action,
        statistics_width=told["statistics_width"].whole() if "statistics_width" in told else 0,
        modifies=frozenset(modifies),
        reads=frozenset(reads),
        next=_next(told["next"]) if "next" in told else None,
        registers=tuple(_register(r) for r in told["registers"].items()) if "registers" in told else (),
    )


def _key(node: Node, table: str, widths: dict[str, int] | None, given: bool) -> Key:
    told = node.mapping(("field", "width", "kind"), ("kind",) if given else ("kind", "field"))
    field = told["field"].text() if "field" in told else f"{table}.key"
    declared = _width(told["field"], widths) if "field" in told and widths is not None else None
    if "width" not in told and declared is None:
        raise node.error("its width is not known", 'give "width", in bits')
    width = told["width"].whole(1) if "width" in told else declared or 0
    if declared is not None and width > declared:
        raise told["width"].error(f"{width} bits of a field of {declared}", "match at most the field's width")
    return Key(field, width, told["kind"].one_of(MATCH_KINDS))


def _fields(node: Node | None, widths: dict[str, int] | None) -> list[str]:
    nodes = node.items() if node else []
    for one in nodes:
        one.text()
        if widths is not None:
            _width(one, widths)
    return [one.value for one in nodes]


def _width(node: Node, widths: dict[str, int]) -> int:
    if node.text() not in widths:
        raise node.error(f'there is no field "{node.value}"', 'declare it with its width in "fields"')
    return widths[node.value]


def _register(node: Node) -> Register:
    told = node.mapping(("name", "width", "cells"), ("name", "width", "cells"))
    return Register(told["name"].text(), told["width"].whole(1), told["cells"].whole(1))


def _check_registers(tables: tuple[Table, ...], nodes: list[Node]) -> None:
    """Raises an error unless registers of one name are equal."""
    known: dict[str, Register] = {}
    for table, node in zip(tables, nodes, strict=True):
        for register in table.registers:
            if known.setdefault(register.name, register) != register:
                what = f'register "{register.name}" has another size in an earlier table'
                raise node.mapping()["registers"].error(what, "give it one size, or two names")


def _apart(node: Node, names: list[str]) -> frozenset[frozenset[str]]:
    """Pairs of tables, one from each of two lists, of which no packet traverses both."""
    found = set()
    for pair in node.items():
        sides = [[one.one_of(names) for one in side.items()] for side in pair.items()]
        if len(sides) != 2:
            raise pair.error(f"{len(sides)} lists stand here", "write [[tables], [tables that exclude each of them]]")
        found |= {frozenset((one, other)) for one in sides[0] for other in sides[1] if one != other}
    return frozenset(found)


def _next(node: Node) -> tuple[tuple[str, str | None], ...]:
    told = node.mapping()
    if not told:
        raise node.error("it names no outcome", 'write {"default": "end"}')
    return tuple((outcome, None if to.value in (None, _END) else to.text()) for outcome, to in told.items())


def _check_flow(tables: tuple[Table, ...], nodes: list[Node]) -> None:
    names = [table.name for table in tables]
    for table, node in zip(tables, nodes, strict=True):
        for outcome, to in table.next or ():
            if to is not None and to not in names:
                place = node.mapping()["next"].mapping()[outcome]
                raise place.error(f'there is no table "{to}"', 'name a table of "tables", or "end"')
    edges = [(table.name, to) for table in tables for _, to in table.next or () if to is not None]
    _, cycle = order(names, edges)
    if cycle:
        place = nodes[names.index(cycle[0])].mapping()["next"]
        raise place.error(f"the control flow goes in a circle: {' -> '.join(cycle)}", "let packets only go forward")


def _given(node: Node, names: list[str]) -> tuple[Dependency, ...]:
    found: dict[tuple[str, str], Dependency] = {}
    for kind, pairs in sorted(node.mapping(DEPENDENCY_KINDS).items(), key=lambda kv: DEPENDENCY_KINDS.index(kv[0])):
        for pair in pairs.items():
            ends = pair.items()
            if len(ends) != 2:
                raise pair.error(f"{len(ends)} tables stand here", "write [earlier table, later table]")
            for end in ends:
                if end.text() not in names:
                    raise end.error(f'there is no table "{end.value}"', 'name a table of "tables"')
            before, after = (end.value for end in ends)
            found.setdefault((before, after), Dependency(before, after, kind))
    _, cycle = order(names, found)
    if cycle:
        raise node.error(f"the dependencies go in a circle: {' -> '.join(cycle)}", "remove one of them")
    return tuple(found.values())
