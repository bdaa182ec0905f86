"""Intervals of ``subak.repro.stats``, and verdicts by them, against an independent model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from subak import _subak
from subak.repro import Measured, settle, stats
from subak.repro.rules import Rule, judge

INF = math.inf


def binomial(least: int, count: int, p: float) -> float:
    """Probability of at least ``least`` successes of ``count``."""
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
    """The density, integrated to the quantile by Simpson's rule over the angle whose tangent is t / sqrt(freedom)."""
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
    """With a coverage of 95%, 91.9% or less of 600 samples has a probability below 0.1%."""
    assert coverage(draw, statistic, count, truth) >= 0.92


@pytest.mark.parametrize(("statistic", "count"), [("mean", 3), ("mean", 5), ("mean", 20), ("median", 3), ("median", 5)])
def test_intervals_of_values_of_either_sign_hold_the_truth(statistic: str, count: int) -> None:
    assert coverage(lambda random, n: random.normal(0, 1, n), statistic, count, 0.0, signed=True) >= 0.92


def test_a_ratio_of_quantiles_holds_the_truth_where_its_guard_ends() -> None:
    """Ratio of p95s of 72 values, heavy-tailed over light, against the true ratio by the normal distribution's
    quantile."""
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


def test_an_interval_of_what_is_never_negative_begins_at_0_at_least() -> None:
    times = [0.0, 0.0, 0.0, 1.0, 9.0, 40.0]
    for found in (
        stats.estimate(times, "mean", "runs"),
        stats.ratio(times, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0], "mean", "runs", paired=True),
        stats.over_runs([[one] for one in times], lambda runs: float(np.mean(runs))),
    ):
        assert found.interval is not None
        assert found.interval[0] == 0
        assert found.sample is not None
        assert stats.again(found.sample).interval == found.interval
    signed = stats.estimate(times, "mean", "runs", signed=True).interval
    assert signed is not None
    assert signed[0] < 0


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
    """Of 40,000 values 20,000 are resampled, of 30 all: the interval of the ratio is that of the 30."""
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
    """The median of all values is the 0.5 / 0.6 quantile of the finite ones: 15% of intervals of three values missed
    it."""
    truth = math.exp(0.9674216)
    assert misses(lambda random: stats.estimate(never(random, count, 0.4), "median", "runs"), truth) <= 0.08


@pytest.mark.parametrize(("zeros", "count"), [(0.5, 3), (0.5, 5), (0.8, 5), (0.8, 10)])
def test_a_ratio_over_a_mean_with_zeros_holds_the_truth(zeros: float, count: int) -> None:
    """Ratios over a divisor that is 0 in a fraction of the runs: 6 to 55% of the intervals began above the true
    ratio."""

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
    """An interval does not include values that no run showed, as docs/reproducing.md states."""
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


def test_the_least_ratio_of_times_that_may_be_infinite_follows_from_its_sample() -> None:
    """In some bootstrap samples both sides are infinite: their ratio is unknown, but not negative."""
    slow = [1216.0, 1026.0, INF, 1256.0, 816.0, 1556.0, INF, 586.0, 926.0, INF] * 3
    fast = [936.0, 876.0, 846.0, 1326.0, INF, 546.0, 796.0, 426.0, 856.0, 396.0] + [600.0] * 20
    found = settle.least_ratio([slow], fast, [0.5, 0.95])
    assert found.sample is not None
    assert np.isnan(found.sample.sides["draws"]).any()
    assert found.low == 0
    assert stats.again(found.sample).interval == found.interval
