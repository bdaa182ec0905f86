"""Every invalid input ends with exit status 2 and one line with file, place, problem and hint; never with a
traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from conftest import COMMAND, ROOT, Ended, Subak


def case(**changes: Any) -> dict[str, Any]:
    """A valid case of two links and one flow, with some parts replaced."""
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

# Name: the case, and texts that the line must contain.
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown key": (case(polcy={}), ["polcy", "policy"]),
    "unknown key of a flow": (flow(wieght=2), ["flows[0]", "wieght", "weight"]),
    "unknown unit": (links(capacity="10Gbpt"), ["network.links[0].capacity", "10Gbpt", "Gbps"]),
    "bytes for bits": (links(capacity="10GB"), ["network.links[0].capacity", "10GB"]),
    "zero capacity": (links(capacity=0), ["flows[0].path", "a link of capacity 0"]),
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
    "a bandwidth function that falls": (
        flow(bandwidth_function=[[0, 0], [1, "5Gbps"], [2, "4Gbps"]]),
        ["flows[0].bandwidth_function[2]", "falls"],
    ),
    "a fair share that falls": (flow(bandwidth_function=[[0, 0], [2, 5], [1, 6]]), ["flows[0].bandwidth_function[2]"]),
    "a bandwidth function of one point": (
        flow(bandwidth_function=[[0, 0]]),
        ["flows[0].bandwidth_function", "two points"],
    ),
    "no bandwidth function": (
        case(policy={"kind": "bandwidth-function"}),
        ["flows[0].bandwidth_function", "bandwidth-function"],
    ),
    "negative alpha": (case(policy={"kind": "alpha-fair", "alpha": -1}), ["policy.alpha", "-1"]),
    "NaN alpha": (case(policy={"kind": "alpha-fair", "alpha": "NaN"}), ["policy.alpha", "NaN"]),
    "no alpha": (case(policy={"kind": "alpha-fair"}), ["policy.alpha", "proportional"]),
    "no size for fct": (case(policy={"kind": "fct"}), ["flows[0].size", "fct"]),
    "no size for srpt": (case(policy={"kind": "srpt"}), ["flows[0].size", "srpt"]),
    "no deadline for edf": (case(policy={"kind": "edf"}), ["flows[0].deadline", "edf"]),
    "epsilon of 1": (case(policy={"kind": "fct", "epsilon": 1}), ["policy.epsilon", "between 0 and 1"]),
    "pooled paths that are the same": (
        case(flows=[{"id": "f", "paths": [["a"], ["b"], ["a"]]}]),
        ["flows[0].paths[2]", "same"],
    ),
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
    assert "; " in ended.err, "it names no hint"
    for word in named:
        assert word in ended.err, (word, ended.err)


@pytest.mark.parametrize("name", CASES)
def test_case(subak: Subak, tmp_path: Path, name: str) -> None:
    given, named = CASES[name]
    path = tmp_path / "case.json"
    path.write_text(json.dumps(given))
    refused(subak("solve", path), str(path), named)


UNREADABLE: dict[str, bytes] = {
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


def test_empty_file(subak: Subak, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_bytes(b"")
    refused(subak("solve", tmp_path / "case.json"), str(tmp_path / "case.json"), [])
    (tmp_path / "case.toml").write_bytes(b"")  # An empty document in TOML: a case without flows.
    assert subak("solve", tmp_path / "case.toml").code == 0


def test_nested_toml(subak: Subak, tmp_path: Path) -> None:
    for text in ("a = " + "[" * 200_000, "[" + ".".join("a" * 200_000) + "]", "a = " + "{a = " * 200_000):
        path = tmp_path / "case.toml"
        path.write_text(text)
        refused(subak("solve", path), str(path), [])


@pytest.mark.parametrize("command", [["solve"], ["run", "--out", "out"]])
def test_no_file(subak: Subak, tmp_path: Path, command: list[str]) -> None:
    name, *options = command
    refused(subak(name, "nowhere.toml", *options, cwd=tmp_path), "nowhere.toml", ["o such file"])
    (tmp_path / "folder").mkdir()
    refused(subak(name, "folder", *options, cwd=tmp_path), "folder", [" is "])
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
    path.write_text(json.dumps(links(capacity=-1)))
    ended = subak("solve", path, "--json")
    assert (ended.code, ended.out) == (2, "")
    said = json.loads(ended.err)
    assert said["file"] == str(path)
    assert said["place"] == "network.links[0].capacity"
    assert said["what"]
    assert said["hint"]


def test_empty_case(subak: Subak) -> None:
    ended = subak("solve", "-", "--json", given=b'{"network": {"links": []}, "flows": []}')
    assert ended.code == 0, ended
    assert ended.json["flows"] == []
    assert ended.json["links"] == []


def spec(**changes: Any) -> dict[str, Any]:
    """A valid spec, with some sections replaced."""
    good = {
        "network": {"kind": "star", "hosts": 4},
        "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.5},
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "1ms"},
    }
    return deepcopy(good) | changes


def poisson(**changes: Any) -> dict[str, Any]:
    return spec(workload={"kind": "poisson", "sizes": "web-search", "load": 0.5} | changes)


def steps(*flows: dict[str, Any]) -> dict[str, Any]:
    return spec(workload={"kind": "steps", "flows": list(flows)})


def jobs(job: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    flows = [{"id": "a", "src": "h0", "dst": "t", "size": 1000}, {"id": "b", "src": "t", "dst": "h1", "size": 1000}]
    one = {"id": "j", "flows": flows, "tasks": [{"id": "t", "host": "h2"}]} | (job or {})
    return spec(workload={"kind": "jobs", "jobs": [one]} | changes)


def closed(**changes: Any) -> dict[str, Any]:
    return spec(workload={"kind": "closed", "sizes": "fixed", "size": "10kB"} | changes)


SPECS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown section": (spec(workloads={}), ["workloads"]),
    "unknown key": (poisson(laod=0.5), ["workload.laod", "load"]),
    "unknown key of a run": (spec(run={"duration": "1ms", "sedes": 2}), ["run.sedes", "seeds"]),
    "unknown unit": (spec(run={"duration": "1mz"}), ["run.duration", "1mz"]),
    "load above 1": (poisson(load=1.2), ["workload.load", "1.2"]),
    "load above 1 in a sweep": (poisson(load=[0.5, 1.5]), ["workload.load[1]", "1.5"]),
    "no load": (poisson(load=0), ["workload.load"]),
    "negative load": (poisson(load=-0.5), ["workload.load", "-0.5"]),
    "an empty sweep": (poisson(load=[]), ["workload.load"]),
    "no duration": (spec(run={}), ["run.duration"]),
    "zero duration": (spec(run={"duration": 0}), ["run.duration"]),
    "negative duration": (spec(run={"duration": -1}), ["run.duration", "-1"]),
    "endless duration": (spec(run={"duration": "inf"}), ["run.duration", "inf"]),
    "NaN": (spec(run={"duration": "nan"}), ["run.duration", "nan"]),
    "no network": ({k: v for k, v in spec().items() if k != "network"}, ["network"]),
    "zero hosts": (spec(network={"kind": "star", "hosts": 0}), ["network.hosts", "0"]),
    "a network beyond memory": (spec(network={"kind": "star", "hosts": 10**12}), ["network"]),
    "no scheme": (spec(scheme=[]), ["scheme"]),
    "an unknown scheme": (spec(scheme=[{"name": "dctpc"}]), ["scheme[0].name", "dctpc", "dctcp"]),
    "an unknown parameter": (spec(scheme=[{"name": "dctcp", "params": {"kk": 1}}]), ["scheme[0].params.kk", "k"]),
    "a scheme twice": (spec(scheme=[{"name": "dctcp"}, {"name": "dctcp"}]), ["scheme", "dctcp"]),
    "an unknown workload": (spec(workload={"kind": "poison"}), ["workload.kind", "poison", "poisson"]),
    "unknown sizes": (poisson(sizes="web-serach"), ["workload.sizes", "web-serach", "web-search"]),
    "an unknown host": (steps({"src": "h0", "dst": "h9"}), ["workload.flows[0]", "h9"]),
    "a host to itself": (steps({"src": "h0", "dst": "h0"}), ["workload.flows[0]"]),
    "an unknown link": (steps({"path": ["h0->nowhere"]}), ["workload.flows[0]", "h0->nowhere"]),
    "a link twice": (
        spec(
            network={"links": [{"id": "a", "capacity": 1e9}]},
            workload={"kind": "steps", "flows": [{"path": ["a", "a"]}]},
        ),
        ["workload.flows[0]", "a"],
    ),
    "a disconnected pair": (
        spec(network=TWO_ISLANDS, workload={"kind": "steps", "flows": [{"src": "A", "dst": "D"}]}),
        ["workload.flows[0]", "A", "D"],
    ),
    "tasks in a circle": (jobs({"tasks": [{"id": "t", "after": ["b"]}]}), ["workload.jobs[0].", "circle"]),
    "a task of negative time": (
        jobs({"tasks": [{"id": "t", "time": "-1s"}]}),
        ["workload.jobs[0].tasks[0].time", "-1s"],
    ),
    "a task at no host": (jobs({"tasks": [{"id": "t", "host": "h9"}]}), ["workload.jobs[0].tasks[0].host", "h9"]),
    "a task that is not there": (jobs({"tasks": []}), ["workload.jobs[0].flows[0].dst", '"t"']),
    "a job without flows": (jobs({"flows": []}), ["workload.jobs[0].flows"]),
    "an unknown set of jobs": (jobs(jobs="tpcds"), ["workload.jobs", "tpcds", "tpch"]),
    "an unknown policy of weights": (jobs(policy="fair"), ["workload.policy", "fair", "even"]),
    "a policy's unknown key": (jobs(policy={"kind": "even", "ratio": 2}), ["workload.policy", "ratio"]),
    "a policy's ratio": (jobs(policy={"kind": "critical-path", "ratio": 0}), ["workload.policy.ratio", "0"]),
    "looks without a pause": (jobs(every=0), ["workload.every", "0"]),
    "clients without transfers": (closed(outstanding=0), ["workload.outstanding", "0"]),
    "clients at no host": (closed(hosts=["h0", "h9"]), ["workload.hosts[1]", "h9"]),
    "clients that send to themselves": (closed(hosts=["h0"], to=["h0"]), ["workload.to", "h0"]),
    "sizes of no file": (poisson(sizes={}), ["workload.sizes.file"]),
    "weights out of order": (poisson(weights={"uniform": [16, 1]}), ["workload.weights.uniform"]),
    "weights of no sort": (poisson(weights={"zipf": [1, 16]}), ["workload.weights.zipf", "uniform"]),
    "no connections": (poisson(connections=0), ["workload.connections", "0"]),
    "an unknown backend": (
        spec(scheme=[{"name": "s-perc", "backend": "fluff"}]),
        ["scheme[0].backend", "fluff", "fluid"],
    ),
    "a fluid without a pace": (
        spec(scheme=[{"name": "dctcp", "backend": "fluid"}]),
        ["scheme[0].backend", "dctcp", "how fast it settles"],
    ),
    "a centre without a place": (
        spec(
            policy={"kind": "alpha-fair", "alpha": 1},
            scheme=[{"optimizer": "ned-central", "transport": "paced"}],
        ),
        ["controller", "ned-central/paced"],
    ),
    "a seed twice": (spec(run={"duration": "1ms", "seeds": [1, 1]}), ["run.seeds"]),
    "an unknown schema": (spec(schema=2), ["schema", "2"]),
}


@pytest.mark.parametrize("name", SPECS)
def test_spec(subak: Subak, tmp_path: Path, name: str) -> None:
    given, named = SPECS[name]
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(given))
    refused(subak("run", path, "--out", tmp_path / "out"), str(path), named)
    assert not (tmp_path / "out").exists()


def test_known_keys_of_a_spec_are_named_once(subak: Subak, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec(nonsense=1)))
    ended = subak("run", path, "--out", tmp_path / "out")
    known = ended.err.split("known keys: ")[1].split("\n")[0].split(", ")
    assert {"policy", "run"} <= set(known), ended.err
    assert len(known) == len(set(known)), ended.err


def test_bad_line_of_sizes(subak: Subak, tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("size_bytes,probability\n1000,0.5\n2000,1.5\n")
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(poisson(sizes={"file": "sizes.csv"})))
    ended = subak("run", path, "--out", tmp_path / "out")
    assert ended.code == 2
    assert all(word in ended.err for word in ("sizes.csv", "line 3", "1.5"))


@pytest.mark.parametrize("suffix", [".json", ".toml"])
@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_spec(subak: Subak, tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"spec{suffix}"
    path.write_bytes(UNREADABLE[name])
    refused(subak("run", path, "--out", tmp_path / "out"), str(path), [])


def test_trial_that_is_not_there(subak: Subak, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec()))
    ended = subak("run", path, "--out", tmp_path / "out", "--trial", "1")
    assert ended.code == 2
    assert "trial" in ended.err
    assert subak("run", path, "--out", tmp_path / "out", "--trial", "-1").code == 2
    assert subak("run", path, "--out", tmp_path / "out", "--jobs", "0").code == 2


def test_out_that_is_in_use(subak: Subak, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec()))
    ended = subak("run", path, "--out", tmp_path)
    assert ended.code == 2
    assert str(tmp_path) in ended.err
    ended = subak("run", path, "--out", path)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    ended = subak("run", path)
    assert (ended.code, "--out" in ended.err) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command", ["solve CASE --json", "solve CASE", "schemes", "schema spec", "--version", "solve -h"]
)
def test_output_that_is_full(monkeypatch: pytest.MonkeyPatch, command: str, unbuffered: str) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    words = command.replace("CASE", str(ROOT / "examples/cases/two-flows.json")).split()
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "standard output" in done.stderr
    assert "write to a place that has room" in done.stderr


def test_names_that_are_not_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    folder = tmp_path / os.fsdecode(b"x\xff")
    folder.mkdir()
    (folder / "case.json").write_text(json.dumps(case()))
    (tmp_path / "spec.json").write_text(json.dumps(spec()))

    def run(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([COMMAND, *words], capture_output=True, timeout=60, cwd=tmp_path, check=False)

    # If such a name is usable, messages show it unchanged.
    ended = run("run", "spec.json", "--out", folder / "out")
    assert b"x\xff/out" in ended.stdout, ended.stderr
    for words in ("solve", folder / "case.json"), ("report", folder / "out"):
        ended = run(*words)
        said = ended.stderr.decode().splitlines()
        assert (ended.returncode, len(said)) == (2, 1), said
        assert r"x\xff/" in said[0]
        assert said[0].endswith("the name has bytes that are not UTF-8; rename the file")


def test_the_module_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "subak", "solve", "nothing.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (2, "subak: nothing.json: there is no such file; check the path\n")


def test_schemes_suggests_the_nearest_name(subak: Subak) -> None:
    ended = subak("schemes", "dctpc")
    assert ended.code == 2
    assert 'did you mean "dctcp"?' in ended.err
    assert "choose one of: ideal" in subak("schemes", "zzzz").err
