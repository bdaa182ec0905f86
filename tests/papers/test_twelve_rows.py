"""Values of twelve experiments beside those of a program that was written from the papers and the pages alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subak.repro import reproduce
from twelve_rows import ROWS, flowtune_fig16, measured

TOLERANCE = {
    # The experiment draws 2000 paths for each sample; the program has all of them.
    "flowtune-fig13": 0.1,
    # Exact rates are whole bytes in 5 ms, and the experiment rounds their distance.
    "numfabric-fig9 expected": 2e-6,
    # The experiment rounds each run to three decimal places.
    "soze-fig3": 1e-3,
    # The experiment rounds to 0.01 s, or four digits.
    "soze-fig6": 1e-4,
}
"""Relative or absolute difference allowed, where not 1e-9."""


def near(there: Any, here: Any, tolerance: float) -> bool:
    if isinstance(there, list):
        return len(there) == len(here) and all(near(*pair, tolerance) for pair in zip(there, here, strict=True))
    if isinstance(there, float):
        return math.isclose(there, here, rel_tol=tolerance, abs_tol=tolerance)
    return bool(there == here)


@pytest.mark.parametrize("name", [name for name in ROWS if name != "flowtune-fig16"])
def test_values_follow_from_the_papers_definitions(name: str, tmp_path: Path) -> None:
    reproduce(name, out=tmp_path, variants=False)
    there, here = measured(tmp_path), ROWS[name](tmp_path)
    shared = [key for key in there if key in here]
    assert len(shared) >= 0.8 * len(there)
    tolerance = {key: TOLERANCE.get(f"{name} {key}", TOLERANCE.get(name, 1e-9)) for key in shared}
    assert {k: (there[k], here[k]) for k in shared if not near(there[k], here[k], tolerance[k])} == {}


def test_over_allocation_is_that_of_another_simulation(tmp_path: Path) -> None:
    """Flows are drawn anew in both, so means of 200 iterations are within five deviations of ten such means."""
    reproduce("flowtune-fig16", out=tmp_path, variants=False)
    there = measured(tmp_path)
    for key, runs in flowtune_fig16(300, 100, range(10), (0.2, 0.4, 0.6)).items():
        assert abs(there[key] - np.mean(runs)) < 5 * np.std(runs, ddof=1), (key, there[key], runs)
