"""``subak solve`` and ``subak.solve`` on the papers' examples, and the form of their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import pyarrow as pa
import pytest
import subak as sb
from conftest import ROOT, Subak

CHAIN = ROOT / "examples/cases/chain.toml"
TWO_FLOWS = ROOT / "examples/cases/two-flows.json"


def test_two_flows_share_three_links(subak: Subak) -> None:
    answer = subak("solve", TWO_FLOWS, "--json").json
    assert {f["id"]: f["rate"] for f in answer["flows"]} == {"fB": 18e9, "fG": 12e9}
    assert {f["id"]: f["bottlenecks"] for f in answer["flows"]} == {"fB": ["l30"], "fG": ["l12"]}
    assert answer["schema"] == 1
    assert answer["status"] == "optimal"
    assert max(answer["certificate"].values()) < 1e-12
    assert {link["id"]: link["load"] for link in answer["links"]} == {"l20": 18e9, "l30": 30e9, "l12": 12e9}


def test_chain_of_three_bottlenecks(subak: Subak) -> None:
    answer = subak("solve", CHAIN, "--json").json
    assert [(f["id"], f["rate"]) for f in answer["flows"]] == [("A", 35e9), ("B", 25e9), ("C", 5e9), ("D", 5e9)]
    assert [f["bottlenecks"] for f in answer["flows"]] == [["l60"], ["l30"], ["l10"], ["l10"]]


def test_answer_for_people(subak: Subak) -> None:
    ended = subak("solve", TWO_FLOWS)
    assert ended.code == 0
    assert "18 Gb/s" in ended.out
    assert "12 Gb/s" in ended.out
    assert "optimal" in ended.out


def test_output_file_and_standard_input(subak: Subak, tmp_path: Path) -> None:
    ended = subak("solve", "-", "--output", tmp_path / "answer.json", given=CHAIN.read_bytes())
    assert ended.code == 0, ended
    assert json.loads((tmp_path / "answer.json").read_text())["flows"][0]["rate"] == 35e9


def test_from_python(two_flows: dict[str, Any]) -> None:
    for given in (two_flows, TWO_FLOWS, str(TWO_FLOWS)):
        answer = sb.solve(given)
        assert pa.table(answer.flows)["rate_bps"].to_pylist() == [18e9, 12e9]
        assert answer.status == "optimal"
        assert json.loads(answer.to_json())["flows"][0]["id"] == "fB"


def test_fault_from_python(two_flows: dict[str, Any]) -> None:
    two_flows["flows"][1]["path"][0] = "l31"
    with pytest.raises(sb.InputError) as caught:
        sb.solve(two_flows)
    assert caught.value.file is None
    assert caught.value.place == "flows[1].path[0]"
    assert "l31" in caught.value.what
    assert caught.value.hint
    assert isinstance(caught.value, ValueError)


def test_not_finite_from_python(two_flows: dict[str, Any]) -> None:
    two_flows["flows"][1]["weight"] = float("nan")
    with pytest.raises(sb.InputError) as caught:
        sb.solve(two_flows)
    assert caught.value.place == "flows[1].weight"


def test_network_and_flows() -> None:
    network = sb.Network.generate("leaf-spine", leaves=2, spines=1, hosts_per_leaf=2, host_rate="10Gbps")
    assert network.hosts == ["h0", "h1", "h2", "h3"]
    flows = [{"id": "x", "src": "h0", "dst": "h2"}, {"id": "y", "src": "h1", "dst": "h2", "weight": 3}]
    rates = pa.table(sb.solve(network, flows=flows).flows)["rate_bps"].to_pylist()
    assert rates == pytest.approx([2.5e9, 7.5e9])


def test_network_from_links() -> None:
    network = sb.Network.from_links([{"id": "a", "capacity": "1Gbps"}])
    network.add_link("b", "2Gbps", from_="x", to="y", delay="1us", buffer="64KiB")
    assert pa.table(network.links).to_pylist() == [
        {"id": "a", "from": None, "to": None, "capacity_bps": 1e9, "delay_ns": 0, "buffer_bytes": None},
        {"id": "b", "from": "x", "to": "y", "capacity_bps": 2e9, "delay_ns": 1000, "buffer_bytes": 65536},
    ]
    with pytest.raises(sb.InputError, match="b"):
        network.add_link("b", "2Gbps")
    with pytest.raises(sb.InputError, match="2Gbq"):
        network.add_link("c", "2Gbq")


def test_network_from_file(tmp_path: Path) -> None:
    graph = networkx.DiGraph()
    graph.add_edge("u", "v", capacity=4e9)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(networkx.node_link_data(graph, edges="edges")))
    network = sb.Network.from_file(path)
    assert pa.table(network.links)["capacity_bps"].to_pylist() == [4e9]
    with pytest.raises(sb.InputError) as caught:
        sb.Network.from_file(tmp_path / "none.json")
    assert caught.value.file == str(tmp_path / "none.json")
