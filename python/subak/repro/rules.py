"""When a check passes: its whole confidence interval has to obey the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from subak import units
from subak.repro import stats
from subak.repro.values import Measured, Value, point

MET, NOT_MET, UNDECIDED, CONTRADICTED, DEPENDS = "met", "not met", "undecided", "contradicted", "depends"
OPERATORS = ("at_most", "at_least", "within", "equals")
MOST_TIMES = 1000
"""So many times what there is nobody will run."""


@dataclass(frozen=True)
class Rule:
    """The rule for a value."""

    op: str
    bound: Any
    tolerance: float = 1e-9
    """Relative, for ``equals``."""

    def holds(self, value: Any) -> bool:
        """Whether ``value``, a point, obeys."""
        if self.op == "equals":
            return _equal(value, self.bound, self.tolerance)
        if not isinstance(value, int | float) or math.isnan(value):
            return False
        return bool(self._least() <= value <= self._most())

    def holds_all(self, low: float, high: float) -> bool:
        """Whether every value from ``low`` to ``high`` obeys."""
        return self.holds(low) and self.holds(high)

    def breaks_all(self, low: float, high: float) -> bool:
        """Whether no value from ``low`` to ``high`` obeys."""
        return bool(high < self._least() or low > self._most())

    def words(self, unit: str = "") -> str:
        """``at least 1.2``."""
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
    """What became of a check."""

    outcome: str | None
    """``met``, ``not met``, ``undecided``, ``contradicted``; ``None`` where nothing has to hold."""
    leans: bool | None = None
    """Whether the value itself obeys, whatever its interval says."""
    needs: str = ""
    """Of an undecided check: how many runs, or changes, or what else was resampled, would decide it."""


def judge(value: Value, rule: Rule | None, *, exact: bool, claim: Rule | None = None, runs: int = 1) -> Judged:
    """Judges ``value``, from that many ``runs``, by what must show and by what the paper claims."""
    if rule is None and claim is None:
        return Judged(None)
    ends = _ends(value, exact)
    wanted = rule or claim
    assert wanted is not None
    leans = wanted.holds(point(value))
    if ends is None:
        return Judged(UNDECIDED, leans, _why_no_interval(value, runs))
    if claim is not None and _breaks(claim, ends):
        return Judged(CONTRADICTED, leans)
    if _breaks(wanted, ends):
        return Judged(NOT_MET, leans)
    if wanted.op == "equals" or wanted.holds_all(*ends):
        return Judged(MET, leans)
    return Judged(UNDECIDED, leans, _needs(value, wanted))


def _why_no_interval(value: Value, runs: int) -> str:
    if isinstance(value, Measured) and value.count > 1:
        return f"{value.count} {value.of} give no interval: nothing settled that could be compared"
    return "one run has no interval: a second is needed" if runs < 2 else "it has no interval"


def _ends(value: Value, exact: bool) -> tuple[Any, Any] | None:
    if exact:
        return point(value), point(value)
    return value.interval if isinstance(value, Measured) else None


def _breaks(rule: Rule, ends: tuple[Any, Any]) -> bool:
    if rule.op == "equals" or not all(isinstance(end, int | float) and not math.isnan(end) for end in ends):
        return not rule.holds(ends[0])
    return rule.breaks_all(*ends)


def _needs(value: Value, rule: Rule) -> str:
    """An interval shrinks with the root of the sample: what it has to shrink by, squared, is how much is needed."""
    assert isinstance(value, Measured)
    assert value.interval is not None
    if value.share:
        return _needs_of_share(value, rule)
    low, high = value.interval
    bounds = rule.bound if rule.op == "within" else [rule.bound]
    # The bounds that the interval straddles, each with the arm of the interval that reaches over it.
    arms = [(abs(value.value - b), high - value.value if b > value.value else value.value - low) for b in bounds]
    straddled = [(d, arm) for d, arm in arms if arm >= d]
    if not straddled or any(math.isinf(arm) or math.isnan(arm) for _, arm in straddled):
        return f"more than {value.count} {value.of} would decide it: its interval has no end"
    times = max((arm / d) ** 2 if d > 0 else math.inf for d, arm in straddled)
    if times > MOST_TIMES:
        return f"more than {units.number(MOST_TIMES * value.count)} {value.of} would decide it: it lies on the bound"
    return f"about {units.number(max(value.count + 1, math.ceil(times * value.count)))} {value.of} would decide it"


def _needs_of_share(value: Measured, rule: Rule) -> str:
    """Wilson's interval of the same share of ever more."""
    count = value.count
    while count < MOST_TIMES * value.count:
        count += max(1, count // 50)
        ends = stats.share(value.value / 100 * count, count, value.of).interval
        assert ends is not None
        if rule.holds_all(*ends) or rule.breaks_all(*ends):
            return f"about {units.number(count)} {value.of} would decide it"
    return f"more than {units.number(count)} {value.of} would decide it: it lies on the bound"


def _equal(found: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(_equal(f, w, tolerance) for f, w in zip(found, wanted, strict=True))
    if isinstance(wanted, bool | str) or isinstance(found, bool | str | list) or found is None:
        return type(found) is type(wanted) and bool(found == wanted)
    return bool(found == wanted) or abs(found - wanted) <= tolerance * abs(wanted)


def verdict(outcomes: Sequence[str | None]) -> str:
    """The worst of ``outcomes``."""
    for worst in (CONTRADICTED, NOT_MET, DEPENDS, UNDECIDED):
        if worst in outcomes:
            return worst
    return MET
