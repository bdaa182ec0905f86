"""Warnings of a run about its own results, and messages about several errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import subak as sb
from conftest import Subak, script

OUTAGE: dict[str, Any] = {
    "name": "an outage for good",
    "network": {"kind": "star", "hosts": 8, "rate": "10Gbps"},
    "workload": {"kind": "poisson", "sizes": "enterprise", "load": 0.4},
    "scheme": [{"name": "dctcp"}, {"name": "ideal"}],
    "fault": [{"kind": "down", "link": "switch0->h1", "down": "2ms"}],
    "run": {"duration": "5ms", "drain": "20ms"},
}


def test_an_outage_for_good_is_seen_everywhere(subak: Subak, tmp_path: Path) -> None:
    spec = tmp_path / "outage.json"
    spec.write_text(json.dumps(OUTAGE))
    ended = subak("run", spec, "--out", tmp_path / "out")
    assert ended.code == 0, ended
    for said in ("Unfinished", "≥", "warning: dctcp: ", "flows did not finish"):
        assert said in ended.out, said
    results = sb.Results(tmp_path / "out")
    assert {"unfinished"} <= {w["kind"] for w in results.warnings}
    assert results.warnings == results.manifest["warnings"]
    report = tmp_path / "report.html"
    assert subak("report", tmp_path / "out", "--output", report).code == 0
    assert "flows did not finish" in report.read_text(encoding="utf-8")


def test_a_run_in_which_nothing_finished_ends_with_1(subak: Subak, tmp_path: Path) -> None:
    spec = tmp_path / "stuck.json"
    stuck = OUTAGE | {"fault": [{"kind": "loss", "probability": 1}], "scheme": [{"name": "dctcp"}]}
    spec.write_text(json.dumps(stuck))
    ended = subak("run", spec, "--out", tmp_path / "out")
    assert ended.code == 1
    assert "no flow finished in 1 of 1 runs" in ended.out


def test_all_faults_are_told_at_once(subak: Subak, tmp_path: Path) -> None:
    spec = tmp_path / "wrong.json"
    wrong = OUTAGE | {
        "policy": {"kind": "proportional-fair"},
        "fault": [{"kind": "link-down", "link": "switch0->h1"}],
        "run": {"duration": "soon", "seeds": []},
        "colour": "red",
    }
    spec.write_text(json.dumps(wrong))
    ended = subak("run", spec, "--out", tmp_path / "out")
    assert (ended.code, ended.out) == (2, "")
    lines = ended.err.splitlines()
    assert len(lines) == 5, lines
    assert all(line.startswith(f"subak: {spec}: ") and "; " in line for line in lines)
    with pytest.raises(sb.InputError) as raised:
        sb.run(wrong, tmp_path / "out")
    faults = raised.value.each()
    places = {fault.place for fault in faults}
    assert places == {"policy.kind", "fault[0].kind", "run.duration", "run.seeds", "colour"}
    assert len(raised.value.more) == 4
    corrects = {fault.place: fault.hint for fault in faults}
    assert 'did you mean "down"?' in corrects["fault[0].kind"]
    assert 'kind = "alpha-fair", alpha = 1' in corrects["policy.kind"]


def test_the_picture_of_the_readme_is_of_the_demo_as_it_is() -> None:
    """If this fails, the demo has changed: `make demo` draws the README's figure again."""
    demo_figure = script("demo_figure")

    told = json.loads(demo_figure.PICTURE.with_suffix(".json").read_text())
    assert told["spec_sha256"] == demo_figure.digest(demo_figure.SPEC)
