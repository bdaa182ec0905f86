"""Every key of a spec and a case is read as its JSON Schema declares it, and old names of parameters act as new ones.

Text with units is a string in the schema: the reader alone checks it."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import subak
from subak import InputError, runs

Keys = dict[str, Any]
Place = tuple[str | int, ...]

LEAF_SPINE = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "controller_rate": "10Gbps"}
HOSTS = ["h0", "h1", "h2"]
GRAPH = {"nodes": [{"id": n} for n in ("s", *HOSTS)], "links": [{"source": h, "target": "s"} for h in HOSTS]}
LINKS = [{"from": a, "to": b, "capacity": 1e9} for h in HOSTS for a, b in ((h, "s"), ("s", h))]
INCAST = {"kind": "incast", "senders": 2, "size": "10KB"}
FLOW = {"id": "f", "src": "h0", "dst": "h2", "size": "10KB"}
JOBS = {"kind": "jobs", "jobs": [{"id": "j", "flows": [FLOW], "tasks": [{"id": "t", "host": "h0", "after": ["f"]}]}]}
STEPS = {"kind": "steps", "flows": [FLOW]}
JOB_POLICIES = ("straggler", "altruistic", "critical-path", "shortest-first")
DOWN = {"kind": "down", "link": "leaf0->spine0", "down": "1us", "up": "1s"}
DELAY = {"kind": "delay", "by": "1us", "probability": 0.1}
CAPACITY = {"kind": "capacity", "link": "leaf0->spine0", "capacity": "1Gbps", "at": "1us"}
RESTART = {"kind": "restart", "node": "leaf0", "at": "1us"}
JELLYFISH = {"kind": "jellyfish", "switches": 4, "ports": 2, "hosts_per_switch": 1}
INCASTS = {"senders": 2, "size": "1KB", "load": 0.1}
POISSON = {"kind": "poisson", "sizes": "web-search", "load": 0.5}
PAIR = {"optimizer": "xwi", "transport": "soze-virtual"}
CLOSED = {"kind": "closed", "sizes": "fixed", "size": "10KB"}
FAIR = {"kind": "alpha-fair", "alpha": 1}

# Sections with most keys, in place of those of the smallest spec.
SPECS: list[Keys] = [
    {"routing": {"kind": "flowlet"}, "measure": {"convergence": {}, "packets": {}}},
    {"measure": {"convergence": [{}]}, "packets": {}, "testbed": {}, "controller": {"at": "h0"}, "policy": FAIR},
    {"workload": {**POISSON, "incasts": INCASTS, "weights": {"uniform": [1, 2]}}},
    {"workload": {"kind": "churn", "epoch": "1ms", "flows_per_host": 2, "alternate": True}},
    *({"workload": one} for one in ({"kind": "permutation"}, STEPS, CLOSED)),
    *({"workload": {**JOBS, "policy": {"kind": kind}}} for kind in JOB_POLICIES),
    *({"fault": [{"kind": kind, "probability": 0.1}]} for kind in ("loss", "duplicate")),
    *({"fault": [one]} for one in (DELAY, DOWN, CAPACITY, RESTART)),
    {"scheme": [{"name": "ideal", "policy": {"kind": "fct"}}], "policy": {"kind": "srpt"}},
    *({"scheme": [{**one, "policy": FAIR}]} for one in (PAIR, {"name": "xwi/soze"})),
    *({"scheme": [{"name": name, "params": {}}]} for name in ("soze", "s-perc", "dctcp", "cubic", "hpcc", "pfabric")),
    *({"network": one} for one in (LINKS, {"links": LINKS}, JELLYFISH, {"kind": "fat-tree", "k": 4})),
    *({"network": one} for one in ({"kind": "chain", "rates": ["1Gbps"]}, {"kind": "wan", "topology": "b4-12"})),
]
CASE: Keys = {
    "network": {"links": [{"id": "a", "capacity": "10Gbps", "from": "x", "to": "y"}]},
    "flows": [{"path": ["a"], "size": 1, "deadline": 1}, {"src": "x", "dst": "y", "size": 1, "deadline": 1}],
    "routing": {},
}
CASES: list[Keys] = [{}, {"policy": FAIR}, *({"policy": {"kind": kind}} for kind in ("max-min", "fct", "edf"))]
# No text: units are the reader's.
VALUES = [None, True, 0, -1, 0.5, 1e17, 2**65, [], [None], [True], {"x": 1}, "no such word"]


def spec(**changes: Any) -> Keys:
    """A valid spec, with some sections replaced."""
    small = {"network": LEAF_SPINE, "workload": INCAST, "scheme": [{"name": "dctcp"}], "run": {"duration": "10s"}}
    return {**small, **changes}


@cache
def schema(kind: str) -> Any:
    return jsonschema.Draft202012Validator(subak.schema(kind))


def places(told: Any, value: Any) -> Iterator[Place]:
    """Places of all keys that a schema declares in ``value``, and of an unknown one beside them."""
    for branch in [*told.get("anyOf", []), *told.get("oneOf", [])]:
        yield from places(branch, value)
    if isinstance(value, list) and value and "items" in told:
        yield from ((0, *place) for place in places(told["items"] or {}, value[0]))
    elif isinstance(value, dict) and jsonschema.Draft202012Validator(told).is_valid(value):
        properties = told.get("properties", {})
        yield from ((key,) for key in (*properties, *(["unknown"] if properties else [])))
        for key in properties.keys() & value.keys():
            yield from ((key, *place) for place in places(properties[key], value[key]))


def replaced(value: Any, place: Place, new: Any) -> Any:
    if not place:
        return new
    first, *rest = place
    inner = value[first] if isinstance(value, list) else value.get(first, {})
    made = replaced(inner, tuple(rest), new)
    return [made, *value[1:]] if isinstance(value, list) else {**value, first: made}


def refusal(kind: str, given: Keys) -> InputError | None:
    """The reader's error. Any other exception fails the test."""
    try:
        _ = runs.load(given).trials() if kind == "spec" else subak.solve(given)
    except InputError as error:
        for one in error.each():
            assert all((one.place, one.what, one.hint)), (one, given)
            assert not any(word in str(one) for word in ("defect", "panic")), (one, given)
        return error
    return None


@pytest.mark.filterwarnings("ignore::subak.errors.InputWarning")
@pytest.mark.parametrize(
    ("kind", "changes"), [("spec", {}), *(("spec", one) for one in SPECS), *(("case", one) for one in CASES)]
)
def test_what_the_schema_refuses_is_refused_at_its_place(kind: str, changes: Keys) -> None:
    given = spec(**changes) if kind == "spec" else {**CASE, **changes}
    assert refusal(kind, given) is None
    tried = 0
    for place in dict.fromkeys(places(schema(kind).schema, given)):
        for value in VALUES if place[0] in changes or not changes else []:
            changed = replaced(given, place, value)
            # Lists that the reader sweeps and the schema does not have: see FAULTS.
            swept = isinstance(value, list) and (len(place) == 1 or place[0] == "testbed" or place[-1] == "kind")
            if not swept and not schema(kind).is_valid(changed):
                error = refusal(kind, changed)
                assert error, (place, value, "the schema refuses it")
                assert any(re.match(f"{place[0]}|line", one.place) for one in error.each()), (place, value, error)
                tried += 1
    assert tried > 10


FINE: list[Keys] = [
    *({"routing": {"kind": "spray", "max_paths": n}} for n in (1, [1, 64])),
    *({"routing": {"seed": n}} for n in (0, 2**64 - 1, [0, 1])),
    *({"run": {"duration": "1ms", "seeds": n}} for n in (1, [0], [2**63 - 1, 5])),
    *({"measure": {"fct": word}} for word in (True, False, "receiver", "sender", [True, "sender"])),
    *({"measure": {"convergence": one}} for one in ({"within": 1.0}, [{}, {"hold": 0}], {"within": [0.1, 0.2]})),
    *({"workload": {**POISSON, "load": n}} for n in (1e-3, 1, [0.2, 0.4])),
    *({"workload": {**POISSON, "sizes": one}} for one in ([["1MB", 1]], ["web-search", "data-mining"])),
    *({"packets": {"mtu": n}} for n in (119, 65535, "9KB", [1500, 9000])),
    *({"workload": one} for one in ([INCAST, STEPS], {**STEPS, "jitter": ["1us", 2]})),
]


@pytest.mark.parametrize("changes", FINE)
def test_values_at_the_bounds_are_accepted(changes: Keys) -> None:
    given = spec(scheme=[{"name": "ideal"}], **changes)
    schema("spec").validate(given)
    assert refusal("spec", given) is None


def broken(faults: Keys) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=name)) for name in faults]


def params(name: str, **given: Any) -> Keys:
    return {"scheme": [{"name": name, "params": given}]}


# Where the schema and the reader disagree.
FAULTS: dict[str, Keys] = {
    "epsilon 1: the schema's maximum is exclusive": {**params("ideal"), "policy": {"kind": "fct", "epsilon": 1}},
    "no seeds: minItems is missing": {"run": {"duration": "1ms", "seeds": []}},
    "one point: minItems is 2": {"workload": {**STEPS, "flows": [{**FLOW, "bandwidth_function": [[0, 0]]}]}},
    "a criterion among several is not swept": {"measure": {"convergence": [{"within": [0.1, 0.2]}]}},
    "a parameter out of its range": params("dctcp", g=2),
    "a number in quotes, where there is no unit": params("dctcp", g="0.5"),
    "a swept kind of policy": {**params("ideal"), "policy": {"kind": ["max-min", "fct"]}},
}


@pytest.mark.parametrize("name", broken(FAULTS))
def test_schema_and_reader_agree(name: str) -> None:
    given = spec(**FAULTS[name])
    assert schema("spec").is_valid(given) == (refusal("spec", given) is None)


# Where they agree since.
AGREED: dict[str, Keys] = {
    "part of a byte: no whole number in the schema": {"workload": {**INCAST, "size": 0.5}},
    "a negative time: no minimum in the schema": {"routing": {"reroute": -1}},
    "a size of zero: no minimum in the schema": {"workload": {**INCAST, "size": 0}},
    "2.0 is an integer in JSON Schema": {"routing": {"seed": 2.0}},
    "a swept section": {"routing": [{"seed": 1}, {"seed": 2}]},
    "a swept key of testbed": {"testbed": {"scale": [1, 2]}},
    "names of hosts are read as a sweep": {"network": {**GRAPH, "capacity": "1Gbps", "hosts": HOSTS}},
    "a seed above 1e15": {"network": {**JELLYFISH, "graph_seed": 10**15 + 1}},
    "a time below its minimum is rounded up to it": {"run": {"duration": 5e-10}},
}


@pytest.mark.parametrize("name", AGREED)
def test_schema_and_reader_agree_since(name: str) -> None:
    given = spec(**AGREED[name])
    assert schema("spec").is_valid(given) == (refusal("spec", given) is None)


# What an error has to begin with.
LINES: dict[str, tuple[str, Keys, str]] = {
    "flows of a wrong type: the place is a column of JSON": ("case", {**CASE, "flows": 5}, "flows: "),
    "the place has the new name": ("spec", params("soze", alpha_gbps=-1), r"scheme\[0\]\.params\.alpha_gbps: "),
    "no place in the list": ("spec", params("dctcp", k=[20, 0]), r"scheme\[0\]\.params\.k\[1\]: "),
}


MENDED: dict[str, tuple[str, Keys, str]] = {
    "the place has a name of xwi": ("spec", params("google-swift", slowdown=2), r"scheme\[0\]\.params\.slowdown: "),
    "a second error that is none": ("spec", {"packets": {"mtu": "1500 bytes"}}, r"packets\.mtu: .*$(?!\n)"),
    "a demand is no capacity": ("spec", {"workload": {**STEPS, "flows": [{**FLOW, "demand": 0}]}}, "(?!.*capacity)"),
}


@pytest.mark.parametrize("name", MENDED)
def test_errors_name_what_was_given_since(name: str) -> None:
    kind, changes, begin = MENDED[name]
    assert re.match(begin, str(refusal(kind, spec(**changes))))


@pytest.mark.parametrize("name", broken(LINES))
def test_errors_name_what_was_given(name: str) -> None:
    kind, changes, begin = LINES[name]
    assert re.match(begin, str(refusal(kind, changes if kind == "case" else spec(**changes))))


def test_parameters_of_own_schemes_keep_their_names(tmp_path: Path) -> None:
    mine = 'import subak\nclass Mine(subak.Scheme):\n    params = {"slowdown": (2.0, "")}\n'
    (tmp_path / "mine.py").write_text(mine + "    source = subak.Source\n")
    scheme = {"name": "mine", "python": f"{tmp_path}/mine.py:Mine", "params": {"slowdown": 3.0}}
    assert refusal("spec", spec(scheme=[scheme])) is None


# A scheme, its parameters by their old names, and by the new ones.
RENAMED: list[tuple[Keys, Keys, Keys]] = [
    ({"name": "soze"}, {"alpha_gbps": [1, 2.5]}, {"alpha_rate": ["1Gbps", "2.5Gbps"]}),
    ({"name": "soze"}, {"alpha_gbps": [2], "beta_gbps": [0.1]}, {"alpha_rate": ["2Gbps"], "beta_rate": ["0.1Gbps"]}),
    ({"name": "soze-virtual"}, {"alpha_gbps": [1, 2]}, {"alpha_rate": ["1Gbps", "2Gbps"]}),
    ({"name": "soze-virtual"}, {"queue": [1, 1.5]}, {"queue_weight": [1, 1.5]}),
    ({**PAIR, "policy": FAIR}, {"queue": [1, 1.5]}, {"queue_weight": [1, 1.5]}),
    ({"name": "xwi/soze-virtual", "policy": FAIR}, {"queue": [1, 1.5]}, {"queue_weight": [1, 1.5]}),
    ({"name": "pfabric"}, {"window": [5, 9]}, {"initial_window": [5, 9]}),
    ({"name": "hpcc"}, {"window": ["wire", "payload"]}, {"in_flight": ["wire", "payload"]}),
    ({"name": "rcp"}, {"probe": ["200us", "400us"]}, {"request_timeout": ["200us", "400us"]}),
    *(({"name": name}, {"acks": ["first"]}, {"ack_priority": ["first"]}) for name in ("hpcc", "dcqcn", "timely")),
]


def ran(scheme: Keys, given: Keys) -> tuple[list[Keys], int]:
    """Rows of a run's flows, and the number of notes on old names."""
    with tempfile.TemporaryDirectory() as out:
        made = spec(network={"kind": "star", "hosts": 3}, scheme=[{**scheme, "params": given}], run={"duration": "1ms"})
        run = subak.run(made, out, jobs=1)
        return run.table().to_pylist(), sum(one["kind"] == "renamed" for one in run.warnings)


@pytest.mark.parametrize(("scheme", "old", "new"), RENAMED)
def test_an_old_name_acts_as_the_new_one(scheme: Keys, old: Keys, new: Keys) -> None:
    first = [{name: values[0] for name, values in given.items()} for given in (old, new)]
    for was, now in (first, (old, new)):
        assert ran(scheme, was) == (ran(scheme, now)[0], len(old))
    line = str(refusal("spec", spec(scheme=[{**scheme, "params": first[0] | first[1]}])))
    assert re.match(f'scheme.0..params.{next(iter(old))}: ".*" is the old name of "{next(iter(new))}"', line)


def test_names_of_other_schemes_stay() -> None:
    others = {"cubic": {"queue": "fifo"}, "dgd": {"window": 3}, "dctcp": {"probe": False}, "ideal": {"acks": True}}
    assert all(ran({"name": name, "policy": FAIR}, given)[1] == 0 for name, given in others.items())


@pytest.mark.parametrize(("seeds", "many"), [(2, 2), (2.0, 2), ([4.0, 7], 2), ([3], 1)])
def test_a_whole_number_counts_however_it_is_written(seeds: Any, many: int) -> None:
    assert len(json.loads(runs.load(spec(run={"duration": "1ms", "seeds": seeds})).trials())) == many


def test_flows_are_named_by_whole_numbers_however_written() -> None:
    assert refusal("spec", spec(measure={"packets": {"flows": [1.0]}})) is None


@pytest.mark.parametrize("given", [{"alpha_rate": 0}, {"alpha_gbps": 0}, {"alpha_rate": "1Gbps", "beta_rate": 0}])
def test_a_rate_of_zero_is_the_default_that_is_documented(given: Keys) -> None:
    assert refusal("spec", spec(**params("soze", **given))) is None
