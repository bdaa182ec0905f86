"""The structure of max-min allocations in Python and on the command line: tables, graph and picture."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import subak as sb
from conftest import ROOT, Subak

CHAIN = ROOT / "examples/cases/chain.toml"

# Figure 3.8b of the PERC thesis, with capacities that agree with its text.
FIGURE = {
    "network": {"links": [{"id": f"l{n}", "capacity": c * 1e9} for n, c in ((1, 10), (2, 18), (3, 6), (4, 1))]},
    "flows": [
        {"id": "purple", "path": ["l1"]},
        {"id": "blue", "path": ["l1", "l2"]},
        {"id": "green", "path": ["l2", "l3"]},
        {"id": "orange", "path": ["l3", "l4"]},
        {"id": "brown", "path": ["l2"]},
    ],
}


def random_case(links: int, flows: int, hops: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    network = [{"id": f"l{i}", "capacity": float(rng.integers(1, 40)) * 1e9} for i in range(links)]
    paths = (rng.choice(links, hops, replace=False) for _ in range(flows))
    return {"network": {"links": network}, "flows": [{"path": [f"l{i}" for i in path]} for path in paths]}


def test_tables() -> None:
    found = sb.structure(FIGURE)
    assert (found.k, found.depth) == ("2", 3)
    assert found.partition == [["l4"], ["l1", "l3"], ["l2"]]
    assert found.longest_chain == ["l4", "l1", "l2"]
    links = {row.pop("id"): row for row in pa.table(found.links).to_pylist()}
    assert links["l1"] == {"capacity_bps": 10e9, "removed_in": 2, "freeze_iteration": 1, "level_bps": 5e9}
    assert [(row["id"], row["rate_bps"], row["removed_in"]) for row in pa.table(found.flows).to_pylist()] == [
        ("purple", 5e9, 2),
        ("blue", 5e9, 2),
        ("green", 5e9, 2),
        ("orange", 1e9, 1),
        ("brown", 8e9, 3),
    ]
    first = pl.DataFrame(found.shares).filter(pl.col("iteration") == 1)
    assert dict(zip(first["link"], first["share_bps"], strict=True)) == {"l1": 5e9, "l2": 6e9, "l3": 3e9, "l4": 1e9}
    assert {
        (row["precedent"], row["link"], row["kind"], row["via"]) for row in pa.table(found.precedence).to_pylist()
    } == {
        ("l4", "l1", "second-indirect", "l3"),
        ("l4", "l3", "direct", None),
        ("l1", "l2", "direct", None),
        ("l3", "l2", "direct", None),
    }


def test_every_k_gives_the_rates_of_solve() -> None:
    case = random_case(30, 80, 3, seed=1)
    rates = pa.table(sb.solve(case).flows)["rate_bps"].to_numpy()
    depths = []
    for k in (1, 2, math.inf):
        found = sb.structure(case, k)
        assert pa.table(found.flows)["rate_bps"].to_numpy() == pytest.approx(rates, rel=1e-9)
        depths.append(found.depth)
    assert depths == sorted(depths)
    assert sb.structure(case, "inf").partition == sb.structure(case, math.inf).partition


def test_graph() -> None:
    graph = sb.structure(FIGURE).to_networkx()
    assert graph.edges["l4", "l1"] == {"kind": "second-indirect", "kinds": ["second-indirect"], "via": ["l3"]}
    assert graph.nodes["l2"]["removed_in"] == 3
    found = sb.structure(random_case(40, 120, 3, seed=3))
    graph = found.to_networkx()
    assert nx.is_directed_acyclic_graph(graph)
    assert len(nx.dag_longest_path(graph)) == found.depth == len(found.longest_chain)
    assert nx.is_path(graph, found.longest_chain)
    assert all(graph.nodes[b]["removed_in"] == graph.nodes[a]["removed_in"] + 1 for a, b in graph.edges)


def test_picture(tmp_path: Path) -> None:
    sb.structure(FIGURE).save_svg(tmp_path / "graph.svg")
    root = ElementTree.parse(tmp_path / "graph.svg").getroot()
    words = [text for node in root.iter() if (text := (node.text or "").strip())]
    assert [word for word in words if word.startswith("iteration")] == ["iteration 1", "iteration 2", "iteration 3"]
    assert {"l1", "l2", "l3", "l4", "via l3"} <= set(words)
    heads = [node for node in root.iter() if node.get("class", "").startswith("head ")]
    assert len(heads) == 4 + 2  # Four edges, and two kinds in the legend.
    with pytest.raises(sb.InputError, match="written"):
        sb.structure(FIGURE).save_svg(tmp_path / "none" / "graph.svg")


def test_picture_of_many_links_counts_them() -> None:
    found = sb.structure(random_case(400, 1500, 4, seed=2))
    assert sum(map(len, found.partition)) > 120
    root = ElementTree.fromstring(found.to_svg())
    bars = [node for node in root.iter() if node.get("class") == "bar"]
    assert 0 < len(bars) <= 80
    counted = sum(int(title.text.split(": ")[1].split()[0]) for bar in bars for title in bar if title.text)
    assert counted == sum(map(len, found.partition))


def test_no_flows() -> None:
    found = sb.structure({"network": {"links": []}, "flows": []})
    assert (found.depth, found.partition, found.longest_chain) == (0, [], [])
    assert ElementTree.fromstring(found.to_svg()) is not None


def test_names_are_escaped() -> None:
    name = "<&\"'>"
    case = {"network": {"links": [{"id": name, "capacity": 1e9}]}, "flows": [{"path": [name]}]}
    assert name in [node.text for node in ElementTree.fromstring(sb.structure(case).to_svg()).iter()]


@pytest.mark.parametrize(
    ("change", "k", "place"),
    [
        ({}, 3, "k"),
        ({}, "two", "k"),
        ({"policy": {"kind": "alpha-fair", "alpha": 1}}, 2, "policy.kind"),
        ({"flows": [{"path": ["l1"], "demand": 1e9}]}, 2, "flows[0]"),
        ({"flows": [{"paths": [["l1"], ["l2"]]}]}, 2, "flows[0]"),
    ],
)
def test_what_has_no_structure(change: dict[str, Any], k: Any, place: str) -> None:
    with pytest.raises(sb.InputError) as caught:
        sb.structure(FIGURE | change, k)
    assert caught.value.place == place
    assert caught.value.hint


def test_command(subak: Subak, tmp_path: Path) -> None:
    ended = subak("solve", CHAIN, "--structure", "2", "--picture", tmp_path / "chain.svg", "--json")
    assert ended.code == 0, ended
    found = ended.json["structure"]
    assert found["partition"] == [["l10"], ["l30"], ["l60"]]
    assert found["longest_chain"] == ["l10", "l30", "l60"]
    assert found["precedence"][1] == {"precedent": "l10", "link": "l30", "kind": "direct", "via": None}
    assert found["links"][2] == {"id": "l10", "capacity": 10e9, "removed_in": 1, "freeze_iteration": 1, "level": 5e9}
    assert ElementTree.parse(tmp_path / "chain.svg") is not None
    assert json.loads(json.dumps(sb.structure(CHAIN, 2).to_dict())) == found


def test_command_for_people(subak: Subak) -> None:
    ended = subak("solve", CHAIN, "--structure", "inf")
    assert ended.code == 0
    assert "l30 (direct)" in ended.out
    assert "l10, l30, l60" in ended.out


def test_command_refuses(subak: Subak, tmp_path: Path) -> None:
    for arguments, word in ((["--structure", "7"], "WF^7"), (["--picture", "x.svg"], "--structure")):
        ended = subak("solve", CHAIN, *arguments, cwd=tmp_path)
        assert (ended.code, ended.out) == (2, "")
        assert word in ended.err
    assert not list(tmp_path.iterdir())
