"""Errors in an experiment's files name the file, the place and a hint; and the kinds of experiments."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from subak import InputError
from subak.repro import Experiment, kinds
from subak.repro.catalogue import _printed, catalogue, heading, read, refuse_one_name
from subak.repro.results import RawResults, RunPlan
from subak.repro.rules import Rule

EXPERIMENT = """
name = "x-fig1"
title = "A title"
figure = "figure 1"
claim = "It is so"
kind = "specs"
schemes = ["dctcp"]
smoke = {seconds = 1}
paper = {runs = 3, seconds = 10}

[[variant]]
name = "larger"
changed = "twice the buffer"
spec.network.buffer = "2MB"
"""
PUBLISHED = """
[[check]]
key = "a"
what = "a value"
published = "at most 3"
at = "section 1"
at_most = 3
"""
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def folder(experiment: str = EXPERIMENT, published: str = PUBLISHED, spec: str | None = "schema = 1") -> Path:
        (tmp_path / "experiment.toml").write_text(experiment)
        (tmp_path / "published.toml").write_text(published)
        if spec is not None:
            (tmp_path / "spec.toml").write_text(spec)
        return tmp_path

    return folder


def test_a_sound_one_is_read(make: Make) -> None:
    found = read(make())
    assert (found.kind, found.sizes["paper"].runs, found.variants[0].folder) == ("specs", 3, "larger")
    assert found.checks[0].must_show == "at most 3"


@pytest.mark.parametrize(
    ("change", "place", "hint"),
    [
        (("kind =", "kin ="), "kind", "give a text"),
        (('"specs"', '"bench"'), "kind", "choose one of: specs, python"),
        (('"It is so"', '""'), "claim", "say it in words"),
        (('claim = "It is so"', "claim = 3"), "claim", "give a text"),
        (("runs = 3", "runs = 0"), "paper.runs", "give 1 or more"),
        (("runs = 3", 'runs = "3"'), "paper.runs", "give a whole number"),
        (("runs = 3", "runs = 3, jobs = 2"), "paper.jobs", "choose among: runs, runs_of"),
        (("runs = 3", "runs = 3, runs_of = {fast = 1}"), "paper.runs_of", 'there is no spec "fast"'),
        (("runs = 3", "runs = 3, settings = {a = 1}"), "paper.settings", "write what is different under `spec`"),
        (("spec.network", "sped.network"), "variant[0].sped", "choose among: changed, departs, name, runs"),
        (('spec.network.buffer = "2MB"', ""), "variant[0]", "give what is different"),
        (
            ("[[variant]]", "[[changed]]\nwhat = 'a'\nwhy = 'b'\nwithout = 'c'\n[[variant]]"),
            "changed[0].without",
            "larger",
        ),
        (("[[variant]]", "[[cause]]\nwhat = 'a'\n[[variant]]"), "cause[0].shown_by", "name variants or checks"),
        (
            ("[[variant]]", "[[cause]]\nwhat = 'a'\nshown_by = ['c']\n[[variant]]"),
            "cause.shown_by",
            "the key of a check",
        ),
        (("smoke =", 'specs_of = "fig2"\nsmoke ='), "specs_of", "has specs too"),
        (("[[variant]]", "[[variant]"), "", "correct it"),
        (("smoke =", "smok ="), "smoke", "give a table"),
        (("smoke =", 'packages = ["pipelin"]\nsmoke ='), "packages", "there is no subak/pipelin"),
    ],
)
def test_what_is_wrong_with_experiment_toml(make: Make, change: tuple[str, str], place: str, hint: str) -> None:
    with pytest.raises(InputError) as raised:
        read(make(EXPERIMENT.replace(*change)))
    error = raised.value
    assert error.file is not None
    assert error.file.endswith("experiment.toml")
    assert error.place == place
    assert hint in str(error)


@pytest.mark.parametrize(
    ("change", "place", "hint"),
    [
        (("at_most = 3", "at_mots = 3"), "check[0].at_mots", "choose among"),
        (("at_most = 3", 'at_most = "3"'), "check[0].at_most", "give a number"),
        (("at_most = 3", "within = [3, 1]"), "check[0].within", "[low, high]"),
        (("at_most = 3", "at_most = 3\nat_least = 1"), "check[0].at_least", "one rule"),
        (("at_most = 3", "equals = 3"), "check[0].equals", "exact = true"),
        (("at_most = 3", ""), "check", "give at least one [[check]] a rule"),
        (('at = "section 1"', ""), "check[0].at", "both or neither"),
        (
            ('published = "at most 3"\nat = "section 1"', "ours = true\nclaim = {at_most = 3}"),
            "check[0].claim",
            "published",
        ),
        (("at_most = 3", 'at_most = 3\nscales = ["large"]'), "check[0].scales", "smoke, paper"),
        (("[[check]]", '[[check]]\nkey = "a"\nwhat = "b"\n[[check]]'), "check", "rename one"),
    ],
)
def test_what_is_wrong_with_published_toml(make: Make, change: tuple[str, str], place: str, hint: str) -> None:
    with pytest.raises(InputError) as raised:
        read(make(published=PUBLISHED.replace(*change)))
    error = raised.value
    assert error.file is not None
    assert error.file.endswith("published.toml")
    assert error.place == place
    assert hint in str(error)


def test_missing_files_are_named(make: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"kind: .* holds no spec\.toml"):
        read(make(spec=None))
    (tmp_path / "published.toml").unlink()
    with pytest.raises(InputError, match=r"published\.toml: it is missing"):
        read(tmp_path)


def test_two_of_one_name_are_refused_and_both_named(make: Make, tmp_path: Path) -> None:
    folders = [tmp_path / "paper" / name for name in ("fig1", "fig2")]
    for folder in folders:
        shutil.copytree(make(), folder, ignore=lambda *_: ["paper"])
    with pytest.raises(InputError, match=r'fig2/experiment\.toml.*fig1 is called "x-fig1" too'):
        refuse_one_name([read(folder) for folder in folders])


def test_an_experiment_without_a_heading_is_named() -> None:
    known = next(iter(catalogue().values()))
    with pytest.raises(InputError, match=r"front\.new: nothing says where new-fig1 stands"):
        heading(replace(known, name="new-fig1"))


def _python(run: Any, folder: Path) -> Any:
    return SimpleNamespace(name="x-fit", folder=folder, specs={}, module=SimpleNamespace(run=run), kind="python")


def test_a_python_experiment_gives_rows_and_values(tmp_path: Path) -> None:
    def run(settings: dict[str, Any], runs: int, seed: int, progress: Any) -> dict[str, Any]:
        progress(1, 1, 1.0)
        table = {"columns": ["run", "stages"], "rows": [[seed + k, settings["stages"]] for k in range(runs)]}
        return {"tables": {"fits": table}, "values": {"a": 3, "b": {"statistic": "mean", "data": [1, 3], "of": "runs"}}}

    experiment = _python(run, tmp_path)
    kind, plan = kinds.KINDS["python"], RunPlan("smoke", 2, 5, settings={"stages": 16})
    assert not kind.there(experiment, plan, tmp_path)
    kind.run(experiment, plan, tmp_path)
    raw = RawResults(tmp_path, plan)
    assert raw.rows("fits") == [{"run": 5, "stages": 16}, {"run": 6, "stages": 16}]
    values = raw.values()
    assert values["a"] == 3
    assert values["b"].value == 2  # type: ignore[union-attr]
    assert kind.there(experiment, plan, tmp_path)


def test_a_python_experiment_that_gives_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows beside schema, setup, tables"):
        kinds.KINDS["python"].run(_python(lambda *_: {"rows": []}, tmp_path), RunPlan("smoke", 1, 1), tmp_path)


def test_kinds_are_registered() -> None:
    assert {"specs", "python"} <= set(kinds.KINDS)
    assert isinstance(Experiment, type)


@pytest.mark.parametrize(
    ("rule", "published", "quote", "paper"),
    [
        (Rule("at_least", 0.85), "0.79", "", False),
        (Rule("at_most", 0.79), "0.79", "", True),
        (Rule("at_least", 1), "higher", "", True),
        (Rule("at_least", 2), "much higher", "", False),
        (Rule("within", [6, 24]), "12", "", False),
        (Rule("at_most", 49152), "49,152 flows", "", True),
        pytest.param(Rule("within", [1, 7]), "about alike", "", False),
        pytest.param(Rule("within", [0, 5]), "next to none", "", False),
        (Rule("at_least", 100), "described", "", False),
        (Rule("at_least", 100), "every network settles within 4 rounds", "", True),
        pytest.param(Rule("at_least", 1), "1.61", "reduced the p95", False),
        pytest.param(Rule("at_most", 5), "see figure 5", "", False),
        (Rule("equals", 4), "several", "", False),
        (Rule("equals", 4), "4 stages", "", True),
        (Rule("equals", 0), "none", "", True),
        (Rule("equals", "4/3"), "4/3", "", True),
    ],
)
def test_a_bound_that_the_paper_does_not_print_is_ours(rule: Rule, published: str, quote: str, paper: bool) -> None:
    assert _printed(rule, published, quote) is paper


def test_what_contradicts_the_paper_is_a_number_of_the_paper() -> None:
    """Only a claim with the paper's own numbers can contradict the paper; a bound of this project can only be unmet."""
    ours = [
        f"{e.name} {c.key}"
        for e in catalogue().values()
        for c in e.checks
        if c.claim and c.part == "claim" and not _printed(c.claim, c.published, c.quote) and c.claim.bound not in (0, 1)
    ]
    assert ours == []
