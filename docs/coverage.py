"""Coverage of the intervals of ``subak.repro.stats`` (how often they contain the true value), by simulation.

``python docs/coverage.py`` writes the table in docs/reproducing.md, in minutes. Values are random, from log-normal
distributions, whose mean and quantiles are known: a light one (sigma 0.5) and one with a heavy tail (sigma 1.5).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
from subak.repro import stats
from subak.repro.values import Measured

PAGE = Path(__file__).parent / "reproducing.md"
COUNTS = (3, 5, 10, 20)
DRAWS = 2000
LIGHT, HEAVY = 0.5, 1.5
TRUE_SHARE = 0.9
RARE = 0.1
TAILS = {"p75": 13, "p90": 36, "p95": 72, "p99": 368}
"""For each quantile, the smallest number of values that bound it from above."""
LEAST = 93.0
"""Coverage, percent, below which an interval would have to be widened."""
BEGIN, END = "<!-- coverage: docs/coverage.py -->", "<!-- end of coverage -->"
Draw = Callable[[np.random.Generator, int], Measured]


def truth(statistic: str, sigma: float) -> float:
    """True value of the statistic for the log-normal distribution with median 1."""
    if statistic == "mean":
        return math.exp(sigma**2 / 2)
    q = 0.5 if statistic == "median" else float(statistic.removeprefix("p")) / 100
    return math.exp(sigma * NormalDist().inv_cdf(q))


def of_one(statistic: str, sigma: float) -> tuple[Draw, float]:
    """A function that draws a sample and estimates the statistic, and the true value."""

    def draw(random: np.random.Generator, count: int) -> Measured:
        return stats.estimate(random.lognormal(0, sigma, count), statistic, "runs")

    return draw, truth(statistic, sigma)


def of_difference(random: np.random.Generator, count: int) -> Measured:
    """Estimates the mean of normal values of either sign; the true mean is 0."""
    return stats.estimate(random.normal(0, 1, count), "mean", "runs", signed=True)


def with_zeros(random: np.random.Generator, count: int) -> Measured:
    """Estimates the mean of values of which one in ten is 0; the others have a heavy tail."""
    values = random.lognormal(0, HEAVY, count) * (random.random(count) > RARE)
    return stats.estimate(values, "mean", "runs")


def two_points(random: np.random.Generator, count: int) -> Measured:
    """Estimates the mean of values of which one in ten is 2 and the others 1: most small samples have no 2."""
    return stats.estimate(np.where(random.random(count) < RARE, 2.0, 1.0), "mean", "runs")


def of_ratio(statistic: str, *, paired: bool) -> tuple[Draw, float]:
    """A function that estimates the ratio of a heavy-tailed sample's statistic to a light one's, and the true ratio."""

    def draw(random: np.random.Generator, count: int) -> Measured:
        heavy, light = random.lognormal(0, HEAVY, count), random.lognormal(0, LIGHT, count)
        return stats.ratio(heavy, light, statistic, "runs", paired=paired)

    return draw, truth(statistic, HEAVY) / truth(statistic, LIGHT)


def of_share(random: np.random.Generator, count: int) -> Measured:
    """Estimates a fraction whose true value is nine of ten."""
    return stats.share(int(random.binomial(count, TRUE_SHARE)), count, "runs")


def of_runs(statistic: str, flows: int, between: float) -> tuple[Draw, float]:
    """A function that estimates the quantile of the flows of all runs, and the true value.

    Differences between runs are the fraction ``between`` of the variance of logarithms.
    """
    q = 0.5 if statistic == "median" else float(statistic.removeprefix("p")) / 100

    def pooled(runs: Sequence[np.ndarray]) -> float:
        return stats.quantile(np.concatenate(runs), q)

    def draw(random: np.random.Generator, count: int) -> Measured:
        own = random.normal(0, math.sqrt(between), (count, 1))
        runs = np.exp(own + random.normal(0, math.sqrt(1 - between), (count, flows)))
        return stats.over_runs(list(runs), pooled, tail=q)

    return draw, truth(statistic, 1.0)


ROWS: dict[str, tuple[Draw, float]] = {
    "median": of_one("median", LIGHT),
    "mean": of_one("mean", LIGHT),
    "mean, heavy tail": of_one("mean", HEAVY),
    "mean, heavy tail and zeros": (with_zeros, (1 - RARE) * truth("mean", HEAVY)),
    "mean, either sign": (of_difference, 0.0),
    "p99": of_one("p99", LIGHT),
    "p99, heavy tail": of_one("p99", HEAVY),
    "ratio of medians, one side heavy": of_ratio("median", paired=False),
    "ratio of means, one side heavy": of_ratio("mean", paired=False),
    "ratio of p95s, one side heavy": of_ratio("p95", paired=False),
    "ratio of p99s, one side heavy": of_ratio("p99", paired=False),
    "share of 90%": (of_share, 100 * TRUE_SHARE),
    "median of the flows of all runs": of_runs("median", 500, 0.5),
    "p99 of the flows of all runs, which are alike": of_runs("p99", 500, 0.0),
    "p99 of the flows of all runs": of_runs("p99", 500, 0.5),
    "p99 of ten flows a run": of_runs("p99", 10, 0.5),
}
UNSEEN: dict[str, tuple[Draw, float]] = {
    "mean, one value in ten is twice the others": (two_points, 1 + RARE),
}
"""Cases that no interval of few values can cover: most small samples lack the rare value."""
AT_ENDS: dict[str, tuple[Draw, float]] = {
    **{q: of_one(q, HEAVY) for q in TAILS},
    **{f"ratio of {q}s": of_ratio(q, paired=False) for q in TAILS},
}
"""Quantiles of the number of values in ``TAILS``, the smallest that bounds them."""


def coverage(row: str, count: int, draws: int) -> float:
    """Percentage of ``draws`` samples of ``count`` values whose interval contains the true value."""
    draw, true = (ROWS | UNSEEN | AT_ENDS)[row]
    random = np.random.default_rng(count)
    hits = 0
    for _ in range(draws):
        low, high = draw(random, count).interval or (math.inf, -math.inf)
        hits += low <= true <= high
    return 100 * hits / draws


def table(draws: int = DRAWS) -> str:
    """The table of coverages in Markdown."""
    lines = [f"| 95% interval of | {' | '.join(f'n = {n}' for n in COUNTS)} |", "|---" * (1 + len(COUNTS)) + "|"]
    for row in ROWS | UNSEEN:
        print(row, file=sys.stderr)
        lines.append(f"| {row} | {' | '.join(f'{coverage(row, n, draws):.1f}%' for n in COUNTS)} |")
    lines += ["", f"| heavy tail | {' | '.join(f'{q}, n = {n}' for q, n in TAILS.items())} |"]
    lines.append("|---" * (1 + len(TAILS)) + "|")
    for what, names in (("quantile", list(TAILS)), ("ratio of quantiles", [f"ratio of {q}s" for q in TAILS])):
        found = [coverage(name, n, draws) for name, n in zip(names, TAILS.values(), strict=True)]
        lines.append(f"| {what} | {' | '.join(f'{one:.1f}%' for one in found)} |")
    return "\n".join(lines) + "\n"


def put(page: str, made: str) -> str:
    """The page with the table between its markers replaced by ``made``."""
    told, found = re.subn(rf"(?s){re.escape(BEGIN)}\n.*?{re.escape(END)}", f"{BEGIN}\n\n{made}\n{END}", page)
    if found != 1:
        sys.exit(f"{PAGE}: the marks {BEGIN} and {END} have to be there once")
    return told


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text(), table()))
