"""Slowdown by flow size, in bins with equal numbers of flows."""

from __future__ import annotations

import numpy as np
from subak.metrics import compared
from subak.sizes import by_size, labels


def test_bins_hold_equally_many_flows_and_their_percentile() -> None:
    sizes = np.arange(1, 1001) * 1000
    # The slowdown is the flow's place in its tenth of the flows: 1 to 100.
    slowdowns = (np.arange(1000) % 100) + 1.0
    mixed = np.random.default_rng(1).permutation(1000)
    bins = by_size(sizes[mixed], slowdowns[mixed], 95, 10)
    assert [one.flows for one in bins] == [100] * 10
    assert [one.largest_bytes for one in bins] == [100_000 * k for k in range(1, 11)]
    assert all(abs(one.slowdown - 95.05) < 1e-9 for one in bins)
    assert [one.share for one in bins] == [k / 10 for k in range(1, 11)]
    assert labels(bins)[:1] + labels(bins)[-1:] == ["100 KB", "1 MB"]


def test_fewer_flows_than_bins() -> None:
    assert [(one.largest_bytes, one.flows) for one in by_size([700, 5], [2.0, 1.0])] == [(5, 1), (700, 1)]
    assert by_size([], []) == []


def test_pauses_are_compared_only_where_there_are_any() -> None:
    def rows(pauses: float) -> list[dict[str, dict[str, dict[str, float]]]]:
        return [{"metrics": {"pauses": {"mean": pauses}, "flows": {"mean": 3.0}}}]

    assert [m.name for m in compared(rows(0.0))] == ["flows"]
    assert [m.name for m in compared(rows(2.0))] == ["flows", "pauses"]
