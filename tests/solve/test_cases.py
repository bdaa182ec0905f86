"""Keys of a case that nothing uses are refused by name, or cause a warning."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import subak

STAR = {"kind": "star", "hosts": 3}
LINKS = {"links": [{"id": "l", "capacity": "1Gbps"}]}


@pytest.mark.parametrize(
    ("key", "value", "user"),
    [
        ("size", "1MB", "fct"),
        ("size", 1000, "srpt"),
        ("deadline", "10ms", "edf"),
        ("bandwidth_function", [[0, 0], [2, "10Gbps"]], "bandwidth-function"),
    ],
)
def test_what_the_policy_does_not_use_is_warned_of(key: str, value: Any, user: str) -> None:
    case = {"network": LINKS, "flows": [{"path": ["l"], key: value}]}
    for policy in ({"kind": "max-min"}, {"kind": "alpha-fair", "alpha": 2}):
        said = f'1 of 1 flows have a {key}, which the policy "{policy["kind"]}" does not use'
        assert said in subak.solve({**case, "policy": policy}).warnings
    assert subak.solve({**case, "policy": {"kind": user}}).warnings == []


def test_weights_that_alpha_0_does_not_use_are_warned_of() -> None:
    flows = [{"path": ["l"], "weight": 2}, {"path": ["l"]}]
    said = ["1 of 2 flows have a weight, which alpha = 0 does not use: it maximizes the sum of rates"]
    for alpha, warnings in ((0, said), (1, []), (0.5, [])):
        case = {"network": LINKS, "flows": flows, "policy": {"kind": "alpha-fair", "alpha": alpha}}
        assert subak.solve(case).warnings == warnings
    unweighted = {"network": LINKS, "flows": [{"path": ["l"]}], "policy": {"kind": "alpha-fair", "alpha": 0}}
    assert subak.solve(unweighted).warnings == []


def test_subflows_beyond_the_paths_are_warned_of() -> None:
    network = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    wide, narrow = {"src": "h0", "dst": "h2"}, {"src": "h0", "dst": "h1"}
    said = "have fewer paths than subflows, such as"
    policy = {"kind": "alpha-fair", "alpha": 1}

    def warnings(*flows: dict[str, Any]) -> list[str]:
        return subak.solve({"network": network, "flows": list(flows), "policy": policy}).warnings

    assert warnings({**wide, "subflows": 2}, narrow) == []
    [one] = warnings({**wide, "subflows": 3}, narrow)
    assert one.startswith(f"1 of 2 flows {said} 3 subflows where there are 2 such paths")
    [two] = warnings({**wide, "subflows": 4}, {**narrow, "subflows": 4})
    assert two.startswith(f"2 of 2 flows {said} 4 subflows where there are 1 ")


@pytest.mark.parametrize("routing", [{"seed": 1}, {"symmetric": True}, {"metric": "delay"}, {}])
def test_routing_beside_paths_is_refused(routing: dict[str, Any]) -> None:
    case = {"network": LINKS, "flows": [{"path": ["l"]}], "routing": routing}
    with pytest.raises(subak.InputError, match=r"^routing: no flow is routed: each lists its links; "):
        subak.solve(case)
    mixed = {"network": STAR, "flows": [{"src": "h0", "dst": "h1"}], "routing": routing}
    assert subak.solve(mixed).status == "optimal"


def write(file: Path, text: str) -> None:
    if file.suffix == ".parquet":
        names = text.split(",")
        pyarrow.parquet.write_table(pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in names}), file)
    else:
        file.write_text(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flows.csv", "src,dst\n"),
        ("flows.csv", "src,dst,demand"),
        ("flows.csv", ",h0,h1\nh0,,0\nh1,0,\n"),
        ("flows.csv", ""),
        ("flows.json", "[]"),
        ("flows.parquet", "src,dst"),
    ],
)
def test_a_file_without_flows_is_refused(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / name, text)
    with pytest.raises(subak.InputError, match="the file has no flows"):
        subak.solve({"network": STAR, "flows": {"file": str(tmp_path / name)}})


@pytest.mark.parametrize(
    ("name", "text"), [("flows.csv", "src,dst\nh0,h1\n"), ("flows.json", '[{"src": "h0", "dst": "h1"}]')]
)
def test_a_unit_without_demands_is_refused(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / name, text)
    with pytest.raises(subak.InputError, match="unit: the flows have no demand; remove unit"):
        subak.solve({"network": STAR, "flows": {"file": str(tmp_path / name), "unit": "Mbps"}})


def test_a_unit_without_demands_is_refused_in_columns(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"src": ["h0"], "dst": ["h1"]}), tmp_path / "flows.parquet")
    with pytest.raises(subak.InputError, match="unit: the flows have no demand; remove unit"):
        subak.solve({"network": STAR, "flows": {"file": str(tmp_path / "flows.parquet"), "unit": "Mbps"}})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flows.csv", "src,dst,demand\nh0,h1,3\n"),
        ("flows.csv", "src,h1\nh0,3\n"),
        ("flows.json", '[{"src": "h0", "dst": "h1", "demand": 3}]'),
    ],
)
def test_the_unit_is_that_of_plain_demands_in_every_form(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / name, text)
    answer = subak.solve({"network": STAR, "flows": {"file": str(tmp_path / name), "unit": "Mbps"}})
    assert pyarrow.table(answer.flows)["rate_bps"].to_pylist() == pytest.approx([3e6], rel=1e-9)


def test_a_matrix_headed_dst_is_refused_with_the_mend(tmp_path: Path) -> None:
    write(tmp_path / "m.csv", "dst,h0,h1\nh0,,3\nh1,4,\n")
    with pytest.raises(subak.InputError, match=r'line 1: the first column is headed "dst".*exchange rows and columns'):
        subak.solve({"network": STAR, "flows": {"file": str(tmp_path / "m.csv")}})


@pytest.mark.parametrize(
    "header", ["source,destination", "source,target,demand", "id,from,to", "src,destination", "Src,Dst", "SOURCE,DEST"]
)
def test_other_names_of_ends_are_refused_with_the_right_ones(tmp_path: Path, header: str) -> None:
    cells = {"id": "f", "demand": "3"}
    names = header.split(",")
    ends = iter(["h0", "h1"])
    row = ",".join(cells[name] if name in cells else next(ends) for name in names)
    write(tmp_path / "flows.csv", f"{header}\n{row}\n")
    with pytest.raises(subak.InputError, match=r'line 1: the columns .* call them "src" and "dst"'):
        subak.solve({"network": STAR, "flows": {"file": str(tmp_path / "flows.csv")}})


def test_a_matrix_may_have_nodes_of_such_names(tmp_path: Path) -> None:
    write(tmp_path / "m.csv", ",source,destination\nsource,,3\n")
    edge = {"capacity": "1Gbps"}
    links = [{"from": "source", "to": "destination", **edge}, {"from": "destination", "to": "source", **edge}]
    answer = subak.solve({"network": {"links": links}, "flows": {"file": str(tmp_path / "m.csv"), "unit": "Mbps"}})
    assert pyarrow.table(answer.flows)["rate_bps"].to_pylist() == pytest.approx([3e6], rel=1e-9)


@pytest.mark.parametrize(("key", "near"), [("rate", "demand"), ("priority", "weight"), ("Rate", "demand")])
def test_another_name_of_a_flows_key_is_told_the_key(key: str, near: str) -> None:
    with pytest.raises(subak.InputError, match=rf'flows\[0\].{key}: unknown key "{key}"; did you mean "{near}"\?'):
        subak.solve({"network": LINKS, "flows": [{"path": ["l"], key: 1}]})


def test_prob_of_a_fault_is_told_the_key(tmp_path: Path) -> None:
    spec = {
        "network": STAR,
        "workload": {"kind": "incast", "senders": 2, "size": "10KB"},
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "1ms"},
        "fault": [{"kind": "loss", "prob": 0.1}],
    }
    with pytest.raises(subak.InputError, match=r'fault\[0\].prob: unknown key "prob"; did you mean "probability"\?'):
        subak.run(spec, tmp_path / "out")


@pytest.mark.parametrize("policy", ["max-min", {"kind": "alpha-fair", "alpha": 1}, {"kind": "nonsense"}])
def test_a_policy_beside_a_case_is_refused(policy: object, tmp_path: Path) -> None:
    case = {"network": {"links": [{"id": "a", "capacity": 10}]}, "flows": [{"path": ["a"]}]}
    (tmp_path / "case.json").write_text(json.dumps(case))
    for problem in (case, tmp_path / "case.json"):
        for function in (subak.solve, subak.upgrades, subak.Incremental):
            with pytest.raises(TypeError, match="policy= is for a network; a case has its own"):
                function(problem, policy=policy)  # type: ignore[operator]
