"""Causes of claims that are not met, shown by switching one thing where no variant of a record does, or excluded.

A window of Soze is a whole number of packets. Smaller packets, with all else as it was, show what that costs.
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from subak.papers.soze import networks
from subak.papers.soze.networks import ONE, SEVERAL
from subak.repro import catalogue, samples

WINDOW = {"state": "window", "signal": "backlog", "filter": 0.0, "p": 20e-6}


def packets(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Scales the packets of ``networks``, headers and ACKs included."""
    for part, size in {"mtu": 1048, "header": 48, "ack": 64}.items():
        monkeypatch.setitem(networks.SIZES, part, int(size * share))


def settles(hops: str, seed: int, **params: Any) -> bool:
    setup, limit = networks.draw(hops, seed), networks.LIMIT_RTTS[hops]
    return networks.watch(setup.simulation("soze", WINDOW | params, seed), setup, 1.0, limit).settled_rtts <= limit


@pytest.mark.parametrize("seed", [1001, 1002, 1004, 1005])
def test_with_one_hop_the_size_of_packets_decides(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """soze-settles and soze-params: 3 of 20 networks converge, and all 20 with packets of an eighth of the size."""
    assert not settles(ONE, seed)
    packets(monkeypatch, 1 / 8)
    assert settles(ONE, seed)


@pytest.mark.parametrize("seed", [1002, 1003, 1005])
def test_with_several_hops_the_gain_decides_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """soze-settles: of 10 networks none converges with packets of a quarter, 2 with an m of 0.05, 7 with both."""
    assert not settles(SEVERAL, seed, m=0.05)
    packets(monkeypatch, 1 / 4)
    assert not settles(SEVERAL, seed)
    assert settles(SEVERAL, seed, m=0.05)


@pytest.mark.parametrize(("share", "used"), [(1, (0.84, 0.88)), (1 / 8, (0.97, 1.0))])
def test_a_lone_window_leaves_a_part_of_a_short_link_unused(
    share: float, used: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """soze-fig9: at 4.05 Gb/s and 2 us a link some six packets are in an RTT, and a flow alone has 86% of its link."""
    packets(monkeypatch, share)
    links = [one for ends in (("a", "s"), ("s", "b")) for one in networks.pair(*ends, 4.05e9, 2000)]
    setup = networks.Setup(links, [["a->s", "s->b"]], [1.0])
    simulation = setup.simulation("soze", WINDOW | {"smallest_weight": 0.02}, 1)
    simulation.run(2_000_000)
    before = simulation.links.to_numpy()["data_bytes"]
    simulation.run(10_000_000)
    sent = simulation.links.to_numpy()["data_bytes"] - before
    assert used[0] < 8 * int(max(sent)) / 8e-3 / 4.05e9 < used[1]


def test_table_5_1_times_of_each_measure_and_what_a_hash_for_each_flow_changes() -> None:
    """RCP's times over those of s-PERC* at 1 Gb/s, from the samples alone; the page excludes a hash for each flow."""
    rows = pq.read_table(catalogue()["perc-table5.1"].folder / samples.NAME).to_pylist()

    def times(variant: str) -> list[list[float]]:
        sides: dict[str, list[float]] = {}
        for row in rows:
            if row["variant"] == variant and row["key"] == "ratio" and row["side"] != "draws":
                sides.setdefault(row["side"], []).append(row["value"])
        return list(sides.values())

    def ratios(variant: str) -> list[float]:
        means = [sum(runs) / len(runs) for runs in times(variant)]
        return [rcp / s_perc for rcp, s_perc in zip(means[::2], means[1::2], strict=True)]

    assert ratios("") == pytest.approx([14.3, 11.1, 11.9], abs=0.05)
    assert ratios("routed by fewest links") == pytest.approx([14.2, 11.7, 15.4], abs=0.05)
    assert times("each flow hashed for itself") == [runs[:2] for runs in times("")]
