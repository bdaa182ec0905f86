"""Jobs that set weights: the example, Python callables, and a run's own log under the policy checker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import subak
from conftest import ROOT
from subak.cli import app
from subak.errors import InputError
from subak.policy import Setting, check, read_log, read_policy
from typer.testing import CliRunner

SPEC: dict[str, Any] = {
    "network": {"kind": "star", "hosts": 4, "rate": "4.25Gbps"},
    "workload": {
        "kind": "jobs",
        "jobs": [
            {
                "id": "job",
                "flows": [
                    {"id": "f1", "src": "h0", "dst": "h2", "size": "20MB"},
                    {"id": "f2", "src": "h2", "dst": "h3", "size": "10MB", "after": ["f1"]},
                    {"id": "f4", "src": "h1", "dst": "h2", "size": "20MB"},
                ],
            }
        ],
    },
    "scheme": [{"name": "ideal"}],
    "run": {"duration": "1s"},
}


def _under(policy: Any, **job: Any) -> dict[str, Any]:
    jobs = [{**SPEC["workload"]["jobs"][0], "policy": policy, **job}]
    return {**SPEC, "workload": {"kind": "jobs", "jobs": jobs}}


def _took_ns(results: subak.Results) -> int:
    assert not results.failed
    (row,) = results.table("job").to_pylist()
    return int(row["fct_ns"])


def test_the_example_and_its_own_log(tmp_path: Path) -> None:
    results = subak.run(ROOT / "examples/jobs.toml", tmp_path / "out")
    rows = results.table("job").to_pandas().set_index(["scheme", "workload.policy", "flow_id"])["fct_ns"]
    for scheme in ("ideal", "soze-virtual"):
        assert rows[scheme, "critical-path", "query"] < rows[scheme, "even", "query"]
    done = CliRunner().invoke(app, ["policy", "log", str(tmp_path / "out"), "--out", str(tmp_path / "log")])
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 8)
    for trial in range(4):
        settings = list(read_log(tmp_path / f"log/log-{trial}.csv"))
        policy = read_policy(tmp_path / f"log/policy-{trial}.toml")
        assert len(settings) > 10
        assert check(policy, settings) == []
        broken = [*settings, Setting(1, settings[0].flow, 9.0)]
        assert [one.application for one in check(policy, broken)] == ["query"]


def test_a_callable_sets_weights(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []

    def mine(job: dict[str, Any]) -> list[float]:
        told.append(job)
        longest = max(flow["to_end_s"] for flow in job["flows"])
        return [2.0 if flow["to_end_s"] == longest else 1.0 for flow in job["flows"]]

    spec = _under({"callable": "mine"})
    first = _took_ns(subak.run(spec, tmp_path / "mine", policies={"mine": mine}))
    assert first == _took_ns(subak.run(_under("critical-path"), tmp_path / "theirs"))
    assert (told[0]["job"], told[0]["time_ns"], told[0]["look"]) == ("job", 0, False)
    assert [flow["id"] for flow in told[0]["flows"]] == ["f1", "f4"]
    # Results of one callable are not reused for another one of the same name.
    even = _took_ns(subak.run(spec, tmp_path / "mine", policies={"mine": lambda job: [1.0] * len(job["flows"])}))
    assert even > first


def test_callables_that_fail(tmp_path: Path) -> None:
    spec = _under({"callable": "mine"})
    with pytest.raises(InputError, match="callable that was not given"):
        subak.run(spec, tmp_path / "none")
    for k, (answer, said) in enumerate([([1.0], "2 running"), ([0.0, 1.0], "weight 0"), ("no", "callable failed")]):
        results = subak.run(spec, tmp_path / str(k), policies={"mine": lambda job, answer=answer: answer})
        assert said in results.failed[0]
        assert "job" in results.failed[0]


def test_the_budget_holds_what_a_callable_says(tmp_path: Path) -> None:
    results = subak.run(_under({"callable": "mine"}, budget=1), tmp_path / "out", policies={"mine": _heavy})
    rows = results.table("weight").to_pylist()
    assert sum(row["weight"] for row in rows if row["time_ns"] == 0) == pytest.approx(1)


def _heavy(job: dict[str, Any]) -> list[float]:
    return [100.0] * len(job["flows"])


def test_the_log_of_a_run_without_jobs(tmp_path: Path) -> None:
    spec = {**SPEC, "workload": {"kind": "incast", "senders": 2, "size": "1MB"}}
    subak.run(spec, tmp_path / "out")
    done = CliRunner().invoke(app, ["policy", "log", str(tmp_path / "out"), "--out", str(tmp_path / "log")])
    assert isinstance(done.exception, InputError)
    assert "no jobs" in str(done.exception)


def test_the_report_and_the_table_name_each_job(tmp_path: Path) -> None:
    results = subak.run(ROOT / "examples/jobs.toml", tmp_path / "out")
    took = {
        (row["scheme"], row["workload.policy"], row["flow_id"]): row["fct_ns"]
        for row in results.table("job").to_pylist()
    }
    done = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "--output", str(tmp_path / "report.html")])
    assert done.exit_code == 0
    report = (tmp_path / "report.html").read_text()
    for (scheme, policy, job), ns in took.items():
        shown = "ideal (max-min)" if scheme == "ideal" else scheme
        row = "".join(f'<td class="name">{text}</td>' for text in (job, shown, f"policy {policy}"))
        assert f'{row}<td data-label="Job time">{ns / 1e6:.3g} ms</td>' in report


def test_jobs_without_names_enough_are_drawn_and_those_that_end_late_are_counted(tmp_path: Path) -> None:
    jobs = [
        {"id": f"j{k}", "start": f"{k}ms", "flows": [{"id": "f", "src": "h0", "dst": "h1", "size": "400KB"}]}
        for k in range(30)
    ]
    long = {"id": "long", "flows": [{"id": "f", "src": "h2", "dst": "h3", "size": "1GB"}]}
    spec = {**SPEC, "workload": {"kind": "jobs", "jobs": [*jobs, long]}, "run": {"duration": "50ms", "drain": "1ms"}}
    results = subak.run(spec, tmp_path / "out")
    (row,) = results.summary()["rows"]
    counts = {name: row["metrics"][name]["mean"] for name in ("jobs", "jobs_completed", "jobs_unfinished")}
    assert counts == {"jobs": 31, "jobs_completed": 30, "jobs_unfinished": 1}
    assert row["jobs"] == []
    assert row["metrics"]["job_time_p99_ns"]["mean"] > 30e6
    done = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "--output", str(tmp_path / "report.html")])
    assert done.exit_code == 0
    assert "<h2>Job times</h2>" in (tmp_path / "report.html").read_text()
