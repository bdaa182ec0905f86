"""page.md: confidence intervals in the text are those of the record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from subak.repro import catalogue, records

INTERVAL = re.compile(r"\[(-?[\d.,]*\d), (-?[\d.,]*\d)\]")
FACTORS = 1, 100, 1000, -1
"""A page may give shares in percent, Gb/s in Mb/s, and a loss as a gain."""
NOT_OF_A_RECORD = {
    ("subflow-shares", "[-0.5, 0.1]"): "the difference of two values of the record, by their samples",
    ("perc-fig4.1", "[13.3, 15.8]"): "the former setup",
    ("perc-fig4.1", "[10.1, 12.7]"): "the former setup",
    ("perc-fig4.3", "[-0.1, 1.7]"): "the record's ratio less one, in percent",
    ("perc-fig4.3", "[-1.3, 1.4]"): "the record's ratio less one, in percent",
    ("perc-fig4.3", "[3.7, 5.3]"): "the former setup",
    ("soze-fig17", "[6.5, 11.6]"): "runs apart",
    ("flowtune-table-multicore", "[1.8, 2.6]"): "the record before",
}


def _intervals(measured: Any) -> Iterator[tuple[float, float]]:
    if isinstance(measured, list):
        for one in measured:
            yield from _intervals(one)
    elif isinstance(measured, dict) and (interval := measured.get("interval")):
        yield float(interval[0]), float(interval[1])


def _of(name: str) -> set[tuple[float, float]]:
    record = records.of(catalogue()[name])
    parts = [record.held, *record.held.get("variants", [])] if record else []
    return {interval for part in parts for check in part["checks"] for interval in _intervals(check["measured"])}


def _is_written(end: str, value: float) -> bool:
    decimals = len(end.partition(".")[2])
    unit = 10.0**-decimals if decimals else 10.0 ** min(1, len(end) - len(end.rstrip("0")))
    return any(abs(value * factor - float(end.replace(",", ""))) <= unit / 2 * (1 + 1e-9) for factor in FACTORS)


def _strange(name: str, page: str) -> list[str]:
    linked = {one for one in re.findall(r"\((?:[\w./]*/)?([\w.-]+)\.md", page) if one in catalogue()}
    known = {interval for one in (name, *linked) for interval in _of(one)}
    return [
        found[0]
        for found in INTERVAL.finditer(" ".join(page.split()))
        if not any(_is_written(found[1], low) and _is_written(found[2], high) for low, high in known)
    ]


@pytest.mark.parametrize("name", catalogue())
def test_intervals_on_a_page_are_those_of_the_record(name: str) -> None:
    """If this fails, the record has other values now: write them on the page."""
    strange = _strange(name, (catalogue()[name].folder / "page.md").read_text())
    assert [one for one in strange if (name, one) not in NOT_OF_A_RECORD] == []


def test_an_interval_that_no_record_has_is_found() -> None:
    name = "perc-fig2.10"
    page = (catalogue()[name].folder / "page.md").read_text()
    assert "[1.65, 1.73]" in " ".join(page.split())
    assert _strange(name, page.replace("1.73]", "1.83]")) == ["[1.65, 1.83]"]
