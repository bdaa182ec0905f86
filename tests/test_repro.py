"""The papers' experiments, each at smoke scale, and the command that runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Subak
from subak import InputError, _subak
from subak.repro import catalogue, reproduce
from subak.repro.reproduce import spec_of
from subak.repro.results import Measured, RunPlan, passes, told, told_json

NAMES = list(catalogue())


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_meets_its_verdict(name: str, tmp_path: Path) -> None:
    verdict = reproduce(name, out=tmp_path / "out")
    assert [f.what for f in verdict.findings if f.met is False] == []
    assert any(f.met for f in verdict.findings)
    assert (tmp_path / "out/figure.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out/verdict.json").read_text()) == verdict.to_dict()


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_its_page(name: str) -> None:
    experiment = catalogue()[name]
    assert len((experiment.folder / "page.md").read_text()) > 300
    for size in experiment.sizes.values():
        assert set(size.settings.get("runs_of", {})) <= set(experiment.specs)
    assert experiment.title
    assert experiment.figure
    assert experiment.shows
    assert bool(experiment.specs) == bool(experiment.checks)


def test_nothing_that_the_round_driver_computes_is_left_out() -> None:
    assert set(_subak.rounds_experiments()) == {e.name for e in catalogue().values() if not e.specs}


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for jobs, folder in enumerate(folders, start=1):
        reproduce("perc-rounds", runs=8, seed=7, out=folder, jobs=jobs)
    first, second = ((folder / "raw.json").read_bytes() for folder in folders)
    assert first == second
    assert (folders[0] / "figure.png").read_bytes() == (folders[1] / "figure.png").read_bytes()


def test_a_costly_spec_may_have_fewer_runs() -> None:
    experiment = catalogue()["perc-table5.1"]
    settings = experiment.sizes["paper"].settings

    def seeds(settings: dict[str, Any]) -> list[list[int]]:
        plan = RunPlan("paper", 3, 5, settings)
        specs = [spec_of(experiment, experiment.specs[name], name, plan) for name in ("rcp", "rcp-fast")]
        return [spec["run"]["seeds"] for spec in specs]

    assert seeds(settings) == [[5, 6, 7], [5]]
    assert seeds({}) == [[5, 6, 7], [5, 6, 7]], "as with --runs"


def test_results_are_kept_and_a_failed_check_ends_with_1(subak: Subak, tmp_path: Path) -> None:
    ran = subak("repro", "perc-fig2.3", "--out", tmp_path / "out", "--json")
    assert (ran.code, ran.json["verdict"]) == (0, "met")
    raw = json.loads((tmp_path / "out/raw.json").read_text())
    raw["checks"][0]["pass"] = False
    (tmp_path / "out/raw.json").write_text(json.dumps(raw))
    again = subak("repro", "perc-fig2.3", "--out", tmp_path / "out")
    assert again.code == 1
    assert "NOT MET" in again.out
    assert "there already" in again.out
    assert json.loads((tmp_path / "out/verdict.json").read_text())["seconds"] == ran.json["seconds"]


def test_damaged_results_are_named(tmp_path: Path) -> None:
    reproduce("perc-fig2.3", out=tmp_path)
    (tmp_path / "raw.json").write_text('{"checks": [')
    with pytest.raises(InputError, match=r"raw\.json"):
        reproduce("perc-fig2.3", out=tmp_path)


def test_the_table_shows_published_and_measured(subak: Subak, tmp_path: Path) -> None:
    ran = subak("repro", "perc-fig1.3", "--out", tmp_path / "out")
    assert ran.code == 0
    assert all(word in ran.out for word in ("Published", "Measured", "Verdict: met", "fair: C starts"))


def test_list(subak: Subak) -> None:
    listed = subak("repro", "--list", "--json").json["experiments"]
    assert [e["name"] for e in listed] == NAMES
    assert all(name in subak("repro", "--list").out for name in NAMES)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["perc-fig9.9"], "NAME"),
        ([], "NAME"),
        (["perc-fig2.3", "--scale", "huge"], "--scale"),
        (["perc-fig2.3", "--runs", "0"], "--runs"),
        (["perc-fig2.3", "--seed", "-1"], "--seed"),
    ],
)
def test_unusable_input_ends_with_2(subak: Subak, arguments: list[str], place: str, tmp_path: Path) -> None:
    ran = subak("repro", *arguments, cwd=tmp_path)
    assert ran.code == 2
    assert place in ran.err
    assert not list(tmp_path.iterdir())


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    reproduce("perc-fig2.3", out=tmp_path / "out")
    with pytest.raises(InputError, match="experiment"):
        reproduce("perc-fig3.2", out=tmp_path / "out")
    with pytest.raises(InputError, match="seed"):
        reproduce("perc-fig2.3", out=tmp_path / "out", seed=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        reproduce("perc-fig2.3", out=tmp_path / "other")


@pytest.mark.parametrize(
    ("rule", "value", "met"),
    [
        (("at_most", 3), 3, True),
        (("at_most", 3), 3.1, False),
        (("at_least", 2), Measured(1.9), False),
        (("within", [1, 2]), Measured(1.5, 1, 2), True),
        (("equals", [1.0, 2.0]), [1.0, 2.0 + 1e-12], True),
        (("equals", [1.0, 2.0]), [1.0, 2.1], False),
        (("equals", [1.0, 2.0]), [1.0], False),
        (("at_most", 3), float("nan"), False),
        (("at_most", 3), "none", False),
        (("equals", True), 1.5, False),
    ],
)
def test_rules(rule: tuple[str, object], value: object, met: bool) -> None:
    assert passes(rule, 1e-9, value) is met


def test_how_values_read() -> None:
    assert told(Measured(1.25, 1, 1.5, "9 runs"), "RTTs") == "1.25 RTTs [1, 1.5] (9 runs)"
    assert told_json({"rates_gbps": [50.0, 20], "rtts": 1.5}) == "rates gbps 50, 20; rtts 1.5"
    assert told_json([[1, 2], [3]]) == "(1, 2), (3)"
