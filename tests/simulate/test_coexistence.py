"""Several schemes on one network: a workload names the scheme of its flows, or of the hosts that have moved to it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import subak
from conftest import ROOT, Subak
from own_schemes import TEMPLATES
from subak.reporting import figures

DCTCP = {"name": "dctcp"}
CUBIC = {"name": "cubic", "params": {"queue": "fifo"}}
WEB = {"name": "web", "kind": "poisson", "sizes": "web-search", "load": 0.3}
BULK = {"name": "bulk", "kind": "permutation", "size": "2MB"}
FLOWS = ["class", "src", "dst", "size_bytes", "start_ns", "fct_ns", "retransmissions", "drops", "received_bytes"]


def ran(folder: Path, *workloads: dict[str, Any], **more: Any) -> subak.Results:
    spec = {
        "network": {"kind": "star", "hosts": 6},
        "workload": list(workloads),
        "scheme": [DCTCP, CUBIC],
        "run": {"duration": "4ms"},
        **more,
    }
    return subak.run(spec, folder, progress=False, jobs=1)


def refusal(folder: Path, *workloads: dict[str, Any], **more: Any) -> str:
    with pytest.raises(subak.InputError) as raised:
        ran(folder, *workloads, **more)
    return str(raised.value)


def flows(results: subak.Results) -> pd.DataFrame:
    return results.table("flow", FLOWS).to_pandas()


def of(scheme: str, workload: dict[str, Any]) -> dict[str, Any]:
    return {**workload, "scheme": scheme}


def test_classes_of_one_scheme_are_those_of_a_run_with_it(tmp_path: Path) -> None:
    plain = flows(ran(tmp_path / "plain", WEB, BULK, scheme=[DCTCP]))
    named = flows(ran(tmp_path / "named", of("dctcp", WEB), of("dctcp", BULK), scheme=[DCTCP]))
    pd.testing.assert_frame_equal(named, plain)
    # Two labels of one scheme with other parameters of senders alone.
    both = [{**DCTCP, "label": "a"}, {**DCTCP, "label": "b", "params": {"rto_min": "1.000001ms"}}]
    apart = ran(tmp_path / "apart", of("a", WEB), of("b", BULK), scheme=both)
    pd.testing.assert_frame_equal(flows(apart), plain)
    table = apart.table("flow", ["class", "scheme"]).to_pandas().drop_duplicates()
    assert sorted(map(tuple, table.to_numpy())) == [("bulk", "b"), ("web", "a")]


def test_one_run_of_classes_that_all_name_a_scheme(tmp_path: Path, subak: Subak) -> None:
    path = tmp_path / "spec.json"
    path.write_text(
        json.dumps(
            {
                "network": {"kind": "star", "hosts": 6},
                "workload": [of("dctcp", WEB), of("cubic", BULK)],
                "scheme": [DCTCP, CUBIC],
                "measure": {"rates": "500us", "paces": "500us"},
                "run": {"duration": "4ms", "seeds": 2},
            }
        )
    )
    out = tmp_path / "out"
    ended = subak("run", path, "--out", out)
    assert ended.code == 0, ended
    assert "dctcp + cubic" in ended.out
    rows = [line.split()[:2] for line in ended.out.splitlines() if line.split()[:1] in (["web"], ["bulk"])]
    assert rows == [["web", "dctcp"], ["bulk", "cubic"]], ended.out
    import subak as package

    results = package.Results(out)
    for kind in ("flow", "rate", "pace"):
        table = results.table(kind, ["class", "scheme"]).to_pandas().drop_duplicates()
        assert sorted(map(tuple, table.to_numpy())) == [("bulk", "cubic"), ("web", "dctcp")], kind
    [row] = results.summary()["rows"]
    assert row["scheme"] == "dctcp + cubic"
    assert [(one["class"], one["scheme"]) for one in row["classes"]] == [("web", "dctcp"), ("bulk", "cubic")]
    report = tmp_path / "report.html"
    assert subak("report", out, "--output", report).code == 0
    page = report.read_text()
    assert '<td class="name">web</td><td class="name">dctcp</td>' in page
    assert '<td class="name">bulk</td><td class="name">cubic</td>' in page
    figure = tmp_path / "figure.png"
    assert subak("plot", out, "--what", "cdf", "--chart", "class web", "--output", figure).code == 0


def test_each_scheme_of_a_list_beside_the_named_one(tmp_path: Path) -> None:
    results = ran(tmp_path / "out", WEB, of("cubic", BULK), scheme=[DCTCP, {"name": "reno"}, CUBIC])
    table = results.table("flow", ["trial", "class", "scheme"]).to_pandas().drop_duplicates()
    assert sorted(map(tuple, table.to_numpy())) == [
        (0, "bulk", "cubic"),
        (0, "web", "dctcp"),
        (1, "bulk", "cubic"),
        (1, "web", "reno"),
    ]
    assert [row["scheme"] for row in results.summary()["rows"]] == ["dctcp", "reno"]


def test_hosts_move_to_another_scheme(tmp_path: Path) -> None:
    shares = [0, 0.5, 1]
    results = ran(tmp_path / "out", {**of("dctcp", WEB), "moved": shares}, run={"duration": "8ms"})
    table = results.table("flow", [*FLOWS, "scheme", "workload[0].moved"]).to_pandas()
    by_share = dict(iter(table.groupby("workload[0].moved")))
    for share, mine in by_share.items():
        moved = mine[mine["class"] == "web (moved)"]
        others = mine[mine["class"] == "web"]
        assert len(moved) + len(others) == len(mine)
        assert set(moved["scheme"]) <= {"dctcp"}
        assert set(others["scheme"]) <= {"cubic"}
        assert not set(moved["src"]) & set(others["src"])
        assert set(moved["src"]) <= set(by_share[1]["src"])
        assert 0 < len(set(moved["src"])) <= round(share * 6) or share == 0
    # The flows are the same, and at the ends the results are those of a run with one scheme.
    plan = ["src", "dst", "size_bytes", "start_ns"]
    for share in (0.5, 1):
        pd.testing.assert_frame_equal(
            by_share[share][plan].reset_index(drop=True), by_share[0][plan].reset_index(drop=True)
        )
    for share, scheme in ((0, CUBIC), (1, DCTCP)):
        alone = flows(ran(tmp_path / f"alone{share}", WEB, scheme=[scheme], run={"duration": "8ms"}))
        columns = [column for column in FLOWS if column != "class"]
        pd.testing.assert_frame_equal(by_share[share][columns].reset_index(drop=True), alone[columns])


def test_cubic_takes_the_link_from_dctcp(tmp_path: Path) -> None:
    """At one link CUBIC fills the buffer, all packets of DCTCP are marked, and it keeps a window of two packets."""
    one = {"kind": "steps", "flows": [{"src": "h1", "dst": "h0"}]}
    two = {"kind": "steps", "flows": [{"src": "h2", "dst": "h0"}]}
    measure = {"rates": "1ms", "queues": "100us"}
    both = (
        {**one, "name": "a", "scheme": "dctcp"},
        {**two, "name": "b", "scheme": "cubic"},
    )
    results = ran(tmp_path / "both", *both, measure=measure, run={"duration": "60ms", "drain": "0s"})
    rates = results.table("rate", ["time_ns", "class", "rate_bps"]).to_pandas()
    mean = rates[rates["time_ns"] > 20e6].groupby("class")["rate_bps"].mean() / 1e9
    assert mean["b"] > 9
    assert mean["a"] < 0.5
    queues = results.table("queue", ["time_ns", "link", "queued_bytes"]).to_pandas()
    mine = queues[(queues["time_ns"] > 20e6) & (queues["link"] == "switch0->h0")]["queued_bytes"]
    assert mine.quantile(0.1) > 97_500, "above the threshold, at which DCTCP's packets are marked"


def test_a_scheme_of_the_users_beside_cubic(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text((TEMPLATES / "dctcp.py").read_text())
    own = {"name": "mine", "python": "mine.py:Dctcp"}
    for name, scheme, label in (("own", own, "mine"), ("ours", DCTCP, "dctcp")):
        spec = {
            "network": {"kind": "star", "hosts": 6},
            "workload": [of(label, WEB), of("cubic", BULK)],
            "scheme": [scheme, CUBIC],
            "run": {"duration": "6ms"},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(spec))
    own, ours = (
        subak.run(tmp_path / f"{name}.json", tmp_path / name, progress=False, jobs=1) for name in ("own", "ours")
    )
    pd.testing.assert_frame_equal(flows(own), flows(ours))
    assert set(own.table("flow")["scheme"].to_pylist()) == {"mine", "cubic"}


TICKS = """

class Ticks(subak.Hop):
    def on_start(self, io):
        io.timer(4_000_000_000, io.now_ns + 300_000)
        io.timer(7, io.now_ns + 500_000)

    def on_timer(self, io, timer, port):
        io.note(timer=timer)
        if io.now_ns < 2_000_000:
            io.timer(timer, io.now_ns + 300_000)

Dctcp.hop = lambda self, port: Ticks()
"""


def test_timers_of_hops_keep_their_numbers_beside_another_scheme(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text((TEMPLATES / "dctcp.py").read_text() + TICKS)
    notes = []
    for name, workloads in (("alone", [of("mine", WEB)]), ("beside", [of("mine", WEB), of("cubic", BULK)])):
        own = {"name": "mine", "python": "mine.py:Dctcp"}
        spec = {
            "network": {"kind": "star", "hosts": 6},
            "workload": workloads,
            "scheme": [own, CUBIC] if name == "beside" else [own],
            "run": {"duration": "3ms"},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(spec))
        results = subak.run(tmp_path / f"{name}.json", tmp_path / name, progress=False, jobs=1)
        assert not results.failed
        notes.append(results.table("note", ["time_ns", "link", "value"]).to_pandas())
    assert set(notes[0]["value"]) == {7, 4_000_000_000}
    pd.testing.assert_frame_equal(notes[0], notes[1])


def test_a_link_fails_under_two_schemes(tmp_path: Path) -> None:
    network = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 3}
    fault = [{"kind": "down", "links": ["leaf0->spine0"], "down": "1ms", "up": "2ms"}]
    more = {"network": network, "fault": fault, "routing": {"reroute": "100us"}}
    once = flows(ran(tmp_path / "once", of("dctcp", WEB), of("cubic", BULK), **more))
    assert once["fct_ns"].notna().all()
    assert once.groupby("class")["drops"].sum().gt(0).any()
    again = subak.run(
        json.loads((tmp_path / "once/manifest.json").read_text())["spec"],
        tmp_path / "again",
        progress=False,
        jobs=1,
        threads=2,
    )
    pd.testing.assert_frame_equal(flows(again), once)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"name": "pfabric"}, "its queues serve packets by the bytes that their flows have left"),
        ({"name": "hpcc"}, "switches are lossless under one of them alone (PFC)"),
        ({"name": "hpcc", "params": {"pfc": "off"}}, "set params.header and params.ack_header to 0"),
        ({"name": "s-perc"}, "its links divide their capacity among its own flows"),
        ({"name": "cubic"}, 'set params.queue = "fifo"'),
        ({"name": "dctcp", "label": "other", "params": {"k": 20}}, "a queue has one threshold: set params.k"),
        (
            {"name": "dctcp", "label": "other", "params": {"pfc": "dynamic"}},
            "set params.pfc and what belongs to it to the same",
        ),
        ({"name": "dctcp", "label": "other", "backend": "testbed"}, 'its backend is "testbed"'),
        ({"name": "reno", "policy": {"kind": "fct"}, "label": "other"}, "has a policy of its own"),
    ],
)
def test_what_cannot_share_links_is_refused_by_name(tmp_path: Path, other: dict[str, Any], why: str) -> None:
    label = other.get("label", other["name"])
    text = refusal(tmp_path / "out", of("dctcp", WEB), of(label, BULK), scheme=[DCTCP, other])
    assert why in text
    assert label in text


def test_wrong_names_of_schemes(tmp_path: Path) -> None:
    text = refusal(tmp_path / "out", WEB, of("dctpc", BULK))
    assert text.startswith("workload[1].scheme: ")
    assert 'workload[1].scheme: no [[scheme]] has the label "dctpc"; these are listed: dctcp, cubic' in text
    text = refusal(tmp_path / "out", of("dctcp", WEB), of("dctcp", BULK))
    assert 'every workload names a scheme, and none names "cubic"' in text
    text = refusal(tmp_path / "out", of("dctcp", WEB), BULK, scheme=[DCTCP])
    assert "workloads name every scheme, and one workload names none" in text
    text = refusal(tmp_path / "out", {**WEB, "moved": 0.5}, BULK)
    assert 'workload[0].moved: "scheme" is missing' in text


def test_a_simulation_that_is_stepped_has_one_scheme(tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 6},
        "workload": [of("dctcp", WEB), of("cubic", BULK)],
        "scheme": [DCTCP, CUBIC],
        "run": {"duration": "1ms"},
    }
    with pytest.raises(subak.InputError, match='schemes "dctcp" and "cubic" share the network'):
        subak.Simulation.of_spec(spec)


def test_the_tasks_in_the_docs(tmp_path: Path) -> None:
    for name in ("coexistence", "deployment"):
        text = (ROOT / f"examples/tasks/{name}.toml").read_text()
        assert len(text.splitlines()) < 10, name
        task = tomllib.loads(text)
        task["run"] = {"duration": "6ms", "warmup": "500us"}
        results = subak.run(task, tmp_path / name, progress=False)
        if name == "coexistence":
            rows = results.summary()["rows"]
            found = [[one.get("scheme", row["scheme"]) for one in row["classes"]] for row in rows]
            assert found == [["dctcp", "dctcp"], ["dctcp", "cubic"]]
        else:
            axes = results.plot("fct_mean_ns", class_="web (moved)", against="workload.moved")
            assert [0.25, 0.5, 0.75, 1] in [list(line.get_xdata()) for line in axes.get_lines()]
            charts = figures.charts([tmp_path / name], "sweep", chart="of class web (moved)")
            assert [list(series.x) for chart in charts for series in chart.series] == [[0.25, 0.5, 0.75, 1]]
