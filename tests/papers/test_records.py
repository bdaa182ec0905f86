"""Records have values; every verdict follows from the values by the present rules."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from subak import InputError, _subak
from subak.repro import Check, Experiment, Measured, catalogue, measures, records, reproduce, samples, verdicts
from subak.repro.experiment import INPUT, OURS, Changed, Open, Reading, Variant
from subak.repro.rules import Rule
from subak.repro.values import as_json

RECORDED = [name for name, one in catalogue().items() if records.of(one)]


def recorded(name: str) -> records.Record:
    record = records.of(catalogue()[name])
    assert record is not None
    return record


def by_hand(record: records.Record) -> str:
    """The verdict computed independently, claim by claim, from the record's text alone."""
    asked = [c for c in record.experiment.checks_at("paper") if c.part == "claim" and (c.rule or c.claim)]
    values = {one["key"]: one["measured"] for one in record.held["checks"]}
    outcomes = {c.key: _outcome(c, values[c.key], len(asked)) if c.key in values else "undecided" for c in asked}
    for worst in ("contradicted", "not met", "undecided"):
        decide = [c for c in asked if outcomes[c.key] == worst]
        if decide:
            return worst + (" by our bound" if worst == "not met" and all(c.ours for c in decide) else "")
    return ("met by our bound" if all(c.ours for c in asked) else "met") if asked else "no claim"


def _outcome(check: Check, found: Any, family: int) -> str:
    is_share = isinstance(found, dict) and (found.get("share") or _is_wilsons(found))
    if check.exact and not is_share:
        ends = wide = (found["value"] if isinstance(found, dict) else found,) * 2
    elif not isinstance(found, dict) or not found["interval"] or found["of"] == "starts":
        return "undecided"
    else:
        ends = _exactly(found, 0.05) if is_share else tuple(float(end) for end in found["interval"])
        wide = ends if any(map(math.isinf, ends)) else _wider(found, ends, family, is_share)
    for outcome, rule in {"contradicted": check.claim, "not met": check.rule or check.claim}.items():
        if rule is not None and _outside(rule, wide):
            return outcome if check.exact or found["count"] >= 5 else "undecided"
    rule = check.rule or check.claim
    assert rule is not None
    if is_share and (rule.op, rule.bound) == ("at_least", 100):
        return "met" if found["value"] == 100 and ends[0] >= 99 else "undecided"
    return "met" if rule.holds(ends[0]) and rule.holds(ends[1]) else "undecided"


def _outside(rule: Rule, ends: tuple[Any, ...]) -> bool:
    low, high = ends
    return (
        not rule.holds(low)
        and not rule.holds(high)
        and (rule.op != "within" or high < rule.bound[0] or low > rule.bound[1])
    )


def _wider(found: dict[str, Any], ends: tuple[float, ...], family: int, is_share: bool) -> tuple[float, ...]:
    """Ends of the interval at confidence 1 - 5% / ``family``."""
    value, count = float(found["value"]), found["count"]
    if is_share:
        return _exactly(found, 0.05 / family)
    if count < 2:
        return ends
    times = _subak.student(count - 1, 0.05 / family) / _subak.student(count - 1, 0.05)
    if ends[0] > 0 and value > 0:
        return tuple(math.exp(math.log(value) + times * (math.log(end) - math.log(value))) for end in ends)
    return tuple(value + times * (end - value) for end in ends)


def _exactly(found: dict[str, Any], tails: float) -> tuple[float, ...]:
    """Clopper and Pearson's interval, percent, by sums of binomial terms."""
    n = found["count"]
    hits = round(float(found["value"]) / 100 * n)

    def at_most(k: int, p: float) -> float:
        of = math.lgamma(n + 1)
        logs = (
            of - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
            for i in range(k + 1)
        )
        return math.fsum(map(math.exp, logs))

    def where(wanted: float, k: int) -> float:
        low, high = 1e-12, 1 - 1e-12
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if at_most(k, middle) > wanted else (low, middle)
        return 100 * low

    return (where(1 - tails / 2, hits - 1) if hits else 0.0), (where(tails / 2, hits) if hits < n else 100.0)


def _is_wilsons(found: dict[str, Any]) -> bool:
    if not found["interval"] or not found["count"] or not 0 <= float(found["value"]) <= 100:
        return False
    p, n, z = float(found["value"]) / 100, found["count"], 1.959964
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    near = pytest.approx([100 * (middle - half) / (1 + z * z / n), 100 * (middle + half) / (1 + z * z / n)], abs=1e-6)
    return list(map(float, found["interval"])) == near


@pytest.mark.parametrize("name", RECORDED)
def test_no_verdict_is_stored_and_each_follows_from_the_values(name: str) -> None:
    record = recorded(name)
    text = (record.experiment.folder / "record.json").read_text()
    assert not [word for word in records.UNJUDGED if f'"{word}"' in text]
    if record.verdict == "depends" or any(f.judged.outcome == "depends" for f in record.findings):
        assert verdicts.open_parameters(record.experiment)
    else:
        expected = by_hand(record)
        changed = expected.startswith(("met", "contradicted")) and record.departures
        assert record.verdict == expected + (" with a changed setup" if changed else "")


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
    parts = measures.of(experiment)
    held = {"runs": 3, "checks": rows(values), "variants": variants, "measures": parts, "date": "2026-01-02"}
    return records.Record(held, experiment)


FINE, LOW, LOST = Measured(3, 2.5, 3.5, 9), Measured(1, 0.5, 1.5, 9), Measured(2, 1, 3, 9)


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
    mended.held["measures"][measures.OWN] = "another"
    assert mended.verdict == "met with a changed setup"


def test_a_corrected_setup_is_declared_only_until_it_has_run() -> None:
    """If this fails, the experiment ran with its corrected setup: delete the ``[[changed]]`` entry, and what the page
    says of it."""
    for experiment in catalogue().values():
        record = records.of(experiment)
        if record and any(one.mended for one in experiment.changed):
            assert measures.OWN in record.changed_since(), experiment.name


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
    unmeasured = made(both, {"a": LOW, "b": LOW}, {"two": {"a": FINE}}, open=(OPEN,))
    assert unmeasured.verdict == "not met", "no run shows that b turns"


def test_what_runs_in_place_of_the_named_system_is_in_the_line() -> None:
    record = made([check("a")], {"a": FINE}, instead="exact fluid rates")
    assert record.short == "met, 3 runs, of exact fluid rates"
    assert "of exact fluid rates" in records.found(record)


def test_the_sentence_of_what_was_found_names_what_decides() -> None:
    record = made([check("C"), check("A over B", must_show="at least 2")], {"C": FINE, "A over B": LOW})
    said = records.found(record)
    assert said == "not met at paper scale, in 3 runs: A over B: 1 [0.5, 1.5] (9 runs) (to show: at least 2)."


def test_the_sentence_names_the_parameters_that_turn_a_claim_alone() -> None:
    buffers = Open("the buffers", (Reading("10", "", False), Reading("20", "deep", True)))
    others = {"two": {"a": FINE}, "deep": {"a": LOW}, "other": {"a": FINE}}
    silent = Variant("other", "another", None, (), (), {}, {}, ("paper",))
    record = made([check("a")], {"a": LOW}, others, open=(OPEN, buffers), variants=(silent,))
    said = records.found(record)
    assert said.startswith('depends at paper scale, in 3 runs, by the window; the variant "other": a: ')


def test_which_records_are_older_than_what_they_measure() -> None:
    """Old records do not fail: a warning names them, and `make records` renews them."""
    known = {e.name: records.of(e) for e in catalogue().values()}
    old = [name for name, record in known.items() if record is None or record.changed_since()]
    if old:
        warnings.warn(f"records older than what they measure (make records): {', '.join(old)}", stacklevel=1)


@pytest.fixture
def copied(tmp_path: Path) -> Experiment:
    """An experiment in its own folder, without a record."""
    experiment = catalogue()["perc-fig2.3"]
    own = tmp_path / "own"
    own.mkdir()
    for path in experiment.folder.glob("*.toml"):
        (own / path.name).write_text(path.read_text())
    return replace(experiment, folder=own)


def changed_verdict(folder: Path, **more: Any) -> Path:
    """Changes values in the folder's ``verdict.json`` and manifest."""
    begun = {key: one for key, one in more.items() if key in ("runs", "seed", "scale")}
    if "measures" in more:
        begun["measures"] = {part: one for part, one in more["measures"].items() if part not in measures.JUDGED_WITH}
    for name, changes in (("verdict.json", more), ("manifest.json", begun)):
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


@pytest.fixture
def ran(copied: Experiment, tmp_path: Path) -> Path:
    """A run of the copied experiment at paper scale, with the copy's hashes."""
    reproduce("perc-fig2.3", scale="paper", out=tmp_path / "out")
    return changed_verdict(tmp_path / "out", measures=measures.of(copied))


def test_a_record_knows_what_has_changed_since(copied: Experiment, ran: Path) -> None:
    assert records.of(copied) is None
    assert records.short(copied) == "not recorded"
    assert records.keep(copied, ran)
    record = records.of(copied)
    assert record is not None
    assert record.changed_since() == []
    assert record.age == "of today's code"
    assert {"build", "machine", "runs", "seconds", "cpu_seconds", "jobs", "measures", "date"} <= set(record.held)
    (copied.folder / "published.toml").write_text("# other bounds")
    assert record.changed_since() == [], "rules are not what was measured"
    (copied.folder / "published.toml").write_text("[rows]\na = 1")
    assert record.changed_since() == ["the experiment"], "a table that its code reads is"
    (copied.folder / "published.toml").write_text("")
    (copied.folder / "spec.toml").write_text("# another setup")
    assert record.changed_since() == ["the experiment"]
    (copied.folder / "record.json").write_text("{")
    with pytest.raises(InputError, match=r"record\.json"):
        records.of(copied)


def test_fewer_runs_never_replace_a_record(copied: Experiment, ran: Path) -> None:
    assert records.keep(copied, changed_verdict(ran, runs=9))
    assert not records.keep(copied, changed_verdict(ran, runs=3))
    record = records.of(copied)
    assert record is not None
    assert record.held["runs"] == 9
    assert [one["runs"] for one in record.held["beside"]] == [3]
    assert records.keep(copied, changed_verdict(ran, runs=12))
    again = records.of(copied)
    assert again is not None
    assert again.held["runs"] == 12


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scale": "smoke"}, "pages show paper scale"),
        ({"seed": 1}, "it is 1, and at least 1001 in a record"),
        ({"measures": {"crates/core": "old"}}, "the code has changed since it ran"),
    ],
)
def test_what_is_no_record_is_refused(copied: Experiment, ran: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        records.keep(copied, changed_verdict(ran, **wrong))
    assert records.of(copied) is None


def test_a_record_without_one_of_its_variants_is_refused(copied: Experiment, ran: Path) -> None:
    variant = Variant("other", "another", None, (), (), {}, {"x": 1}, ("paper",))
    more = replace(copied, variants=(variant,))
    with pytest.raises(InputError, match="it did not run other"):
        records.keep(more, changed_verdict(ran, measures=measures.of(more)))


SEVERAL = "perc-fig3.5"
"""An experiment with many setups, some seconds at smoke scale, whose fractions and quantiles have samples."""


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sampled") / "out"
    reproduce(SEVERAL, out=out)
    return out


def test_every_interval_is_recomputed_from_its_sample(sampled: Path) -> None:
    told = json.loads((sampled / "verdict.json").read_text())
    values = records.values_of(told)
    drawn = [key for key, value in values.items() if isinstance(value, Measured) and value.interval]
    kept = samples.read(sampled / samples.NAME)
    assert drawn
    assert set(drawn) <= set(kept)
    assert samples.differing(values, kept) == []


def test_a_value_that_does_not_follow_from_its_sample_is_named(sampled: Path) -> None:
    told = json.loads((sampled / "verdict.json").read_text())
    kept = samples.read(sampled / samples.NAME)
    one = next(c for c in told["checks"] if isinstance(c["measured"], dict) and c["measured"]["interval"])
    one["measured"]["value"] *= 0.9
    assert samples.differing(records.values_of(told), kept) == [one["key"]]
    del kept["", one["key"]]
    assert samples.differing(records.values_of(told), kept) == [one["key"]], "an interval without a sample"


def test_a_sample_written_by_hand_is_named(sampled: Path, tmp_path: Path) -> None:
    table = pq.read_table(sampled / samples.NAME)
    rows = table.to_pylist()
    changed = next(row for row in rows if row["side"] in ("data", "hits"))
    changed["value"] = changed["value"] - 1
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / samples.NAME)
    values = records.values_of(json.loads((sampled / "verdict.json").read_text()))
    assert samples.differing(values, samples.read(tmp_path / samples.NAME)) == [changed["key"]]
    (tmp_path / samples.NAME).write_bytes(b"no table")
    with pytest.raises(InputError, match=r"samples\.parquet: it cannot be read"):
        samples.read(tmp_path / samples.NAME)


def test_a_rerun_in_the_same_folder_after_the_code_changed_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For an experiment whose own code runs, and for one that is simulated from a spec."""
    for name in ("soze-policy", "perc-fig2.12"):
        row = catalogue()[name]
        own = tmp_path / row.paper / row.folder.name
        shutil.copytree(row.folder, own, ignore=shutil.ignore_patterns("__pycache__"))
        monkeypatch.setitem(catalogue(), name, replace(row, folder=own))
        out = tmp_path / "out" / name
        reproduce(name, runs=1, out=out)
        assert not reproduce(name, runs=1, out=out).main.ran
        code = own / "__init__.py"
        code.write_text(code.read_text() + "\n# one more\n")
        with pytest.raises(InputError, match="results of another measures"):
            reproduce(name, runs=1, out=out)


def test_packages_of_others_and_locked_crates_are_part_of_what_a_row_measures() -> None:
    fit, simulated = (measures.of(catalogue()[name]) for name in ("fit-table6.4", "perc-fig2.12"))
    assert "ortools" in fit["Python packages"]
    assert "matplotlib" not in fit["Python packages"]
    assert "locked crates" not in fit
    assert len(simulated["locked crates"]) == 16


def test_the_list_says_how_old_each_record_is() -> None:
    states = {name: records.state(one) for name, one in catalogue().items()}
    assert {state["age"] for state in states.values()} <= {"of today's code", "of older code", "of unknown code", ""}
    for name, state in states.items():
        assert bool(state["changed_since"]) == (state["age"] in ("of older code", "of unknown code")), name


def test_a_variant_that_departs_from_nothing_the_paper_says_makes_the_row_depend() -> None:
    variant = Variant("two", "the window is 2", 3, (), (), {"a": 1}, {}, ("paper",))
    turned = made([check("a")], {"a": LOW}, {"two": {"a": FINE}}, variants=(variant,))
    assert turned.verdict == "depends"
    departs = replace(variant, departs="table 2: the window is 10")
    assert made([check("a")], {"a": LOW}, {"two": {"a": FINE}}, variants=(departs,)).verdict == "not met"
    as_published = (Changed("the window", "time", "two"),)
    assert (
        made([check("a")], {"a": LOW}, {"two": {"a": FINE}}, variants=(variant,), changed=as_published).verdict
        == "not met"
    )


def test_bounds_of_ours_alone_make_a_verdict_by_our_bound() -> None:
    ours = check("b", ours=True)
    assert made([ours], {"b": FINE}).verdict == "met by our bound"
    assert made([ours], {"b": LOW}).verdict == "not met by our bound"
    assert made([check("a"), ours], {"a": FINE, "b": FINE}).verdict == "met"
    assert made([check("a"), ours], {"a": LOW, "b": LOW}).verdict == "not met"
    assert made([check("a"), ours], {"a": FINE, "b": LOW}).verdict == "not met by our bound"


def test_a_claim_with_a_changed_setup_is_contradicted_with_it() -> None:
    against = check("a", claim=Rule("at_least", 2))
    assert made([against], {"a": LOW}).verdict == "contradicted"
    changed = made([against], {"a": LOW}, changed=(Changed("16 hosts for 1024", "time"),))
    assert changed.verdict == "contradicted with a changed setup"


def test_the_page_of_what_moved_has_every_row_that_is_not_met() -> None:
    page = (ROOT / "docs/verdicts.md").read_text()
    missing = [n for n in RECORDED if not recorded(n).verdict.startswith("met") and f"[{n}]" not in page]
    assert missing == []


def test_a_record_knows_the_packages_that_its_code_imports() -> None:
    """Packages follow from imports, also through shared modules: no experiment has to name them."""
    held = {e.name: measures.of(e) for e in catalogue().values()}
    fits = [name for name in held if name.startswith("fit-")]
    assert len(fits) >= 12
    assert all("subak/pipeline" in held[name] for name in fits)
    assert "subak/policy" in held["soze-policy"]
    assert "subak/pipeline" not in held["perc-fig3.2"]


def test_a_switch_or_a_program_of_the_compiler_is_part_of_what_a_row_measures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / "subak"
    shutil.copytree(measures.PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    monkeypatch.setattr(measures, "PACKAGE", copy)
    row = catalogue()["fit-table6.4"]
    measures._package.cache_clear()
    before = measures.sources(row)
    for name in ("programs/l2l3-complex.json", "switches/rmt.toml", "p4/grammar.lark", "greedy.py"):
        changed = copy / "pipeline" / name
        kept = changed.read_bytes()
        changed.write_bytes(kept + b" ")
        measures._package.cache_clear()
        assert measures.sources(row) != before, name
        changed.write_bytes(kept)
    measures._package.cache_clear()
    assert measures.sources(row) == before
