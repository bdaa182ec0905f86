"""Several workloads at once: classes of flows, their seeds, sweeps, statistics, figures, and what is refused."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import subak
from conftest import ROOT, Subak
from subak.reporting import figures

WEB = {"name": "web", "kind": "poisson", "sizes": "web-search", "load": 0.3}
QUERIES = {"name": "queries", "kind": "incast", "senders": 5, "size": "20KB", "load": 0.1}
FLOWS = ["class", "src", "dst", "size_bytes", "start_ns", "flow_id"]


def spec(*workloads: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "network": {"kind": "star", "hosts": 8},
        "workload": list(workloads),
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "4ms", "seeds": 2},
        **more,
    }


def ran(folder: Path, *workloads: dict[str, Any], **more: Any) -> subak.Results:
    return subak.run(spec(*workloads, **more), folder, progress=False, jobs=1)


def flows(results: subak.Results, name: str | None = None) -> pd.DataFrame:
    table = results.table("flow", [*FLOWS, "seed"]).to_pandas()
    return table if name is None else table[table["class"] == name].reset_index(drop=True)


def test_a_class_is_the_same_beside_another(tmp_path: Path) -> None:
    alone = flows(ran(tmp_path / "web", WEB))
    both = ran(tmp_path / "both", WEB, QUERIES)
    turned = ran(tmp_path / "turned", QUERIES, WEB)
    for results in (both, turned):
        pd.testing.assert_frame_equal(flows(results, "web"), alone)
    pd.testing.assert_frame_equal(flows(both, "queries"), flows(turned, "queries"))
    assert set(flows(both)["class"]) == {"web", "queries"}
    other = flows(ran(tmp_path / "other", {**WEB, "name": "other"}), "other")
    assert not other["start_ns"].equals(alone["start_ns"]), "another name is another class"


def test_a_single_workload_with_a_name_has_a_class(tmp_path: Path) -> None:
    named = subak.run({**spec(), "workload": WEB}, tmp_path / "named", progress=False)
    plain = {key: value for key, value in WEB.items() if key != "name"}
    unnamed = subak.run({**spec(), "workload": plain}, tmp_path / "plain", progress=False)
    assert set(flows(named)["class"]) == {"web"}
    assert flows(unnamed)["class"].isna().all()
    columns = FLOWS[1:]
    pd.testing.assert_frame_equal(flows(named)[columns], flows(unnamed)[columns])


def test_incasts_have_names_and_their_load(tmp_path: Path) -> None:
    results = ran(tmp_path / "out", QUERIES, run={"duration": "40ms"})
    table = flows(results)
    incasts = table.groupby("flow_id")
    assert (incasts.size() == 5).all()
    assert (incasts["dst"].nunique() == 1).all()
    assert (incasts["start_ns"].nunique() == 1).all()
    assert (incasts["src"].nunique() == 5).all()
    assert (table["src"] != table["dst"]).all()
    wire = len(table) * 20_000 * 1500 / 1446 * 8 / (8 * 10e9 * 40e-3)
    assert wire == pytest.approx(0.1, rel=0.2)
    lines = (ROOT / "docs/specs.md").read_text().split("```python\n")
    snippet = next(one for one in lines if one.startswith('flows = results.table("flow")')).split("```")[0]
    told: dict[str, Any] = {"results": results}
    exec(snippet, told)
    assert len(told["incasts"]) == incasts.ngroups
    assert (told["incasts"] >= 5 * 20_000 * 8 / 10).all(), "the receiver's link takes at least so many ns"


def test_statistics_by_class(tmp_path: Path) -> None:
    results = ran(tmp_path / "out", WEB, QUERIES)
    [row] = results.summary()["rows"]
    table = results.table("flow").to_pandas()
    by_class = {one["class"]: one for one in row["classes"]}
    assert list(by_class) == ["web", "queries"]
    for name, one in by_class.items():
        mine = table[(table["class"] == name) & table["measured"]]
        assert one["metrics"]["flows"]["mean"] == len(mine) / 2
        seeds = mine.groupby("seed")["slowdown"]
        assert one["metrics"]["slowdown_mean"]["mean"] == pytest.approx(seeds.mean().mean())
        assert sum(of["metrics"]["flows"]["mean"] for of in one["sizes"]) == one["metrics"]["flows"]["mean"]
    whole = row["metrics"]
    assert whole["flows"]["mean"] == sum(one["metrics"]["flows"]["mean"] for one in by_class.values())
    [load] = set(results.table("flow")["load"].to_pylist())
    assert load == pytest.approx(0.4)


def test_a_key_of_one_workload_is_swept(tmp_path: Path, subak: Subak) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec({**WEB, "load": [0.1, 0.2, 0.3]}, QUERIES, run={"duration": "8ms"})))
    out = tmp_path / "out"
    ended = subak("run", path, "--out", out)
    assert ended.code == 0, ended
    assert re.search(r"(?m)^ *queries +dctcp .*", ended.out), ended.out
    names = [one.title for one in figures.charts([out], "sweep")]
    assert "p99 slowdown of class queries against load" in names
    assert "p99 slowdown of class web against load" in names
    report = tmp_path / "report.html"
    assert subak("report", out, "--output", report).code == 0
    page = report.read_text()
    assert "class queries" in page
    assert '<td class="name">queries</td>' in page
    figure = tmp_path / "figure.png"
    done = subak("plot", out, "--what", "cdf", "--chart", "class web", "--output", figure)
    assert done.code == 0, done


def test_plot_of_a_class(tmp_path: Path) -> None:
    results = ran(tmp_path / "out", WEB, QUERIES)
    [queries] = results.plot("fct_p99_ns", class_="queries").patches
    expected = results.summary()["rows"][0]["classes"][1]["metrics"]["fct_p99_ns"]["mean"]
    assert queries.get_height() == pytest.approx(expected)
    with pytest.raises(subak.InputError, match='no flows are of a class "webb"; choose one of: web, queries'):
        results.plot(class_="webb")


def test_jobs_beside_other_traffic(tmp_path: Path) -> None:
    ring = {
        "name": "jobs",
        "kind": "jobs",
        "jobs": [{"id": "j", "flows": [{"id": "a", "src": "h0", "dst": "h1", "size": "1MB"}]}],
    }
    results = ran(tmp_path / "out", WEB, ring)
    rows = results.table("job", ["class", "flow_id", "fct_ns"]).to_pylist()
    assert [(row["class"], row["flow_id"]) for row in rows] == [("jobs", "j")] * 2
    assert all(row["fct_ns"] for row in rows)
    assert set(flows(results)["class"]) == {"web", "jobs"}
    two = [ring, {**ring, "name": "more"}]
    with pytest.raises(subak.InputError, match=r"workload\[1\]\.kind: 2 of 2 workloads have jobs"):
        ran(tmp_path / "two", *two)


def test_flows_of_a_list_that_wait_for_others(tmp_path: Path) -> None:
    after = [
        {"id": "a", "src": "h0", "dst": "h1", "size": "100KB"},
        {"id": "b", "src": "h1", "dst": "h2", "size": "100KB", "after": ["a"]},
    ]
    results = ran(tmp_path / "out", WEB, {"name": "list", "kind": "steps", "flows": after})
    table = results.table("flow", ["class", "flow_id", "start_ns", "fct_ns", "seed"]).to_pandas()
    for _, mine in table[table["class"] == "list"].groupby("seed"):
        a, b = (mine[mine["flow_id"] == name].iloc[0] for name in "ab")
        assert b["start_ns"] >= a["start_ns"] + a["fct_ns"]


def test_frames_of_pandas_in_a_list(tmp_path: Path) -> None:
    frame = pd.DataFrame({"src": ["h0", "h1"], "dst": ["h2", "h3"], "size": ["10KB", "20KB"]})
    results = ran(tmp_path / "out", WEB, {"name": "frame", "kind": "steps", "flows": frame}, run={"duration": "1ms"})
    assert sorted(flows(results, "frame")["size_bytes"]) == [10_000, 20_000]


def test_a_list_without_names_is_swept(tmp_path: Path) -> None:
    plain = [{"kind": "incast", "senders": n, "size": "20KB"} for n in (2, 4)]
    results = ran(tmp_path / "out", *plain, run={"duration": "1ms"})
    assert [len(flows) for _, flows in results.table("flow").to_pandas().groupby("trial")] == [2, 4]
    assert flows(results)["class"].isna().all()


REFUSED = [
    ([WEB, {**QUERIES, "name": None}], r"workload\[1\]\.name"),
    (
        [WEB, {k: v for k, v in QUERIES.items() if k != "name"}],
        r"workload\[1\]\.name: this workload of the list has no name",
    ),
    ([WEB, {**QUERIES, "name": "web"}], r'workload\[1\]\.name: another workload is named "web", too'),
    ([WEB, {**QUERIES, "senders": 0}], r"workload\[1\]\.senders"),
    ([WEB, {**QUERIES, "sender": 3}], r'workload\[1\]\.sender: unknown key "sender"; did you mean "senders"'),
    ([WEB, {**WEB, "name": "more", "load": 0.8}], r"workload: the loads of the workloads add up to 1.1"),
    ([WEB, {**QUERIES, "receiver": "h1"}], r"workload\[1\]\.receiver: each of repeated incasts draws its own"),
    ([WEB, {**QUERIES, "interval": "1us"}], r"workload\[1\]\.interval: the flows of repeated incasts start together"),
    ([WEB, {k: v for k, v in QUERIES.items() if k != "size"}], r"workload\[1\]\.size: repeated incasts need a size"),
    ([WEB, {"name": "x", "kind": "incast", "senders": 2, "receiver": "h99"}], r'workload\[1\]\.receiver: .*"h99"'),
    ([WEB, {"name": "x", "kind": "steps", "flows": [{"src": "h0", "dst": "z"}]}], r"workload\[1\]\.flows\[0\]\.dst"),
]


@pytest.mark.parametrize(("workloads", "says"), REFUSED)
def test_what_is_refused(workloads: list[Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(subak.InputError, match=says):
        ran(tmp_path / "out", *workloads)


def test_warnings_name_the_class(tmp_path: Path) -> None:
    late = {"name": "late", "kind": "incast", "senders": 4, "size": "1KB", "interval": "1ms"}
    one = {"name": "one", "kind": "incast", "senders": 1, "size": "1KB", "interval": "1ms"}
    results = ran(tmp_path / "out", WEB, late, one, run={"duration": "2ms"})
    texts = [warning["text"] for warning in results.warnings]
    assert any('class "late": 2 of 4 flows start at run.duration or later' in text for text in texts), texts
    assert any("workload[2].interval has no effect: there is one sender" in text for text in texts), texts


def test_the_task_in_the_docs(tmp_path: Path) -> None:
    text = (ROOT / "examples/tasks/mixed.toml").read_text()
    assert len(text.splitlines()) < 10
    task = tomllib.loads(text)
    task["run"] = {"duration": "3ms", "warmup": "500us"}
    results = subak.run(task, tmp_path / "out", progress=False)
    table = results.table("flow", ["class", "workload[0].load", "scheme"]).to_pandas()
    shares = (table["class"] == "queries").groupby(table["workload[0].load"]).mean()
    assert list(shares.index) == [0.1, 0.15, 0.2]
    assert shares.between(0.97, 1).all(), shares
    charts = figures.charts([tmp_path / "out"], "sweep", chart="of class queries")
    assert {series.name for chart in charts for series in chart.series} == {one["name"] for one in task["scheme"]}


def test_sampled_links_and_classes(tmp_path: Path) -> None:
    measure = {
        "queues": {"every": "100us", "links": ["*->h0", "h1->switch0"]},
        "rates": {"every": "100us", "classes": ["web"]},
        "paces": {"every": "200us", "classes": ["queries", "web"]},
    }
    some = ran(tmp_path / "some", WEB, QUERIES, measure=measure)
    whole = ran(tmp_path / "all", WEB, QUERIES, measure={"queues": "100us", "rates": "100us", "paces": "200us"})
    assert set(some.table("queue")["link"].to_pylist()) == {"switch0->h0", "h1->switch0"}
    assert set(some.table("rate")["class"].to_pylist()) == {"web"}
    for kind, kept in (("queue", "link"), ("rate", "class"), ("pace", "class")):
        mine, every = (results.table(kind).to_pandas() for results in (some, whole))
        expected = every[every[kept].isin(set(mine[kept]))].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, expected)


@pytest.mark.parametrize(
    ("measure", "says"),
    [
        (
            {"queues": {"every": "1us", "links": ["*->h99"]}},
            r'measure\.queues\.links\[0\]: no link is called "\*->h99"',
        ),
        ({"queues": {"links": ["*->h0"]}}, r"measure\.queues\.every"),
        ({"queues": {"every": "1us", "links": []}}, r"measure\.queues\.links: the list is empty"),
        (
            {"queues": {"every": "1us", "link": ["h0"]}},
            r'measure\.queues\.link: unknown key "link"; did you mean "links"',
        ),
        (
            {"rates": {"every": "1us", "classes": ["webb"]}},
            r'measure\.rates\.classes\[0\]: .*"webb".*did you mean "web"',
        ),
        ({"rates": "5ns"}, r"measure\.rates: "),
        ({"paces": "soon"}, r"measure\.paces: "),
    ],
)
def test_sampling_that_is_refused(measure: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(subak.InputError, match=says):
        ran(tmp_path / "out", WEB, measure=measure)


def test_classes_that_no_workload_has(tmp_path: Path) -> None:
    plain = {key: value for key, value in WEB.items() if key != "name"}
    measure = {"rates": {"every": "1us", "classes": ["web"]}}
    with pytest.raises(subak.InputError, match=r"measure\.rates\.classes: the workload has no classes"):
        subak.run({**spec(), "workload": plain, "measure": measure}, tmp_path / "out", progress=False)
