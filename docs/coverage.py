"""How often the intervals of ``subak.repro.stats`` hold the truth, simulated: the table in docs/reproducing.md.

``python docs/coverage.py`` writes it anew, in minutes. Values are drawn from log-normal distributions, whose mean and
quantiles are known: a light one (sigma 0.5) and one with a heavy tail (sigma 1.5).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
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
LEAST = 93.0
"""Percent: below this an interval would have to be widened."""
BEGIN, END = "<!-- coverage: docs/coverage.py -->", "<!-- end of coverage -->"
Draw = Callable[[np.random.Generator, int], Measured]


def truth(statistic: str, sigma: float) -> float:
    """Of the log-normal distribution of median 1."""
    if statistic == "mean":
        return math.exp(sigma**2 / 2)
    q = 0.5 if statistic == "median" else float(statistic.removeprefix("p")) / 100
    return math.exp(sigma * NormalDist().inv_cdf(q))


def of_one(statistic: str, sigma: float) -> tuple[Draw, float]:
    """The statistic of one sample, and its true value."""

    def draw(random: np.random.Generator, count: int) -> Measured:
        return stats.estimate(random.lognormal(0, sigma, count), statistic, "runs")

    return draw, truth(statistic, sigma)


def of_ratio(statistic: str, *, paired: bool) -> tuple[Draw, float]:
    """The ratio of a heavy sample's statistic to a light one's, and its true value."""

    def draw(random: np.random.Generator, count: int) -> Measured:
        heavy, light = random.lognormal(0, HEAVY, count), random.lognormal(0, LIGHT, count)
        return stats.ratio(heavy, light, statistic, "runs", paired=paired)

    return draw, truth(statistic, HEAVY) / truth(statistic, LIGHT)


def of_share(random: np.random.Generator, count: int) -> Measured:
    """The share that nine of ten have in truth."""
    return stats.share(int(random.binomial(count, TRUE_SHARE)), count, "runs")


ROWS: dict[str, tuple[Draw, float]] = {
    "median": of_one("median", LIGHT),
    "mean": of_one("mean", LIGHT),
    "mean, heavy tail": of_one("mean", HEAVY),
    "p99": of_one("p99", LIGHT),
    "p99, heavy tail": of_one("p99", HEAVY),
    "ratio of medians, one side heavy": of_ratio("median", paired=False),
    "ratio of means, one side heavy": of_ratio("mean", paired=False),
    "ratio of p95s, one side heavy": of_ratio("p95", paired=False),
    "ratio of p99s, one side heavy": of_ratio("p99", paired=False),
    "share of 90%": (of_share, 100 * TRUE_SHARE),
}


def coverage(row: str, count: int, draws: int) -> float:
    """Percent of ``draws`` samples of ``count`` whose interval holds the truth."""
    draw, true = ROWS[row]
    random = np.random.default_rng(count)
    hits = 0
    for _ in range(draws):
        low, high = draw(random, count).interval or (math.inf, -math.inf)
        hits += low <= true <= high
    return 100 * hits / draws


def table(draws: int = DRAWS) -> str:
    """The table in Markdown."""
    lines = [f"| 95% interval of | {' | '.join(f'n = {n}' for n in COUNTS)} |", "|---" * (1 + len(COUNTS)) + "|"]
    for row in ROWS:
        print(row, file=sys.stderr)
        lines.append(f"| {row} | {' | '.join(f'{coverage(row, n, draws):.1f}%' for n in COUNTS)} |")
    return "\n".join(lines) + "\n"


def put(page: str, made: str) -> str:
    """The page with the table between its marks."""
    told, found = re.subn(rf"(?s){re.escape(BEGIN)}\n.*?{re.escape(END)}", f"{BEGIN}\n\n{made}\n{END}", page)
    if found != 1:
        sys.exit(f"{PAGE}: the marks {BEGIN} and {END} have to be there once")
    return told


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text(), table()))
