"""Rules of checks. A rule is met if the whole confidence interval satisfies it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from subak import _subak, units
from subak.repro import stats
from subak.repro.values import Measured, Value, point

MET, NOT_MET, UNDECIDED, CONTRADICTED, DEPENDS = "met", "not met", "undecided", "contradicted", "depends"
FAILED = (NOT_MET, CONTRADICTED)
"""Beginnings of verdicts of which an experiment has to say the cause."""
OPERATORS = ("at_most", "at_least", "within", "equals")
MOST_TIMES = 1000
"""Largest multiple of the runs so far that a message suggests to run."""
GRIDS = ("starts", "traces")
"""Units of resampling that were not drawn at random."""
FEWEST_TO_FAIL = 5
"""Smallest number of resampled units (runs, flows, ...) by which a check can fail."""
ENOUGH_OF_EVERY = 99.0
"""A claim about every run is met if all runs comply and the interval of their fraction begins at this or above,
percent."""
LEAST_OF_EVERY = 368
"""Number of compliant runs for an interval that begins at ``ENOUGH_OF_EVERY``: 0.99^n is at most 2.5%."""


@dataclass(frozen=True)
class Rule:
    """The rule that a measured value must satisfy: an operator and a bound."""

    op: str
    bound: Any
    tolerance: float = 1e-9
    """Relative tolerance of the operator ``equals``."""

    def holds(self, value: Any) -> bool:
        """Whether the single value ``value``, without interval, satisfies the rule."""
        if self.op == "equals":
            return _equal(value, self.bound, self.tolerance)
        if not isinstance(value, int | float) or math.isnan(value):
            return False
        return bool(self._least() <= value <= self._most())

    def holds_all(self, low: float, high: float) -> bool:
        """Whether every value from ``low`` to ``high`` satisfies the rule."""
        return self.holds(low) and self.holds(high)

    def breaks_all(self, low: float, high: float) -> bool:
        """Whether no value from ``low`` to ``high`` satisfies the rule."""
        return bool(high < self._least() or low > self._most())

    def words(self, unit: str = "") -> str:
        """The rule in words, such as ``at least 1.2``."""
        behind = f" {unit}" if unit else ""
        if self.op == "within":
            return f"{units.number(self.bound[0])} to {units.number(self.bound[1])}{behind}"
        if self.op == "equals":
            plain = isinstance(self.bound, int | float) and not isinstance(self.bound, bool)
            return f"exactly {units.number(self.bound)}{behind}" if plain else "exactly this"
        return f"{self.op.replace('_', ' ')} {units.number(self.bound)}{behind}"

    def _least(self) -> Any:
        return self.bound if self.op == "at_least" else self.bound[0] if self.op == "within" else -math.inf

    def _most(self) -> Any:
        return self.bound if self.op == "at_most" else self.bound[1] if self.op == "within" else math.inf


@dataclass(frozen=True)
class Judged:
    """Outcome of a check, by the measured value and its interval."""

    outcome: str | None
    """``met``, ``not met``, ``undecided``, ``contradicted``; ``None`` if there is no rule."""
    leans: bool | None = None
    """Whether the value alone, without its interval, satisfies the rule."""
    needs: str = ""
    """For an undecided check: number of runs, changes or other resampled units that would decide the check."""


def judge(
    value: Value, rule: Rule | None, *, exact: bool, claim: Rule | None = None, runs: int = 1, family: int = 1
) -> Judged:
    """Judges ``value``, measured in ``runs`` runs, by its rule and by the paper's claim.

    ``family`` is the number of claims judged together: a failure must be significant at 95% for all of them
    (Bonferroni), and needs at least five resampled units.
    """
    if rule is None and claim is None:
        return Judged(None)
    ends = _ends(value, exact)
    wanted = rule or claim
    assert wanted is not None
    leans = wanted.holds(point(value))
    if isinstance(value, Measured) and value.count == 0:
        return Judged(UNDECIDED, None, f"there were no {value.of} to measure")
    if ends is None:
        return Judged(UNDECIDED, leans, _why_no_interval(value, runs))
    if isinstance(value, Measured) and not exact and value.of in GRIDS:
        return Judged(UNDECIDED, leans, f"{value.of} on a grid are no sample: drawn at random, they would decide it")
    wide = _for_all(value, ends, family)
    if claim is not None and _breaks(claim, wide):
        return _failed(CONTRADICTED, value, leans, exact)
    if _breaks(wanted, wide):
        return _failed(NOT_MET, value, leans, exact)
    if _holds(wanted, value, ends, exact):
        return Judged(MET, leans)
    if _breaks(wanted, ends):
        return Judged(UNDECIDED, leans, f"it fails alone, and not at 95% for all {family} claims together")
    return Judged(UNDECIDED, leans, _needs(value, wanted))


def _failed(outcome: str, value: Value, leans: bool, exact: bool) -> Judged:
    if isinstance(value, Measured) and not exact and value.count < FEWEST_TO_FAIL:
        return Judged(UNDECIDED, leans, f"{FEWEST_TO_FAIL} {value.of} at least have to show that it fails")
    return Judged(outcome, leans)


def _holds(rule: Rule, value: Value, ends: tuple[Any, Any], exact: bool) -> bool:
    """Whether the whole interval satisfies the rule; for a rule of 100% of the runs, whether there are enough runs."""
    if _is_every(rule, value) and not exact:
        assert isinstance(value, Measured)
        return value.value == 100 and ends[0] >= ENOUGH_OF_EVERY
    return rule.holds_all(*ends)


def _is_every(rule: Rule, value: Value) -> bool:
    """Whether the rule requires 100% of the runs: no number of runs has an interval that contains only 100%."""
    return isinstance(value, Measured) and value.share and rule.op == "at_least" and rule.bound == 100


def _for_all(value: Value, ends: tuple[Any, Any], family: int) -> tuple[Any, Any]:
    """The ends of the interval at confidence 1 - 5% / ``family``: both arms are scaled like Student's quantile."""
    if family < 2 or not isinstance(value, Measured) or value.count < 2 or not math.isfinite(value.value):
        return ends
    tails = 0.05 / family
    if value.share:
        wide = stats.share(value.value / 100 * value.count, value.count, value.of, tails=tails).interval
        assert wide is not None
        return wide
    times = _subak.student(value.count - 1, tails) / _subak.student(value.count - 1, 0.05)
    low, high = ends
    # The interval itself is also on a logarithmic scale, since positive values vary by factors.
    if low > 0 and value.value > 0:
        low, high = (end if math.isinf(end) else value.value * (end / value.value) ** times for end in ends)
        return low, high
    return value.value - times * (value.value - low), value.value + times * (high - value.value)


def _why_no_interval(value: Value, runs: int) -> str:
    if isinstance(value, Measured) and value.count > 1:
        return f"{value.count} {value.of} give no interval: nothing settled that could be compared"
    return "one run has no interval: a second is needed" if runs < 2 else "it has no interval"


def _ends(value: Value, exact: bool) -> tuple[Any, Any] | None:
    if exact:
        return point(value), point(value)
    return value.interval if isinstance(value, Measured) else None


def _breaks(rule: Rule, ends: tuple[Any, Any]) -> bool:
    if not all(isinstance(end, int | float) and not math.isnan(end) for end in ends):
        return not rule.holds(ends[0])
    if rule.op == "equals":
        inside = isinstance(rule.bound, int | float) and ends[0] <= rule.bound <= ends[1]
        return not inside and not rule.holds(ends[0]) and not rule.holds(ends[1])
    return rule.breaks_all(*ends)


def _needs(value: Value, rule: Rule) -> str:
    """Sample size that would decide the check: an interval shrinks with the root of the sample size."""
    assert isinstance(value, Measured)
    assert value.interval is not None
    if value.share:
        return _needs_of_share(value, rule)
    low, high = value.interval
    bounds = rule.bound if rule.op == "within" else [rule.bound]
    # Bounds inside the interval, each with the length of the interval on that side of the value.
    arms = [(abs(value.value - b), high - value.value if b > value.value else value.value - low) for b in bounds]
    straddled = [(d, arm) for d, arm in arms if arm >= d]
    if not straddled or any(math.isinf(arm) or math.isnan(arm) for _, arm in straddled):
        return f"more than {value.count} {value.of} would decide it: its interval has no end"
    times = max((arm / d) ** 2 if d > 0 else math.inf for d, arm in straddled)
    if times > MOST_TIMES:
        return f"more than {units.number(MOST_TIMES * value.count)} {value.of} would decide it: it lies on the bound"
    return f"about {units.number(max(value.count + 1, math.ceil(times * value.count)))} {value.of} would decide it"


def _needs_of_share(value: Measured, rule: Rule) -> str:
    """Sample size that would decide the check, if the measured fraction stays the same."""
    if _is_every(rule, value):
        assert value.interval is not None
        least = units.number(value.interval[0])
        return f"{value.count} of {value.count} show at least {least}%: {LEAST_OF_EVERY} would decide it"
    bounds = rule.bound if rule.op == "within" else [rule.bound]
    few, many, most = value.count, value.count + 1, MOST_TIMES * value.count
    while many <= most and value.value not in bounds and not _decided(value, many, rule):
        few, many = many, 2 * many
    if many > most or value.value in bounds:
        return f"more than {units.number(most)} {value.of} would decide it: it lies on the bound"
    while many - few > max(1, few // 50):
        middle = (few + many) // 2
        few, many = (few, middle) if _decided(value, middle, rule) else (middle, many)
    return f"about {units.number(many)} {value.of} would decide it"


def _decided(value: Measured, count: int, rule: Rule) -> bool:
    """Whether the interval of this fraction would decide the rule if ``count`` samples were measured."""
    ends = stats.share(value.value / 100 * count, count, value.of).interval
    assert ends is not None
    return rule.holds_all(*ends) or rule.breaks_all(*ends)


def _equal(found: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(_equal(f, w, tolerance) for f, w in zip(found, wanted, strict=True))
    if isinstance(wanted, bool | str) or isinstance(found, bool | str | list) or found is None:
        return type(found) is type(wanted) and bool(found == wanted)
    return bool(found == wanted) or abs(found - wanted) <= tolerance * abs(wanted)


def verdict(outcomes: Sequence[str | None]) -> str:
    """The worst of ``outcomes``, which is the verdict."""
    for worst in (CONTRADICTED, NOT_MET, DEPENDS, UNDECIDED):
        if worst in outcomes:
            return worst
    return MET
