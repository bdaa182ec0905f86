"""docs/record.py: faults, interrupted runs and wrong input, by somebody who had not written it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from conftest import script
from rows import copy_of
from subak import InputError
from subak.repro import Experiment, Measured, catalogue, measures, records, reproduce
from subak.repro.reproduce import TrialFailedError, plan_of
from subak.repro.values import as_json

FAST = "perc-fig1.3"  # kind python, 1 run, a second


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = script("record")
    monkeypatch.setattr(module.plan, "WORK", tmp_path / "work")
    monkeypatch.setattr(module, "FIGURES", tmp_path)
    (tmp_path / "work").mkdir()
    return module


Only = Callable[..., Experiment]


@pytest.fixture
def only(record: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Only:
    """Makes copies of these experiments, with their records, the whole catalogue of ``make records``."""

    def choose(*names: str, recorded: bool = True) -> Experiment:
        copies = {}
        for name in names:
            row = catalogue()[name]
            copies[name] = copy_of(row, tmp_path / "papers" / name)
            for file in ("record.json", "samples.parquet") if recorded else ():
                shutil.copy(row.folder / file, copies[name].folder / file)
        for name, copy in copies.items():
            monkeypatch.setitem(catalogue(), name, copy)
        monkeypatch.setattr(record.plan, "catalogue", lambda: copies)
        monkeypatch.setattr(record, "catalogue", lambda: copies)
        return copies[names[0]]

    return choose


Command = Callable[..., str]


@pytest.fixture
def command(record: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Calls docs/record.py with these arguments and a README.md of its own, whose text it returns."""
    readme = tmp_path / "README.md"
    shutil.copy(record.README, readme)
    monkeypatch.setattr(record, "README", readme)

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["record.py", *arguments])
        record.main()
        return readme.read_text()

    return call


def rewrite(experiment: Experiment, **changes: Any) -> None:
    path = experiment.folder / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def held(outcome: str = "met", **more: Any) -> records.Record:
    """A record of 4 runs whose only claim has this outcome, as in test_record.py."""
    experiment = catalogue()["perc-fig2.10"]
    claim = next(check for check in experiment.checks if check.key == "rcp_over_fair_medium")
    value = Measured(2, 1.5, 2.5) if outcome == "met" else Measured(1.2, 1, 2)
    told = {"runs": 4, "seconds": 40.0, "date": "2026-01-02", "seed": 1001, "measures": {"crates/core": "new"}, **more}
    return records.Record(
        {**told, "checks": [{"key": claim.key, "measured": as_json(value)}]}, replace(experiment, checks=(claim,))
    )


def change_code(experiment: Experiment) -> None:
    path = experiment.folder / "__init__.py"
    path.write_text(path.read_text() + "\n# another\n")


def test_a_folder_of_older_code_does_not_block_the_next_record(record: ModuleType, only: Only) -> None:
    """Recorded by make records; the code changes; one run gives other numbers: "the next call runs all runs"."""
    experiment = only(FAST, recorded=False)
    record.redo(1e4, 1)
    assert records.of(experiment) is not None
    change_code(experiment)
    told = json.loads((experiment.folder / "record.json").read_text())
    told["checks"][0]["measured"] = "another"
    rewrite(experiment, checks=told["checks"])
    for _ in range(3):
        record.redo(1e4, 1)
    assert records.of(experiment).changed_since() == []


def test_an_unfinished_folder_of_older_code_does_not_block_the_record(record: ModuleType, only: Only) -> None:
    """Budget spent in the middle, then the code changes: out/records/NAME-1 is begun, and never usable again."""
    experiment = only(FAST, recorded=False)
    reproduce(FAST, scale="paper", runs=1, out=record.plan.WORK / f"{FAST}-1", jobs=1)
    (record.plan.WORK / f"{FAST}-1" / "verdict.json").unlink()
    change_code(experiment)
    for _ in range(2):
        record.redo(1e4, 1)
    assert records.of(experiment) is not None


def test_a_sample_of_another_build_does_not_block_the_renewal(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's name has the hash of the measured parts, but not that of the build: any crate changes the latter."""
    experiment = only(FAST)
    rewrite(experiment, measures={"crates/core": "old"}, seed=records.HELD_OUT)
    of_reproduce = sys.modules["subak.repro.reproduce"]
    with monkeypatch.context() as older:
        for module in (of_reproduce, record.plan):
            older.setattr(module, "build", lambda: {"version": "0.1.0", "sources": "older"})
        options: dict[str, Any] = {"seed": records.HELD_OUT, "jobs": 1, "variants": True}
        reproduce(FAST, scale="paper", out=record.plan.folder_of(experiment, "sample"), **options)
        (record.plan.folder_of(experiment, "sample") / "verdict.json").unlink()  # the budget was spent
    assert record.compare.renew(experiment, record.plan.folder_of(experiment, "sample"))


@pytest.mark.parametrize("name", ["flowtune-fig9", "soze-fig11"])
def test_the_declared_runs_of_single_specs_are_run(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """flowtune-fig9 declares 90 runs of hadoop, soze-fig11 one of packets; make records gives 30 and 20 of each."""
    experiment = only(name, recorded=False)
    asked: dict[str, Any] = {}

    def ran(name: str, **options: Any) -> None:
        asked.update(options)
        raise InputError(None, "", "enough", "")

    monkeypatch.setattr(record, "reproduce", ran)
    record.redo(1e9, 1)
    size = experiment.sizes["paper"]
    plan = plan_of(size, "paper", asked["runs"], records.HELD_OUT)
    wanted = plan_of(size, "paper", None, records.HELD_OUT)
    assert {one: plan.runs_of.get(one, plan.runs) for one in size.runs_of} == wanted.runs_of


def test_a_sample_with_an_extension_older_than_its_sources_renews_nothing(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "A run is refused if the extension was older than the sources, even if it is rebuilt afterwards"."""
    experiment = only(FAST)
    rewrite(experiment, measures={"crates/core": "old"}, seed=records.HELD_OUT)
    monkeypatch.setattr(measures, "_is_older", lambda crates: True)
    try:
        renewed = record.compare.renew(experiment, record.plan.folder_of(experiment, "sample"))
    except InputError:
        return
    monkeypatch.setattr(measures, "_is_older", lambda crates: False)
    assert not renewed, f"changed since: {records.of(experiment).changed_since()}"


def test_a_sample_whose_code_changes_while_it_runs_renews_nothing(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = only(FAST)
    rewrite(experiment, measures={"crates/core": "old"}, seed=records.HELD_OUT)
    whole = record.compare.reproduce

    def ran(*args: Any, **options: Any) -> Any:
        verdict = whole(*args, **options)
        change_code(experiment)
        return verdict

    monkeypatch.setattr(record.compare, "reproduce", ran)
    try:
        record.compare.renew(experiment, record.plan.folder_of(experiment, "sample"))
    except InputError:
        return
    assert records.of(experiment).changed_since() == ["the experiment"], "this code has never run"


def test_an_undecided_record_of_todays_code_is_not_run_with_the_same_seeds_again(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numfabric-fig5 today: 5 runs in 18.6 core-minutes, undecided; BUDGET=20 runs its 5 seeds again on each call."""
    monkeypatch.setattr(measures, "of", lambda experiment: {"crates/core": "new"})
    monkeypatch.setattr(records, "of", lambda experiment: held("undecided", runs=20, seconds=200.0))
    experiment = catalogue()["perc-fig2.10"]
    monkeypatch.setattr(record.plan, "catalogue", lambda: {experiment.name: experiment})
    enough = record.plan.seconds_of(experiment, 20) + 1
    assert [step.runs for step in record.plan.steps(2 * enough)] == [40]
    assert [step.runs for step in record.plan.steps(enough) if step.runs <= 20] == []


def test_runs_that_ended_are_gone_on_with_though_more_fit_now(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget is spent while a record's first run is sampled: verdict.json is there, but nothing is recorded."""
    experiment = only("flowtune-fig16", recorded=False)  # kind python, 6 runs
    begun: list[int] = []

    def ran(name: str, *, runs: int, out: Path, **_: Any) -> None:
        begun.append(runs)
        out.mkdir(exist_ok=True)
        (out / "verdict.json").write_text("{}")

    def spent(*_: Any) -> None:
        raise record.SpentError

    monkeypatch.setattr(record, "reproduce", ran)
    monkeypatch.setattr(record.compare, "write_sample", spent)
    record.redo(record.plan.seconds_of(experiment, 3) + 0.1, 1)  # others come first, and leave time for three runs
    record.redo(record.plan.seconds_of(experiment, 6) + 0.1, 1)  # these are recorded now
    assert begun == [3, 3]


def test_a_computation_runs_to_its_end(record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind python keeps nothing of an interrupted run: it would begin anew at each call, and keep others waiting."""
    experiment = only("flowtune-fig16", recorded=False)
    clock = iter(range(10**6))
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    parts: list[int] = []

    def run(settings: Any, runs: int, seed: int, progress: Any) -> dict[str, Any]:
        for k in range(100):
            parts.append(k)
            progress(k + 1, 100, (k + 1) / 100)
        raise InputError(None, "", "enough", "")

    monkeypatch.setattr(experiment.module, "run", run)
    monkeypatch.setattr(record.plan, "steps", lambda seconds: [record.plan.Step(experiment, 6, 60.0)])
    record.redo(60.0, 1)
    assert parts == list(range(100))


def test_nothing_begins_after_the_budget_is_spent(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = only(FAST, "perc-fig2.3", recorded=False)
    now = [0.0]
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=lambda: now[0]))
    begun = []

    def ran(name: str, **_: Any) -> None:
        begun.append(name)
        now[0] += 1000.0
        raise InputError(None, "", "enough", "")

    monkeypatch.setattr(record, "reproduce", ran)
    monkeypatch.setattr(
        record.plan, "steps", lambda seconds: [record.plan.Step(e, 1, 1.0) for e in record.catalogue().values()]
    )
    record.redo(60.0, 1)
    assert begun == [first.name]


def test_planning_takes_nothing_of_the_budget(record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of 101 experiments takes half a minute where the cores are busy: all of BUDGET=0.5."""
    experiment = only("numfabric-fig6", recorded=False)
    now = [0.0]
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def steps(seconds: float) -> list[Any]:
        now[0] += 100.0
        return [record.plan.Step(experiment, 1, 1.0)]

    going_on = []

    def ran(name: str, *, progress: Any, **_: Any) -> None:
        progress(0, 1, 0.0)
        going_on.append(name)
        raise InputError(None, "", "enough", "")

    monkeypatch.setattr(record.plan, "steps", steps)
    monkeypatch.setattr(record, "reproduce", ran)
    record.redo(60.0, 1)
    assert going_on == [experiment.name], "spent before anything ran"


def test_a_failed_trial_ends_its_step_only(record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    only(FAST, "perc-fig2.3", recorded=False)
    begun = []

    def ran(name: str, **_: Any) -> None:
        begun.append(name)
        raise TrialFailedError(f"{name}: trial 1 failed")

    monkeypatch.setattr(record, "reproduce", ran)
    record.redo(1e4, 1)
    assert len(begun) == 2


def test_a_corrupt_record_is_run_anew_as_its_hint_says(record: ModuleType, only: Only) -> None:
    """ "it cannot be read ...; record it anew: subak repro NAME --scale paper, then python docs/record.py FOLDER"."""
    experiment = only(FAST)
    folder = record.plan.WORK.parent / "out"
    reproduce(FAST, scale="paper", out=folder, jobs=1)
    path = experiment.folder / "record.json"
    path.write_text(path.read_text()[:1000])
    record.keep(folder)


def test_a_corrupt_record_does_not_stop_the_command_that_would_replace_it(record: ModuleType, only: Only) -> None:
    experiment = only(FAST)
    path = experiment.folder / "record.json"
    path.write_text(path.read_text()[:1000])
    reproduce(FAST, scale="paper", out=record.plan.WORK.parent / "out", jobs=1)


@pytest.mark.parametrize("file", ["record.json", "samples.parquet"])
def test_one_corrupt_record_does_not_stop_the_others(record: ModuleType, only: Only, file: str) -> None:
    broken = only("perc-drops", FAST)
    rewrite(broken, measures={"crates/core": "old"})
    rewrite(record.catalogue()[FAST], measures={"crates/core": "old"}, seed=records.HELD_OUT)
    path = broken.folder / file
    path.write_bytes(path.read_bytes()[:500])
    assert FAST in [step.experiment.name for step in record.plan.steps(1e9)]


def test_a_sample_folder_is_no_begun_record(record: ModuleType) -> None:
    """One hash of 280 has twelve decimal digits: 123456789012 runs are planned, and the plan never ends."""
    (record.plan.WORK / f"{FAST}-sample-123456789012").mkdir()
    assert record.plan.begun_runs(catalogue()[FAST]) == 0


def test_a_begun_record_of_a_longer_name_is_not_this_ones(record: ModuleType) -> None:
    (record.plan.WORK / "fit-sperc-star-7").mkdir()
    assert record.plan.begun_runs(catalogue()["fit-sperc"]) == 0


def test_fewer_runs_than_the_record_has_are_not_gone_on_with(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cannot replace it: begun with 4 runs, recorded by hand with 12 meanwhile."""
    monkeypatch.setattr(measures, "of", lambda experiment: {"crates/core": "new"})
    monkeypatch.setattr(records, "of", lambda experiment: held(runs=12, measures={"crates/core": "old"}))
    experiment = catalogue()["perc-fig2.10"]
    monkeypatch.setattr(record.plan, "catalogue", lambda: {experiment.name: experiment})
    (record.plan.WORK / "perc-fig2.10-4").mkdir()
    assert all(step.runs in (0, 12) for step in record.plan.steps(1e9))


def test_fewer_runs_are_noted_once(record: ModuleType, only: Only) -> None:
    experiment = only(FAST)
    rewrite(experiment, runs=5)
    folder = record.plan.WORK.parent / "out"
    reproduce(FAST, scale="paper", out=folder, jobs=1)
    for _ in range(2):
        record.keep(folder)
    assert len(records.of(experiment).held["beside"]) == 1


def test_a_sample_that_was_the_same_is_compared_again_not_run_anew(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before the record is written, or ``git checkout`` of it: the folder says only that it was compared."""
    experiment = only(FAST)
    rewrite(experiment, measures={"crates/core": "old"}, seed=records.HELD_OUT)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as pressed:
        pressed.setattr(records, "hold", interrupted)
        with pytest.raises(KeyboardInterrupt):
            record.compare.renew(experiment, record.plan.folder_of(experiment, "sample"))
    assert [step.runs for step in record.plan.steps(1e9)] == [0]


def test_a_record_of_other_seeds_keeps_them(record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    """perc-fig4.3 and perc-fig4.4 are of seeds 1101 on; make records runs 1001 on."""
    experiment = only("perc-fig4.3")
    monkeypatch.setattr(record.plan, "steps", lambda seconds: [record.plan.Step(experiment, 5, 1.0)])
    asked: dict[str, Any] = {}

    def ran(name: str, **options: Any) -> None:
        asked.update(options)
        raise InputError(None, "", "enough", "")

    monkeypatch.setattr(record, "reproduce", ran)
    record.redo(1e9, 1)
    assert asked.get("seed", records.HELD_OUT) == records.of(experiment).held["seed"]


def test_nothing_compared_renews_nothing(record: ModuleType, only: Only) -> None:
    """All checks are times: ``{"": {}}`` is compared, which always agrees."""
    experiment = only(FAST)
    rewrite(experiment, measures={"crates/core": "old"}, seed=records.HELD_OUT)
    times = replace(experiment, checks=tuple(replace(c, unit="s", published="") for c in experiment.checks))
    assert not record.compare.renew(times, record.plan.folder_of(times, "sample"))


@pytest.mark.parametrize(
    "wrong",
    [["--budget", "20", "--jobs", "0"], ["--budget", "20", "--jobs", "-1"], ["--budget", "nan"], ["--budget", "-5"]],
)
def test_wrong_numbers_are_refused(only: Only, command: Command, wrong: list[str]) -> None:
    """0 jobs divide by zero; -1 end before they begin, and the budget is said to be spent."""
    only(FAST, recorded=False)
    with pytest.raises(SystemExit):
        command(*wrong)


@pytest.mark.parametrize("text", ["", "{", '{"schema": 2}'])
def test_the_command_replaces_a_record_that_cannot_be_read(only: Only, command: Command, text: str) -> None:
    """README.md, which main() checks first and writes last, counts each record."""
    experiment = only(FAST, "perc-fig2.10")
    (experiment.folder / "record.json").write_text(text)
    assert "1 not readable" in command()
    assert "1 not readable" not in command("--budget", "20")
    assert records.of(experiment).runs == "1 run"


def test_records_none_of_which_can_be_read_have_no_dates(only: Only, command: Command) -> None:
    experiment = only(FAST)
    (experiment.folder / "record.json").write_text("{")
    told = command()
    assert "1 not readable" in told
    assert "The runs are of" not in told


def test_a_folder_that_is_not_there_is_said_in_a_line(record: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        record.keep(tmp_path / "nothing")


def test_a_truncated_verdict_is_said_in_a_line(record: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text('{"name": "perc-')
    with pytest.raises(InputError):
        record.keep(tmp_path)


def test_renewing_what_has_no_record_is_said_in_a_line(record: ModuleType, only: Only) -> None:
    with pytest.raises(InputError):
        record.compare.renew(only(FAST, recorded=False), record.plan.WORK / "sample")


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError(None, "", "no such folder", "")])
def test_each_call_counts_the_verdicts(
    record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Any
) -> None:
    """What was stored before an error or Ctrl-C is not counted in README.md."""
    monkeypatch.setattr(record, "README", tmp_path / "README.md")
    (tmp_path / "README.md").write_text("old")
    monkeypatch.setattr(record, "counted", lambda text: "new")
    stored = []

    def keep(folder: Path) -> str:
        if stored:
            raise error
        stored.append(folder)
        return "stored"

    monkeypatch.setattr(record, "keep", keep)
    monkeypatch.setattr(sys, "argv", ["record.py", "one", "two"])
    try:
        record.main()
    except BaseException:
        assert stored
    assert (tmp_path / "README.md").read_text() == "new"


def test_two_calls_at_once_do_not_run_the_same(record: ModuleType, only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing locks out/records: both calls run the same trials in one folder, and one may find "other files" in it."""
    only(FAST, recorded=False)
    begun = []

    def ran(name: str, **_: Any) -> None:
        begun.append(name)
        if len(begun) == 1:
            with suppress(InputError, SystemExit):
                record.redo(1e4, 1)  # the other call, while this one runs
        raise InputError(None, "", "enough", "")

    monkeypatch.setattr(record, "reproduce", ran)
    record.redo(1e4, 1)
    assert begun == [FAST]
