"""Records that were falsified on purpose: none is stored."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import script
from rows import ROW, copy_of
from subak import InputError
from subak.repro import Experiment, catalogue, founded, measures, records, reproduce, samples


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ran") / "out"
    reproduce(ROW, scale="paper", runs=2, out=out, jobs=1)
    return out


@pytest.fixture
def row(tmp_path: Path) -> Experiment:
    return copy_of(catalogue()[ROW], tmp_path / "papers")


@pytest.fixture
def folder(ran: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ran, tmp_path / "out"))


def rewrite(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / "verdict.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


def claim(told: dict[str, Any]) -> dict[str, Any]:
    """A claim of the record whose value has an interval."""
    return next(c for c in told["checks"] if c["part"] == "claim" and isinstance(c["measured"], dict))


def test_the_copy_measures_what_the_row_does_and_is_kept(row: Experiment, folder: Path) -> None:
    assert measures.of(row) == measures.of(catalogue()[ROW])
    assert records.keep(row, folder)
    record = records.of(row)
    assert record is not None
    assert (record.age, record.samples, record.on_held_out_seeds) == ("of today's code", "kept", True)


def grow(told: dict[str, Any]) -> None:
    one = claim(told)["measured"]
    one["count"] *= 1000
    one["interval"] = [99.9, 100.0]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda told: claim(told)["measured"].update(value=99.0), id="a value"),
        pytest.param(lambda told: claim(told)["measured"].update(of="networks"), id="what was resampled"),
        pytest.param(grow, id="the count and the interval"),
        pytest.param(lambda told: told.update(seed=1), id="seed"),
        pytest.param(lambda told: told["measures"].update({measures.OWN: "0"}), id="a hash"),
        pytest.param(lambda told: told["measures"].popitem(), id="a hash left out"),
        pytest.param(lambda told: told["variants"].pop(), id="a variant left out"),
        pytest.param(lambda told: claim(told).update(measured=100), id="a number for a share"),
        pytest.param(lambda told: claim(told)["measured"].update(interval=None), id="no interval"),
        pytest.param(lambda told: told["checks"].remove(claim(told)), id="a check left out"),
        pytest.param(lambda told: told["variants"][0].update(checks=[]), id="a variant without checks"),
        pytest.param(lambda told: told.update(runs=99), id="more runs than there were"),
        pytest.param(lambda told: told["variants"][0].update(runs=99), id="a variant's runs"),
        pytest.param(lambda told: told.update(build={}), id="no build"),
        pytest.param(lambda told: told.pop("machine"), id="no machine"),
        pytest.param(lambda told: told.pop("seed"), id="no seed"),
        pytest.param(lambda told: told.pop("variants"), id="no variants"),
    ],
)
def test_a_record_made_wrong_is_refused(row: Experiment, folder: Path, change: Callable[..., Any]) -> None:
    rewrite(folder, change)
    with pytest.raises(InputError):
        records.keep(row, folder)
    assert records.of(row) is None


def test_samples_of_another_folder_are_refused(row: Experiment, folder: Path, tmp_path: Path) -> None:
    reproduce("perc-rounds", runs=8, out=tmp_path / "other", jobs=1)
    shutil.copy(tmp_path / "other" / samples.NAME, folder)
    with pytest.raises(InputError, match="do not follow"):
        records.keep(row, folder)
    (folder / samples.NAME).unlink()
    with pytest.raises(InputError, match="do not follow"):
        records.keep(row, folder)


def test_a_run_on_other_seeds_is_refused_whatever_its_verdict_says(row: Experiment, tmp_path: Path) -> None:
    reproduce(ROW, scale="paper", runs=1, seed=7, out=tmp_path / "other", jobs=1)
    rewrite(tmp_path / "other", lambda told: told.update(seed=records.HELD_OUT))
    with pytest.raises(InputError):
        records.keep(row, tmp_path / "other")


@pytest.mark.parametrize("key", ["seed", "scale", "build", "measures"])
@pytest.mark.parametrize("of", ["manifest.json", "variants/*/manifest.json"])
def test_results_that_were_begun_otherwise_are_refused(row: Experiment, folder: Path, key: str, of: str) -> None:
    path = next(folder.glob(of))
    path.write_text(json.dumps({**json.loads(path.read_text()), key: {"another": "one"}}))
    with pytest.raises(InputError, match=key):
        records.keep(row, folder)


def test_a_run_of_an_older_extension_is_refused_once_it_is_built_anew(
    row: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        then.setattr(measures, "built_from", lambda: "sources that were not compiled")
        measures._is_older.cache_clear()
        reproduce(ROW, scale="paper", runs=1, out=tmp_path / "out", jobs=1)
        assert measures.EXTENSION not in records.Record({"measures": measures.of(row)}, row).changed_since()
    measures._is_older.cache_clear()
    with pytest.raises(InputError, match="extension"):
        records.keep(row, tmp_path / "out")
    with pytest.raises(InputError, match="another measures"):
        reproduce(ROW, scale="paper", runs=1, out=tmp_path / "out", jobs=1)


def test_an_exact_value_that_the_results_do_not_give_is_refused(tmp_path: Path) -> None:
    """An exact value has no sample: it is compared with the results in the folder."""
    own = copy_of(catalogue()["perc-fig1.3"], tmp_path / "papers")
    folder = tmp_path / "out"
    reproduce("perc-fig1.3", scale="paper", out=folder, jobs=1)
    right = (folder / "verdict.json").read_text()
    for wrong in (["RTT 1: A 99"], [], "none"):
        rewrite(folder, lambda told, wrong=wrong: told["checks"][0].update(measured=wrong))
        with pytest.raises(InputError, match="is another than the results"):
            founded.refuse_others(own, folder)
    (folder / "verdict.json").write_text(right)
    founded.refuse_others(own, folder)


def test_a_sample_and_its_value_made_up_together_are_refused(
    row: Experiment, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample and a value from another run, in which the claim is met, are refused together."""
    reproduce(ROW, scale="paper", runs=3, out=tmp_path / "more", jobs=1)
    shutil.copy(tmp_path / "more" / samples.NAME, folder)
    other = json.loads((tmp_path / "more/verdict.json").read_text())
    rewrite(folder, lambda told: told.update(checks=other["checks"]))
    for k, one in enumerate(other["variants"]):
        rewrite(folder, lambda told, k=k, one=one: told["variants"][k].update(checks=one["checks"]))
    command = script("record")
    monkeypatch.setattr(command, "find", lambda name: row)
    monkeypatch.setattr(command, "FIGURES", tmp_path)
    with pytest.raises(InputError, match="is another than the results"):
        command.keep(folder)
    assert records.of(row) is None


def test_a_sample_of_one_run_without_a_value_of_the_record_renews_nothing(row: Experiment, folder: Path) -> None:
    command = script("record")
    told = json.loads((folder / "verdict.json").read_text())
    whole = {"": told["checks"]} | {one["name"]: one["checks"] for one in told["variants"]}
    sample = {name: {c["key"]: c["measured"] for c in checks} for name, checks in whole.items()}
    held = {**told, "sample": sample}
    assert command.compare.sample_of(records.Record(held, row)) is not None
    for name in sample:
        fewer = {**sample, name: dict(list(sample[name].items())[1:])}
        assert command.compare.sample_of(records.Record({**held, "sample": fewer}, row)) is None


def test_a_run_without_a_figure_leaves_the_record_as_it_was(row: Experiment, folder: Path, monkeypatch: Any) -> None:
    record = script("record")
    monkeypatch.setattr(record, "find", lambda name: row)
    monkeypatch.setattr(record, "FIGURES", folder)
    (folder / "figure.png").unlink()
    with pytest.raises(InputError):
        record.keep(folder)
    assert records.of(row) is None


def test_fewer_runs_of_a_variant_never_replace_a_record(row: Experiment, folder: Path) -> None:
    assert records.keep(row, folder)
    rewrite(folder, lambda told: told["variants"][0].update(runs=1))
    variant = json.loads((folder / "verdict.json").read_text())["variants"][0]["name"]
    manifest = folder / "variants" / next(v.folder for v in row.variants if v.name == variant) / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "runs": 1}))
    assert not records.keep(row, folder)


def test_fewer_runs_of_one_value_never_replace_a_record(row: Experiment, folder: Path) -> None:
    """A spec may have its own number of runs, which may not decrease either."""
    assert records.keep(row, folder)
    path = row.folder / "record.json"
    held = json.loads(path.read_text())
    value = next(
        c["measured"] for c in held["checks"] if isinstance(c["measured"], dict) and c["measured"]["count"] > 1
    )
    value |= {"of": "runs", "count": value["count"] + 1}
    rewrite(
        folder,
        lambda told: next(
            c["measured"] for c in told["checks"] if isinstance(c["measured"], dict) and c["measured"]["count"] > 1
        ).update(of="runs"),
    )
    path.write_text(json.dumps(held))
    told = json.loads((folder / "verdict.json").read_text())
    assert not records._as_many(told, held)
    value["count"] -= 1
    assert records._as_many(told, held)


def test_the_sentence_of_ages_names_records_that_do_not_follow_from_their_samples(
    row: Experiment, folder: Path
) -> None:
    assert records.keep(row, folder)
    assert "each confidence interval is stored with its samples" in records.ages([row])
    path = row.folder / "record.json"
    held = json.loads(path.read_text())
    claim(held)["measured"]["value"] = 1.0
    path.write_text(json.dumps(held))
    assert records.state(row)["samples"].startswith("not of")
    assert "1 do not contain the samples" in records.ages([row])
    held_by = records.of(row)
    assert held_by is not None
    assert "do not follow" in "".join(script("pages")._older(held_by))


def test_a_record_without_intervals_lacks_no_samples(row: Experiment, folder: Path) -> None:
    """policy-by-transport has counts only: the sentence said that the samples of its intervals were missing."""
    assert records.keep(row, folder)
    (row.folder / samples.NAME).unlink()
    assert "1 do not contain the samples" in records.ages([row])
    counts = catalogue()["policy-by-transport"]
    assert records.state(counts)["samples"] == "none"
    assert "each confidence interval is stored with its samples" in records.ages([counts])
    held_by = records.of(counts)
    assert held_by is not None
    assert "no samples" not in "".join(script("pages")._older(held_by))


def test_the_sites_table_says_the_age_of_each_record() -> None:
    """A record without hashes is of unknown code, not of older code."""
    row = script("pages")._row
    for one in catalogue().values():
        record = records.of(one)
        assert row(one)[-1] == (record.age if record else "")


def test_a_renewed_record_has_intervals_of_todays_statistics(tmp_path: Path) -> None:
    own = copy_of(catalogue()["perc-rounds"], tmp_path / "papers")
    command = script("record")
    verdict = reproduce("perc-rounds", scale="paper", runs=8, out=tmp_path / "out", jobs=1)
    command.compare.write_sample(catalogue()["perc-rounds"], verdict, tmp_path / "sample", 1, None)
    assert records.keep(own, tmp_path / "out")
    path = own.folder / "record.json"
    held = json.loads(path.read_text())
    held["measures"][measures.OF_STATISTICS] = "older"
    one = next(c for c in held["checks"] if c["key"] == "median")
    right = one["measured"]["interval"]
    one["measured"]["interval"] = [one["measured"]["value"]] * 2
    path.write_text(json.dumps(held))
    assert command.compare.renew(own, tmp_path / "sample")
    record = records.of(own)
    assert record is not None
    anew = next(c for c in record.held["checks"] if c["key"] == "median")
    assert (anew["measured"]["interval"], record.age, record.samples) == (right, "of today's code", "kept")
    (own.folder / samples.NAME).unlink()
    held["measures"][measures.OF_STATISTICS] = "older still"
    path.write_text(json.dumps(held))
    assert not command.compare.renew(own, tmp_path / "sample"), "without samples"


def test_a_record_of_other_seeds_is_run_anew_and_not_renewed(tmp_path: Path) -> None:
    own = copy_of(catalogue()["perc-rounds"], tmp_path / "papers")
    command = script("record")
    reproduce("perc-rounds", scale="paper", runs=1, seed=1, out=tmp_path / "out", jobs=1)
    told = json.loads((tmp_path / "out/verdict.json").read_text())
    records.hold(own, records._values({**told, "measures": {}, "date": "2026-01-02"}))
    assert not command.compare.renew(own, tmp_path / "sample")


def test_a_single_run_in_which_nothing_was_tried_meets_no_claim(tmp_path: Path) -> None:
    verdict = reproduce("soze-policy", scale="paper", runs=1, out=tmp_path / "out")
    planted = next(f.value for f in verdict.findings if f.check.key == "planted")
    assert planted == 0
    assert verdict.word == "undecided"


@pytest.mark.parametrize(
    "name",
    [
        "perc-fig2.3",
        "soze-policy",
        "perc-rounds",
        "soze-fig18",
        "perc-table4.2",
    ],
)
def test_a_row_runs_twice(name: str, tmp_path: Path) -> None:
    assert reproduce(name, runs=2, out=tmp_path / "out", jobs=1).main.runs == 2
