"""Records hold values; every verdict follows from them by today's rules."""

from __future__ import annotations

import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from subak import InputError
from subak.repro import Check, Experiment, Measured, catalogue, records, reproduce
from subak.repro.experiment import INPUT, OURS, Changed, Open, Reading
from subak.repro.rules import Rule
from subak.repro.values import as_json

RECORDED = [name for name, one in catalogue().items() if records.of(one)]


def recorded(name: str) -> records.Record:
    record = records.of(catalogue()[name])
    assert record is not None
    return record


def by_hand(record: records.Record) -> str:
    """The verdict worked out a second way: from the record's text alone, claim by claim."""
    today = {check.key: check for check in record.experiment.checks_at("paper")}
    values = {one["key"]: one["measured"] for one in record.held["checks"]}
    ends: dict[str, tuple[Any, Any] | None] = {}
    for key, check in today.items():
        found = values.get(key)
        if check.part != "claim" or not (check.rule or check.claim):
            continue
        if check.exact and key in values:
            point = found["value"] if isinstance(found, dict) else found
            ends[key] = point, point
        else:
            interval = found["interval"] if isinstance(found, dict) else None
            ends[key] = (interval[0], interval[1]) if interval else None
    outcomes = {key: _outcome(today[key], pair) for key, pair in ends.items()}
    for worst in ("contradicted", "not met", "undecided"):
        if worst in outcomes.values():
            return worst
    return "met" if outcomes else "no claim"


def _outcome(check: Check, ends: tuple[Any, Any] | None) -> str:
    if ends is None:
        return "undecided"
    low, high = (float(e) if e in ("inf", "-inf") and check.rule and check.rule.op != "equals" else e for e in ends)
    rules = {"contradicted": check.claim, "not met": check.rule or check.claim}
    for outcome, rule in rules.items():
        if rule is None:
            continue
        holds = rule.holds(low), rule.holds(high)
        outside = rule.op != "within" or high < rule.bound[0] or low > rule.bound[1]
        if not any(holds) and outside:
            return outcome
    rule = check.rule or check.claim
    assert rule is not None
    return "met" if rule.holds(low) and rule.holds(high) else "undecided"


@pytest.mark.parametrize("name", RECORDED)
def test_no_verdict_is_stored_and_each_follows_from_the_values(name: str) -> None:
    record = recorded(name)
    text = (record.experiment.folder / "record.json").read_text()
    assert not [word for word in records.UNJUDGED if f'"{word}"' in text]
    if record.verdict == "depends" or any(f.judged.outcome == "depends" for f in record.findings):
        assert record.experiment.open
    else:
        expected = by_hand(record)
        changed = expected == "met" and record.departures
        assert record.verdict == ("met with a changed setup" if changed else expected)


def test_what_is_in_a_record_decides_its_verdict() -> None:
    record = recorded("perc-fig2.3")
    held = json.loads(json.dumps(record.held))
    held["checks"][0]["measured"] = ["inf", 21.0, 20.0]
    assert (record.verdict, records.Record(held, record.experiment).verdict) == ("met", "not met")


def check(key: str, **more: Any) -> Check:
    told: dict[str, Any] = {
        "published": "2",
        "at": "here",
        "must_show": "",
        "rule": Rule("at_least", 2),
        "claim": None,
        "ours": False,
        "exact": False,
    }
    return Check(key=key, what=key, **(told | more))


def made(
    checks: list[Check], values: dict[str, Any], others: dict[str, Any] | None = None, **of: Any
) -> records.Record:
    experiment = replace(catalogue()["perc-fig2.3"], checks=tuple(checks), **of)

    def rows(found: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"key": key, "measured": as_json(value)} for key, value in found.items()]

    variants = [{"name": name, "runs": 3, "checks": rows(found)} for name, found in (others or {}).items()]
    measures = records.measures(experiment)
    held = {"runs": 3, "checks": rows(values), "variants": variants, "measures": measures, "date": "2026-01-02"}
    return records.Record(held, experiment)


FINE, LOW, LOST = Measured(3, 2.5, 3.5), Measured(1, 0.5, 1.5), Measured(2, 1, 3)


def test_only_claims_of_the_paper_make_the_verdict() -> None:
    ours, put_in = check("b", part=OURS), check("c", part=INPUT)
    assert made([check("a"), ours, put_in], {"a": FINE, "b": LOW, "c": LOW}).verdict == "met"
    assert made([check("a"), ours], {"a": LOW, "b": FINE}).verdict == "not met"
    assert made([ours, put_in], {"b": FINE, "c": FINE}).verdict == "no claim"


def test_what_was_not_measured_is_undecided() -> None:
    record = made([check("a"), check("new")], {"a": FINE})
    assert record.verdict == "undecided"
    assert "not measured then" in records.found(record)


def test_a_changed_setup_is_in_the_verdict_until_it_is_run_as_it_is_now() -> None:
    declared = Changed("fewer hosts", "time")
    assert made([check("a")], {"a": FINE}, changed=(declared,)).verdict == "met with a changed setup"
    mended = made([check("a")], {"a": FINE}, changed=(replace(declared, mended=True),))
    assert mended.verdict == "met"
    mended.held["measures"][records.OWN] = "another"
    assert mended.verdict == "met with a changed setup"


OPEN = Open("the window", (Reading("10", "", False), Reading("2", "two", True)))


@pytest.mark.parametrize(
    ("set_up", "two", "verdict"),
    [
        (LOW, FINE, "depends"),
        (FINE, LOW, "depends"),
        (LOW, LOW, "not met"),
        (FINE, FINE, "met"),
        (LOW, Measured(2.5), "depends"),
        (LOW, Measured(1.5), "not met"),
        (LOST, Measured(2.5), "undecided"),
        (LOW, None, "not met"),
    ],
)
def test_what_turns_on_an_open_parameter_depends(set_up: Measured, two: Measured | None, verdict: str) -> None:
    others = {"two": {"a": two}} if two else {}
    assert made([check("a")], {"a": set_up}, others, open=(OPEN,)).verdict == verdict


def test_a_claim_that_fails_in_every_reading_is_not_met_whatever_turns_beside_it() -> None:
    both = [check("a"), check("b")]
    turned = made(both, {"a": LOW, "b": LOW}, {"two": {"a": FINE, "b": LOW}}, open=(OPEN,))
    assert turned.verdict == "not met"
    unknown = made(both, {"a": LOW, "b": LOW}, {"two": {"a": FINE}}, open=(OPEN,))
    assert unknown.verdict == "depends", "nobody measured b in that reading"


def test_what_runs_in_place_of_the_named_system_is_in_the_line() -> None:
    record = made([check("a")], {"a": FINE}, instead="exact fluid rates")
    assert record.short == "met, 3 runs, of exact fluid rates"
    assert "of exact fluid rates" in records.found(record)


def test_the_sentence_of_what_was_found_names_what_decides() -> None:
    record = made([check("C"), check("A over B", must_show="at least 2")], {"C": FINE, "A over B": LOW})
    said = records.found(record)
    assert said == "not met at paper scale, in 3 runs: A over B: 1 [0.5, 1.5] (1 run) (to show: at least 2)."


def test_which_records_are_older_than_what_they_measure() -> None:
    """Old records are no fault: they are named, and `make records` redoes them."""
    known = {e.name: records.of(e) for e in catalogue().values()}
    old = [name for name, record in known.items() if record is None or record.changed_since()]
    if old:
        warnings.warn(f"records older than what they measure (make records): {', '.join(old)}", stacklevel=1)


@pytest.fixture
def copied(tmp_path: Path) -> Experiment:
    """An experiment in a folder of its own, without a record."""
    experiment = catalogue()["perc-fig2.3"]
    own = tmp_path / "own"
    own.mkdir()
    for path in experiment.folder.glob("*.toml"):
        (own / path.name).write_text(path.read_text())
    return replace(experiment, folder=own)


def test_a_record_knows_what_has_changed_since(copied: Experiment, tmp_path: Path) -> None:
    assert records.of(copied) is None
    assert records.short(copied) == "not recorded"
    told = reproduce("perc-fig2.3", scale="paper", out=tmp_path / "out").to_dict()
    assert records.keep(copied, {**told, "measures": records.measures(copied)})
    record = records.of(copied)
    assert record is not None
    assert record.changed_since() == []
    assert {"build", "runs", "seconds", "cpu_seconds", "jobs", "measures", "date"} <= set(record.held)
    (copied.folder / "published.toml").write_text("# other bounds")
    assert record.changed_since() == [], "rules are not what was measured"
    (copied.folder / "spec.toml").write_text("# another setup")
    assert record.changed_since() == ["the experiment"]
    (copied.folder / "record.json").write_text("{")
    with pytest.raises(InputError, match=r"record\.json"):
        records.of(copied)


def test_fewer_runs_never_replace_a_record(copied: Experiment, tmp_path: Path) -> None:
    told = reproduce("perc-fig2.3", scale="paper", out=tmp_path / "out").to_dict()
    assert records.keep(copied, {**told, "runs": 9})
    assert not records.keep(copied, {**told, "runs": 3})
    record = records.of(copied)
    assert record is not None
    assert record.held["runs"] == 9
    assert [one["runs"] for one in record.held["beside"]] == [3]
    assert records.keep(copied, {**told, "runs": 12})
    again = records.of(copied)
    assert again is not None
    assert again.held["runs"] == 12


def test_the_page_of_what_moved_has_every_row_that_is_not_met() -> None:
    page = (ROOT / "docs/verdicts.md").read_text()
    missing = [n for n in RECORDED if not recorded(n).verdict.startswith("met") and f"[{n}]" not in page]
    assert missing == []


def test_a_record_knows_the_packages_that_its_code_imports() -> None:
    """Derived from the imports, by way of shared modules too: no row has to name them."""
    held = {e.name: records.measures(e) for e in catalogue().values()}
    fits = [name for name in held if name.startswith("fit-")]
    assert len(fits) >= 12
    assert all("subak/pipeline" in held[name] for name in fits)
    assert "subak/policy" in held["soze-policy"]
    assert "subak/pipeline" not in held["perc-fig3.2"]


def test_a_switch_or_a_program_of_the_compiler_is_part_of_what_a_row_measures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / "subak"
    shutil.copytree(records.PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    monkeypatch.setattr(records, "PACKAGE", copy)
    row = catalogue()["fit-table6.4"]
    records._package.cache_clear()
    before = records.sources(row)
    for name in ("programs/l2l3-complex.json", "switches/rmt.toml", "p4/grammar.lark", "greedy.py"):
        changed = copy / "pipeline" / name
        kept = changed.read_bytes()
        changed.write_bytes(kept + b" ")
        records._package.cache_clear()
        assert records.sources(row) != before, name
        changed.write_bytes(kept)
    records._package.cache_clear()
    assert records.sources(row) == before
