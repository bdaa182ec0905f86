"""Records, verdicts and their statistics, tried from outside: records made wrong on purpose, and a second model."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from subak import InputError, _subak
from subak.repro import Experiment, Measured, catalogue, founded, measures, records, reproduce, samples, stats
from subak.repro.catalogue import _printed
from subak.repro.rules import Rule, judge
from subak.repro.values import Sample, as_json

INF = math.inf


# Statistics: a second model.


def binomial(least: int, count: int, p: float) -> float:
    """The probability of at least so many."""
    return math.fsum(math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(least, count + 1))


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (1, 1), (1, 2), (3, 7), (12, 12), (19, 20), (50, 50), (99, 200)])
@pytest.mark.parametrize("tails", [0.05, 0.05 / 42])
def test_a_shares_ends_leave_half_the_tails_outside(hits: int, count: int, tails: float) -> None:
    low, high = stats.share(hits, count, "runs", tails=tails).interval or (1, 0)
    assert low == 0 if hits == 0 else binomial(hits, count, low / 100) == pytest.approx(tails / 2, rel=1e-6)
    assert high == 100 if hits == count else 1 - binomial(hits + 1, count, high / 100) == pytest.approx(tails / 2)


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 49])
@pytest.mark.parametrize("tails", [0.05, 0.05 / 42])
def test_students_quantile_leaves_the_tails_outside(freedom: int, tails: float) -> None:
    """The density integrated to the quantile, by Simpson's rule over the angle whose tangent is t / sqrt(freedom)."""
    end = math.atan(_subak.student(freedom, tails) / math.sqrt(freedom))
    steps = 20_000
    angles = np.linspace(0, end, steps + 1)
    weights = np.ones(steps + 1)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    inside = 2 * constant * end / steps / 3 * float((weights * np.cos(angles) ** (freedom - 1)).sum())
    assert 1 - inside == pytest.approx(tails, rel=1e-5)


Draw = Callable[[np.random.Generator, int], Any]


def coverage(draw: Draw, statistic: str, count: int, truth: float, *, signed: bool = False, draws: int = 600) -> float:
    random = np.random.default_rng(count)
    made = (stats.estimate(draw(random, count), statistic, "runs", signed=signed) for _ in range(draws))
    found = [one.interval or (INF, -INF) for one in made]
    return sum(low <= truth <= high for low, high in found) / draws


def with_zeros(random: np.random.Generator, count: int) -> Any:
    return random.lognormal(0, 1.5, count) * (random.random(count) > 0.1)


NARROW = [
    pytest.param(lambda random, n: random.exponential(1, n), "mean", 3, 1.0, id="exponential, 3"),
    pytest.param(lambda random, n: random.normal(10, 1, n), "mean", 2, 10.0, id="normal, 2"),
    pytest.param(lambda random, n: random.normal(-5, 1, n), "median", 5, -5.0, id="negative, 5"),
    pytest.param(lambda random, n: 1e6 + random.normal(0, 1e-3, n), "mean", 3, 1e6, id="tiny variance, 3"),
    pytest.param(with_zeros, "mean", 5, 0.9 * math.exp(1.125), id="heavy with zeros, 5"),
    pytest.param(with_zeros, "mean", 20, 0.9 * math.exp(1.125), id="heavy with zeros, 20"),
    *(
        pytest.param(
            lambda random, n: random.lognormal(0, 1.5, n), name, count, math.exp(1.5 * z), id=f"{name} of {count}"
        )
        for name, count, z in (
            ("p75", 13, 0.6744898),
            ("p90", 36, 1.2815516),
            ("p95", 72, 1.6448536),
            ("p95", 100, 1.6448536),
            ("p99", 368, 2.3263479),
            ("median", 6, 0.0),
            ("median", 12, 0.0),
        )
    ),
]


@pytest.mark.parametrize(("draw", "statistic", "count", "truth"), NARROW)
def test_intervals_of_other_distributions_hold_the_truth(draw: Draw, statistic: str, count: int, truth: float) -> None:
    """Of 600 draws at 95%, 91.9% and fewer come with a probability below 0.1%."""
    assert coverage(draw, statistic, count, truth) >= 0.92


@pytest.mark.parametrize(("statistic", "count"), [("mean", 3), ("mean", 5), ("mean", 20), ("median", 3), ("median", 5)])
def test_intervals_of_values_of_either_sign_hold_the_truth(statistic: str, count: int) -> None:
    assert coverage(lambda random, n: random.normal(0, 1, n), statistic, count, 0.0, signed=True) >= 0.92


def test_a_ratio_of_quantiles_holds_the_truth_where_its_guard_ends() -> None:
    """Of p95s of 72 values: heavy over light, the true ratio by the quantile of the normal distribution."""
    random, truth = np.random.default_rng(5), math.exp(1.6448536)
    made = (
        stats.ratio(random.lognormal(0, 1.5, 72), random.lognormal(0, 0.5, 72), "p95", "runs", paired=False)
        for _ in range(400)
    )
    found = [one.interval or (INF, -INF) for one in made]
    assert sum(low <= truth <= high for low, high in found) >= 0.93 * len(found)


def test_a_value_that_is_none_shows_in_every_statistic() -> None:
    for statistic in ("mean", "median", "p95", "p5"):
        found = stats.estimate([1.0, math.nan, 3.0, 4.0, 5.0, 6.0], statistic, "runs")
        assert math.isnan(found.value)
        assert found.interval is None, statistic


def test_an_extreme_has_an_open_end() -> None:
    values = np.arange(1.0, 31.0)
    least, most = (stats.estimate(values, name, "runs").interval for name in ("p0", "p100"))
    assert least is not None
    assert math.isinf(least[0])
    assert most is not None
    assert math.isinf(most[1])


def test_a_ratio_to_what_may_be_nothing_has_no_upper_end() -> None:
    found = stats.ratio([1.0, 2, 3, 4, 5, 6], [0.0, 0, 0, 0, 0, 1], "mean", "runs", paired=False)
    assert found.interval is not None
    assert math.isinf(found.interval[1])


def test_of_few_runs_of_which_one_never_came_to_an_end_nothing_is_known_above() -> None:
    found = stats.estimate([3.0, 4.0, INF], "median", "runs")
    assert found.interval is not None
    assert found.interval[0] == 0
    assert math.isinf(found.interval[1])


def test_a_large_side_does_not_make_a_small_ones_draws_narrow() -> None:
    """Of 40,000 values 20,000 are drawn, of 30 all: the interval is that of the 30."""
    random = np.random.default_rng(3)
    large, small = random.lognormal(0, 1, 40_000), random.lognormal(0, 1, 30)
    alone = stats.estimate(small, "median", "runs").interval
    both = stats.ratio(large, small, "median", "runs", paired=False).interval
    assert alone is not None
    assert both is not None
    assert math.log(both[1] / both[0]) > 0.8 * math.log(alone[1] / alone[0])


def test_a_share_of_a_million_on_its_bound_is_undecided() -> None:
    found = judge(stats.share(500_000, 1_000_000, "runs"), Rule("at_least", 50), exact=False)
    assert (found.outcome, "lies on the bound" in found.needs) == ("undecided", True)


def misses(make: Callable[[np.random.Generator], Measured], truth: float, draws: int = 400) -> float:
    random = np.random.default_rng(11)
    found = [make(random).interval or (-INF, INF) for _ in range(draws)]
    return sum(not low <= truth <= high for low, high in found) / draws


def never(random: np.random.Generator, count: int, share: float) -> Any:
    values = random.lognormal(0, 1, count)
    values[random.random(count) < share] = INF
    return values


@pytest.mark.parametrize("count", [3, 4])
def test_medians_of_few_some_of_which_never_came_hold_the_truth(count: int) -> None:
    """The median of all is where 0.5 / 0.6 of the values that came lie: 15% of intervals of three missed it."""
    truth = math.exp(0.9674216)
    assert misses(lambda random: stats.estimate(never(random, count, 0.4), "median", "runs"), truth) <= 0.08


@pytest.mark.parametrize(("zeros", "count"), [(0.5, 3), (0.5, 5), (0.8, 5), (0.8, 10)])
def test_a_ratio_over_a_mean_with_zeros_holds_the_truth(zeros: float, count: int) -> None:
    """Of a divisor that is 0 in so many runs; 6 to 55% of the intervals began above the truth."""

    def make(random: np.random.Generator) -> Measured:
        over = random.lognormal(0, 1, count) * (random.random(count) > zeros)
        return stats.ratio(random.lognormal(0, 1, count), over, "mean", "runs", paired=False)

    assert misses(make, 1 / (1 - zeros)) <= 0.08


def test_a_ratio_of_many_over_few_reaches_as_far_as_its_heavy_side() -> None:
    def make(random: np.random.Generator) -> Measured:
        return stats.ratio(random.lognormal(0, 1.5, 1500), random.lognormal(0, 1.5, 20), "mean", "runs", paired=False)

    assert misses(make, 1.0, 100) <= 0.12


def test_a_divisor_of_zeros_alone_shows_no_ratio() -> None:
    found = stats.ratio([5.0, 6.0], [0.0, 0.0], "mean", "runs", paired=False)
    assert judge(found, Rule("at_least", 5), exact=False).outcome == "undecided"


def test_values_that_are_all_alike_have_no_width() -> None:
    """What none of the runs showed is not in the interval: docs/reproducing.md says so."""
    assert stats.estimate([1.0] * 5, "mean", "runs").interval == (1.0, 1.0)


def test_a_difference_that_is_none_is_seldom_met() -> None:
    random = np.random.default_rng(1)
    rule = Rule("at_least", 0)
    made = (stats.estimate(random.normal(0, 1, 3), "median", "runs", signed=True) for _ in range(300))
    found = [judge(one, rule, exact=False) for one in made]
    assert sum(one.outcome == "met" for one in found) <= 0.05 * len(found)


@pytest.mark.parametrize(
    ("value", "op", "statistic"),
    [
        (0.79, "at_most", "median"),
        (3.0, "at_least", "median"),
        pytest.param(0.79, "at_most", "mean"),
        pytest.param(3.0, "at_most", "mean"),
        pytest.param(3.0, "at_most", "median"),
        pytest.param(10.0, "at_most", "median"),
        pytest.param(7.0, "at_least", "median"),
    ],
)
def test_equal_values_on_the_bound_are_met(value: float, op: str, statistic: str) -> None:
    found = stats.estimate([value] * 5, statistic, "runs")
    assert judge(found, Rule(op, value), exact=False).outcome == "met"


def test_a_mean_of_shares_is_no_easier_than_a_share() -> None:
    every = stats.estimate([100.0] * 3, "percent", "runs")
    assert judge(every, Rule("at_least", 100), exact=False).outcome == "undecided"


def test_a_failure_with_an_open_end_is_one_of_all_claims_together() -> None:
    near = Rule("at_most", 5)
    closed, opened = (Measured(10, 5.5, high, 10) for high in (18.0, INF))
    assert judge(closed, near, exact=False, family=42).outcome == "undecided"
    assert judge(opened, near, exact=False, family=42).outcome == "undecided"


def test_a_share_that_has_to_equal_a_bound_is_undecided_while_it_may() -> None:
    every, none = (
        judge(stats.share(hits, 12, "runs"), Rule("equals", b), exact=False) for hits, b in ((12, 100), (0, 0))
    )
    assert (every.outcome, none.outcome) == ("undecided", "undecided")


def test_four_of_what_was_resampled_never_show_a_failure() -> None:
    for count, outcome in ((2, "undecided"), (4, "undecided"), (5, "not met")):
        found = stats.estimate(9 + np.linspace(0, 0.01, count), "mean", "runs")
        assert judge(found, Rule("at_most", 1), exact=False).outcome == outcome


@pytest.mark.parametrize(
    ("hits", "count"),
    [
        pytest.param(5, 3),
        pytest.param(-1, 3),
    ],
)
def test_a_share_of_more_than_all_is_refused(hits: int, count: int) -> None:
    with pytest.raises(ValueError, match=str(hits)):
        stats.share(hits, count, "runs")


# Samples that were made wrong.

MEAN = stats.estimate([1.0, 2.0, 4.0], "mean", "runs")
RIGHT = [
    {"variant": "", "key": "a", "part": 0, "by": "mean", "paired": False, "side": "data", "value": v}
    | {"signed": False, "of": "runs"}
    for v in (1, 2, 4)
]
COUNT, HITS = ({**RIGHT[0], "by": "share", "side": side} for side in ("count", "hits"))


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([{**one, "value": None} for one in RIGHT], id="no value"),
        pytest.param([{**one, "value": math.nan} for one in RIGHT], id="NaN"),
        pytest.param([{**one, "value": INF} for one in RIGHT], id="infinite"),
        pytest.param([{**one, "by": "median"} for one in RIGHT], id="another statistic"),
        pytest.param([{**one, "by": "mode"} for one in RIGHT], id="an unknown statistic"),
        pytest.param([{**one, "by": None} for one in RIGHT], id="no statistic"),
        pytest.param([{**one, "by": "p101"} for one in RIGHT], id="p101"),
        pytest.param([{**one, "side": "over"} for one in RIGHT], id="another side"),
        pytest.param([{**one, "key": "b"} for one in RIGHT], id="another key"),
        pytest.param([{**one, "variant": "b"} for one in RIGHT], id="another variant"),
        pytest.param([{**one, "part": 1} for one in RIGHT], id="another part"),
        pytest.param(RIGHT[:2], id="fewer values"),
        pytest.param([*RIGHT, RIGHT[0]], id="more values"),
        pytest.param([HITS, {**COUNT, "value": 0}], id="of none"),
        pytest.param([HITS, {**HITS, "value": 2}, COUNT], id="two numbers of hits"),
        pytest.param([{**HITS, "value": 0.5}, COUNT], id="half a hit"),
        pytest.param([HITS, {**COUNT, "value": -3}], id="of fewer than none"),
        pytest.param([HITS, {**COUNT, "value": INF}], id="of ever so many"),
        pytest.param([RIGHT[0], *({**one, "by": "p99"} for one in RIGHT[1:])], id="two statistics"),
        pytest.param([*RIGHT, {**RIGHT[0], "side": "draws"}], id="one side too many"),
    ],
)
def test_a_value_whose_sample_is_another_is_named(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=samples._schema()), tmp_path / samples.NAME)
    assert samples.differing({("", "a"): MEAN}, samples.read(tmp_path / samples.NAME)) == ["a"]


@pytest.mark.parametrize(
    ("hits", "count"),
    [
        (3, 4),
        (12, 12),
        pytest.param(1, 7),
        pytest.param(3, 9),
    ],
)
def test_an_honest_share_follows_from_its_sample(hits: int, count: int) -> None:
    """As ``records.keep`` reads it: from the text of ``verdict.json``."""
    share = stats.share(hits, count, "runs")
    assert share.sample is not None
    read = stats.from_json(json.loads(json.dumps(as_json(share))))
    assert samples.differing({("", "a"): read}, {("", "a"): {0: share.sample}}) == []


def test_a_table_of_other_columns_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"variant": ["x"]}), tmp_path / samples.NAME)
    with pytest.raises(InputError, match=r"samples\.parquet"):
        samples.read(tmp_path / samples.NAME)


OWN = stats.joint(
    [[1.0, 2, 3, 4], [5.0, 6, 7, 8]], lambda s: s[0].mean(axis=1) / s[1].mean(axis=1), "runs", paired=True
)


@pytest.mark.parametrize("count", [4, 1])
def test_a_value_of_a_rows_own_statistic_follows_from_its_sample(count: int) -> None:
    """``value`` stands in the record alone; ``low`` and ``high`` of the sample replace what the draws say."""
    assert OWN.sample is not None
    if count == 1:
        made, sample = Measured(99, count=1), Sample(stats.OWN, {"side 1": [1.0]})
    else:
        made, sample = replace(OWN, value=9.0, low=8.0, high=10.0), replace(OWN.sample, low=8.0, high=10.0)
    assert samples.differing({("", "a"): made}, {("", "a"): {0: sample}}) == ["a"]


@pytest.mark.parametrize("draws", [1, 20, stats.FEWEST - 1])
def test_too_few_draws_are_no_sample(draws: int) -> None:
    """One draw that is the value itself would be an interval without width."""
    sample = Sample(stats.OWN, {"side 1": [1.0, 9.0, 5.0], "draws": [5.0] * draws}, value=5.0)
    made = Measured(5.0, 5.0, 5.0, 3)
    assert samples.differing({("", "a"): made}, {("", "a"): {0: sample}}) == ["a"]


# Records that were made wrong.

ROW = "perc-drops"
"""Shares over random runs, with a variant."""


def copy_of(row: Experiment, folder: Path) -> Experiment:
    """The row in a folder of its own, beside what its paper's rows share: it measures the same."""
    own = folder / row.paper / row.folder.name
    shutil.copytree(row.folder, own, ignore=shutil.ignore_patterns("__pycache__", "record.json", "samples.parquet"))
    for shared in row.folder.parent.glob("*.py"):
        shutil.copy(shared, own.parent)
    return replace(row, folder=own)


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
    """A claim of the record whose value is a share."""
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
    """It has no sample: what was computed stands in the folder."""
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
    """Those of another run, in which all came out."""
    reproduce(ROW, scale="paper", runs=3, out=tmp_path / "more", jobs=1)
    shutil.copy(tmp_path / "more" / samples.NAME, folder)
    other = json.loads((tmp_path / "more/verdict.json").read_text())
    rewrite(folder, lambda told: told.update(checks=other["checks"]))
    for k, one in enumerate(other["variants"]):
        rewrite(folder, lambda told, k=k, one=one: told["variants"][k].update(checks=one["checks"]))
    script = _script("record")
    monkeypatch.setattr(script, "find", lambda name: row)
    monkeypatch.setattr(script, "FIGURES", tmp_path)
    with pytest.raises(InputError, match="is another than the results"):
        script.keep(folder)
    assert records.of(row) is None


def test_a_sample_of_one_run_without_a_value_of_the_record_renews_nothing(row: Experiment, folder: Path) -> None:
    script = _script("record")
    told = json.loads((folder / "verdict.json").read_text())
    whole = {"": told["checks"]} | {one["name"]: one["checks"] for one in told["variants"]}
    sample = {name: {c["key"]: c["measured"] for c in checks} for name, checks in whole.items()}
    held = {**told, "sample": sample}
    assert script.sample_of(records.Record(held, row)) is not None
    for name in sample:
        fewer = {**sample, name: dict(list(sample[name].items())[1:])}
        assert script.sample_of(records.Record({**held, "sample": fewer}, row)) is None


def test_a_run_without_a_figure_leaves_the_record_as_it_was(row: Experiment, folder: Path, monkeypatch: Any) -> None:
    record = _script("record")
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


def test_the_sentence_of_ages_names_records_that_do_not_follow_from_their_samples(
    row: Experiment, folder: Path
) -> None:
    assert records.keep(row, folder)
    path = row.folder / "record.json"
    held = json.loads(path.read_text())
    claim(held)["measured"]["value"] = 1.0
    path.write_text(json.dumps(held))
    assert records.state(row)["samples"].startswith("not of")
    assert "all with their samples" not in records.ages([row])
    held_by = records.of(row)
    assert held_by is not None
    assert "do not follow" in "".join(_script("pages")._older(held_by))


def test_the_sites_table_says_the_age_of_each_record() -> None:
    """A record without a hash is of unknown code, and not of older."""
    row = _script("pages")._row
    for one in catalogue().values():
        record = records.of(one)
        assert row(one)[-1] == (record.age if record else "")


def _script(name: str) -> Any:
    import importlib.util
    import sys

    spec = importlib.util.spec_from_file_location(f"{name}_outside", ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_renewed_record_has_intervals_of_todays_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = copy_of(catalogue()["perc-rounds"], tmp_path / "papers")
    script = _script("record")
    monkeypatch.setattr(script, "WORK", tmp_path / "work")
    verdict = reproduce("perc-rounds", scale="paper", runs=8, out=tmp_path / "out", jobs=1)
    script.write_sample(catalogue()["perc-rounds"], verdict, 1, None)
    assert records.keep(own, tmp_path / "out")
    path = own.folder / "record.json"
    held = json.loads(path.read_text())
    held["measures"][measures.OF_STATISTICS] = "older"
    one = next(c for c in held["checks"] if c["key"] == "median")
    right = one["measured"]["interval"]
    one["measured"]["interval"] = [one["measured"]["value"]] * 2
    path.write_text(json.dumps(held))
    assert script.renew(own)
    record = records.of(own)
    assert record is not None
    anew = next(c for c in record.held["checks"] if c["key"] == "median")
    assert (anew["measured"]["interval"], record.age, record.samples) == (right, "of today's code", "kept")
    (own.folder / samples.NAME).unlink()
    held["measures"][measures.OF_STATISTICS] = "older still"
    path.write_text(json.dumps(held))
    assert not script.renew(own), "without samples"


def test_a_record_of_other_seeds_is_run_anew_and_not_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = copy_of(catalogue()["perc-rounds"], tmp_path / "papers")
    script = _script("record")
    monkeypatch.setattr(script, "WORK", tmp_path / "work")
    reproduce("perc-rounds", scale="paper", runs=1, seed=1, out=tmp_path / "out", jobs=1)
    told = json.loads((tmp_path / "out/verdict.json").read_text())
    records.hold(own, records._values({**told, "measures": {}, "date": "2026-01-02"}))
    assert not script.renew(own)


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


# What a row measures.


def changed_by(path: Path, row: Experiment, monkeypatch: pytest.MonkeyPatch, folder: Path) -> bool:
    """Whether the row measures something else, by its hashes, once the file has a line more."""
    package, crates = folder / "python/subak", folder / "crates"
    name = path.relative_to(ROOT)
    if not package.exists():
        skip = shutil.ignore_patterns(
            "__pycache__", "*.so", "record.json", "target", "tests", "benches", "node_modules"
        )
        shutil.copytree(ROOT / "python/subak", package, ignore=skip)
        shutil.copytree(ROOT / "crates", crates, ignore=skip)
        shutil.copy(ROOT / "Cargo.lock", folder)
    monkeypatch.setattr(measures, "PACKAGE", package)
    monkeypatch.setattr(measures, "CRATES", crates)
    moved = replace(row, folder=package / row.folder.relative_to(ROOT / "python/subak"))

    def hashes() -> dict[str, str]:
        for kept in (measures._package, measures._crate, measures._below, measures._locked, measures._all_imports):
            kept.cache_clear()
        return measures.of(moved)

    before, copied = hashes(), folder / name
    held = copied.read_bytes() if copied.exists() else None
    copied.parent.mkdir(exist_ok=True)
    copied.write_bytes((held or b"") + (b"\n# one more\n" if path.suffix in (".py", ".toml") else b"\n// one more\n"))
    after = hashes()
    copied.write_bytes(held) if held is not None else copied.unlink()
    return before != after


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkout")


DECIDE = [
    ("fit-table6.4", "python/subak/papers/perc/fit_table6_4/__init__.py"),
    ("fit-table6.4", "python/subak/papers/perc/fitting.py"),
    ("fit-table6.4", "python/subak/pipeline/greedy.py"),
    ("fit-table6.4", "python/subak/pipeline/programs/l2l3-complex.json"),
    ("soze-policy", "python/subak/policy/__init__.py"),
    ("perc-fig2.12", "python/subak/papers/perc/fig2_12/spec.toml"),
    ("perc-fig2.12", "crates/packet/src/lib.rs"),
    ("perc-fig2.12", "python/subak/repro/settle.py"),
    ("perc-rounds", "crates/experiments/src/lib.rs"),
    ("perc-rounds", "crates/solve/src/lib.rs"),
    ("soze-fig6", "python/subak/repro/jobs.py"),
    ("soze-fig11", "crates/lab/src/spec/workload/jobs/tpch.toml"),
    ("flowtune-fig7", "crates/agent/src/lib.rs"),
]
FORGOTTEN = [
    ("hpcc-fct", "python/subak/sizes.py", "the bins of its sizes"),
    ("perc-fig2.12", "python/subak/results.py", "reads what was simulated"),
    ("perc-fig2.12", "python/subak/runs.py", "makes the cells of a spec"),
    ("perc-fig2.12", "python/subak/repro/kinds.py", "puts seeds and changes into a spec"),
    ("perc-fig2.12", "python/subak/repro/reproduce.py", "plans the variants"),
    ("perc-rounds", "crates/lab/src/results/stats.rs", "Student's quantile, by which every interval is made"),
    ("perc-rounds", "crates/py/src/quantities.rs", "how Python calls Student's quantile"),
    ("perc-fig2.12", "crates/packet/Cargo.toml", "the features of what the simulator is built from"),
    ("fit-table6.4", "python/subak/papers/perc/fit_table6_4/parts/more.py", "a module in a folder of the row's own"),
]


@pytest.mark.parametrize(("name", "file"), DECIDE)
def test_a_file_that_decides_what_a_row_measures_is_hashed(
    name: str, file: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed_by(ROOT / file, catalogue()[name], monkeypatch, checkout)


@pytest.mark.parametrize(("name", "file", "what"), FORGOTTEN)
def test_a_file_that_is_forgotten_is_hashed(
    name: str, file: str, what: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed_by(ROOT / file, catalogue()[name], monkeypatch, checkout), what


def test_a_run_of_an_extension_that_is_older_than_its_source_is_refused(
    row: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crates = tmp_path / "checkout/crates"
    shutil.copytree(ROOT / "crates", crates, ignore=shutil.ignore_patterns("tests", "target"))
    shutil.copy(ROOT / "Cargo.lock", crates.parent)
    source = crates / "rounds/src/lib.rs"
    source.write_text(source.read_text() + "\n// not compiled\n")
    monkeypatch.setattr(measures, "CRATES", crates)
    for kept in (measures._crate, measures._below, measures._locked):
        kept.cache_clear()
    try:
        reproduce(ROW, scale="paper", runs=1, out=tmp_path / "out", jobs=1)
        with pytest.raises(InputError):
            records.keep(row, tmp_path / "out")
    finally:
        for kept in (measures._crate, measures._below, measures._locked):
            kept.cache_clear()


def test_a_run_during_which_the_code_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = copy_of(catalogue()["soze-policy"], tmp_path / "papers")
    monkeypatch.setitem(catalogue(), "soze-policy", own)
    code = own.folder / "__init__.py"
    text = code.read_text()

    def edit(done: int, cells: int, share: float) -> None:
        code.write_text(text + "\n# one more\n")

    reproduce("soze-policy", scale="paper", runs=3, out=tmp_path / "out", progress=edit)
    assert code.read_text() != text
    with pytest.raises(InputError):
        records.keep(own, tmp_path / "out")


@pytest.mark.parametrize("name", ["perc-drops", "soze-policy", "perc-fig2.3", "perc-fig2.12"])
def test_a_rerun_after_the_code_changed_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind: own code, a spec, and the crate that computes it."""
    own = copy_of(catalogue()[name], tmp_path / "papers")
    monkeypatch.setitem(catalogue(), name, own)
    reproduce(name, runs=1, out=tmp_path / "out", jobs=1)
    changed = [*own.folder.glob("*.py"), *own.folder.glob("spec*.toml"), *own.folder.parent.glob("*.py")]
    for path in changed:
        text = path.read_text()
        path.write_text(text + "\n# one more\n")
        measures._all_imports.cache_clear()
        with pytest.raises(InputError, match="holds results of another"):
            reproduce(name, runs=1, out=tmp_path / "out", jobs=1)
        path.write_text(text)
    if own.kind != "python":
        monkeypatch.setattr(measures, "_crate", lambda crate: "another")
        with pytest.raises(InputError, match="holds results of another"):
            reproduce(name, runs=1, out=tmp_path / "out", jobs=1)


def test_an_installed_package_does_not_say_that_crates_which_it_cannot_see_are_todays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measures, "CRATES", tmp_path / "none")
    for kept in (measures._crate, measures._below, measures._locked):
        kept.cache_clear()
    try:
        row = catalogue()["perc-fig2.12"]
        held = {"runs": 1, "checks": [], "measures": {**measures.of(row), "crates/packet": "long ago"}}
        assert records.Record(held, row).age != "of today's code"
        measured = {**measures.of(row), "crates/packet": "long ago"}
        monkeypatch.setattr(records, "of", lambda row: records.Record({**held, "measures": measured}, row))
        assert "1 of code that is not here to compare" in records.ages([row])
    finally:
        for kept in (measures._crate, measures._below, measures._locked):
            kept.cache_clear()


# Bounds.


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
    """A bound of ours may be not met; it contradicts nobody."""
    ours = [
        f"{e.name} {c.key}"
        for e in catalogue().values()
        for c in e.checks
        if c.claim and c.part == "claim" and not _printed(c.claim, c.published, c.quote) and c.claim.bound not in (0, 1)
    ]
    assert ours == []
