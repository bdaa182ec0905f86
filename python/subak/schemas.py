"""JSON Schema of cases and specs: what editors complete from, and check against while one writes."""

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
WHOLE: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
TEXTS: Schema = {"type": "array", "items": TEXT}
PATH: Schema = {"type": "array", "items": TEXT, "minItems": 1}
PATHS: Schema = {"type": "array", "items": PATH, "minItems": 1}
POINTS: Schema = {"type": "array", "items": {"type": "array", "items": QUANTITY, "minItems": 2, "maxItems": 2}}
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
    """A table whose ``kind`` says which keys it has."""
    needed = required or {}
    return {
        "oneOf": [
            _table({"kind": {"const": kind}, **keys}, ["kind", *needed.get(kind, [])]) for kind, keys in kinds.items()
        ]
    }


def _either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _swept(value: Any, path: tuple[str, ...] = ()) -> Any:
    """The schema with a list of values in place of each single one, as specs sweep."""
    single = value.get("type") in ("number", "integer", "string", "boolean", ["number", "string"]) or "enum" in value
    if single:
        return _either(value, {"type": "array", "items": value, "minItems": 1})
    out = dict(value)
    for key in ("oneOf", "anyOf"):
        if key in out:
            out[key] = [_swept(one, path) for one in out[key]]
    if "properties" in out:
        out["properties"] = {
            name: inner if "const" in inner else _swept(inner, (*path, name))
            for name, inner in out["properties"].items()
        }
    return out


NIC: Schema = {"nic": _word("queue", "turns")}
"""What the NICs of hosts do: for simulations alone."""
LINK = _table(
    {"id": TEXT, "from": TEXT, "to": TEXT, "capacity": QUANTITY, "delay": QUANTITY, "buffer": QUANTITY}, ["capacity"]
)


def _network(more: Schema | None = None) -> Schema:
    """A network; ``more`` are keys that each form of it has beside its own."""
    graph = _table(
        {
            "directed": FLAG,
            "multigraph": FLAG,
            "graph": ANY,
            "nodes": _list({}),
            "links": _list({}),
            "edges": _list({}),
        },
        ["nodes"],
        "node-link data as networkx writes it",
    )
    made = [_generator(one) for one in json.loads(_subak.generators())]
    file = _table({"file": TEXT, "capacity": QUANTITY, "delay": QUANTITY}, ["file"], "a file, and what its edges lack")
    forms = [_table({"links": _list(LINK)}, ["links"]), file, graph, *made]
    return _either(_list(LINK), *({**form, "properties": form["properties"] | (more or {})} for form in forms))


def _generator(one: Schema) -> Schema:
    keys: Schema = {"kind": {"const": one["kind"]}}
    for key in one["keys"]:
        holds = key["unit"]
        value = TEXT if holds == "text" else WHOLE if "whole" in holds else QUANTITY
        keys[key["name"]] = {**value, "description": f"{key.get('about', '')} (default: {key['default']})"}
    return _table(keys, ["kind", *(key["name"] for key in one["keys"] if key["default"] == "required")])


def _policy() -> Schema:
    epsilon = {"epsilon": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}
    kinds = {"max-min": {}, "alpha-fair": {"alpha": NUMBER}, "fct": epsilon, "srpt": epsilon, "edf": epsilon}
    return _kinds({**kinds, "bandwidth-function": {}}, {"alpha-fair": ["alpha"]})


ROUTING = {"seed": WHOLE, "symmetric": FLAG, "metric": _word("hops", "delay"), "hash": _word("flow", "pair")}
OF_FLOWS = {
    "id": TEXT,
    "path": PATH,
    "paths": PATHS,
    "src": TEXT,
    "dst": TEXT,
    "subflows": WHOLE,
    "weight": NUMBER,
    "demand": QUANTITY,
    "size": QUANTITY,
    "deadline": QUANTITY,
    "bandwidth_function": POINTS,
}


def _case() -> Schema:
    flows = _either(_list(_table(OF_FLOWS)), _table({"file": TEXT, "unit": TEXT}, ["file"], "a table or a matrix"))
    keys = {"schema": {"const": 1}, "network": _network(), "routing": _table(ROUTING), "flows": flows}
    return _table({**keys, "policy": _policy()})


def _spec() -> Schema:
    sections = {
        "network": _either(_swept(_network(NIC)), _list(_network(NIC))),
        "routing": _swept(_table(ROUTING | {"reroute": QUANTITY})),
        "workload": _workload(),
        "policy": _swept(_policy()),
        "measure": _measure(),
        "packets": _swept(_table({"mtu": QUANTITY, "header": QUANTITY, "ack": QUANTITY})),
        "controller": _swept(_table({"at": TEXT}, ["at"])),
        "fault": _list(_swept(_fault())),
    }
    times = _swept(_table({"duration": QUANTITY, "warmup": QUANTITY, "drain": QUANTITY}))["properties"]
    run = _table({**times, "seeds": _either({"type": "integer", "minimum": 1}, _list(WHOLE))}, ["duration"])
    keys = {"schema": {"const": 1}, "name": TEXT, **sections, "run": run, "scheme": _schemes()}
    return _table(keys, ["network", "workload", "scheme", "run"])


def _sizes() -> Schema:
    facebook = ("facebook-web", "facebook-cache", "facebook-hadoop")
    hpcc = ("fb-hadoop", "ali-storage", "google-rpc")
    words = _word("web-search", "data-mining", "enterprise", *facebook, *hpcc, "fixed", "uniform")
    one = _either(words, POINTS, _table({"file": TEXT}, ["file"]))
    return _either(one, _list(one))


def _workload() -> Schema:
    each = {"connections": WHOLE, "weights": _weights()}
    sized = {"sizes": _sizes(), "size": QUANTITY, "smallest": QUANTITY, "largest": QUANTITY}
    step = OF_FLOWS | {"start": QUANTITY, "stop": QUANTITY, "connections": WHOLE, "after": TEXTS}
    step |= {"weights": _list({"type": "array", "minItems": 2, "maxItems": 2})}
    kinds = {
        "poisson": {**sized, "load": SHARE, "subflows": WHOLE, "one_way": FLAG, **each},
        "churn": {
            "epoch": QUANTITY,
            "flows_per_host": NUMBER,
            "replace": SHARE,
            "subflows": WHOLE,
            "alternate": FLAG,
            "most_per_host": NUMBER,
            "pairs_per_host": NUMBER,
            **each,
        },
        "incast": {"senders": WHOLE, "size": QUANTITY, "receiver": TEXT, "interval": QUANTITY, **each},
        "permutation": {"size": QUANTITY, "subflows": WHOLE, "one_way": FLAG, "apart": FLAG, "hashed": FLAG, **each},
        "steps": {"flows": _either(_list(_table(step)), _list(_list(_table(step))))},
        "closed": {
            **sized,
            "hosts": TEXTS,
            "to": TEXTS,
            "clients": WHOLE,
            "outstanding": WHOLE,
            "think": QUANTITY,
            "spread": QUANTITY,
            "transfers": WHOLE,
            **each,
        },
        "jobs": _jobs(),
        "trace": {"file": TEXT, "format": _word("csv", "parquet", "hpcc", "htsim"), "origin": QUANTITY, **each},
    }
    return _either(
        _swept(_kinds(kinds, {"steps": ["flows"], "jobs": ["jobs"], "trace": ["file"]})), _list(_kinds(kinds))
    )


def _jobs() -> Schema:
    flow = _table(
        {"id": TEXT, "src": TEXT, "dst": TEXT, "size": QUANTITY, "start": QUANTITY, "after": TEXTS},
        ["id", "src", "dst", "size"],
    )
    task = _table({"id": TEXT, "host": TEXT, "time": QUANTITY, "after": TEXTS}, ["id"])
    policies = json.loads(_subak.weight_policies())
    kinds = {one["name"]: {param["name"]: QUANTITY for param in one["params"]} for one in policies}
    policy = _either(_word(*kinds), _kinds(kinds), _table({"callable": TEXT}, ["callable"]))
    own = {"policy": policy, "every": QUANTITY}
    job = {"id": TEXT, "start": QUANTITY, "budget": NUMBER, **own, "flows": _list(flow), "tasks": _list(task)}
    changed = {"spacing": QUANTITY, "compute": NUMBER, "size": QUANTITY, "width": WHOLE, "background": WHOLE}
    return {"jobs": _either(_word("tpch"), _list(_table(job, ["flows"]))), **own, **changed}


def _weights() -> Schema:
    pair = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
    return _either(_table({"uniform": pair}, ["uniform"]), _table({"powers": pair}, ["powers"]))


def _measure() -> Schema:
    settled = {"within": SHARE, "share": SHARE, "hold": QUANTITY, "lasting": FLAG, "acks": FLAG}
    settled |= {"of": _word("assigned", "received"), "against": _word("policy", "scheme")}
    one = _swept(_table(settled | {"every": QUANTITY, "filter": QUANTITY}))
    packets = _table({"flows": _list(ANY), "links": TEXTS, "from": QUANTITY, "until": QUANTITY})
    fct = _either(FLAG, _word("receiver", "sender"))
    keys = {"fct": fct, "rates": QUANTITY, "queues": QUANTITY, "paces": QUANTITY, "packets": _either(FLAG, packets)}
    swept = _swept(_table(keys))["properties"]
    return _table({**swept, "convergence": _either(one, _list(one))})


def _fault() -> Schema:
    packets = {"probability": SHARE, "kinds": TEXTS, "links": TEXTS, "from": QUANTITY, "until": QUANTITY}
    at = {"link": TEXT, "links": TEXTS}
    return _kinds(
        {
            "loss": packets,
            "duplicate": packets,
            "delay": packets | {"by": QUANTITY},
            "capacity": at | {"capacity": QUANTITY, "at": QUANTITY},
            "down": at | {"both": FLAG, "down": QUANTITY, "up": QUANTITY},
            "restart": {"machine": TEXT, "node": TEXT, "link": TEXT, "at": QUANTITY},
        }
    )


def _schemes() -> Schema:
    """Those with a name, each with its parameters, and any optimizer over any fabric."""
    own = {"driver": _word("packet", "fluid"), "label": TEXT, "policy": _policy()}
    made = [
        _table({"name": {"const": one["name"]}, **own, "params": _params(one)}, ["name"], one["about"])
        for one in _subak.schemes()
    ]
    parts = _subak.parts()
    halves = {role: [one for one in parts if one["role"] == role] for role in ("optimizer", "fabric")}
    words = {role: _word(*(one["name"] for one in some)) for role, some in halves.items()}
    pair = _table({**words, **own, "params": {"type": "object"}}, ["optimizer", "fabric"], "an optimizer over a fabric")
    slashed = _table({"name": {"type": "string", "pattern": "/"}, **own, "params": {"type": "object"}}, ["name"])
    return {"type": "array", "minItems": 1, "items": {"oneOf": [*made, pair, slashed]}}


def _params(one: Schema) -> Schema:
    keys = {}
    for param in one["params"]:
        value = FLAG if isinstance(param["default"], bool) else QUANTITY
        about = f"{param['about']} (default: {param['default']} {param['unit']})"
        keys[param["name"]] = {**_swept(value), "description": about}
    return _table(keys)
