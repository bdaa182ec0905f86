"""The papers' experiments, each at smoke scale, and the command that runs them."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attempts import Attempts
from conftest import Subak, only_testbed
from subak import InputError, _subak
from subak.repro import Experiment, Verdict, catalogue, kinds, records, reproduce, rules, verdicts
from subak.repro.catalogue import find
from subak.repro.reproduce import _possible, measured, plan_of, variant_plan
from subak.repro.results import RawResults, RunPlan
from subak.repro.verdicts import Finding
from subak.runs import load

NAMES = list(catalogue())
ATTEMPTS = 3
VARIANTS = [(e.name, v.name) for e in catalogue().values() for v in e.variants]


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_runs_and_nothing_breaks_what_must_hold(name: str, tmp_path: Path) -> None:
    on_hosts = any('backend = "testbed"' in path.read_text() for path in catalogue()[name].specs.values())
    if os.geteuid() != 0 and on_hosts:
        pytest.skip("namespaces want root")
    size = catalogue()[name].sizes["smoke"]
    # Two runs if that takes a second, to test `--runs` with the experiment.
    runs = 2 if size.runs == 1 and size.seconds <= 1 else None
    tries = Attempts(ATTEMPTS if on_hosts else 1)
    with only_testbed() if on_hosts else nullcontext():
        for attempt in tries:
            out = tmp_path / f"out{attempt}"
            verdict = reproduce(name, runs=runs, out=out)
            if not verdict.broken:
                break
    broken = [(f.check.key, f.text) for f in verdict.broken]
    if broken and on_hosts:
        tries.fail(f"{broken}")
    assert not broken
    assert (verdict.word, verdict.fine) == ("works", True)
    assert any(f.judged.leans for f in verdict.findings)
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "verdict.json").read_text()) == verdict.to_dict()
    assert _judged_at_paper_scale(verdict, runs) or not verdicts.family(catalogue()[name].checks_at("paper"))


def _judged_at_paper_scale(verdict: Verdict, runs: int | None) -> list[Finding]:
    """The paper's claims, judged on the values of a small run, since smoke runs judge none."""
    experiment = verdict.experiment
    plan = plan_of(experiment.sizes["smoke"], "smoke", runs, 1)
    values = measured(experiment, RawResults(verdict.folder, plan))
    claims = [c for c in experiment.checks_at("paper") if c.part == "claim" and (c.rule or c.claim)]
    found = [verdicts.find(c, values[c.key], verdict.main.runs, len(claims)) for c in claims if c.key in values]
    assert all(f.judged.outcome in (*records.VERDICTS, "undecided") for f in found)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_its_page(name: str) -> None:
    experiment = catalogue()[name]
    assert len((experiment.folder / "page.md").read_text()) > 300
    assert not experiment.claim.endswith(".")
    assert all(experiment.checks_at(scale) for scale in ("smoke", "paper"))


def test_what_is_not_met_has_a_cause() -> None:
    recorded = {name: records.of(one) for name, one in catalogue().items()}
    failed = {name for name, one in recorded.items() if one and one.verdict.startswith(rules.FAILED)}
    assert len(failed) > 5
    assert [name for name in sorted(failed) if not catalogue()[name].causes] == []


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_variant_is_a_spec_that_can_be_run(name: str, variant: str) -> None:
    experiment = catalogue()[name]
    chosen = next(v for v in experiment.variants if v.name == variant)
    for scale in chosen.scales:
        plan = plan_of(experiment.sizes[scale], scale, None, 1)
        own = variant_plan(chosen, plan, own_runs=True)
        for spec, path in experiment.specs.items():
            changed = kinds.spec_of(path, spec, own)
            load(changed)
            assert not chosen.schemes or len(changed["scheme"]) == len(chosen.schemes), "each is there"
        told = [kinds.spec_of(path, spec, own) for spec, path in experiment.specs.items()]
        usual = [kinds.spec_of(path, spec, plan) for spec, path in experiment.specs.items()]
        assert told != usual or own.settings != plan.settings


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for jobs, folder in enumerate(folders, start=1):
        reproduce("perc-rounds", runs=8, seed=7, out=folder, jobs=jobs)
    first, second = ((folder / "raw.json").read_bytes() for folder in folders)
    assert first == second
    assert (folders[0] / "figure.png").read_bytes() == (folders[1] / "figure.png").read_bytes()


def test_a_costly_spec_may_have_fewer_runs() -> None:
    experiment = catalogue()["perc-table5.1"]

    def seeds(runs: int | None) -> list[list[int]]:
        size = replace(experiment.sizes["paper"], runs=4, runs_of={"rcp-fast": 1})
        plan = plan_of(size, "paper", runs, 5)
        specs = [kinds.spec_of(experiment.specs[name], name, plan) for name in ("rcp", "rcp-fast")]
        return [spec["run"]["seeds"] for spec in specs]

    assert seeds(None) == [[5, 6, 7, 8], [5]]
    assert seeds(2) == [[5, 6], [5, 6]], "as with --runs"


def test_changes_reach_into_lists_of_tables_by_name_or_number() -> None:
    spec: dict[str, Any] = {"scheme": [{"name": "rcp"}, {"name": "rcp", "label": "slow"}], "run": {"duration": "1s"}}
    changes = {"scheme": {"slow": {"params": {"alpha": 1}}, "0": {"label": "fast"}}, "run": {"warmup": "1ms"}}
    kinds.merge(spec, changes)
    assert spec["scheme"] == [
        {"name": "rcp", "label": "fast"},
        {"name": "rcp", "label": "slow", "params": {"alpha": 1}},
    ]
    assert spec["run"] == {"duration": "1s", "warmup": "1ms"}
    with pytest.raises(InputError, match=r"spec\.scheme\.dctcp.*fast, slow"):
        kinds.merge(spec, {"scheme": {"dctcp": {"label": "x"}}})


def test_variants_run_beside_the_experiment_and_share_nothing_with_it(tmp_path: Path) -> None:
    verdict = reproduce("numfabric-fig9", out=tmp_path / "out", variants=True)
    told = verdict.to_dict()
    assert [v["name"] for v in told["variants"]] == [v.name for v in catalogue()["numfabric-fig9"].variants]
    measured = {json.dumps([c["measured"] for c in of["checks"]]) for of in (told, *told["variants"])}
    assert len(measured) > 1, "a variant differs"
    again = reproduce("numfabric-fig9", out=tmp_path / "out", variants=True)
    assert not any(o.ran for o in (again.main, *again.variants))
    assert again.to_dict() == told
    assert reproduce("numfabric-fig9", out=tmp_path / "out").variants == (), "not at smoke scale unless asked for"


def test_figures_of_one_simulation_run_it_once(tmp_path: Path) -> None:
    """Figure 14 of Flowtune links the results of figure 13 beside it, of the same seed alone."""
    assert reproduce("flowtune-fig13", out=tmp_path / "a").main.ran
    assert not reproduce("flowtune-fig14", out=tmp_path / "b").main.ran
    one, other = (tmp_path / name / "run" / "results.parquet" for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()
    assert reproduce("flowtune-fig14", seed=2, out=tmp_path / "c").main.ran
    # A folder without its results has nothing to link.
    one.unlink()
    other.unlink()
    assert reproduce("flowtune-fig14", out=tmp_path / "d").main.ran


def test_a_changed_setup_says_what_comes_out_without(tmp_path: Path) -> None:
    told = reproduce("perc-drops", scale="paper", out=tmp_path / "a", variants=True, runs=2).to_dict()
    assert told["verdict"] == "undecided", "2 of 2 runs show little of every run"
    assert [c["comes_out"] for c in told["changed"]] == ["undecided", "not run"], "the second has no variant"
    told = reproduce("perc-drops", scale="paper", out=tmp_path / "b", variants=False, runs=2).to_dict()
    assert [c["comes_out"] for c in told["changed"]] == ["not run", "not run"]


def test_seconds_add_up_over_attempts(tmp_path: Path) -> None:
    class StopError(RuntimeError):
        pass

    def stop(done: int, trials: int, share: float) -> None:
        if done:
            raise StopError

    with pytest.raises(StopError):
        reproduce("perc-fig2.12", out=tmp_path / "out", jobs=1, progress=stop)
    first = json.loads((tmp_path / "out/took.json").read_text())["seconds"]
    verdict = reproduce("perc-fig2.12", out=tmp_path / "out")
    assert verdict.main.seconds > first > 0
    assert reproduce("perc-fig2.12", out=tmp_path / "out").main.seconds == verdict.main.seconds


def test_results_are_kept_and_a_claim_that_is_not_met_ends_with_1(subak: Subak, tmp_path: Path) -> None:
    ran = subak("repro", "perc-fig2.3", "--scale", "paper", "--out", tmp_path / "out", "--json")
    assert (ran.code, ran.json["verdict"]) == (0, "met")
    assert ran.json["jobs"] >= 1
    assert ran.json["cpu_seconds"] >= 0
    assert ran.json["build"]["version"] == _subak.__version__
    raw = json.loads((tmp_path / "out/raw.json").read_text())
    raw["values"]["update 1"][1] = 21
    (tmp_path / "out/raw.json").write_text(json.dumps(raw))
    again = subak("repro", "perc-fig2.3", "--scale", "paper", "--out", tmp_path / "out")
    assert again.code == 1
    assert "NOT MET" in again.out
    assert "there already" in again.out
    assert json.loads((tmp_path / "out/verdict.json").read_text())["seconds"] == ran.json["seconds"]


def test_what_is_undecided_ends_with_1_and_says_what_it_needs(subak: Subak, tmp_path: Path) -> None:
    ran = subak("repro", "perc-rounds", "--scale", "paper", "--runs", "1", "--no-variants", "--out", tmp_path / "out")
    assert ran.code == 1
    assert "Verdict: undecided" in ran.out
    assert "a second is needed" in " ".join(ran.out.split())


CONTRADICTED = ["flowtune-fig12", "flowtune-fig13", "flowtune-fig15", "flowtune-fig16", "flowtune-fig17"]


@pytest.mark.parametrize("name", [*CONTRADICTED, "soze-fig15", "soze-fig18"])
def test_a_smoke_run_says_what_was_recorded_and_claims_nothing(subak: Subak, name: str, tmp_path: Path) -> None:
    ran = subak("repro", name, "--out", tmp_path / "out")
    said = " ".join(ran.out.split())
    record = records.of(catalogue()[name])
    assert record is not None
    assert ran.code == 0
    assert f"recorded at paper scale: {record.verdict} ({record.runs}, {record.date}, {record.age})." in said
    assert "Verdict: met" not in said
    assert not record.verdict.startswith("met")


def test_a_smoke_run_with_a_value_elsewhere_fails(subak: Subak, tmp_path: Path) -> None:
    reproduce("perc-fig2.3", out=tmp_path / "out")
    raw = json.loads((tmp_path / "out/raw.json").read_text())
    raw["values"]["update 1"][1] = 21
    (tmp_path / "out/raw.json").write_text(json.dumps(raw))
    ran = subak("repro", "perc-fig2.3", "--out", tmp_path / "out")
    assert ran.code == 1
    assert "Smoke run: fails" in ran.out
    assert "should show otherwise: update 1" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    "damage", ['{"values": [', '{"values": {}}', '{"values": {"update 1": {"of": 3}}, "tables": {}}']
)
def test_damaged_results_are_named(damage: str, tmp_path: Path) -> None:
    reproduce("perc-fig2.3", out=tmp_path)
    (tmp_path / "raw.json").write_text(damage)
    with pytest.raises(InputError, match=r"raw\.json"):
        reproduce("perc-fig2.3", out=tmp_path)


def test_the_table_shows_published_and_measured(subak: Subak, tmp_path: Path) -> None:
    ran = subak("repro", "perc-fig1.3", "--scale", "paper", "--out", tmp_path / "out")
    assert ran.code == 0
    assert all(word in ran.out for word in ("Claimed", "Published", "Measured", "Verdict: met", "RTT 3: A 50"))


def test_the_picture_alone_wants_matplotlib(subak: Subak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "without/matplotlib.py"
    library.parent.mkdir()
    library.write_text("raise ModuleNotFoundError('there is none', name='matplotlib')")
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{library.parent}:{before}")
    command = ["repro", "perc-fig2.3", "--out", tmp_path / "out"]
    ran = subak(*command)
    assert ran.code == 0, ran.err
    assert "Published" in ran.out
    assert "Smoke run: works" in ran.out
    said = [line for line in ran.err.splitlines() if line.startswith("subak: ")]
    assert len(said) == 1
    assert 'pip install "subak[plot]"' in said[0]
    assert subak(*command, "--json").json["figures"] == []
    assert not (tmp_path / "out/figure.png").exists()
    monkeypatch.setenv("PYTHONPATH", before)
    again = subak(*command, "--json")
    assert (again.code, again.json["figures"]) == (0, ["figure.png"])
    assert (tmp_path / "out/figure.png").exists()


def test_variants_stand_side_by_side(subak: Subak, tmp_path: Path) -> None:
    ran = subak("repro", "numfabric-fig9", "--variants", "--out", tmp_path / "out")
    assert all(word in ran.out for word in ("as set up", "dt 3 us", "eta 20"))


def test_list(subak: Subak) -> None:
    listed = subak("repro", "--list", "--json").json["experiments"]
    assert [e["name"] for e in listed] == NAMES
    assert all(e["verdict"] for e in listed)
    assert all(e["age"] in ("", "of today's code", "of older code", "of unknown code") for e in listed)
    assert all({"changed_since", "samples", "held_out_seeds"} <= set(e) for e in listed)
    told = subak("repro", "--list").out
    assert all(name in told for name in NAMES)
    assert "Verdict at paper scale" in told
    assert records.ages(catalogue().values()) in " ".join(told.split())


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["perc-fig9.9"], "NAME"),
        ([], "NAME"),
        (["perc-fig2.3", "--scale", "huge"], "--scale"),
        (["perc-fig2.3", "--runs", "0"], "--runs"),
        (["perc-fig2.3", "--seed", "-1"], "--seed"),
        (["perc-fig2.3", "--on", "testbed"], "perc-fig2.3 has no testbed side"),
        (["perc-fig2.3", "--on", "mars"], "--on"),
    ],
)
def test_unusable_input_ends_with_2(subak: Subak, arguments: list[str], place: str, tmp_path: Path) -> None:
    ran = subak("repro", *arguments, cwd=tmp_path)
    assert ran.code == 2
    assert place in ran.err
    assert not list(tmp_path.iterdir())


def test_a_folder_with_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce("perc-fig2.3", out=tmp_path / "out")
    with pytest.raises(InputError, match="experiment"):
        reproduce("perc-fig3.2", out=tmp_path / "out")
    with pytest.raises(InputError, match="seed"):
        reproduce("perc-fig2.3", out=tmp_path / "out", seed=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        reproduce("perc-fig2.3", out=tmp_path / "other")
    monkeypatch.setattr(sys.modules["subak.repro.reproduce"], "build", lambda: {"version": "9.9", "sources": "abc"})
    with pytest.raises(InputError, match=r"another build; choose another --out"):
        reproduce("perc-fig2.3", out=tmp_path / "out")


def _copied(name: str, folder: Path) -> Experiment:
    experiment = catalogue()[name]
    own = folder / "own"
    own.mkdir()
    for path in experiment.folder.glob("*.toml"):
        (own / path.name).write_text(path.read_text())
    return replace(experiment, folder=own)


def test_a_plan_without_schemes_keeps_all() -> None:
    experiment = catalogue()["numfabric-fig7"]
    plan = RunPlan("paper", 1, 1)
    assert len(kinds.spec_of(experiment.specs[""], "", plan)["scheme"]) == 2
    assert len(kinds.spec_of(experiment.specs[""], "", replace(plan, schemes=("pfabric",)))["scheme"]) == 1


def test_each_side_takes_its_own_experiments() -> None:
    hosts = {one.name for one in catalogue().values() if kinds.is_of_hosts(one)}
    assert hosts == {"flowtune-fig6", "flowtune-fig7", "soze-hosts"}
    # Names of scales are checked before anything runs.
    for name, on, said in (
        ("perc-fig3.5", "testbed", "experiments of hosts are: flowtune-fig6"),
        ("perc-fig3.5", "moon", "choose sim or testbed"),
        ("soze-hosts", "sim", "it runs on: testbed"),
    ):
        with pytest.raises(InputError) as refused:
            reproduce(name, on=on)
        assert refused.value.place == "--on"
        assert said in f"{refused.value.what}; {refused.value.hint}"
    for name, on in (("soze-hosts", "testbed"), ("soze-hosts", None), ("perc-fig3.5", "sim")):
        _possible(find(name), "smoke", None, 1, on)
