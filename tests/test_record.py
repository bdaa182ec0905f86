"""docs/record.py: which records are run anew first, and how often."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT
from subak.repro import Experiment, catalogue, records


@pytest.fixture(scope="module")
def record() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", ROOT / "docs/record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held(schema: int = 2, outcome: str = "met", date: str = "2026-01-02", **more: Any) -> records.Record:
    checks = [{"what": "a", "outcome": outcome, "pass": True}]
    told = {"schema": schema, "runs": 4, "seconds": 40.0, "verdict": outcome, "checks": checks, "date": date, **more}
    return records.Record(told)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, records.Record | None]:
    kept: dict[str, records.Record | None] = {}

    def of(experiment: Experiment) -> records.Record | None:
        return kept[experiment.name]

    monkeypatch.setattr(records, "of", of)
    monkeypatch.setattr(records, "measures", lambda experiment: {"crates/core": "new"})
    return kept


def test_the_oldest_and_the_least_certain_come_first(record: ModuleType, known: dict[str, Any]) -> None:
    fresh, stale = {"measures": {"crates/core": "new"}}, {"measures": {"crates/core": "old"}}
    names = list(catalogue())[:7]
    known |= dict(
        zip(
            names,
            (
                held(**fresh),
                held(outcome="undecided", **fresh),
                held(date="2026-01-03", **stale),
                held(outcome="undecided", date="2026-01-02", **stale),
                held(date="2026-01-02", **stale),
                held(schema=1),
                None,
            ),
            strict=True,
        )
    )
    order = sorted((catalogue()[name] for name in names), key=record.urgency)
    assert [names.index(e.name) for e in order] == [6, 5, 3, 4, 2, 1, 0]


def test_runs_fit_the_budget(record: ModuleType, known: dict[str, Any]) -> None:
    experiment = catalogue()["perc-fig2.10"]  # 60 runs, one variant
    known[experiment.name] = held(schema=1)
    assert record.runs_for(experiment, 0) == 0
    assert record.runs_for(experiment, 10 * 2 * experiment.sizes["paper"].seconds / 60 + 1) == 10
    assert record.runs_for(experiment, 1e9) == 60
    known[experiment.name] = held(runs=50, seconds=500.0, outcome="undecided")
    assert record.runs_for(experiment, 1e9) == 100, "twice those that left it undecided"
    assert record.runs_for(experiment, 10 * 2 * 10 + 1) == 10, "by what the record took: 10 s a run and a variant"


def test_the_readme_counts_the_recorded_verdicts(record: ModuleType) -> None:
    """Where this fails, experiments or records have changed: ``make docs`` writes the sentences anew."""
    readme = (ROOT / "README.md").read_text()
    assert record.counted(readme) == readme
    assert record.counted(readme.replace("experiments at the papers' size: ", "")) == readme


def test_only_paper_scale_is_kept(record: ModuleType, tmp_path: Any) -> None:
    (tmp_path / "verdict.json").write_text('{"scale": "smoke", "name": "perc-fig2.3"}')
    with pytest.raises(SystemExit, match="pages show paper scale"):
        record.keep(tmp_path)
