"""Statistics with their 95% confidence intervals.

The resampled unit is an independent one: a change of the flows, a random network, or a whole run if flows share a
network. Intervals are percentile bootstraps from a fixed seed. For few units these are too narrow: their ends are moved
outwards by t / z sqrt(n / (n - 1)), with t Student's quantile of n - 1 degrees of freedom (the two corrections of
Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 2015, section 4.2). The interval
of a mean of positive values is at least that of a log-normal sample, since a bootstrap of few values misses the tail
(Cox's interval: Land, "An Evaluation of Approximate Confidence Interval Estimation Methods for Lognormal Means",
Technometrics 1972). Intervals of quantiles are at least those of order statistics, which are valid for any
distribution; ratios of quantiles combine these (Zou and Donner, "Construction of confidence limits about effect
measures", Statistics in Medicine 2008). Shares have Clopper and Pearson's interval. docs/coverage.py simulates their
coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeVar

from subak import _subak
from subak.repro.values import Measured, Sample, Value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Run = TypeVar("Run")
Array = Any
"""A NumPy array of floats."""

Z = 1.959964
OWN = "own"
"""Name of a statistic that an experiment's own code computes: its bootstrap samples are stored."""
MANY = 1000
"""Sample size above which the bootstrap alone covers the tail of a mean."""
FEW = 6
"""Sample size below which an interval's skew is unknown: the longer arm is used on both sides."""
DRAWS = 2000
"""Number of bootstrap samples, and the smallest number for large data."""
FEWEST = 200
WORK = 4_000_000
"""Largest number of values drawn for one interval."""
MOST = WORK // FEWEST
"""Largest number of values in a bootstrap sample. For larger data the interval is scaled (m out of n bootstrap)."""


def quantile(values: ArrayLike, q: float) -> float:
    """The interpolated ``q``-quantile of ``values``; NaN without values.

    The quantile is infinite if an infinite value contributes to it, and NaN if any value is NaN.
    """
    return float(_quantiles(_array(values)[None, :], q)[0])


def median(values: ArrayLike) -> float:
    """The median of ``values``."""
    return quantile(values, 0.5)


def _array(values: ArrayLike) -> Array:
    import numpy as np

    return np.asarray(values, dtype=float)


def _quantiles(rows: Array, q: float) -> Array:
    import numpy as np

    last = rows.shape[1] - 1
    if last < 0:
        return np.full(rows.shape[0], math.nan)
    at = q * last
    low = math.floor(at)
    high = min(low + 1, last)
    ordered = np.partition(rows, sorted({low, high}), axis=1)
    share = at - low
    found = ordered[:, low] if share == 0 else ordered[:, low] * (1 - share) + ordered[:, high] * share
    # NumPy sorts NaN behind all others, so that most quantiles would not show it.
    return np.where(np.isnan(rows).any(axis=1), math.nan, found)


def _means(rows: Array) -> Array:
    """The mean of each row; rounding never moves it outside the range of the values."""
    import numpy as np

    return np.clip(rows.mean(axis=1), rows.min(axis=1), rows.max(axis=1))


def statistic_of(name: str) -> tuple[Callable[[Array], Array], float | None]:
    """A function that computes the statistic of each row of a matrix, and its quantile.

    ``percent`` is a mean of percentages.
    """
    if name in ("mean", "percent"):
        return _means, None
    q = 0.5 if name == "median" else float(name.removeprefix("p")) / 100
    return (lambda rows: _quantiles(rows, q)), q


def estimate(data: ArrayLike, statistic: str, of: str, *, signed: bool = False) -> Measured:
    """Estimates the ``statistic`` (``mean``, ``percent``, ``median``, ``p95``, ...) of ``data``.

    ``of`` names the resampled units, such as runs; each has one value. ``signed`` values, such as differences, may have
    either sign: their interval may contain 0.
    """
    compute, q = statistic_of(statistic)
    found = joint([data], lambda sides: compute(sides[0]), of, paired=False, signed=signed)
    found = replace(found, sample=Sample(statistic, {"data": _array(data).tolist()}, signed=signed, of=of))
    if statistic == "mean" and not signed:
        return _as_wide_as_log_normal(found, [data], paired=False)
    if statistic == "percent" and found.low is not None and found.high is not None:
        # If all values are 0, or all are 100%, the interval is that of a fraction.
        values, ends = _array(data), (found.low, found.high)
        if values.min() == values.max() and values.min() in (0, 100):
            ends = share(found.count * float(values.min()) / 100, found.count, of).interval or ends
        return replace(found, low=max(ends[0], 0.0), high=min(ends[1], 100.0))
    if q is None or found.low is None or found.high is None or _is_median_of_few(q, found.count):
        return found
    low, high = _ordered_ends(_array(data), q)
    return replace(found, low=min(found.low, low), high=max(found.high, high))


def _is_median_of_few(q: float, count: int) -> bool:
    """Whether the sample of a median is too small for order statistics, so that only the widened bootstrap is used."""
    return q == 0.5 and count < FEW


def _ordered_ends(values: Array, q: float) -> tuple[float, float]:
    """The order statistics that bound the ``q``-quantile of any distribution at 95%; infinite if there are none."""
    import numpy as np

    ordered = np.sort(values)
    if q in (0, 1):
        return (-math.inf, float(ordered[0])) if q == 0 else (float(ordered[-1]), math.inf)
    below, above = np.searchsorted(_at_most(len(values), q), (0.025, 0.975))
    return (
        float(ordered[below - 1]) if below > 0 else -math.inf,
        float(ordered[above]) if above < len(values) else math.inf,
    )


@lru_cache(maxsize=64)
def _at_most(count: int, p: float) -> Array:
    """Probability of at most 0, 1, ... ``count`` successes of ``count``, each with probability ``p``."""
    import numpy as np

    k = np.arange(count + 1)
    return np.cumsum(np.exp(_log_choose(count) + k * math.log(p) + (count - k) * math.log1p(-p)))


def tail_is_open(q: float | None, count: int) -> bool:
    """Whether ``count`` values give no bound on the ``q``-quantile from one side.

    All of them are on one side of the true quantile with a probability of more than 2.5%.
    """
    return q is not None and q != 0.5 and max(q, 1 - q) ** count > 0.025


def ratio(data: ArrayLike, over: ArrayLike, statistic: str, of: str, *, paired: bool) -> Measured:
    """The ratio of the ``statistic`` of ``data`` to that of ``over``.

    ``paired`` data were measured on the same changes, networks or runs, in the same order, and are resampled together.
    A side with too few values for its tail is unbounded in that direction. For medians the bootstrap's interval is wide
    enough.
    """
    compute, q = statistic_of(statistic)
    found = joint([data, over], lambda sides: over_each(compute(sides[0]), compute(sides[1])), of, paired=paired)
    sides = {"data": _array(data).tolist(), "over": _array(over).tolist()}
    found = replace(found, sample=Sample(statistic, sides, paired, of=of))
    if statistic == "mean":
        return _as_wide_as_log_normal(found, [data, over], paired=paired)
    if q in (None, 0.5) or found.low is None or found.high is None:
        return found
    assert q is not None
    low, high = _ordered_ratio(_array(data), _array(over), q, paired=paired)
    return replace(found, low=min(found.low, low), high=max(found.high, high))


def _ordered_ratio(data: Array, over: Array, q: float, *, paired: bool) -> tuple[float, float]:
    """Ends of a ratio of quantiles from the ends of its sides.

    Arms are combined like standard deviations of logarithms.
    """
    if min(float(data.min()), float(over.min())) < 0:
        return -math.inf, math.inf
    (low, high), (least, most) = (_ordered_ends(side, q) for side in (data, over))
    middle, divisor = (float(_quantiles(side[None, :], q)[0]) for side in (data, over))
    if not (0 < middle < math.inf and 0 < divisor < math.inf):
        return max(low, 0.0) / most if 0 < most < math.inf else 0.0, math.inf
    alike = _correlation(data <= middle, over <= divisor) if paired else 0.0
    below = _arm(_factor(middle, low), _factor(most, divisor), alike)
    above = _arm(_factor(high, middle), _factor(divisor, least), alike)
    return middle / divisor * _exp(-below), middle / divisor * _exp(above)


def _correlation(first: Array, second: Array) -> float:
    """Correlation of the quantiles of two samples: of whether each value of a pair is below its quantile (Bahadur)."""
    import numpy as np

    if first.all() or second.all():
        return 0.0
    return max(0.0, float(np.corrcoef(first, second)[0, 1]))


def _arm(first: float, second: float, correlation: float) -> float:
    if math.isinf(first) or math.isinf(second):
        return math.inf
    return math.sqrt(max(0.0, first**2 + second**2 - 2 * correlation * first * second))


def _factor(more: float, less: float) -> float:
    """The logarithm of ``more / less``."""
    return math.log(more / less) if less > 0 and more < math.inf else math.inf


def _as_wide_as_log_normal(found: Measured, sides: Sequence[ArrayLike], *, paired: bool) -> Measured:
    """Widens the interval of a mean, or of a ratio of two means, to at least Cox's log-normal interval.

    The fraction of zeros has an interval of its own, which multiplies that of the mean of the others. Samples with
    negative values, of a single value, or of so many that the bootstrap covers the tail, are unchanged.
    """
    import numpy as np

    samples = [_array(side) for side in sides]
    if found.low is None or found.high is None or not all(np.isfinite(side).all() for side in samples):
        return found
    if min(map(len, samples)) > MANY or any(float(side.min()) < 0 for side in samples):
        return found
    over_nothing = len(samples) > 1 and not samples[1].any()
    if not over_nothing and all(float(side.min()) == float(side.max()) for side in samples):
        return found
    low, high = _cox([side[side > 0] for side in samples], paired=paired and all((side > 0).all() for side in samples))
    shares = [share(float((side > 0).sum()), len(side), found.of).interval or (0.0, 100.0) for side in samples]
    whole = [bool((side > 0).all()) for side in samples]
    (least, most), *over = [(1.0, 1.0) if w else (a / 100, b / 100) for w, (a, b) in zip(whole, shares, strict=True)]
    for few, many in over:
        least, most = least / many, most / few if few > 0 else math.inf
    return replace(found, low=min(found.low, low * least), high=max(found.high, high * most))


def _cox(samples: Sequence[Array], *, paired: bool) -> tuple[float, float]:
    """Cox's interval of a mean of positive values, or of a ratio of two means.

    Unbounded if a side has fewer than two values.
    """
    import numpy as np

    sizes = [len(side) for side in samples]
    if min(sizes) < 2:
        return 0.0, math.inf
    logs = [np.log(side) for side in samples]
    means = [float(log.mean() + log.var(ddof=1) / 2) for log in logs]
    spread = sum(_of_log_mean(float(log.var(ddof=1)), len(log)) for log in logs)
    if paired and len(logs) > 1:
        common = float(np.cov(logs[0], logs[1])[0, 1])
        spread -= 2 * (common / sizes[0] + common**2 / (2 * (sizes[0] - 1)))
    middle, count = means[0] - (means[1] if len(means) > 1 else 0), min(sizes)
    if spread <= 0:
        return math.inf, -math.inf
    arm = _subak.student(count - 1, 0.05) * math.sqrt(spread * (count + 3) / (count - 1))
    return _exp(middle - arm), _exp(middle + arm)


def _of_log_mean(variance: float, count: int) -> float:
    """Variance of mean + variance / 2 for ``count`` normal values."""
    return variance / count + variance**2 / (2 * (count - 1))


def over_each(data: Array, over: Array) -> Array:
    """Elementwise ``data / over``; infinite over infinite is NaN."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(data / over)


def joint(
    sides: Sequence[ArrayLike],
    compute: Callable[[list[Array]], Array],
    of: str,
    *,
    paired: bool,
    signed: bool = False,
) -> Measured:
    """A statistic of several samples. ``compute`` gets a matrix for each sample, with one row per bootstrap sample.

    ``compute`` returns one value per row. ``signed``: the result may have either sign.
    """
    import numpy as np

    samples = [_array(side) for side in sides]
    sizes = [len(sample) for sample in samples]
    if paired and len(set(sizes)) > 1:
        raise ValueError(f"there are pairs of {' and '.join(map(str, sizes))} values")
    count = min(sizes)
    if count == 0:
        return Measured(math.nan, count=0, of=of)
    value = float(compute([sample[None, :] for sample in samples])[0])
    kept = {f"side {k + 1}": sample.tolist() for k, sample in enumerate(samples)}
    if count < 2:
        return Measured(value, count=count, of=of, sample=Sample(OWN, kept, paired, value, signed=signed, of=of))
    random = np.random.default_rng(1)
    drawn = [min(size, MOST) for size in sizes]
    draws = max(FEWEST, min(DRAWS, WORK // max(drawn)))
    alone = 1 if paired else len(sizes)
    places = [random.integers(size, size=(draws, few)) for size, few in zip(sizes[:alone], drawn, strict=False)]
    rows = [sample[places[0 if paired else k]] for k, sample in enumerate(samples)]
    found = compute(rows)
    positive = not signed and all(bool((sample > 0).all()) for sample in samples)
    low, high = _interval(value, found, count, _shrink(sizes), positive=positive)
    low = _not_below_zero(low, samples, found, signed=signed)
    sample = Sample(OWN, kept | {"draws": found.tolist()}, paired, value, signed=signed, of=of)
    return Measured(value, low, high, count, of, sample=sample)


def _not_below_zero(low: float, samples: Sequence[Array], drawn: Array, *, signed: bool) -> float:
    """The lower end of an interval, which is at least 0 if no sample and no bootstrap sample is negative.

    A bootstrap sample is NaN where both sides of a ratio are infinite: unknown, but not negative.
    """
    below = signed or any(bool((one < 0).any()) for one in (*samples, drawn))
    return low if below else max(low, 0.0)


def _shrink(sizes: Sequence[int]) -> float:
    """Factor by which intervals shrink if bootstrap samples have fewer values than the data.

    The largest of all sides.
    """
    return max(math.sqrt(min(size, MOST) / size) for size in sizes)


def _interval(
    value: float, drawn: Array, count: int, shrink: float = 1.0, *, positive: bool = True
) -> tuple[float, float]:
    """The middle 95% of ``drawn``, widened for small numbers of units.

    A bootstrap sample in which both sides of a ratio are infinite counts as below and as above all others.
    """
    import numpy as np

    low, high = (
        float(np.percentile(np.nan_to_num(drawn, nan=worst, posinf=math.inf, neginf=-math.inf), at, method="nearest"))
        for at, worst in ((2.5, -math.inf), (97.5, math.inf))
    )
    if low == high == value:
        return low, high
    if not all(map(math.isfinite, (value, low, high))):
        # The longer arm, which is used on both sides for few units, is unbounded.
        return (0.0 if positive else -math.inf, math.inf) if count < FEW else (low, high)
    # Positive values vary by factors: their interval stays positive.
    there, back = (math.log, _exp) if positive and low > 0 and value > 0 else (float, float)
    middle = there(value)
    down, up = (_spread(count) * shrink * abs(there(end) - middle) for end in (low, high))
    if count < FEW:
        down = up = max(down, up)
    return back(middle - down), back(middle + up)


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _spread(count: int) -> float:
    """Factor by which an interval of ``count`` units is wider than the bootstrap's."""
    return _subak.student(count - 1, 0.05) / Z * math.sqrt(count / (count - 1))


def share(hits: float, count: int, of: str, note: str = "", tails: float = 0.05) -> Measured:
    """The fraction ``hits`` of ``count``, in percent, with Clopper and Pearson's interval."""
    if count == 0:
        return Measured(math.nan, count=0, of=of, note=note)
    if not 0 <= hits <= count:
        raise ValueError(f"{hits:g} of {count} is no share")
    whole = round(hits)
    low = 0.0 if whole == 0 else 100 * _binomial(lambda p: _at_least(whole, count, p) < tails / 2)
    high = 100.0 if whole == count else 100 * _binomial(lambda p: _at_least(whole + 1, count, p) < 1 - tails / 2)
    sample = Sample("share", {"hits": [float(hits)], "count": [float(count)]}, of=of)
    return Measured(100 * hits / count, low, high, count, of, note, share=True, sample=sample)


def _binomial(below: Callable[[float], bool]) -> float:
    """The largest probability for which ``below`` is true."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def _at_least(hits: int, count: int, p: float) -> float:
    """Probability of ``hits`` or more of ``count`` at ``p``."""
    import numpy as np

    k = np.arange(hits, count + 1)
    logs = _log_choose(count)[hits:] + k * math.log(p) + (count - k) * math.log1p(-p)
    return float(np.exp(logs).sum())


@lru_cache(maxsize=64)
def _log_choose(count: int) -> Array:
    """Logarithms of the binomial coefficients of ``count``."""
    import numpy as np

    steps = np.log(np.arange(count, 0, -1)) - np.log(np.arange(1, count + 1))
    return np.concatenate([[0.0], np.cumsum(steps)])


def over_runs(
    runs: Sequence[Run], statistic: Callable[[Sequence[Run]], float], *, tail: float = 0.5, signed: bool = False
) -> Measured:
    """``statistic`` of all runs together; whole runs are resampled, with at most 200 different bootstrap samples.

    ``tail`` is the quantile of the statistic or of its ratios; 0.5 for means. The interval is at least that of this
    quantile of a log-normal distribution (normal if ``signed``) with one value per run, since resampling few runs does
    not show the tail. Its sample is the statistic of each run alone, and of each bootstrap sample.
    """
    import numpy as np

    found = statistic(runs)
    each = [float(statistic([run])) for run in runs]
    kept = {"side 1": each}
    if len(runs) < 2:
        return Measured(found, count=len(runs), of="runs", sample=Sample(OWN, kept, value=found, signed=signed))
    draws = np.sort(np.random.default_rng(1).integers(len(runs), size=(FEWEST, len(runs))), axis=1)
    # The order of the runs does not matter, so that repeated bootstrap samples are not recomputed.
    known = {draw: statistic([runs[k] for k in draw]) for draw in set(map(tuple, draws.tolist()))}
    drawn = np.array([known[tuple(draw)] for draw in draws.tolist()])
    low, high = _interval(found, drawn, len(runs), positive=not signed and min(each) > 0)
    low = _not_below_zero(low, [_array(each)], drawn, signed=signed)
    least, most = _quantile_of_runs(found, each, tail, signed=signed)
    sample = Sample(
        OWN,
        kept | {"draws": drawn.tolist()},
        value=found,
        low=least if least < low else None,
        high=most if most > high else None,
        signed=signed,
    )
    return Measured(found, min(low, least), max(high, most), len(runs), "runs", sample=sample)


def _quantile_of_runs(value: float, each: list[float], q: float, *, signed: bool) -> tuple[float, float]:
    """Ends around ``value`` from those of the ``q``-quantile of a (log-)normal sample of the runs' values."""
    import numpy as np

    values, count = _array(each), len(each)
    if not np.isfinite([value, *values]).all() or (not signed and min(value, values.min()) <= 0):
        return value, value
    there, back = (float, float) if signed else (math.log, _exp)
    spread = float(np.std([there(one) for one in each], ddof=1))
    normal = NormalDist().inv_cdf(q)
    # Variances of a normal sample's mean and of its standard deviation.
    arm = _subak.student(count - 1, 0.05) * spread * math.sqrt(1 / count + normal**2 / (2 * (count - 1)))
    return back(there(value) - arm), back(there(value) + arm)


def again(sample: Sample) -> Measured:
    """Recomputes the measured value of ``sample`` with the present statistics.

    A statistic of an experiment's own code is recomputed from its bootstrap samples. Raises ``ValueError`` if
    ``sample`` is no sample of a statistic.
    """
    sides, of = sample.sides, sample.of
    if sample.by == "share" and set(sides) == {"hits", "count"}:
        [hits], [count] = sides["hits"], sides["count"]
        if not hits.is_integer() or not count.is_integer():
            raise ValueError(f"{hits:g} of {count:g} is no share")
        found = share(hits, int(count), of)
    elif sample.by == OWN:
        found = _again_of_draws(sample)
    elif set(sides) == {"data", "over"}:
        found = ratio(sides["data"], sides["over"], sample.by, of, paired=sample.paired)
    elif set(sides) == {"data"}:
        found = estimate(sides["data"], sample.by, of, signed=sample.signed)
    else:
        raise ValueError(f"{sample.by} of {', '.join(sides)} is no statistic")
    return replace(found, sample=sample)


def _again_of_draws(sample: Sample) -> Measured:
    if sample.value is None:
        raise ValueError("a statistic of an experiment's own has its value with it")
    sides = {name: side for name, side in sample.sides.items() if name != "draws"}
    sizes = [len(side) for side in sides.values()]
    low, high = None, None
    if "draws" in sample.sides:
        if len(sample.sides["draws"]) < FEWEST:
            raise ValueError(f"{len(sample.sides['draws'])} draws are fewer than {FEWEST}")
        positive = not sample.signed and all(min(side) > 0 for side in sides.values())
        low, high = _interval(
            sample.value, _array(sample.sides["draws"]), min(sizes), _shrink(sizes), positive=positive
        )
        samples = [_array(side) for side in sides.values()]
        low = _not_below_zero(low, samples, _array(sample.sides["draws"]), signed=sample.signed)
        # The end for few values, which may be unbounded, only widens the interval.
        low = low if sample.low is None else min(low, sample.low)
        high = high if sample.high is None else max(high, sample.high)
    return Measured(sample.value, low, high, min(sizes), sample.of)


def from_json(value: Any) -> Value:
    """A value of a report: exact, a sample with its statistic, or measured.

    Null, of a time, means that it never happens.
    """
    if not isinstance(value, dict):
        return value if value is not None else math.inf
    of = value["of"]
    if "statistic" not in value:
        low, high = (None, None) if value["interval"] is None else map(float, value["interval"])
        found = Measured(float(value["value"]), low, high, value["count"], of, value.get("note", ""))
        if value.get("share", False) or _is_wilsons(found):
            hits = found.value / 100 * found.count
            # A percentage that corresponds to no whole number of hits keeps its interval and has no sample.
            if found.count and abs(hits - round(hits)) < 1e-6:
                return share(round(hits), found.count, of, found.note)
            return replace(found, share=True)
        return found
    if value["statistic"] == "share":
        return share(value["hits"], value["count"], of)
    data, over = (_numbers(value.get(side)) for side in ("data", "over"))
    if "over" in value:
        return ratio(data, over, value["statistic"], of, paired=value.get("paired", True))
    return estimate(data, value["statistic"], of, signed=value.get("signed", False))


def _is_wilsons(found: Measured) -> bool:
    """Whether the interval is Wilson's for a fraction: records before 2026-11-24 used it and do not mark fractions."""
    if found.count == 0 or found.interval is None or not 0 <= found.value <= 100:
        return False
    p, n, z2 = found.value / 100, found.count, Z * Z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    ends = 100 * (middle - half), 100 * (middle + half)
    return all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(found.interval, ends, strict=True))


def _numbers(data: Sequence[float | None] | None) -> list[float]:
    return [math.inf if x is None else x for x in data or []]
