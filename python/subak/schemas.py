"""JSON Schema of cases and specs, for completion and checks in editors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from subak import _subak
from subak.errors import InputError

Schema = dict[str, Any]

QUANTITY: Schema = {"type": ["number", "string"], "description": "a number in base units, or text with a unit"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}


def schema(kind: str) -> Schema:
    """The JSON Schema (2020-12) of a ``case`` or a ``spec``."""
    made = {"case": _case, "spec": _spec}.get(kind)
    if made is None:
        raise InputError(None, "KIND", f'there is no schema of "{kind}"', "choose one of: case, spec")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"Subak {kind}", **made()}


def _table(keys: Schema, required: Iterable[str] = (), about: str = "") -> Schema:
    made: Schema = {"type": "object", "properties": keys, "additionalProperties": False}
    if needed := list(required):
        made["required"] = needed
    return made | ({"description": about} if about else {})


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _word(*words: str) -> Schema:
    return {"enum": list(words)}


def _kinds(kinds: dict[str, Schema], required: dict[str, list[str]] | None = None) -> Schema:
    """Schema of a table whose keys depend on its ``kind``."""
    needed = required or {}
    return {
        "oneOf": [
            _table({"kind": {"const": kind}, **keys}, ["kind", *needed.get(kind, [])]) for kind, keys in kinds.items()
        ]
    }


def _either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _swept(value: Schema) -> Schema:
    """Schema of a table in which each value may be a list, as specs allow for sweeps."""
    out = dict(value)
    for key in ("oneOf", "anyOf"):
        if key in out:
            out[key] = [_swept(one) for one in out[key]]
    if "properties" in out:
        out["properties"] = {
            name: inner if "const" in inner else _one_or_more(inner) for name, inner in out["properties"].items()
        }
    return out


def _one_or_more(value: Schema) -> Schema:
    one = _swept({key: held for key, held in value.items() if key != "description"})
    about = {"description": value["description"]} if "description" in value else {}
    return _either(one, {"type": "array", "items": one, "minItems": 1}) | about


NIC: Schema = {"nic": _word("queue", "round-robin")}
"""Schema of the hosts' NIC scheduling, which only simulations use."""


def _of_case() -> Schema:
    """Declarations of a case's keys: the case itself, a link, a flow and the policies."""
    found: Schema = json.loads(_subak.case_sections())
    return found


def link_keys() -> Iterable[str]:
    """Keys of a link."""
    keys: Schema = _of_case()["link"]["schema"]["properties"]
    return keys


def flow_keys() -> Iterable[str]:
    """Keys of a flow of a case."""
    keys: Schema = _of_case()["flow"]["schema"]["properties"]
    return keys


def _network(more: Schema | None = None) -> Schema:
    """Schema of a network; ``more`` are additional keys that every form of a network may have."""
    beside = {"capacity": QUANTITY, "delay": QUANTITY, "range": _word("low", "high")}
    beside["hosts"] = _either(_word("all", "leaves"), _list({"type": ["string", "integer"]}))
    graph = _table(
        {
            "directed": FLAG,
            "multigraph": FLAG,
            "graph": ANY,
            "nodes": _list({}),
            "links": _list({}),
            "edges": _list({}),
            **beside,
        },
        ["nodes"],
        "node-link data as networkx writes it",
    )
    made = _of_kinds(json.loads(_subak.generators()))["oneOf"]
    file = _table({"file": TEXT, **beside, "unit": TEXT}, ["file"], "a file, and what it does not say")
    link = _of_case()["link"]["schema"]
    forms = [_table({"links": _list(link)}, ["links"]), file, graph, *made]
    return _either(_list(link), *({**form, "properties": form["properties"] | (more or {})} for form in forms))


def _policy() -> Schema:
    return _of_kinds(_of_case()["policy"])


def _case() -> Schema:
    told = _of_case()
    keys = {"file": TEXT, "unit": TEXT, "subflows": {"type": "integer", "minimum": 1}}
    file = _table(keys, ["file"], "a table, a matrix or demands")
    flows = _either(_list(told["flow"]["schema"]), file)
    made: Schema = told["case"]["schema"]
    made["properties"] |= {"network": _network(), "flows": flows, "policy": _policy()}
    return made


def steps() -> Iterable[str]:
    """Keys of a flow in the workload ``steps``."""
    workloads = json.loads(_subak.sections())["workload"]["schema"]
    of_steps = next(one for one in workloads if one["kind"] == "steps")
    keys: Schema = of_steps["schema"]["properties"]["flows"]["items"]["properties"]
    return keys


def _spec() -> Schema:
    told = json.loads(_subak.sections())
    sections = {name: one["schema"] for name, one in told.items()}
    swept = ("routing", "measure", "packets", "controller", "testbed", "run")
    keys = sections | {name: _swept(sections[name]) for name in swept}
    keys["run"]["properties"]["seeds"] = sections["run"]["properties"]["seeds"]
    keys |= {name: _either(keys[name], _list(sections[name])) for name in swept}
    keys["network"] = _either(_swept(_network(NIC)), _list(_network(NIC)))
    kinds = _of_kinds(sections["workload"])
    keys["workload"] = _either(_swept(kinds), _list(_swept(kinds)))
    keys["policy"] = _either(_swept(_policy()), _list(_policy()))
    keys["fault"] = _list(_swept(_of_kinds(sections["fault"]["items"])))
    keys["scheme"] = _schemes()
    return _table(keys, ["network", "workload", "scheme", "run"])


def _of_kinds(kinds: list[Schema]) -> Schema:
    """Schema of a list of tables whose keys depend on their ``kind``."""
    return _kinds(
        {one["kind"]: one["schema"]["properties"] for one in kinds},
        {one["kind"]: one["schema"].get("required", []) for one in kinds},
    )


def _schemes() -> Schema:
    """Schemas of the named schemes with their parameters, and of optimizer/transport pairs."""
    own = {"backend": _word("packet", "fluid", "testbed"), "label": TEXT, "policy": _policy()}
    made = [
        _table({"name": {"const": one["name"]}, **own, "params": _params(one)}, ["name"], one["about"])
        for one in _subak.schemes()
    ]
    parts = _subak.parts()
    halves = {role: [one for one in parts if one["role"] == role] for role in ("optimizer", "transport")}
    words = {role: _word(*(one["name"] for one in some)) for role, some in halves.items()}
    pair = _table(
        {**words, **own, "params": {"type": "object"}}, ["optimizer", "transport"], "an optimizer over a transport"
    )
    slashed = _table({"name": {"type": "string", "pattern": "/"}, **own, "params": {"type": "object"}}, ["name"])
    beside = {"name": TEXT, "files": _list(TEXT), "hook_time": QUANTITY, **own, "params": {"type": "object"}}
    users = [_table({key: TEXT, **beside}, [key], "a scheme of your own") for key in ("python", "library")]
    return {"type": "array", "minItems": 1, "items": {"oneOf": [*made, pair, slashed, *users]}}


def _params(one: Schema) -> Schema:
    keys = {}
    for param in one["params"]:
        value = FLAG if isinstance(param["default"], bool) else QUANTITY
        if "choices" in param:
            value = _word(*param["choices"])
        about = f"{param['about']} (default: {param['default']} {param['unit']})"
        keys[param["name"]] = {**value, "description": about}
    return _swept(_table(keys))
