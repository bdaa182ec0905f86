"""Statistics over runs, with their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from subak.repro.results import Measured

Run = TypeVar("Run")


def quantile(values: Sequence[float], q: float) -> float:
    """The value that a share ``q`` of ``values`` do not exceed, interpolated; NaN without values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low) if at > low else ordered[low]


def measured(values: Sequence[float], statistic: Callable[[Sequence[float]], float], unit: str = "runs") -> Measured:
    """``statistic`` of ``values`` with its 95% bootstrap interval (2000 resamples, from a fixed seed)."""
    import numpy as np

    found = statistic(values)
    if len(values) < 2:
        return Measured(found, note=f"{len(values)} {unit}")
    draws = np.random.default_rng(1).integers(len(values), size=(2000, len(values)))
    array = np.asarray(values, dtype=float)
    resampled = [statistic(array[draw].tolist()) for draw in draws] if len(values) <= 500 else None
    if resampled is None:
        return Measured(found, note=f"{len(values)} {unit}")
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Measured(found, float(low), float(high), f"{len(values)} {unit}")


def over_runs(runs: Sequence[Run], statistic: Callable[[Sequence[Run]], float]) -> Measured:
    """``statistic`` of all runs together, with its 95% interval from 200 bootstrap draws of whole runs."""
    import numpy as np

    found = statistic(runs)
    if len(runs) < 2:
        return Measured(found, note="1 run")
    draws = np.random.default_rng(1).integers(len(runs), size=(200, len(runs)))
    drawn = [statistic([runs[k] for k in draw]) for draw in draws]
    low, high = np.percentile(drawn, [2.5, 97.5], method="nearest")
    return Measured(found, float(low), float(high), f"{len(runs)} runs")


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return quantile(values, 0.5)
