"""docs/coverage.py on few samples: how often intervals contain the true value; and the table in the docs."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest
from conftest import script


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    return script("coverage")


def test_it_does_not_stand_for_the_package_of_its_name(coverage: ModuleType) -> None:
    """Numba imports that package if it finds one, and cannot be imported with another in its place."""
    found = importlib.util.find_spec("coverage")
    assert found is None or found.origin != coverage.__file__


def test_no_interval_falls_short(coverage: ModuleType) -> None:
    """With a coverage of 95%, 88% or less of 150 samples has a probability below 0.1%."""
    short = {(row, n): held for row in coverage.ROWS for n in (3, 10) if (held := coverage.coverage(row, n, 150)) < 88}
    ends = {f"ratio of {q}s": n for q, n in coverage.TAILS.items()} | coverage.TAILS
    short |= {(row, n): held for row, n in ends.items() if (held := coverage.coverage(row, n, 150)) < 88}
    assert short == {}


def test_an_interval_that_is_too_narrow_shows(coverage: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Cox's interval, only about 75% of the intervals of heavy-tailed means contain the true mean."""
    monkeypatch.setattr(coverage.stats, "MANY", 0)
    assert coverage.coverage("mean, heavy tail", 10, 150) < 85


def test_the_page_has_every_row_at_least_at_93_percent(coverage: ModuleType) -> None:
    page = coverage.PAGE.read_text()
    stated = page.split(coverage.BEGIN)[1].split(coverage.END)[0]
    for row in coverage.ROWS:
        held = [
            float(one)
            for one in re.findall(
                r"([\d.]+)%", next(x for x in stated.splitlines() if f"| {row} |" in x).split("|", 2)[2]
            )
        ]
        assert len(held) == len(coverage.COUNTS)
        assert min(held) >= coverage.LEAST, row
    assert coverage.put(page, stated.strip() + "\n") == page
