"""Quantiles of pooled runs beside those of the concatenated values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from subak.repro import stats
from subak.repro.pools import Pool


@pytest.mark.parametrize("seed", range(20))
def test_a_quantile_is_that_of_the_concatenated_values(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    runs = [drawn.integers(0, 20, size=drawn.integers(0, 50)).astype(float) for _ in range(5)]
    runs[0] = np.append(runs[0], np.inf)
    pool = Pool(runs)
    for _ in range(50):
        picks = drawn.integers(0, 5, size=drawn.integers(1, 7)).tolist()
        q = float(drawn.choice([0, 0.25, 0.5, 0.99, 1, drawn.random()]))
        assert pool.quantile(picks, q) == pytest.approx(
            stats.quantile(np.concatenate([runs[k] for k in picks]), q), rel=1e-15, nan_ok=True
        )


def test_without_values_and_with_nan() -> None:
    pool = Pool([[], [1.0, math.nan], [2.0]])
    assert math.isnan(pool.quantile([0], 0.5))
    assert math.isnan(pool.quantile([1, 2], 0.5))
    assert pool.quantile([2, 0], 0.5) == 2
