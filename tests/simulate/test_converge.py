"""``subak converge``: control messages on a case converge to the exact rates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT, Subak

TWO_FLOWS = ROOT / "examples/cases/two-flows.json"
CHAIN = ROOT / "examples/cases/chain.toml"


@pytest.mark.parametrize("scheme", ["s-perc", "fair"])
def test_chain(subak: Subak, scheme: str) -> None:
    ended = subak("converge", CHAIN, "--scheme", scheme, "--json")
    assert ended.code == 0, ended
    answer = ended.json
    assert answer["converged"] is True
    assert answer["rounds"] <= answer["bound_rounds"]
    assert answer["rounds_from_start"] >= max(answer["rounds"], 0.1)
    assert max(flow["rounds_from_start"] for flow in answer["flows"]) == answer["rounds_from_start"]
    assert [flow["ideal"] for flow in answer["flows"]] == [35e9, 25e9, 5e9, 5e9]
    assert [flow["rate"] for flow in answer["flows"]] == pytest.approx([35e9, 25e9, 5e9, 5e9])
    assert [level["links"] for level in answer["levels"]] == [["l10"], ["l30"], ["l60"]]
    assert "trace" not in answer


def test_same_seed_same_answer(subak: Subak) -> None:
    arguments = ("converge", CHAIN, "--scheme", "s-perc", "--seed", "7", "--trace", "--json")
    first, second = subak(*arguments), subak(*arguments)
    assert first.out == second.out
    updates = first.json["trace"]
    assert len(updates) == first.json["updates"]
    assert {"flow", "link", "round"} <= updates[0].keys()


def test_replayed_order(subak: Subak, tmp_path: Path) -> None:
    order = tmp_path / "order.json"
    order.write_text(json.dumps([["fB", "l20"], ["fG", "l30"], ["fB", "l30"], "round"]))
    answer = subak("converge", TWO_FLOWS, "--scheme", "s-perc", "--order", order, "--json").json
    assert [(row["flow"], row["link"]) for row in answer["trace"]] == [("fB", "l20"), ("fG", "l30"), ("fB", "l30")]
    assert answer["converged"] is False


def test_not_converged_ends_with_1(subak: Subak) -> None:
    ended = subak("converge", CHAIN, "--scheme", "s-perc", "--drop", "0.9", "--max-rounds", "3")
    assert ended.code == 1
    assert "did not converge" in ended.out


@pytest.mark.parametrize("key", ["size", "deadline"])
def test_what_messages_do_not_use_is_warned_of(subak: Subak, tmp_path: Path, key: str) -> None:
    case = json.loads(TWO_FLOWS.read_text())
    case["flows"][0][key] = 1
    (tmp_path / "case.json").write_text(json.dumps(case))
    for form in ([], ["--json"]):
        ended = subak("converge", tmp_path / "case.json", "--scheme", "s-perc", *form)
        said = f'note: 1 of 2 flows have a {key}, which the policy "max-min" does not use'
        assert said in " ".join(ended.err.split()), ended
    assert "note" not in subak("converge", TWO_FLOWS, "--scheme", "s-perc").err


def test_for_people(subak: Subak) -> None:
    out = subak("converge", TWO_FLOWS, "--scheme", "s-perc").out
    assert "18 Gb/s" in out
    assert "rounds from the first flow's start" in out
    assert "converged in 0.0 rounds" not in out
    assert "theory allows" in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--scheme", "dctcp"], ["dctcp", "s-perc"]),  # Such a scheme needs queues.
        (["--scheme", "s-prec"], ["s-prec", "s-perc"]),
        (["--scheme", "s-perc", "--drop", "2"], ["drop", "2"]),
        (["--scheme", "s-perc", "--max-rounds", "nan"], ["max_rounds", "nan"]),
        (["--scheme", "s-perc", "--param", "patience=1"], ["params.patience"]),
        (["--scheme", "s-perc", "--param", "tie"], ["--param", "tie"]),
        (["--scheme", "s-perc", "--order", "nowhere.json"], ["nowhere.json", "no such file"]),
    ],
)
def test_refused(subak: Subak, arguments: list[str], named: list[str]) -> None:
    ended = subak("converge", TWO_FLOWS, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    for word in named:
        assert word in ended.err


def test_what_an_order_leaves_no_room_for_is_refused(subak: Subak, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text(json.dumps([["fB", "l30"], "round"]))
    for name, value in (("seed", "3"), ("drop", "0.1"), ("max-rounds", "5")):
        arguments = ("--scheme", "s-perc", "--order", tmp_path / "order.json", f"--{name}", value)
        ended = subak("converge", TWO_FLOWS, *arguments)
        assert ended.code == 2
        assert "no effect where an order is replayed" in ended.err


def test_flows_that_are_left_out_are_listed(subak: Subak, tmp_path: Path) -> None:
    links = [{"from": "a", "to": "b", "capacity": 1e9}, {"from": "b", "to": "c", "capacity": 0}]
    flows = [
        {"id": "up", "src": "a", "dst": "b"},
        {"id": "off", "src": "a", "dst": "c"},
        {"id": "down", "path": ["b->c"]},
    ]
    (tmp_path / "case.json").write_text(json.dumps({"network": {"links": links}, "flows": flows}))
    ended = subak("converge", tmp_path / "case.json", "--scheme", "s-perc", "--json")
    assert ended.code == 0
    told = [(flow["id"], flow["rate"], flow["status"]) for flow in ended.json["flows"]]
    assert told == [("up", pytest.approx(1e9), None), ("off", 0.0, "no-path"), ("down", 0.0, "link-down")]
    assert any("2 of 3 flows cannot send" in said for said in ended.json["warnings"])
    shown = subak("converge", tmp_path / "case.json", "--scheme", "s-perc")
    assert "no-path" in shown.out
