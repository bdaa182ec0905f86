"""Outcomes of checks: rules on samples with known intervals, and the verdict of an experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from subak import _subak
from subak.repro import settle, stats
from subak.repro.rules import Rule, judge, verdict
from subak.repro.values import Measured, Value, as_json, text

INF = math.inf


def measured(low: float, high: float, value: float | None = None) -> Measured:
    return Measured((low + high) / 2 if value is None else value, low, high, 10, "runs")


@pytest.mark.parametrize(
    ("rule", "value", "outcome"),
    [
        (Rule("at_most", 3), measured(2, 3), "met"),
        (Rule("at_most", 3), measured(2, 3.1), "undecided"),
        (Rule("at_most", 3), measured(3.1, 4), "not met"),
        (Rule("at_least", 2), measured(2, 9), "met"),
        (Rule("at_least", 2), measured(1, 9), "undecided"),
        (Rule("at_least", 2), measured(1, 1.9), "not met"),
        (Rule("at_least", 2), measured(3, INF, 4), "met"),
        (Rule("at_least", 2), measured(1, INF, 4), "undecided"),
        (Rule("at_most", 2), measured(1, INF, INF), "undecided"),
        (Rule("at_most", 2), measured(INF, INF, INF), "not met"),
        (Rule("within", [1, 2]), measured(1, 2), "met"),
        (Rule("within", [1, 2]), measured(0.9, 1.5), "undecided"),
        (Rule("within", [1, 2]), measured(0, 3), "undecided"),
        (Rule("within", [1, 2]), measured(2.1, 3), "not met"),
        (Rule("within", [1, 2]), measured(0, 0.9), "not met"),
        (Rule("at_most", 3), Measured(2.0, count=1), "undecided"),
        (Rule("at_most", 3), 2.0, "undecided"),
        (Rule("at_most", 3), measured(math.nan, math.nan, math.nan), "undecided"),
    ],
)
def test_only_a_whole_interval_decides(rule: Rule, value: Value, outcome: str) -> None:
    assert judge(value, rule, exact=False).outcome == outcome


@pytest.mark.parametrize(
    ("rule", "value", "outcome"),
    [
        (Rule("at_most", 3), 3, "met"),
        (Rule("at_most", 3), 3.1, "not met"),
        (Rule("at_most", 3), math.nan, "not met"),
        (Rule("at_most", 3), "none", "not met"),
        (Rule("at_least", 100), stats.share(30, 30, "runs"), "met"),
        (Rule("at_least", 100), stats.share(29, 30, "runs"), "not met"),
        (Rule("equals", [1.0, 2.0]), [1.0, 2.0 + 1e-12], "met"),
        (Rule("equals", [1.0, 2.0]), [1.0, 2.1], "not met"),
        (Rule("equals", [1.0, 2.0]), [1.0], "not met"),
        (Rule("equals", ["inf", True]), ["inf", True], "met"),
        (Rule("equals", True), 1.5, "not met"),
        (Rule("equals", 18), 18.0, "met"),
        (Rule("equals", [[1], [2, 3]]), [[1], [2, 3]], "met"),
    ],
)
def test_what_is_exact_needs_no_interval(rule: Rule, value: Value, outcome: str) -> None:
    assert judge(value, rule, exact=True).outcome == outcome


def test_a_claim_is_contradicted_only_by_the_whole_interval() -> None:
    rule, claim = Rule("at_least", 2), Rule("at_least", 1)
    outcomes = [judge(v, rule, exact=False, claim=claim).outcome for v in (measured(0.5, 0.9), measured(0.9, 1.9))]
    assert outcomes == ["contradicted", "not met"]
    assert judge(measured(0.9, 2.1), rule, exact=False, claim=claim).outcome == "undecided"
    assert judge(measured(0.5, 0.9), None, exact=False, claim=claim).outcome == "contradicted"
    assert judge(measured(0.5, 0.9), None, exact=False).outcome is None


@pytest.mark.parametrize(
    ("value", "rule", "needs"),
    [
        (Measured(2.0, count=1), Rule("at_most", 3), "a second is needed"),
        (measured(1.8, 2.6), Rule("at_least", 2), "about 40 runs"),  # Arm 0.4, distance 0.2: 4 times the runs.
        (measured(1.5, 2.5, 2.0), Rule("at_least", 2), "more than 10,000 runs"),
        (measured(1.0, INF, 2.5), Rule("at_least", 2), "about 90 runs"),  # The arm over the bound counts.
        (measured(1.0, INF, 1.5), Rule("at_most", 2), "its interval has no end"),
        (measured(0.8, 2.3, 1.5), Rule("within", [1, 2]), "about 26 runs"),
        (Measured(2.2, 1.8, 2.6, 30, "changes"), Rule("at_least", 2), "about 120 changes"),
        (Measured(math.nan, math.nan, math.nan, 9, "starts"), Rule("at_least", 1), "nothing settled"),
        (stats.share(15, 15, "networks"), Rule("at_least", 95), "about 72 networks"),  # 0.95^n is at most 2.5%.
        (stats.share(12, 12, "runs"), Rule("at_least", 100), "12 of 12 show at least 73.54%: 368 would decide it"),
        (Measured(9, 8, 10, 10, "starts"), Rule("at_least", 1), "starts on a grid are no sample"),
        (Measured(0.5, 0.4, 0.6, 4, "runs"), Rule("at_least", 1), "5 runs at least"),
        (stats.share(19, 20, "networks"), Rule("at_least", 95), "more than"),
    ],
)
def test_how_many_would_decide(value: Value, rule: Rule, needs: str) -> None:
    assert needs in judge(value, rule, exact=False).needs


def test_more_runs_by_that_estimate_do_decide() -> None:
    def judged(n: int) -> tuple[str | None, str]:
        drawn = np.random.default_rng(5).normal(size=n)
        sample = 1.1 + 0.5 * (drawn - drawn.mean()) / drawn.std()
        found = judge(stats.estimate(sample, "mean", "runs"), Rule("at_least", 1), exact=False, runs=n)
        return found.outcome, found.needs

    outcome, needs = judged(20)
    assert outcome == "undecided"
    enough = int(needs.split()[1])
    assert 60 < enough < 200
    assert judged(int(1.2 * enough))[0] == "met"


def test_fewer_runs_never_make_a_claim_about_every_run_easier() -> None:
    outcomes = [judge(stats.share(n, n, "runs"), Rule("at_least", 100), exact=False).outcome for n in (1, 12, 367, 368)]
    assert outcomes == ["undecided", "undecided", "undecided", "met"]
    assert judge(stats.share(29, 30, "runs"), Rule("at_least", 100), exact=False).outcome == "not met"


def test_what_fails_does_so_for_all_claims_of_the_row_together() -> None:
    """Of 42 true claims, one fails at 95% by chance: Student's quantile for 9 degrees of freedom is 2.26, and 4.4
    for 42 claims together."""
    near, far = Measured(1, 0.9, 1.1, 10), Measured(1, 0.99, 1.01, 10)
    alone = [judge(v, Rule("at_least", 1.15), exact=False).outcome for v in (near, far)]
    among = [judge(v, Rule("at_least", 1.15), exact=False, family=42).outcome for v in (near, far)]
    assert (alone, among) == (["not met", "not met"], ["undecided", "not met"])
    assert judge(near, Rule("at_least", 0.85), exact=False, family=42).outcome == "met", "what is met is not harder"


def test_the_worst_check_makes_the_verdict() -> None:
    assert verdict(["met", None]) == "met"
    assert verdict(["met", "undecided"]) == "undecided"
    assert verdict(["met", "undecided", "depends"]) == "depends"
    assert verdict(["not met", "undecided", "met"]) == "not met"
    assert verdict(["not met", "contradicted", "undecided"]) == "contradicted"


def test_students_quantiles_are_those_of_the_tables() -> None:
    """For one and two degrees of freedom the quantile has closed forms: a tangent and a root."""
    one, two = (_subak.student(df, 0.05) for df in (1, 2))
    assert one == pytest.approx(math.tan(0.475 * math.pi), rel=1e-9)
    assert two == pytest.approx(2 * 0.475 * math.sqrt(2 / (4 * 0.975 * 0.025)), rel=1e-9)
    assert [_subak.student(df, 0.05) for df in (3, 9, 30)] == pytest.approx([3.18245, 2.26216, 2.04227], rel=1e-5)


@pytest.mark.parametrize("count", [3, 5, 10, 40])
def test_intervals_hold_the_truth_about_as_often_as_they_say(count: int) -> None:
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        low, high = stats.estimate(random.lognormal(0, 0.5, count), "mean", "runs").interval or (0, 0)
        hits += low <= math.exp(0.125) <= high
    assert hits >= 0.88 * 200


def test_pairs_are_drawn_together() -> None:
    random = np.random.default_rng(4)
    common = random.lognormal(0, 1, 50)
    slow, fast = 2 * common, common
    paired = stats.ratio(slow, fast, "median", "changes", paired=True)
    apart = stats.ratio(slow, fast, "median", "changes", paired=False)
    assert paired.interval == pytest.approx((2, 2))
    assert apart.interval is not None
    assert apart.interval[0] < 1.8 < 2.2 < apart.interval[1]
    with pytest.raises(ValueError, match="50 and 49"):
        stats.ratio(slow, fast[1:], "median", "changes", paired=True)


def test_what_never_settled_counts_as_longer_than_all() -> None:
    times = [1.0, 2.0, 3.0, INF]
    assert stats.quantile(times, 0.5) == 2.5
    assert stats.quantile(times, 0.9) == INF
    found = stats.ratio([INF] * 20, [2.0] * 20, "median", "changes", paired=True)
    assert (found.value, found.interval) == (INF, (INF, INF))
    neither = stats.ratio([INF] * 20, [INF] * 20, "median", "changes", paired=True)
    assert math.isnan(neither.value)
    assert neither.interval is None
    half = stats.ratio([INF, 5.0] * 20, [1.0] * 40, "median", "changes", paired=True)
    assert half.interval == (5, INF)


def test_few_values_say_nothing_of_a_tail() -> None:
    few, many = (stats.estimate(np.arange(1.0, n), "p99", "changes") for n in (100, 1000))
    assert few.interval is not None
    assert few.interval[1] == INF
    assert many.interval is not None
    assert many.interval[1] < INF


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("statistic", "enough"), [("p95", 72), ("p99", 368)])
def test_few_values_say_nothing_of_a_ratio_of_tails(statistic: str, enough: int, paired: bool) -> None:
    random = np.random.default_rng(5)
    few, many = (random.lognormal(0, 1, (2, n)) for n in (enough - 1, enough + 1))
    assert stats.ratio(*few, statistic, "runs", paired=paired).interval == (0, INF)
    low, high = stats.ratio(*many, statistic, "runs", paired=paired).interval or (0, INF)
    assert 0 < low < high < INF


def test_only_the_side_with_few_values_is_open() -> None:
    random = np.random.default_rng(6)
    few, many = random.lognormal(0, 1, 20), random.lognormal(0, 1, 500)
    above = stats.ratio(few, many, "p95", "runs", paired=False).interval or (0, 0)
    below = stats.ratio(many, few, "p95", "runs", paired=False).interval or (1, INF)
    assert above[0] > 0
    assert above[1] == INF
    assert below[0] == 0
    assert below[1] < INF
    low_tail = stats.ratio(few, many, "p5", "runs", paired=False).interval or (1, INF)
    assert low_tail[0] == 0
    assert low_tail[1] < INF


def test_a_ratio_of_heavy_tails_holds_the_truth_as_often_as_it_says() -> None:
    """Ratios of p95s with one heavy-tailed side: before tails were unbounded, the interval covered 49 to 89% of
    samples."""
    random = np.random.default_rng(7)
    truth = math.exp(1.5 * 1.6448536) / math.exp(0.3 * 1.6448536)
    for count in (3, 5, 10, 20):
        hits = 0
        for _ in range(100):
            heavy, light = random.lognormal(0, 1.5, count), random.lognormal(0, 0.3, count)
            low, high = stats.ratio(heavy, light, "p95", "runs", paired=False).interval or (INF, 0)
            hits += low <= truth <= high
        assert hits >= 93


def test_a_least_ratio_at_an_open_tail_is_bounded_by_the_quantile_that_is_known() -> None:
    fast = [1.0] * 20
    both = settle.least_ratio([[3.0] * 20], fast, [0.5, 0.95])
    alone = settle.least_ratio([[3.0] * 20], fast, [0.95])
    assert both.interval == pytest.approx((0, 3))
    assert alone.interval == (0, INF)


def test_large_samples_have_an_interval_and_bounded_work() -> None:
    found = stats.estimate(np.random.default_rng(7).exponential(size=400_000), "p99", "flows")
    low, high = found.interval or (0, 0)
    assert low < math.log(100) < high
    assert high - low < 0.1


def test_shares_have_clopper_and_pearsons_interval() -> None:
    assert stats.share(30, 30, "changes").interval == pytest.approx((88.43, 100), abs=0.01)
    assert stats.share(5, 10, "changes").interval == pytest.approx((18.71, 81.29), abs=0.01)
    assert stats.share(0, 12, "changes").interval == pytest.approx((0, 26.46), abs=0.01)
    assert stats.share(0, 0, "changes").interval is None


def test_a_mean_of_shares_stays_within_0_and_100_percent() -> None:
    low, high = stats.estimate([90.0, 100, 100, 100], "percent", "runs").interval or (0, 101)
    assert 80 < low < 100 == high
    low, high = stats.estimate([0.0, 0, 8, 0], "percent", "runs").interval or (-1, 0)
    assert low == 0 < high
    assert (stats.estimate([90.0, 100, 100, 100], "mean", "runs").interval or (0, 0))[1] > 100


def test_whole_runs_are_resampled() -> None:
    runs = [[1.0, 1.0], [3.0, 3.0], [2.0, 2.0]]
    found = stats.over_runs(runs, lambda chosen: sum(sum(r) for r in chosen) / 6)
    low, high = found.interval or (2, 2)
    assert (found.value, found.count) == (2, 3)
    assert low < 1
    assert high > 3
    assert stats.over_runs(runs[:1], lambda chosen: 1.0).interval is None


def test_a_pooled_tail_reaches_as_far_as_that_of_the_runs_values() -> None:
    runs = [[math.exp(k)] * 100 for k in range(5)]

    def pooled(chosen: Sequence[list[float]]) -> float:
        return stats.quantile([x for run in chosen for x in run], 0.99)

    found = stats.over_runs(runs, pooled, tail=0.99)
    # Student's t with 4 degrees of freedom, the deviation of 0 to 4, and the normal distribution's 99th percentile.
    arm = 2.7764 * math.sqrt(2.5) * math.sqrt(1 / 5 + 2.3263**2 / 8)
    assert found.value == pytest.approx(math.exp(4))
    assert found.high == pytest.approx(math.exp(4 + arm), rel=1e-3)
    assert found.sample is not None
    assert stats.again(found.sample).interval == found.interval
    assert (stats.over_runs(runs, pooled).high or 0) < math.exp(4 + arm)


@pytest.mark.parametrize("exact", [False, True])
def test_where_nothing_was_there_to_measure_nothing_is_decided(exact: bool) -> None:
    judged = judge(stats.share(0, 0, "setups"), Rule("at_least", 100), exact=exact, claim=Rule("at_least", 100))
    assert (judged.outcome, judged.needs) == ("undecided", "there were no setups to measure")


def test_values_come_back_from_json() -> None:
    sample = {"statistic": "median", "data": [1, 2, None], "of": "setups"}
    assert stats.from_json(sample) == stats.estimate([1, 2, INF], "median", "setups")
    ratio = {"statistic": "mean", "data": [2, 4], "over": [1, 2], "of": "setups"}
    assert stats.from_json(ratio) == stats.ratio([2, 4], [1, 2], "mean", "setups", paired=True)
    assert stats.from_json({"statistic": "share", "hits": 1, "count": 2, "of": "x"}) == stats.share(1, 2, "x")
    one = stats.estimate([1.0, 2.0, 4.0], "mean", "runs")
    assert stats.from_json(as_json(one)) == one
    assert (stats.from_json(None), stats.from_json([1, "a"])) == (INF, [1, "a"])


def test_how_values_read() -> None:
    assert text(Measured(1.25, 1, 1.5, 9), "RTTs") == "1.25 [1, 1.5] RTTs (9 runs)"
    assert text(Measured(INF, 3, INF, 1, "changes", "1 never settled")) == "∞ [3, ∞] (1 change, 1 never settled)"
    assert text([[1, 2], [3]]) == "(1, 2), (3)"
    assert text([Measured(1.0, 0.5, 2.0, 4), Measured(2.0, 1.0, 3.0, 4)], "us") == "1 [0.5, 2], 2 [1, 3] us (4 runs)"
    assert as_json(Measured(INF, 1, INF, 2)) == {"value": "inf", "interval": [1, "inf"], "count": 2, "of": "runs"}
