"""Convergence times of simulated schemes, in round trips."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from subak.repro import figures
from subak.repro.results import Measured
from subak.repro.stats import measured, quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from subak.runs import Results


def times(
    results: Results, scheme: str, criterion: int = 0, after_ns: int = 0, axes: dict[str, object] | None = None
) -> list[float]:
    """Seconds from each change at ``after_ns`` or later until rates had settled; infinite where they did not."""
    wanted = {"scheme": scheme, "criterion": criterion, **(axes or {})}
    rows = results.table("convergence").to_pylist()
    mine = [r for r in rows if r["time_ns"] >= after_ns and all(r[key] == value for key, value in wanted.items())]
    return [r["convergence_ns"] * 1e-9 if r["converged"] else math.inf for r in mine]


def settled(values: Sequence[float]) -> float:
    """The share of changes after which rates settled, in percent."""
    return 100 * sum(map(math.isfinite, values)) / len(values) if values else math.nan


def at(values: Sequence[float], q: float) -> Measured:
    """The quantile ``q`` of the times; a time that never came counts as longer than all."""
    finite = [v for v in values if math.isfinite(v)]
    if len(finite) == len(values):
        return measured(values, lambda v: quantile(v, q), "changes")
    place = sorted(values)[min(len(values) - 1, math.ceil(q * (len(values) - 1)))]
    return Measured(place, note=f"{len(values)} changes, {len(values) - len(finite)} never settled")


def ratio(slow: Measured, fast: Measured) -> float:
    """How many times longer ``slow`` is; infinite where it never settled."""
    return slow.value / fast.value if fast.value > 0 else math.inf


def draw(plot: Axes, curves: Mapping[str, Sequence[float]], unit: str) -> None:
    """The distribution of the times, a curve a scheme; what never settled is missing at the top."""
    for label, values in curves.items():
        finite = sorted(v for v in values if math.isfinite(v))
        if finite:
            shares = [k / len(values) for k in range(len(finite) + 1)]
            plot.step([finite[0], *finite], shares, where="post", label=label)
    plot.set(xlabel=unit, ylabel="share of changes", ylim=(0, 1.02))
    figures.log_x(plot)
    plot.legend(loc="lower right")
