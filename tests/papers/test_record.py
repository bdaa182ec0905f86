"""docs/record.py: which records it renews first, and with how many runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT, script
from subak import InputError
from subak.repro import Experiment, Measured, catalogue, measures, records, reproduce, samples
from subak.repro.experiment import Changed
from subak.repro.values import as_json


@pytest.fixture(scope="module")
def record() -> ModuleType:
    return script("record")


@pytest.fixture(scope="module")
def plan(record: ModuleType) -> Any:
    return record.plan


@pytest.fixture(scope="module")
def compare(record: ModuleType) -> Any:
    return record.compare


def held(outcome: str = "met", date: str = "2026-01-02", **more: Any) -> records.Record:
    """A record of 4 runs whose only claim has this outcome."""
    experiment = catalogue()["perc-fig2.10"]
    claim = next(check for check in experiment.checks if check.key == "rcp_over_fair_medium")
    value = Measured(2, 1.5, 2.5) if outcome == "met" else Measured(1.2, 1, 2)
    told = {"runs": 4, "seconds": 40.0, "date": date, "seed": 1, "measures": {"crates/core": "new"}, **more}
    checks = [{"key": claim.key, "measured": as_json(value)}]
    return records.Record({**told, "checks": checks}, replace(experiment, checks=(claim,)))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, records.Record | None]:
    kept: dict[str, records.Record | None] = {}

    def of(experiment: Experiment) -> records.Record | None:
        return kept[experiment.name]

    monkeypatch.setattr(records, "of", of)
    monkeypatch.setattr(measures, "of", lambda experiment: {"crates/core": "new"})
    return kept


def test_the_oldest_and_the_least_certain_come_first(plan: ModuleType, known: dict[str, Any]) -> None:
    stale = {"measures": {"crates/core": "old"}}
    names = list(catalogue())[:6]
    known |= dict(
        zip(
            names,
            (
                held(),
                held("undecided"),
                held(date="2026-01-03", **stale),
                held("undecided", date="2026-01-02", **stale),
                held(date="2026-01-02", **stale),
                None,
            ),
            strict=True,
        )
    )
    order = sorted((catalogue()[name] for name in names), key=plan.urgency)
    assert [names.index(e.name) for e in order] == [5, 3, 4, 2, 1, 0]


def test_runs_fit_the_budget(plan: ModuleType, known: dict[str, Any]) -> None:
    experiment = catalogue()["perc-fig2.10"]  # 12 runs and two variants.
    known[experiment.name] = None
    assert plan.runs_for(experiment, 0) == 0
    variants = sum(min(v.runs or 10, 10) for v in experiment.variants_at("paper"))
    assert plan.runs_for(experiment, (10 + variants) * experiment.sizes["paper"].seconds / 12 + 1) == 10
    assert plan.runs_for(experiment, 1e9) == 12
    known[experiment.name] = held(runs=15, measures={"crates/core": "old"})
    assert plan.runs_for(experiment, 1e9) == 15, "as many as the record has"
    known[experiment.name] = held(runs=15)
    assert plan.runs_for(experiment, 1e9) == 0, "the same seeds again would tell nothing"
    variants = experiment.variants_at("paper")
    slow = {"name": variants[0].name, "runs": 2, "seconds": 4000.0, "checks": []}
    known[experiment.name] = held("undecided", runs=50, seconds=500.0, variants=[slow])
    assert plan.runs_for(experiment, 1e9) == 100, "twice those that left it undecided"
    # The record took 10 s a run, 2000 s a run of one variant; the others are taken to cost as much as the experiment.
    fixed = 2 * 2000 + sum(2 * 10 for _ in variants[1:])
    assert plan.runs_for(experiment, 60 * 10 + fixed + 1) == 60
    assert plan.runs_for(experiment, 40 * 10 + fixed + 1) == 0, "fewer than the record has say less than it"


def test_equal_trials_are_counted_once(plan: ModuleType, known: dict[str, Any]) -> None:
    known |= {name: held() for name in catalogue()}
    figures = [f"flowtune-fig{k}" for k in (12, 13, 14)]
    known |= dict.fromkeys(figures)
    alone = {name: sum(plan.costs(catalogue()[name], 5).values()) for name in figures}
    planned = {step.experiment.name: step.seconds for step in plan.steps(1e9)}
    assert planned.keys() == set(figures)
    assert sum(planned.values()) < 0.9 * sum(alone.values())
    (last,) = sorted(figures, key=lambda name: plan.urgency(catalogue()[name]))[-1:]
    shared = plan.costs(catalogue()["flowtune-fig12"], 5).keys() & plan.costs(catalogue()["flowtune-fig14"], 5).keys()
    assert len(shared) >= 3
    assert planned[last] < alone[last]


def test_a_record_that_differs_is_run_anew(
    plan: ModuleType, compare: ModuleType, known: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "perc-fig2.10"
    monkeypatch.setattr(plan, "WORK", tmp_path)
    known |= {name: held() for name in catalogue()}
    known[name] = held(measures={"crates/core": "old"}, runs=4)
    monkeypatch.setattr(compare, "sample_of", lambda told: None)
    monkeypatch.setattr(compare.samples, "read", lambda path: {})
    assert [step.runs for step in plan.steps(1e9)] == [12], "nothing is held that one run could be compared with"
    monkeypatch.setattr(compare, "sample_of", lambda told: {"": {}})
    assert [step.runs for step in plan.steps(1e9)] == [12], "seeds by which setups are chosen"
    known[name].held["seed"] = records.HELD_OUT
    assert [step.runs for step in plan.steps(1e9)] == [0]
    with monkeypatch.context() as corrected:
        corrected.setattr(records.Record, "departures", [Changed("fewer hosts", "time", mended=True)])
        assert [step.runs for step in plan.steps(1e9)] == [12], "it ran with another setup"
    folder = plan.folder_of(catalogue()[name], "sample")
    folder.mkdir()
    assert [step.runs for step in plan.steps(1e9)] == [0], "the sample has not ended"
    (folder / plan.DIFFERS).touch()
    assert [step.runs for step in plan.steps(1e9)] == [12]


def test_the_readme_counts_the_recorded_verdicts(record: ModuleType) -> None:
    """If this fails, experiments or records have changed: ``make docs`` updates the sentences in the README."""
    readme = (ROOT / "README.md").read_text()
    assert record.counted(readme) == readme
    assert record.counted(readme.replace("experiments at the papers' size: ", "")) == readme


def test_only_paper_scale_is_kept(record: ModuleType, tmp_path: Any) -> None:
    reproduce("perc-fig2.3", out=tmp_path)
    with pytest.raises(InputError, match="pages show paper scale"):
        record.keep(tmp_path)


RENEWABLE = ["perc-fig1.3", "perc-fig2.3", "perc-fig3.2"]


@pytest.mark.parametrize("name", RENEWABLE)
def test_a_record_is_renewed_if_a_sample_of_it_comes_out_the_same(
    compare: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, Any] = {}
    monkeypatch.setattr(records, "hold", lambda experiment, told: kept.update(told))
    old = records.of(catalogue()[name])
    assert old is not None
    # These experiments have no random input: results are the same for any seed.
    stale = json.loads(json.dumps({**old.held, "measures": {}, "seed": records.HELD_OUT}))
    monkeypatch.setattr(records, "of", lambda experiment: records.Record(stale, experiment))
    assert compare.renew(catalogue()[name], tmp_path / "sample")
    assert kept["measures"] == measures.of(catalogue()[name])
    assert kept["checks"] == old.held["checks"]
    kept.clear()
    stale["checks"][0]["measured"] = "another"
    assert not compare.renew(catalogue()[name], tmp_path / "sample")
    assert kept == {}


def test_what_will_be_run_is_said_with_its_cost(
    record: ModuleType,
    plan: ModuleType,
    known: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known |= {name: held() for name in catalogue()}
    known["perc-fig2.10"] = None
    monkeypatch.setattr(record, "reproduce", lambda *_, **__: pytest.fail("nothing fits"))
    record.redo(0.0, 1)
    assert f"0 of {len(catalogue())} records, about 0.0 core-minutes" in capsys.readouterr().out
    (step,) = plan.steps(1e9)
    assert step.words == f"perc-fig2.10: 12 runs, about {step.seconds / 60:.1f} core-minutes"
    assert plan.steps(step.seconds / 2)[0].runs < 6, "the variants have few runs, and all of them are left"


def test_a_sample_of_the_first_run_is_taken_from_the_results(compare: ModuleType, tmp_path: Path) -> None:
    name = "numfabric-fig6"
    experiment, known = catalogue()[name], {}
    for runs in (1, 2):
        told = reproduce(name, scale="smoke", runs=runs, seed=3, out=tmp_path / str(runs), jobs=1)
        known[runs] = {f.check.key: as_json(f.value) for f in told.findings}
    plan = compare.plan_of(experiment.sizes["smoke"], "smoke", 1, 3)
    values = compare._measured_of(experiment, plan, tmp_path / "2")
    assert {key: as_json(values[key]) for key in known[1]} == known[1]
    assert known[2] != known[1], "the second run counts only in the record"


def test_what_nothing_judges_in_a_variant_is_not_compared(compare: ModuleType) -> None:
    """A run of one seed has no such values, which the results of several runs have."""
    known = records.of(catalogue()["hpcc-testbed"])
    assert known is not None
    whole, sample = known.held["sample"], compare.sample_of(known)
    judged = {check.key for check in known.experiment.checks if check.rule or check.claim}
    assert sample[""].keys() == whole[""].keys()
    for name in whole.keys() - {""}:
        assert sample[name].keys() == whole[name].keys() & judged
    assert any(sample[name].keys() < whole[name].keys() for name in sample)


def test_a_record_without_a_first_run_is_compared_by_its_samples(compare: ModuleType, tmp_path: Path) -> None:
    values = {}
    for runs in (1, 2):
        told = reproduce("numfabric-fig6", scale="smoke", runs=runs, seed=3, out=tmp_path / str(runs), jobs=1)
        values[runs] = {"": {f.check.key: f.value for f in told.findings}}
    kept = samples.read(tmp_path / "2" / samples.NAME)
    assert compare.begins_with(kept, values[1])
    assert not compare.begins_with(samples.read(tmp_path / "1" / samples.NAME), values[2]), "it has fewer runs"
    assert not compare.begins_with(kept, values[1] | {"a variant": {}}), "nothing of the variant is compared"
    key = "", "us default"
    one = kept[key][0]
    other = replace(one, sides={"data": [one.sides["data"][0] + 1, *one.sides["data"][1:]]})
    assert not compare.begins_with({**kept, key: {0: other}}, values[1])
