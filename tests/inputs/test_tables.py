"""Tables as input and output; paths of flows; ranking of link upgrades; progress of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import subak
from conftest import ROOT, Subak

COLUMNS: dict[str, list[Any]] = {
    "id": ["a", "b", "c"],
    "src": ["h0", "h1", "h2"],
    "dst": ["h9", "h9", "h9"],
    "weight": [1, 3, 1],
    "demand": ["1Gbps", None, None],
}
CASE = str(ROOT / "examples/cases/two-flows.json")
RATES = [1e9, 6.75e9, 2.25e9]
FORMS: list[Callable[[dict[str, list[Any]]], Any]] = [pd.DataFrame, pl.DataFrame, pa.table, dict]


@pytest.fixture(name="cli")
def _cli(request: pytest.FixtureRequest) -> Subak:
    """The command, under a name that differs from the package's."""
    return request.getfixturevalue("subak")


@pytest.fixture(scope="module")
def network() -> subak.Network:
    return subak.Network.generate("leaf-spine", leaves=4, spines=2, hosts_per_leaf=4, host_rate="10Gbps")


@pytest.mark.parametrize("form", FORMS)
def test_flows_come_as_any_table(network: subak.Network, form: Callable[[Any], Any]) -> None:
    answer = subak.solve(network, flows=form(COLUMNS))
    assert pa.table(answer.flows)["rate_bps"].to_pylist() == pytest.approx(RATES)
    assert pa.table(answer.flows)["id"].to_pylist() == ["a", "b", "c"]


def test_a_number_that_is_missing_is_left_out(network: subak.Network) -> None:
    flows = pd.DataFrame({**COLUMNS, "demand": [1e9, np.nan, np.nan], "weight": [np.nan, 3, 1.0]})
    assert subak.solve(network, flows=flows).to_numpy()["rate_bps"] == pytest.approx(RATES)


def test_an_unknown_column_is_named_once_with_those_that_there_are(network: subak.Network) -> None:
    flows = pd.DataFrame({"src": ["h0"] * 500, "dst": ["h9"] * 500, "wieght": 1.0, "colour": "red"})
    with pytest.raises(subak.InputError) as refused:
        subak.solve(network, flows=flows)
    said = str(refused.value)
    assert 'unknown columns "wieght", "colour"' in said
    assert "weight" in said.split(";")[1]
    assert said.count("\n") == 0


@pytest.mark.parametrize("columns", [{"src": ["h0", "h1"], "dst": ["h9"]}, {"src": [object()], "dst": ["h9"]}])
def test_what_is_no_table_is_refused(network: subak.Network, columns: dict[str, Any]) -> None:
    with pytest.raises(subak.InputError, match=r"flows: it is no table.*give columns"):
        subak.solve(network, flows=columns)


@pytest.mark.parametrize("form", FORMS)
def test_links_and_workloads_come_as_tables(tmp_path: Path, form: Callable[[Any], Any]) -> None:
    there = {"id": ["a", "b", "c", "d"], "from": [0, 1, 1, 2], "to": [1, 2, 0, 1], "capacity": [1e9, 2e9, 1e9, 2e9]}
    network = subak.Network.from_links(form(there))
    assert network.nodes == ["0", "1", "2"]
    flows = form({"src": [0, 0], "dst": [2, 2], "size_bytes": [30_000, 60_000], "start_ns": [0, 250_001]})
    spec = {
        "network": network,
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "5ms"},
    }
    rows = subak.run(spec, tmp_path / "out").to_pandas()
    assert rows["start_ns"].tolist() == [0, 250_001]
    assert rows["size_bytes"].tolist() == [30_000, 60_000]
    assert rows["path"].tolist() == ["a b"] * 2
    again = subak.run(spec, tmp_path / "out").to_polars()
    assert again["fct_ns"].to_list() == rows["fct_ns"].tolist()


def test_a_column_that_steps_do_not_have_is_refused(network: subak.Network, tmp_path: Path) -> None:
    workload = {"kind": "steps", "flows": pl.DataFrame({"src": ["h0"], "dst": ["h1"], "colour": ["red"]})}
    spec = {"network": network, "workload": workload, "scheme": [{"name": "ideal"}], "run": {"duration": "1ms"}}
    with pytest.raises(subak.InputError, match=r'workload\.flows: unknown column "colour"'):
        subak.run(spec, tmp_path / "out")


def test_integer_nodes_of_networkx_are_hosts_that_flows_name() -> None:
    network = subak.Network.from_networkx(nx.star_graph(3), capacity="10Gbps")
    answer = subak.solve(network, flows=pd.DataFrame({"src": [1, 2], "dst": [3, 3]}))
    assert answer.to_numpy()["rate_bps"] == pytest.approx([5e9, 5e9])
    listed = subak.solve(network, flows=[{"src": np.int64(1), "dst": 3}])
    assert listed.to_polars()["paths"].to_list() == [[["1->0", "0->3"]]]


def test_answers_and_results_go_where_people_work(network: subak.Network, tmp_path: Path) -> None:
    answer = subak.solve(network, flows=COLUMNS)
    frame = answer.to_pandas()
    for other in (pd.DataFrame(answer), pd.DataFrame(answer.flows), answer.flows.to_pandas()):
        assert other["id"].tolist() == frame["id"].tolist()
        assert other["rate_bps"].tolist() == frame["rate_bps"].tolist()
    assert pl.DataFrame(answer)["rate_bps"].to_list() == answer.to_polars()["rate_bps"].to_list()
    assert frame["paths"][0][0].tolist()[0] == "h0->leaf0"
    links = pd.api.interchange.from_dataframe(answer.links)
    assert links["id"].tolist() == answer.links.to_polars()["id"].to_list()
    assert "<table>" in answer._repr_html_()
    assert "<table>" in answer.links._repr_html_()
    spec = {
        "network": network,
        "workload": {"kind": "permutation", "size": "10kB"},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "1ms"},
    }
    results = subak.run(spec, tmp_path / "out")
    assert len(pd.DataFrame(results)) == len(pl.DataFrame(results)) == len(results.to_numpy()["fct_ns"]) == 16
    assert set(results.to_pandas("summary")["kind"]) == {"summary"}


def test_paths_of_a_run_are_those_that_its_flows_took(tmp_path: Path, cli: Subak) -> None:
    spec = tmp_path / "spec.json"
    network = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    text = {
        "network": network,
        "workload": {"kind": "poisson", "sizes": "fixed", "size": 10_000, "load": 0.3, "subflows": 2},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "200us", "seeds": 2},
    }
    spec.write_text(json.dumps(text))
    planned = json.loads(cli("run", str(spec), "--print-paths", "--trial", "1", "--json").out)["runs"][0]["flows"]
    rows = subak.run(json.loads(spec.read_text()), tmp_path / "out").to_pandas()
    rows = rows[rows["seed"] == 2]
    assert rows["path"].tolist() == [flow["path"] for flow in planned]
    across = rows[rows["path"].str.contains("spine")]
    assert (across["path"].str.count(r" \| ") == 1).all()
    first = across["path"].iloc[0].split(" | ")
    assert {path.split(" ")[1].split("->")[1] for path in first} == {"spine0", "spine1"}
    shown = cli("run", str(spec), "--print-paths")
    assert "leaf0" in shown.out
    refused = cli("run", str(spec), "--print-paths", "--trial", "7")
    assert refused.code == 2
    assert "trials 0 to 1" in refused.err


def test_the_link_that_brings_most_is_first() -> None:
    links = [{"id": "thin", "capacity": 1e9}, {"id": "thick", "capacity": 8e9}, {"id": "idle", "capacity": 1e9}]
    case = {
        "network": links,
        "flows": [{"id": "a", "path": ["thin"]}, {"id": "b", "path": ["thick"]}, {"id": "c", "path": ["thick"]}],
        "policy": {"kind": "max-min"},
    }
    ranked = subak.upgrades(case).to_pylist()
    assert [(r["id"], r["gain_bps"], r["flows_up"], r["flows_down"]) for r in ranked] == [
        ("thick", pytest.approx(8e9), 2, 0),
        ("thin", pytest.approx(1e9), 1, 0),
    ]
    assert ranked[1]["least_rate_gain_bps"] == pytest.approx(1e9)
    # With utility w log x, a link's price times its capacity is the sum of its flows' weights.
    worth = subak.upgrades({**case, "policy": {"kind": "alpha-fair", "alpha": 1}}).to_pylist()
    assert [(r["id"], r["worth"]) for r in worth] == [("thick", pytest.approx(2)), ("thin", pytest.approx(1))]


def test_upgrades_from_the_command(cli: Subak) -> None:
    shown = cli("solve", CASE, "--upgrades")
    assert "What twice the capacity brings" in shown.out
    told = json.loads(cli("solve", CASE, "--upgrades", "--json").out)
    assert [one["id"] for one in told["upgrades"]] == ["l30", "l12"]
    assert told["flows"][0]["links"] == [["l20", "l30"]]


def test_a_bar_is_there_when_it_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spec = {
        "name": "shown",
        "network": {"kind": "star", "hosts": 4},
        "workload": {"kind": "permutation", "size": "10kB"},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "1ms", "seeds": 3},
    }
    subak.run(spec, tmp_path / "quiet")
    assert capfd.readouterr().err == "", "nobody looks: no bar"
    subak.run(spec, tmp_path / "shown", progress=True)
    assert "shown: 100%" in (said := capfd.readouterr().err)
    assert "3 of 3 trials" in said
    heard: list[float] = []
    subak.run(spec, tmp_path / "heard", progress=lambda done, trials, fraction: heard.append(fraction))
    assert heard[-1] == 1.0


def test_ctrl_c_says_what_is_there(tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 4},
        "workload": {"kind": "permutation", "size": "10kB"},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "1ms", "seeds": 40},
    }

    def stop(done: int, trials: int, fraction: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        subak.run(spec, tmp_path / "out", jobs=1, progress=stop)
    assert any("of 40 trials are complete" in note for note in stopped.value.__notes__)
    assert subak.run(spec, tmp_path / "out", progress=False).complete
