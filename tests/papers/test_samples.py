"""Falsified samples: a value that does not follow from its sample is named."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from subak import InputError
from subak.repro import Measured, samples, stats
from subak.repro.values import Sample, as_json

INF = math.inf


MEAN = stats.estimate([1.0, 2.0, 4.0], "mean", "runs")
RIGHT = [
    {"variant": "", "key": "a", "part": 0, "by": "mean", "paired": False, "side": "data", "value": v}
    | {"signed": False, "of": "runs"}
    for v in (1, 2, 4)
]
COUNT, HITS = ({**RIGHT[0], "by": "share", "side": side} for side in ("count", "hits"))


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([{**one, "value": None} for one in RIGHT], id="no value"),
        pytest.param([{**one, "value": math.nan} for one in RIGHT], id="NaN"),
        pytest.param([{**one, "value": INF} for one in RIGHT], id="infinite"),
        pytest.param([{**one, "by": "median"} for one in RIGHT], id="another statistic"),
        pytest.param([{**one, "by": "mode"} for one in RIGHT], id="an unknown statistic"),
        pytest.param([{**one, "by": None} for one in RIGHT], id="no statistic"),
        pytest.param([{**one, "by": "p101"} for one in RIGHT], id="p101"),
        pytest.param([{**one, "side": "over"} for one in RIGHT], id="another side"),
        pytest.param([{**one, "key": "b"} for one in RIGHT], id="another key"),
        pytest.param([{**one, "variant": "b"} for one in RIGHT], id="another variant"),
        pytest.param([{**one, "part": 1} for one in RIGHT], id="another part"),
        pytest.param(RIGHT[:2], id="fewer values"),
        pytest.param([*RIGHT, RIGHT[0]], id="more values"),
        pytest.param([HITS, {**COUNT, "value": 0}], id="of none"),
        pytest.param([HITS, {**HITS, "value": 2}, COUNT], id="two numbers of hits"),
        pytest.param([{**HITS, "value": 0.5}, COUNT], id="half a hit"),
        pytest.param([HITS, {**COUNT, "value": -3}], id="of fewer than none"),
        pytest.param([HITS, {**COUNT, "value": INF}], id="of ever so many"),
        pytest.param([RIGHT[0], *({**one, "by": "p99"} for one in RIGHT[1:])], id="two statistics"),
        pytest.param([*RIGHT, {**RIGHT[0], "side": "draws"}], id="one side too many"),
    ],
)
def test_a_value_whose_sample_is_another_is_named(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=samples._schema()), tmp_path / samples.NAME)
    assert samples.differing({("", "a"): MEAN}, samples.read(tmp_path / samples.NAME)) == ["a"]


@pytest.mark.parametrize(
    ("hits", "count"),
    [
        (3, 4),
        (12, 12),
        pytest.param(1, 7),
        pytest.param(3, 9),
    ],
)
def test_an_honest_share_follows_from_its_sample(hits: int, count: int) -> None:
    """The fraction is read as ``records.keep`` reads it: from the text of ``verdict.json``."""
    share = stats.share(hits, count, "runs")
    assert share.sample is not None
    read = stats.from_json(json.loads(json.dumps(as_json(share))))
    assert samples.differing({("", "a"): read}, {("", "a"): {0: share.sample}}) == []


def test_a_table_of_other_columns_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"variant": ["x"]}), tmp_path / samples.NAME)
    with pytest.raises(InputError, match=r"samples\.parquet"):
        samples.read(tmp_path / samples.NAME)


OWN = stats.joint(
    [[1.0, 2, 3, 4], [5.0, 6, 7, 8]], lambda s: s[0].mean(axis=1) / s[1].mean(axis=1), "runs", paired=True
)


@pytest.mark.parametrize("count", [4, 1])
def test_a_value_of_a_rows_own_statistic_follows_from_its_sample(count: int) -> None:
    """The record stores ``value``; ``low`` and ``high`` of the sample replace the bootstrap's ends."""
    assert OWN.sample is not None
    if count == 1:
        made, sample = Measured(99, count=1), Sample(stats.OWN, {"side 1": [1.0]})
    else:
        made, sample = replace(OWN, value=9.0, low=8.0, high=10.0), replace(OWN.sample, low=8.0, high=10.0)
    assert samples.differing({("", "a"): made}, {("", "a"): {0: sample}}) == ["a"]


@pytest.mark.parametrize("draws", [1, 20, stats.FEWEST - 1])
def test_too_few_draws_are_no_sample(draws: int) -> None:
    """A single bootstrap sample equal to the value would be an interval without width."""
    sample = Sample(stats.OWN, {"side 1": [1.0, 9.0, 5.0], "draws": [5.0] * draws}, value=5.0)
    made = Measured(5.0, 5.0, 5.0, 3)
    assert samples.differing({("", "a"): made}, {("", "a"): {0: sample}}) == ["a"]
