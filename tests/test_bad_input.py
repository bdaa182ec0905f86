"""Every unusable input ends with 2 and one line that names file, place, fault and mend; never with a traceback."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from conftest import Ended, Subak


def case(**changes: Any) -> dict[str, Any]:
    """A good case of two links and one flow, with parts replaced."""
    good = {
        "network": {"links": [{"id": "a", "capacity": "10Gbps"}, {"id": "b", "capacity": 5e9}]},
        "flows": [{"id": "f", "path": ["a", "b"]}],
        "policy": {"kind": "max-min"},
    }
    return deepcopy(good) | changes


def links(**changes: Any) -> dict[str, Any]:
    return case(network={"links": [{"id": "a", "capacity": "10Gbps"} | changes, {"id": "b", "capacity": 5e9}]})


def flow(**changes: Any) -> dict[str, Any]:
    return case(flows=[{"id": "f", "path": ["a", "b"]} | changes])


TWO_ISLANDS = {
    "links": [
        {"id": "x", "from": "A", "to": "B", "capacity": 1e9},
        {"id": "y", "from": "C", "to": "D", "capacity": 1e9},
    ]
}

# name: (the case, what the line must name)
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown key": (case(polcy={}), ["polcy", "policy"]),
    "unknown key of a flow": (flow(wieght=2), ["flows[0]", "wieght", "weight"]),
    "unknown unit": (links(capacity="10Gbpt"), ["network.links[0].capacity", "10Gbpt", "Gbps"]),
    "bytes for bits": (links(capacity="10GB"), ["network.links[0].capacity", "10GB"]),
    "zero capacity": (links(capacity=0), ["network.links[0].capacity", "0"]),
    "negative capacity": (links(capacity=-1), ["network.links[0].capacity", "-1"]),
    "infinite capacity": (links(capacity="inf"), ["network.links[0].capacity", "inf"]),
    "NaN capacity": (links(capacity="NaN"), ["network.links[0].capacity", "NaN"]),
    "negative weight": (flow(weight=-1), ["flows[0].weight", "-1"]),
    "zero weight": (flow(weight=0), ["flows[0].weight", "0"]),
    "negative demand": (flow(demand=-5), ["flows[0].demand", "-5"]),
    "unknown link": (flow(path=["a", "c"]), ["flows[0].path[1]", "c"]),
    "a link twice": (flow(path=["a", "b", "a"]), ["flows[0].path[2]", "a", "twice"]),
    "an empty path": (flow(path=[]), ["flows[0].path"]),
    "no path": (case(flows=[{"id": "f"}]), ["flows[0]", "path"]),
    "two flows of one id": (case(flows=[{"id": "f", "path": ["a"]}, {"id": "f", "path": ["b"]}]), ["flows[1]", "f"]),
    "two links of one id": (
        case(network={"links": [{"id": "a", "capacity": 1e9}, {"id": "a", "capacity": 1e9}]}),
        ["network.links[1]", "a"],
    ),
    "a disconnected pair": (
        case(network=TWO_ISLANDS, flows=[{"id": "f", "src": "A", "dst": "D"}]),
        ["flows[0]", "A", "D"],
    ),
    "an unknown host": (case(network=TWO_ISLANDS, flows=[{"id": "f", "src": "A", "dst": "Q"}]), ["flows[0].dst", "Q"]),
    "an unknown policy": (case(policy={"kind": "max-mni"}), ["policy", "max-mni", "max-min"]),
    "an unknown generator": (case(network={"kind": "leaf-spin"}), ["network", "leaf-spin", "leaf-spine"]),
    "a missing network file": (case(network={"file": "nowhere.json"}), ["network.file", "nowhere.json"]),
    "a string for a list": (case(flows="f"), ["flows"]),
    "a number for a string": (case(flows=[{"id": 7, "path": ["a"]}]), ["flows[0].id"]),
}


def refused(ended: Ended, file: str, named: list[str]) -> None:
    assert ended.code == 2, ended
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert "panicked" not in ended.err
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.startswith(f"subak: {file}: "), ended.err
    assert "; " in ended.err, "it names no mend"
    for word in named:
        assert word in ended.err, (word, ended.err)


@pytest.mark.parametrize("name", CASES)
def test_case(subak: Subak, tmp_path: Path, name: str) -> None:
    given, named = CASES[name]
    path = tmp_path / "case.json"
    path.write_text(json.dumps(given))
    refused(subak("solve", path), str(path), named)


UNREADABLE: dict[str, bytes] = {
    "empty": b"",
    "broken JSON": b'{"network": {"links": [',
    "broken TOML": b"[network\nlinks = 3",
    "a bare NaN": b'{"network": {"links": [{"id": "a", "capacity": NaN}]}, "flows": [], "policy": {"kind": "max-min"}}',
    "a number too large": b'{"network": {"links": [{"id": "a", "capacity": 1e999}]}, "flows": []}',
    "binary": bytes(range(256)) * 40,
    "10 MB of nonsense": b"lorem ipsum {[ dolor " * 500_000,
    "10 MB of zeros": b"\0" * 10_000_000,
    "nested arrays": b"[" * 200_000,
    "nested objects": b'{"network":' * 200_000,
    "nested inside a case": b'{"network": {"links": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}",
    "a repeated key": b'{"network": {"links": []}, "network": {"links": []}, "flows": []}',
}


@pytest.mark.parametrize("suffix", [".json", ".toml"])
@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_case(subak: Subak, tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"case{suffix}"
    path.write_bytes(UNREADABLE[name])
    refused(subak("solve", path), str(path), [])


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_standard_input(subak: Subak, name: str) -> None:
    refused(subak("solve", "-", given=UNREADABLE[name]), "<stdin>", [])


def test_nested_toml(subak: Subak, tmp_path: Path) -> None:
    for text in ("a = " + "[" * 200_000, "[" + ".".join("a" * 200_000) + "]", "a = " + "{a = " * 200_000):
        path = tmp_path / "case.toml"
        path.write_text(text)
        refused(subak("solve", path), str(path), [])


@pytest.mark.parametrize("command", [["solve"], ["run", "--out", "out"]])
def test_no_file(subak: Subak, tmp_path: Path, command: list[str]) -> None:
    name, *options = command
    refused(subak(name, "nowhere.toml", *options, cwd=tmp_path), "nowhere.toml", ["no such file"])
    (tmp_path / "folder").mkdir()
    refused(subak(name, "folder", *options, cwd=tmp_path), "folder", ["directory"])
    refused(subak(name, "/dev/zero", *options, cwd=tmp_path), "/dev/zero", ["not a file"])


def test_unknown_solver(subak: Subak, tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case()))
    ended = subak("solve", path, "--solver", "magic")
    assert ended.code == 2
    assert "magic" in ended.err
    assert "clarabel" in ended.err


def test_error_as_json(subak: Subak, tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(links(capacity=0)))
    ended = subak("solve", path, "--json")
    assert (ended.code, ended.out) == (2, "")
    said = json.loads(ended.err)
    assert said["file"] == str(path)
    assert said["place"] == "network.links[0].capacity"
    assert said["what"]
    assert said["mend"]


def test_empty_case(subak: Subak) -> None:
    ended = subak("solve", "-", "--json", given=b'{"network": {"links": []}, "flows": []}')
    assert ended.code == 0, ended
    assert ended.json["flows"] == []
    assert ended.json["links"] == []
