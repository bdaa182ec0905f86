"""Quantiles of values pooled over resampled runs, without sorting them again for each bootstrap sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


class Pool:
    """The values of several runs. ``quantile`` equals ``stats.quantile`` of the concatenated values."""

    def __init__(self, runs: Sequence[Any]) -> None:
        values = [np.asarray(run, dtype=float) for run in runs]
        pooled = np.concatenate(values)
        order = np.argsort(pooled, kind="stable")
        self._ordered = pooled[order]
        self._counts = [len(run) for run in values]
        self._has_nan = [bool(np.isnan(run).any()) for run in values]
        of_run = np.repeat(np.arange(len(values)), self._counts)[order]
        # Row i: number of values of each run among the first i + 1 in order.
        self._below = np.cumsum(of_run[:, None] == np.arange(len(values)), axis=0, dtype=np.int32)

    def quantile(self, picks: Sequence[int], q: float) -> float:
        """The interpolated ``q``-quantile of the values of the runs ``picks``, which may repeat; NaN without values."""
        times = np.bincount(picks, minlength=len(self._counts))
        last = int(times @ self._counts) - 1
        if last < 0 or any(self._has_nan[k] for k in picks):
            return math.nan
        at = q * last
        low = math.floor(at)
        first = self._nth(times, low)
        if at == low:
            return first
        share = at - low
        return first * (1 - share) + self._nth(times, min(low + 1, last)) * share

    def _nth(self, times: Any, n: int) -> float:
        """The value at place ``n``, from 0, of all in order, with each run's as often as ``times`` says."""
        low, high = 0, len(self._ordered) - 1
        while low < high:
            middle = (low + high) // 2
            if int(times @ self._below[middle]) > n:
                high = middle
            else:
                low = middle + 1
        return float(self._ordered[low])
