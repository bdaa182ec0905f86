"""After a link's capacity falls to a tenth or a twentieth, flows use it in full, in the ratio of their weights."""

from pathlib import Path
from typing import Any

import pyarrow
import pytest
import subak


def rates(out: Path, weights: list[int], delay: str, capacity: str, ms: int = 20) -> list[float]:
    """Rates from ``ms`` to twice ``ms`` after a link of 10 Gb/s falls to ``capacity``, bit/s."""
    flows = [{"src": f"h{i}", "dst": "h7", "weight": weight} for i, weight in enumerate(weights)]
    spec: dict[str, Any] = {
        "network": {"kind": "star", "hosts": 8, "rate": "10Gbps", "link_delay": delay},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "soze-virtual"}],
        "fault": [{"kind": "capacity", "link": "switch0->h7", "both": False, "capacity": capacity, "at": f"{ms}ms"}],
        "measure": {"rates": f"{ms}ms"},
        "run": {"duration": f"{3 * ms}ms"},
    }
    rows = pyarrow.table(subak.run(spec, out, progress=False).table("rate")).to_pylist()
    return [row["rate_bps"] for row in rows if row["time_ns"] == 3 * ms * 1_000_000]


@pytest.mark.parametrize(
    ("weights", "delay"),
    [
        ([1, 3], "2us"),
        ([1, 1, 3, 3], "2us"),
        ([1, 1, 1, 3, 3, 3], "2us"),
        ([3, 2], "3us"),
        ([3, 2], "500ns"),
        ([3, 2], "20us"),
        ([3, 1], "1us"),
        ([5, 2], "3us"),
        ([7, 3], "5us"),
        ([1, 1, 1], "3us"),
    ],
)
def test_a_link_of_a_tenth_of_its_capacity_is_shared_by_weights(tmp_path: Path, weights: list[int], delay: str) -> None:
    found = rates(tmp_path / "out", weights, delay, "1Gbps")
    assert sum(found) > 0.92e9, found
    # Six flows send less than a packet in five RTTs.
    off = 0.3 if len(weights) == 6 else 0.08
    assert found == pytest.approx([sum(found) * weight / sum(weights) for weight in weights], rel=off)


@pytest.mark.parametrize(
    ("weights", "delay"),
    [([1, 3], "2us"), ([3, 2], "3us"), ([3, 1], "1us"), ([5, 2], "3us"), ([7, 3], "5us"), ([1, 1, 1], "3us")],
)
def test_a_link_of_a_twentieth_of_its_capacity_is_shared_by_weights(
    tmp_path: Path, weights: list[int], delay: str
) -> None:
    found = rates(tmp_path / "out", weights, delay, "500Mbps", ms=60)
    assert sum(found) > 0.46e9, found
    assert found == pytest.approx([sum(found) * weight / sum(weights) for weight in weights], rel=0.08)


def test_at_an_rtt_of_a_millisecond_rates_are_right_after_60_rtts(tmp_path: Path) -> None:
    found = rates(tmp_path / "out", [3, 2], "250us", "1Gbps", ms=100)
    assert sum(found) > 0.92e9, found
    assert found == pytest.approx([sum(found) * 0.6, sum(found) * 0.4], rel=0.08)
