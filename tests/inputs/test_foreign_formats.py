"""Networks, demands and coflows in the formats of other tools, from Python and from the command."""

from __future__ import annotations

from pathlib import Path

import pytest
import subak as package
from conftest import ROOT, Subak

TASKS = ROOT / "examples/tasks"

SNDLIB = """?SNDlib native format; type: network; version: 1.0
NODES (
  A ( 7.0 50.1 )
  B ( 8.0 50.2 )
  C ( 9.0 50.3 )
)
LINKS (
  L1 ( A B ) 40.00 0.00 0.00 0.00 ( 155.00 1.00 )
  L2 ( B C ) 0.00 0.00 0.00 0.00 ( 155.00 1.00 622.00 2.00 )
  L3 ( A C ) 0.00 0.00 0.00 0.00 ( 155.00 1.00 622.00 2.00 )
)
DEMANDS (
  D1 ( A C ) 1 300.00 UNLIMITED
  D2 ( B C ) 1 200.00 UNLIMITED
)
"""


def test_a_backbone_is_solved_over_k_shortest_paths(subak: Subak) -> None:
    ended = subak("solve", TASKS / "backbone.toml", "--json")
    assert ended.code == 0, ended
    flows = {flow["id"]: flow for flow in ended.json["flows"]}
    # Milan has two links of 10 Gb/s: demands 0 and 3 of 14 and 8 Gb/s share them, and demand 1 has its 6 Gb/s.
    assert [flows[f]["rate"] / 1e9 for f in ("d0", "d1", "d3")] == pytest.approx([12, 6, 8])
    assert all(len(flow["paths"]) == 3 for flow in flows.values())
    assert all(len(set(map(tuple, flow["links"]))) == 3 for flow in flows.values())


def test_sndlib_from_python(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    path.write_text(SNDLIB)
    network = package.Network.from_file(path, unit="Mbps", range="high")
    assert network.hosts == ["A", "B", "C"]
    solved = package.solve(network, flows={"file": str(path), "unit": "Mbps"})
    assert solved.to_pandas().set_index("id")["rate_bps"].to_dict() == {"D1": 300e6, "D2": 200e6}
    whole = {
        "network": {"file": str(path), "unit": "Mbps", "range": "low"},
        "flows": {"file": str(path), "unit": "Mbps"},
    }
    assert package.solve(whole).to_pandas().set_index("id")["rate_bps"].to_dict() == {"D1": 155e6, "D2": 155e6}
    with pytest.raises(package.InputError, match="SNDlib's files state no unit"):
        package.Network.from_file(path)


def test_paths_without_subflows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    path.write_text(SNDLIB)
    case = {
        "network": {"file": str(path), "unit": "Mbps", "range": "low"},
        "flows": {"file": str(path), "unit": "Mbps"},
        "routing": {"paths": "disjoint"},
    }
    with pytest.raises(package.InputError, match="it chooses paths of subflows, and each flow has one"):
        package.solve(case)
    case["flows"] |= {"subflows": 2}
    assert package.solve(case).to_pandas()["rate_bps"].sum() > 155e6


def test_disjoint_subflows_carry_both_ways_in_packets(tmp_path: Path) -> None:
    """A flow over a ring: its second subflow takes the long way round only where paths need not be equally long."""
    sides = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    links = [{"source": x, "target": y, "capacity": "1Gbps", "delay": "1us"} for x, y in sides]
    nodes = [{"id": name, "kind": "host"} for name in "abcd"]
    spec = {
        "network": {"nodes": nodes, "links": links},
        "workload": {"kind": "steps", "flows": [{"src": "a", "dst": "b", "size": "2MB", "subflows": 2}]},
        "scheme": [{"name": "ideal"}, {"name": "numfabric"}],
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "run": {"duration": "40ms"},
    }

    def times(paths: str) -> dict[str, float]:
        results = package.run(spec | {"routing": {"paths": paths}}, tmp_path / paths)
        flows = results.table("flow").to_pandas()
        return dict(zip(flows["scheme"], flows["fct_ns"], strict=True))

    one, two = times("equal"), times("disjoint")
    for scheme in one:
        assert 1.8 < one[scheme] / two[scheme] < 2.1, (scheme, one, two)


def test_coflows_of_a_file(subak: Subak, tmp_path: Path) -> None:
    ended = subak("run", TASKS / "coflows.toml", "--out", tmp_path / "out")
    assert ended.code == 0, ended
    results = package.Results(tmp_path / "out")
    jobs = results.table("job").to_pandas()
    assert set(jobs["flow_id"]) == {f"coflow {n}" for n in range(1, 5)}
    even = jobs["workload.policy"] == "even"
    assert jobs[~even]["fct_ns"].mean() < 0.8 * jobs[even]["fct_ns"].mean()
    # Coflow 1: 12 MB of 2^20 bytes into one host of 1 Gb/s, in packets with headers of 54 and a payload of 1446 bytes.
    bound = jobs[jobs["flow_id"] == "coflow 1"]["ideal_fct_ns"].iloc[0]
    assert bound == pytest.approx(12 * 2**20 * 8 * 1500 / 1446, rel=0.01)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8 4\n1 0 1 0 1 9:4\n", "there is no port 9"),
        ("8 1\n1 0 2 0 1\n", "the number of reducers is missing"),
        ("8 1\n1 0 1 0 1 2:0\n", '"2:0" is no reducer'),
        ("8 2\n1 0 1 0 1 2:4\n", "2 coflows are wanted, and the file has 1"),
        ("8 1\n1 0 1 0 1 2:4 7\n", '"7" is one word too many'),
        ("99 1\n1 0 1 0 1 20:4\n", "the coflows use 21 ports, and the network has 8 hosts"),
        ("", "the file is empty"),
        ("8 0\n", "the file announces no coflow"),
        ("8 1\n1 0 1 0 1 2:4\n2 0 1 0 1 2:4\n", "the file announces 1 coflows, and here is another"),
        ("8 2\n1 0 1 0 1 2:4\n1 0 1 0 1 2:4\n", "coflow 1 is there twice"),
    ],
)
def test_broken_coflows_are_refused_by_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "coflows.txt").write_text(text)
    spec = (TASKS / "coflows.toml").read_text()
    (tmp_path / "spec.toml").write_text(spec)
    with pytest.raises(package.InputError, match=said):
        package.run(tmp_path / "spec.toml", tmp_path / "out")
