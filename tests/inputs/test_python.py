"""A typical Python session: graphs, files and results of other tools, to compared runs, in a few lines."""

from __future__ import annotations

import ast
import datetime
import decimal
import json
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import subak
from conftest import ROOT, Subak
from subak.runs import load

SPEC: dict[str, Any] = {
    "name": "small",
    "network": {"kind": "star", "hosts": 4},
    "workload": {"kind": "poisson", "sizes": "web-search", "load": [0.3, 0.6]},
    "scheme": [{"name": "dctcp"}, {"name": "ideal"}],
    "run": {"duration": "2ms", "seeds": 3},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> subak.Results:
    return subak.run(SPEC, tmp_path_factory.mktemp("small") / "out")


def test_the_page_runs_and_its_runs_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), known)
    whole = [block for block in blocks if "subak.report(" in block]
    assert len(whole) == 3, "networkx, CSV, HPCC"
    assert all(len(ast.parse(block).body) < 10 for block in whole)
    for name, schemes in (("networkx", 6), ("csv", 2), ("hpcc", 3)):
        assert len(subak.Results(f"out/{name}").summary()["rows"]) == schemes
        assert (tmp_path / f"out/{name}.html").read_text().startswith("<!doctype html>")


def test_graphs_there_and_back() -> None:
    graph = nx.MultiGraph()
    graph.add_node("s", kind="switch")
    graph.add_edge("a", "s", capacity="10Gbps", delay="2us")
    graph.add_edge("a", "s", buffer=1000)
    graph.add_edge(7, "s")
    network = subak.Network.from_networkx(graph, capacity=1e9, delay=1e-3)
    links = pa.table(network.links).to_pylist()
    assert [(k["id"], k["capacity_bps"], k["delay_ns"]) for k in links[1::2]] == [
        ("a->s", 1e10, 2000),
        ("a->s#1", 1e9, 1_000_000),
        ("7->s", 1e9, 1_000_000),
    ]
    assert network.hosts == ["a", "7"]
    back = network.to_networkx()
    again = subak.Network.from_networkx(back)
    assert pa.table(again.links).sort_by("id").equals(pa.table(network.links).sort_by("id"))
    assert back.nodes["s"] == {"kind": "switch"}
    with pytest.raises(subak.InputError, match=r"edges|links.*capacity"):
        subak.Network.from_networkx(nx.path_graph(3))
    named = nx.Graph()
    named.add_edge("a", "b", Capacity="1Gbps")
    for other in ("Capacity", "bw", "bandwidth", "rate", "cap"):
        named.edges["a", "b"].clear()
        named.edges["a", "b"][other] = "1Gbps"
        with pytest.raises(subak.InputError, match='did you mean "capacity"'):
            subak.Network.from_networkx(named, capacity="100Gbps")
    with pytest.raises(subak.InputError, match='unknown kind of node "router"'):
        subak.Network.from_networkx(_with_kind("router"), capacity=1)


def _with_kind(kind: str) -> nx.Graph:
    graph = nx.Graph([("a", "b")])
    graph.nodes["a"]["kind"] = kind
    return graph


def test_speeds_of_the_topology_zoo_in_a_networkx_graph() -> None:
    zoo = nx.Graph()
    zoo.add_edge("a", "b", LinkSpeedRaw=1e9, LinkNote="leased")
    zoo.add_edge("b", "c", LinkLabel="2x10Gb/s")
    zoo.add_edge("c", "a", LinkLabel="dark fibre")
    with pytest.warns(subak.InputWarning) as said:
        network = subak.Network.from_networkx(zoo, capacity="5Gbps", hosts=["a", "b"])
    speeds = dict(zip(*(pa.table(network.links)[name].to_pylist() for name in ("id", "capacity_bps")), strict=True))
    assert (speeds["a->b"], speeds["c->b"], speeds["c->a"]) == (1e9, 20e9, 5e9)
    assert network.hosts == ["a", "b"]
    text = "\n".join(str(warning.message) for warning in said)
    assert "1 of 3 edges tell no speed" in text
    assert '"LinkNote"' in text
    assert network.warnings == text.split("\n")
    zoo.edges["a", "b"]["LinkLabel"] = "1-20Gbps"
    with pytest.raises(subak.InputError, match="two speeds"):
        subak.Network.from_networkx(zoo, capacity="5Gbps")


def test_a_pair_without_a_path_has_rate_0_and_says_why() -> None:
    links = [("a", "b", "4Gbps"), ("c", "d", "4Gbps"), ("b", "c", 0)]
    graph = nx.Graph()
    for a, b, capacity in links:
        graph.add_edge(a, b, capacity=capacity)
    with pytest.warns(subak.InputWarning, match="capacity 0"):
        network = subak.Network.from_networkx(graph)
    flows = [{"src": "a", "dst": "b"}, {"src": "a", "dst": "d"}, {"src": "d", "dst": "c"}]
    answer = subak.solve(network, flows=flows)
    rows = [(row["id"], row["rate_bps"], row["status"], row["paths"]) for row in answer]
    assert rows == [("0", 4e9, None, [["a->b"]]), ("1", 0.0, "no-path", []), ("2", 4e9, None, [["d->c"]])]
    assert answer.status == "optimal"
    assert "1 of 3 flows cannot send" in "\n".join(answer.warnings)
    # The same flows in columns.
    table = {"src": ["a", "a", "d"], "dst": ["b", "d", "c"]}
    assert [
        (row["id"], row["rate_bps"], row["status"], row["paths"]) for row in subak.solve(network, flows=table)
    ] == rows


def test_nodes_and_links_without_names_of_their_own_are_refused() -> None:
    with pytest.raises(subak.InputError, match="one name"):
        subak.Network.from_networkx(nx.Graph([(1, "1")]), capacity=1)
    loose = subak.Network.from_links([{"id": "a", "capacity": 1}])
    with pytest.raises(subak.InputError, match="where it leads"):
        loose.to_networkx()


def test_networks_from_the_zoo(tmp_path: Path) -> None:
    graph = nx.Graph()
    graph.add_edge("x", "y", LinkSpeedRaw=1e10, LinkLabel="10 Gbps")
    graph.add_edge("y", "z")
    nx.write_graphml(graph, tmp_path / "zoo.graphml")
    network = subak.Network.from_file(tmp_path / "zoo.graphml", capacity="1Gbps", delay="1ms")
    assert pa.table(network.links)["capacity_bps"].to_pylist() == [1e10, 1e10, 1e9, 1e9]
    with pytest.raises(subak.InputError, match="beside the file"):
        subak.Network.from_file(tmp_path / "zoo.graphml")
    nx.write_gml(graph, tmp_path / "zoo.gml")
    same = subak.Network.from_file(tmp_path / "zoo.gml", capacity="1Gbps", delay="1ms")
    assert pa.table(same.links)["capacity_bps"].to_pylist() == [1e10, 1e10, 1e9, 1e9]


def test_kinds_of_file_are_named(subak: Subak, tmp_path: Path) -> None:
    for name in ("case.gml", "case.csv", "case.yaml"):
        (tmp_path / name).write_text("graph [\n]\n")
        for command in (("solve", tmp_path / name), ("run", tmp_path / name, "--out", tmp_path / "out")):
            ended = subak(*command)
            assert ended.code == 2, ended
            assert {"gml": "GML", "csv": "CSV", "yaml": "YAML"}[name[5:]] in ended.err


def test_flows_of_a_matrix() -> None:
    network = subak.Network.generate("star", hosts=4)
    answer = subak.solve(network, flows={"file": str(ROOT / "examples/matrix.csv"), "unit": "Gbps"})
    rates = dict(zip(*(pa.table(answer.flows)[c].to_pylist() for c in ("id", "rate_bps")), strict=True))
    assert len(rates) == 10
    assert rates["h3->h0"] == pytest.approx(1e9)
    assert answer.status == "optimal"
    with pytest.raises(subak.InputError, match="none"):
        subak.solve(network, flows={"file": "none.csv"})


def test_rounds() -> None:
    case = ROOT / "examples/cases/chain.toml"
    from_file = subak.converge(case, "s-perc")
    assert from_file["converged"]
    table = tomllib.loads(case.read_text())
    assert subak.converge(table, "s-perc")["flows"] == from_file["flows"]
    network = subak.Network.from_links(table["network"]["links"])
    assert subak.converge(network, "s-perc", flows=table["flows"])["flows"] == from_file["flows"]
    with pytest.raises(subak.InputError, match="no-such"):
        subak.converge(case, "no-such")


def test_differences(tmp_path: Path) -> None:
    longer = SPEC | {"run": {"duration": "20ms", "seeds": 3}}
    results = subak.run(longer, tmp_path / "results")
    other = subak.run(longer | {"network": {"kind": "star", "hosts": 4, "rate": "5Gbps"}}, tmp_path / "other")
    found = subak.diff(results, other)
    assert not found.identical
    rows = {(r["scheme"], r["sweep_point"], r["metric"]): r for r in found.to_pylist()}
    waits = rows["dctcp", "load 0.6", "wait_mean_ns"]
    assert waits["equal_seeds"] == 3
    assert waits["difference"] == pytest.approx(waits["second"] - waits["first"])
    assert 0 < waits["p_value"] <= 1
    # The paired t-test, computed by hand.
    values = [_mean(run, "dctcp", 0.6, seed, "fct_ns") for run in (other, results) for seed in (1, 2, 3)]
    apart = [b - a for a, b in zip(values[3:], values[:3], strict=True)]
    assert rows["dctcp", "load 0.6", "fct_mean_ns"]["difference"] == pytest.approx(sum(apart) / 3)
    assert found.table().num_rows == len(rows)
    assert "<table" in found._repr_html_()
    assert subak.diff(results, results).identical


def _mean(run: subak.Results, scheme: str, load: float, seed: int, column: str) -> float:
    frame = run.table("flow", ["scheme", "load", "seed", column]).to_pandas()
    mine = frame[(frame["scheme"] == scheme) & (frame["load"] == load) & (frame["seed"] == seed)]
    return float(mine[column].mean())


def test_what_notebooks_show(results: subak.Results) -> None:
    assert "ideal (max-min)" in results._repr_html_()
    network = subak.Network.generate("star", hosts=20)
    assert "and 28 more" in network._repr_html_()
    answer = subak.solve(network, flows=[{"id": "<f>", "src": "h0", "dst": "h1"}])
    assert "&lt;f&gt;" in answer._repr_html_()
    assert "optimal" in answer._repr_html_()


def test_plots(results: subak.Results, tmp_path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    axes = results.plot("slowdown_p99")
    assert axes.get_xlabel() == "load"
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["dctcp", "ideal (max-min)"]
    single = subak.run(SPEC | {"workload": {**SPEC["workload"], "load": 0.3}}, tmp_path / "single")
    assert "size" in single.plot().get_xlabel()
    assert single.plot("utilization").get_ylabel() == "Utilization"
    with pytest.raises(subak.InputError, match="no metric"):
        results.plot("speed")


def test_a_run_that_grows_keeps_its_trials(tmp_path: Path) -> None:
    subak.run(SPEC, tmp_path / "out")
    grown = SPEC | {
        "workload": {**SPEC["workload"], "load": [0.3, 0.45, 0.6]},
        "scheme": [{"name": "s-perc"}, *SPEC["scheme"]],
        "run": {"duration": "2ms", "seeds": 4},
    }
    loaded = load(grown)
    outcome = json.loads(loaded.run(tmp_path / "out", 2, None, None))
    assert (outcome["trials"], outcome["ran"], outcome["merged"]) == (36, 24, True)
    subak.run(grown, tmp_path / "fresh")
    assert (tmp_path / "out/results.parquet").read_bytes() == (tmp_path / "fresh/results.parquet").read_bytes()


def test_jitter_moves_each_start_as_the_seed_draws_it(tmp_path: Path) -> None:
    flows = [{"src": f"h{k}", "dst": "h3", "size": "10kB", "start": "1ms"} for k in range(3)]

    def starts(jitter: str) -> list[tuple[int, int]]:
        workload = {"kind": "steps", "jitter": jitter, "flows": flows}
        spec = {**SPEC, "workload": workload, "scheme": [{"name": "ideal"}, {"name": "dctcp"}]}
        spec["run"] = {"duration": "5ms", "seeds": [1, 2]}
        table = subak.run(spec, tmp_path / jitter).table("flow", ["scheme", "seed", "start_ns"]).to_pylist()
        by_scheme = [[(r["seed"], r["start_ns"]) for r in table if r["scheme"] == name] for name in ("ideal", "dctcp")]
        assert by_scheme[0] == by_scheme[1], "every scheme sees the same starts"
        return by_scheme[0]

    assert {start for _, start in starts("0us")} == {1_000_000}
    moved = [start for _, start in starts("10us")]
    assert len(set(moved)) == 6
    assert all(1_000_000 <= start < 1_010_000 for start in moved)


def test_schemas(subak: Subak) -> None:
    schema = subak("schema", "spec").json
    jsonschema.Draft202012Validator.check_schema(schema)
    specs = jsonschema.Draft202012Validator(schema)
    seen = [*ROOT.glob("examples/*.toml"), *ROOT.glob("python/subak/papers/**/spec*.toml")]
    assert len(seen) > 20
    for path in seen:
        specs.validate(tomllib.loads(path.read_text()))
    good = tomllib.loads((ROOT / "examples/demo.toml").read_text())
    for change in (
        {"netwrok": {}},
        {"network": {"kind": "leaf-spine", "leafs": 3}},
        {"network": good["network"] | {"nic": "turn"}},
        {"workload": {"kind": "poison"}},
        {"workload": {"kind": "poisson", "sizes": "web-search", "load": 3}},
        {"scheme": [{"name": "s-perc", "params": {"hedroom": 1}}]},
        {"policy": {"kind": "alpha-fair"}},
        {"run": {}},
    ):
        assert not specs.is_valid(good | change), change
    cases = jsonschema.Draft202012Validator(subak("schema", "case").json)
    for path in ROOT.glob("examples/cases/*"):
        text = path.read_text()
        cases.validate(json.loads(text) if path.suffix == ".json" else tomllib.loads(text))
    assert not cases.is_valid({"flows": [{"src": "a", "dest": "b"}]})
    incasts = {"senders": 16, "size": "64KB", "load": 0.05}
    for more in ({"incasts": incasts}, {"load": [0.2, 0.4]}, {"sizes": [[1000, 0.5], ["1MB", 1]]}):
        assert specs.is_valid(good | {"workload": good["workload"] | more}), more
    for more in ({"incasts": incasts | {"sender": 1}}, {"subflows": 65}, {"weights": {"uniform": [1]}}):
        assert not specs.is_valid(good | {"workload": good["workload"] | more}), more
    swept = good | {"network": good["network"] | {"nic": ["queue", "round-robin"]}}
    assert specs.is_valid(swept)
    assert not cases.is_valid({"network": good["network"] | {"nic": "round-robin"}, "flows": []})
    assert subak("schema", "network").code == 2


def test_germany50() -> None:
    """The planner's example has bottlenecks, and doubling one of them raises some rates and their sum."""
    done = subprocess.run([sys.executable, ROOT / "examples/germany50.py"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert 'InputWarning: attributes of edges that are not read: "dist", "ecmp_bwd", "ecmp_fwd"' in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("50 cities, 88 links, 1324 demands")
    found = {line.split()[0]: [float(n) for n in re.findall(r"\d+\.\d+", line)] for line in lines[1:3]}
    assert found["max-min"][0] < found["proportional"][0], "max-min gives up throughput"
    assert found["max-min"][1] > found["proportional"][1], "for the least"
    gains = [float(re.search(r"([-+][\d.]+) Gb/s", line)[1]) for line in lines if "in all" in line]
    assert len(gains) == 5
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0


@pytest.mark.parametrize("given", [{"threads": "2"}, {"threads": 0}, {"threads": 256}, {"jobs": 1.5}, {"jobs": True}])
def test_counts_that_are_none_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(subak.InputError) as raised:
        subak.run(SPEC, tmp_path, **given)
    assert raised.value.place in given
    assert not list(tmp_path.iterdir())


def test_nodes_that_become_hosts_are_told() -> None:
    star = nx.star_graph(4)
    with pytest.warns(
        subak.InputWarning, match="4 of 5 nodes send and receive, those with one neighbour.*attribute kind"
    ):
        network = subak.Network.from_networkx(star, capacity="10Gbps")
    assert network.hosts == ["1", "2", "3", "4"]
    star.add_edge(1, 2)
    star.nodes[3]["kind"] = "host"
    with pytest.warns(
        subak.InputWarning, match="4 of 5 nodes have no kind: 1 of them, with one neighbour, count as hosts"
    ):
        assert subak.Network.from_networkx(star, capacity="10Gbps").hosts == ["3", "4"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(subak.Network.from_networkx(nx.cycle_graph(3), capacity=1e9).hosts) == 3
        assert subak.Network.from_networkx(star, capacity=1e9, hosts="leaves").hosts == ["3", "4"]
        nx.set_node_attributes(star, "switch", "kind")
        star.nodes[2]["kind"] = "host"
        assert subak.Network.from_networkx(star, capacity=1e9).hosts == ["2"]
    with pytest.raises(subak.InputError, match="hosts: no node has one neighbour"):
        subak.Network.from_networkx(nx.cycle_graph(3), capacity=1e9, hosts="leaves")


def _half_down() -> subak.Network:
    links = [
        {"id": "x", "from": "a", "to": "b", "capacity": 0, "delay": "1us", "buffer": 9000},
        {"id": "y", "from": "a", "to": "b", "capacity": "2Gbps"},
        {"id": "z", "from": "b", "to": "a", "capacity": "1Gbps"},
    ]
    return subak.Network.from_links(links)


def test_links_of_capacity_0_are_in_every_table_of_links() -> None:
    network = _half_down()
    rows = pa.table(network.links).to_pylist()
    assert [row["id"] for row in rows] == ["y", "z", "x"]
    assert rows[2] == {"id": "x", "from": "a", "to": "b", "capacity_bps": 0, "delay_ns": 1000, "buffer_bytes": 9000}
    flows = [{"path": ["y"]}, {"path": ["x"]}]
    answer = subak.solve(network, flows=flows)
    assert [flow["status"] for flow in answer] == [None, "link-down"]
    row = pa.table(answer.links).to_pylist()[2]
    assert row == {"id": "x", "capacity_bps": 0, "load_bps": 0, "utilization": 0, "price": None}
    told = json.loads(answer.to_json())["links"]
    assert told[2] == {"id": "x", "load": 0, "utilization": 0, "price": None}
    assert len(told) == 3
    found = pa.table(subak.structure(network, flows=flows).links).to_pylist()
    assert found[2] == {"id": "x", "capacity_bps": 0, "removed_in": None, "freeze_iteration": None, "level_bps": None}
    with pytest.raises(subak.InputError, match='the link "x" has the capacity 0'):
        network.link_numbers(["x"])
    with pytest.raises(subak.InputError, match='a second link has the id "x"'):
        network.add_link("x", "1Gbps", from_="a", to="b")
    # The tables that are made of it have the link too.
    with pytest.warns(subak.InputWarning, match="1 links have the capacity 0"):
        again = subak.Network.from_networkx(network.to_networkx())
    assert pa.table(again.links).select(["id", "capacity_bps"]) == pa.table(network.links).select(
        ["id", "capacity_bps"]
    )
    assert subak.converge(network, "s-perc", flows=flows)["converged"]


def test_a_simulation_keeps_the_ids_of_links() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulation = subak.Simulation(_half_down(), "ideal")
    assert pa.table(simulation.links).column(0).to_pylist()[:2] == ["y", "z"]
    assert simulation.add(path=["y"], size="1KB") == 0


MS = 1_000_000


@pytest.mark.parametrize(
    "half",
    [
        datetime.timedelta(microseconds=500),
        np.timedelta64(500, "us"),
        np.timedelta64(MS // 2, "ns"),
        pd.Timedelta("500us"),
        "500us",
        0.0005,
        decimal.Decimal("0.0005"),
    ],
)
def test_differences_of_times_have_their_unit(half: Any, tmp_path: Path) -> None:
    network = subak.Network.generate("star", hosts=3)
    simulation = subak.Simulation(network, "ideal")
    simulation.add("h0", "h1", size=1000, start=half)
    frame = pd.DataFrame({"src": ["h0", "h1"], "dst": "h2", "size": 1000, "start": [half, half], "id": ["a", "b"]})
    simulation.add_all(frame)
    assert pa.table(simulation.flows)["start_ns"].to_pylist() == [MS // 2] * 3
    deadlines = [{"src": "h0", "dst": "h1", "size": 1000, "deadline": half}]
    for flows in (deadlines, pd.DataFrame(deadlines)):
        answer = subak.solve(network, flows=flows, policy="edf")
        assert answer.status == "optimal"
    pd.DataFrame(deadlines).to_parquet(tmp_path / "flows.parquet")
    assert subak.solve(network, flows={"file": str(tmp_path / "flows.parquet")}, policy="edf").status == "optimal"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.timedelta64(5), "no unit"),
        (np.timedelta64("NaT", "ns"), "missing"),
        (pd.NaT, "missing"),
        (datetime.datetime(2026, 1, 1), "date"),
        (np.datetime64("2026"), "date"),
        ({1, 2}, "set is not a value"),
        (-datetime.timedelta(seconds=1), "-1000000000ns"),
    ],
)
def test_what_is_no_time_is_refused_with_its_place(value: Any, said: str) -> None:
    network = subak.Network.generate("star", hosts=3)
    with pytest.raises(subak.InputError, match=said) as raised:
        subak.solve(network, flows=[{"src": "h0", "dst": "h1", "size": 1, "deadline": value}], policy="edf")
    assert raised.value.place == "flows[0].deadline", raised.value


def test_dates_in_a_frame_are_refused() -> None:
    frame = pd.DataFrame({"src": ["h0"], "dst": "h1", "size": 1, "deadline": pd.to_datetime(["2026-01-01"])})
    with pytest.raises(subak.InputError, match=r"flows.deadline: the column holds dates \(timestamp"):
        subak.solve(subak.Network.generate("star", hosts=3), flows=frame, policy="edf")


def test_a_structure_has_every_flow_and_says_what_it_does_not_use() -> None:
    flows = [{"id": "f", "path": ["x"]}, {"id": "g", "path": ["y"], "size": 5}]
    found = subak.structure(_half_down(), flows=flows)
    assert pa.table(found.flows).to_pylist() == [
        {"id": "f", "rate_bps": 0, "removed_in": None},
        {"id": "g", "rate_bps": 2e9, "removed_in": 1},
    ]
    assert any("have a size, which the policy" in text for text in found.warnings)
    assert any("1 of 2 flows cannot send" in text for text in found.warnings)


def test_what_an_iteration_does_not_use_is_refused() -> None:
    network, times = subak.Network.generate("star", hosts=3), np.array([5], "timedelta64[ns]")
    ned = subak.Ned(network)
    for keys, said in [
        ({"size_bytes": 5}, 'size_bytes: the policy "alpha-fair" does not use it'),
        ({"deadline_s": 5}, 'deadline_s: the policy "alpha-fair" does not use it'),
        ({"weight": times}, "weight: it holds times or dates"),
        ({"weight": -1}, "weight: it is -1"),
    ]:
        with pytest.raises(subak.InputError, match=said):
            ned.add([["h0->switch0"]], **keys)
    with pytest.raises(subak.InputError, match="weight: it holds times or dates"):
        subak.solve(network, flows=subak.Rows([0, 1], [0], weight=times))


def test_an_open_simulation_says_which_parameters_are_not_read() -> None:
    network = subak.Network.generate("star", hosts=3)
    with pytest.warns(subak.InputWarning, match="leaves out params.division_kb"):
        subak.Simulation(network, "s-perc", backend="fluid", params={"division_kb": 4})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subak.Simulation(network, "s-perc", backend="fluid", params={"headroom": 0.1})


def test_kinds_of_other_types_are_named() -> None:
    graph = nx.Graph([("a", "b", {"capacity": 1e9})])
    for value, said in ((1, "a node's kind is a string, not 1"), (np.int64(2), "not 2")):
        graph.nodes["a"]["kind"] = value
        with pytest.raises(subak.InputError, match=said):
            subak.Network.from_networkx(graph)
    del graph.nodes["a"]["kind"]
    graph.nodes["a"]["host"] = np.bool_(True)
    with pytest.raises(subak.InputError, match='did you mean "kind"'):
        subak.Network.from_networkx(graph)


def test_an_index_of_text_names_links() -> None:
    links = pd.DataFrame({"from": ["a", "b"], "to": ["b", "a"], "capacity": 1e9}, index=["x", "y"])
    assert pa.table(subak.Network.from_links(links).links)["id"].to_pylist() == ["x", "y"]


def test_attributes_of_edges_that_are_called_as_ends_are_told() -> None:
    graph = nx.Graph([("a", "b", {"capacity": 1e9, "source": "x", "target": "y"})])
    with pytest.warns(subak.InputWarning, match='attributes of edges that are not read: "source", "target"'):
        network = subak.Network.from_networkx(graph, hosts="all")
    assert pa.table(network.links)["id"].to_pylist() == ["a->b", "b->a"]
