"""A researcher's tasks: each example is short, runs unchanged, and answers its question."""

from __future__ import annotations

import ast
import json
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import subak as package
from conftest import ROOT, Subak
from subak.reporting import figures

TASKS = ROOT / "examples/tasks"


def spec_of(name: str) -> dict[str, Any]:
    text = (TASKS / name).read_text()
    assert len(text.splitlines()) < 10, name
    return tomllib.loads(text)


def results_of(name: str, folder: Path) -> package.Results:
    spec_of(name)
    return package.run(TASKS / name, folder / "out", progress=False, jobs=1)


def ran(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    assert len(ast.parse((TASKS / name).read_text()).body) - 1 < 10, "statements under the docstring"
    monkeypatch.chdir(folder)
    return runpy.run_path(str(TASKS / name))


def test_five_schemes_over_three_loads_in_one_figure(subak: Subak, tmp_path: Path) -> None:
    """A shorter run of the same spec, which takes a minute."""
    spec = spec_of("five-schemes.toml")
    spec["run"] = {"duration": "12ms", "warmup": "500us", "seeds": 1}
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    ended = subak("run", path, "--out", tmp_path / "out")
    assert ended.code == 0, ended
    asked = ("--what", "sweep", "--chart", "flows up to 10 kB", "--output", tmp_path / "figure.svg")
    assert subak("plot", tmp_path / "out", *asked).code == 0
    charts = figures.charts([tmp_path / "out"], "sweep", chart="flows up to 10 kB")
    assert len(charts) == 1
    assert charts[0].title.startswith("p99 slowdown")
    names = {series.name for series in charts[0].series}
    assert names == {"dctcp", "hpcc", "s-perc (max-min)", "numfabric", "flowtune"}
    for series in charts[0].series:
        assert list(series.x) == [0.3, 0.5, 0.7]
    kinds = {warning["kind"] for warning in package.Results(tmp_path / "out").warnings}
    assert not kinds & {"nic", "unfinished", "nothing-finished"}, kinds


def test_which_link_to_upgrade(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    told = ran("upgrade.py", monkeypatch, tmp_path)
    ranked = package.upgrades(told["network"], flows=told["flows"]).to_pylist()
    before = package.solve(told["network"], flows=told["flows"]).to_numpy()["rate_bps"].sum()
    # The solver's answer for the first case agrees with the simulation on the same paths.
    links = told["network"].links.to_pandas().rename(columns={"capacity_bps": "capacity"})[["id", "capacity"]]
    links.loc[links["id"] == ranked[0]["id"], "capacity"] *= 2
    paths = package.solve(told["network"], flows=told["flows"]).to_polars()["paths"].to_list()
    case = {"network": links.to_dict("records"), "flows": [{"path": path} for [path] in paths]}
    after = package.solve({**case, "policy": {"kind": "max-min"}}).to_numpy()["rate_bps"].sum()
    assert after - before == pytest.approx(ranked[0]["gain_bps"])
    assert ranked[0]["id"] in capsys.readouterr().out


def test_a_spine_that_fails_and_comes_back(tmp_path: Path) -> None:
    spec = spec_of("outage.toml")
    spec["workload"]["file"] = str(TASKS / spec["workload"]["file"])
    results = package.run(spec, tmp_path / "out")
    flows = results.to_pandas()
    assert flows["fct_ns"].notna().all(), "every transfer completes"
    queues = results.to_pandas("queue")
    spine = queues[queues["link"].str.contains("spine0")]
    moved = spine.groupby("time_ns")["data_bytes"].sum()
    down = (moved.index > 4.1e6) & (moved.index <= 8e6)
    assert moved[down].sum() == 0
    assert moved[moved.index <= 4e6].sum() > 0
    assert moved[moved.index > 8.6e6].sum() > 0, "it is used again"
    page = package.report(results, output=tmp_path / "report.html").read_text()
    assert "leaf0-&gt;spine0 is down" in page
    assert package.movie(results, output=tmp_path / "movie.html").stat().st_size > 50_000


def test_an_all_reduce_beside_background_traffic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran("all-reduce.py", monkeypatch, tmp_path)
    jobs = pd.concat([package.Results(f"out/all-reduce-{budget}").to_pandas("job") for budget in (4, 16)])
    time_ms = jobs.set_index(["scheme", "weight"])["fct_ns"] / 1e6
    # Six steps of 5 MB; two background flows leave 1/3 of a link at weight 1 and 2/3 at weight 4.
    assert time_ms["ideal", 4.0] == pytest.approx(6 * 5e6 * 8 / (10e9 / 3) * 1e3 * 1500 / 1446, rel=0.02)
    assert time_ms["ideal", 16.0] == pytest.approx(time_ms["ideal", 4.0] / 2, rel=0.02)
    for budget in (4.0, 16.0):
        assert time_ms["soze-virtual", budget] == pytest.approx(time_ms["ideal", budget], rel=0.15)


def test_a_program_is_fitted(subak: Subak) -> None:
    page = (ROOT / "docs/tasks.md").read_text()
    command = next(line for line in page.splitlines() if line.startswith("subak fit")).split()[1:]
    command[1] = str(ROOT / command[1])
    answer = subak(*command, "--json").json
    assert answer["status"] == "optimal"
    assert answer["stages"] == 3


def test_tenants_with_utilities_of_their_own(tmp_path: Path) -> None:
    results = results_of("tenants.toml", tmp_path)
    flows = results.table("flow", ["scheme", "class", "slowdown"]).to_pandas()
    web = flows[flows["class"] == "web"].groupby("scheme")["slowdown"].mean()
    assert web["ideal"] < web["numfabric"] < 3 * web["ideal"]
    assert {warning["kind"] for warning in results.warnings} <= {"load-not-reached", "few-flows"}


def test_flows_with_deadlines(tmp_path: Path) -> None:
    flows = results_of("deadlines.toml", tmp_path).table("flow", ["scheme", "fct_ns"]).to_pandas()
    first = flows.groupby("scheme")["fct_ns"].first() / 1e6
    assert first["ideal"] < 5
    assert first["numfabric"] < 5 < first["dctcp"]
