"""Convergence times of simulated schemes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from subak.repro import figures, stats
from subak.repro.values import Measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from subak.results import Results


def times(
    results: Results, scheme: str, criterion: int = 0, after_ns: int = 0, axes: dict[str, object] | None = None
) -> list[float]:
    """Convergence times, s, after each change of the flows at ``after_ns`` or later; infinite without convergence.

    Changes are in the same order for every scheme, so that the times of two schemes are pairs.
    """
    wanted = {"scheme": scheme, "criterion": criterion, **(axes or {})}
    rows = _changes(results)
    mine = [r for r in rows if r["time_ns"] >= after_ns and all(r[key] == value for key, value in wanted.items())]
    return [r["convergence_ns"] * 1e-9 if r["converged"] else math.inf for r in mine]


@lru_cache(maxsize=8)
def _changes(results: Results) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = results.table("convergence").to_pylist()
    return sorted(rows, key=lambda r: (r["seed"], r["time_ns"]))


def settled(values: Sequence[float], of: str = "changes") -> Measured:
    """Percentage of changes after which rates converged."""
    return stats.share(sum(map(math.isfinite, values)), len(values), of)


def at(values: Sequence[float], q: float) -> Measured:
    """The ``q``-quantile of the convergence times; a change without convergence counts as longer than all others."""
    never = sum(map(math.isinf, values))
    found = stats.estimate(values, f"p{100 * q:g}", "changes")
    return replace(found, note=f"{never} never settled" if never else "")


def ratio(slow: Sequence[float], fast: Sequence[float], q: float = 0.5) -> Measured:
    """Ratio of the ``q``-quantile of ``slow`` to that of ``fast``: times of two schemes after the same changes."""
    return stats.ratio(slow, fast, f"p{100 * q:g}", "changes", paired=True)


def least_ratio(slower: Sequence[Sequence[float]], fast: Sequence[float], quantiles: Sequence[float]) -> Measured:
    """Smallest ratio to ``fast``, as in ``ratio``, over the schemes in ``slower`` and over ``quantiles``."""
    import numpy as np

    statistics = [stats.statistic_of(f"p{100 * q:g}")[0] for q in quantiles]

    def least(sides: list[stats.Array]) -> stats.Array:
        *others, mine = sides
        return np.min([stats.over_each(s(other), s(mine)) for s in statistics for other in others], axis=0)

    found = stats.joint([*slower, fast], least, "changes", paired=True)
    open_tails = [stats.tail_is_open(q, found.count) for q in quantiles]
    if found.low is None or found.high is None or not any(open_tails):
        return found
    # The smallest ratio is at most each of them, so that one bounded ratio bounds it from above.
    assert found.sample is not None
    high = math.inf if all(open_tails) else None
    sample = replace(found.sample, low=0.0, high=high)
    return replace(found, low=0.0, high=found.high if high is None else high, sample=sample)


def draw(plot: Axes, curves: Mapping[str, Sequence[float]], unit: str) -> None:
    """Distribution of convergence times, one curve per scheme; it ends below 1 if some changes did not converge."""
    for label, values in curves.items():
        finite = sorted(v for v in values if math.isfinite(v))
        if finite:
            shares = [k / len(values) for k in range(len(finite) + 1)]
            plot.step([finite[0], *finite], shares, where="post", label=label)
    plot.set(xlabel=unit, ylabel="share of changes", ylim=(0, 1.02))
    figures.log_x(plot)
    plot.legend(loc="lower right")
