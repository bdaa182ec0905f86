"""After a link's capacity falls to a tenth, flows use it in full, in the ratio of their weights."""

from pathlib import Path
from typing import Any

import pyarrow
import pytest
import subak


@pytest.mark.parametrize("weights", [[1, 3], [1, 1, 3, 3], [1, 1, 1, 3, 3, 3]])
def test_a_link_of_a_tenth_of_its_capacity_is_shared_by_weights(tmp_path: Path, weights: list[int]) -> None:
    flows = [{"src": f"h{i}", "dst": "h7", "weight": weight} for i, weight in enumerate(weights)]
    spec: dict[str, Any] = {
        "network": {"kind": "star", "hosts": 8, "rate": "10Gbps", "link_delay": "2us"},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "soze-virtual"}],
        "fault": [{"kind": "capacity", "link": "switch0->h7", "both": False, "capacity": "1Gbps", "at": "20ms"}],
        "measure": {"rates": "20ms"},
        "run": {"duration": "60ms"},
    }
    rows = pyarrow.table(subak.run(spec, tmp_path / "out", progress=False).table("rate")).to_pylist()
    rates = [row["rate_bps"] for row in rows if row["time_ns"] == 60_000_000]
    assert sum(rates) > 0.92e9, rates
    # Six flows send less than a packet in five RTTs.
    off = 0.3 if len(weights) == 6 else 0.08
    assert rates == pytest.approx([sum(rates) * weight / sum(weights) for weight in weights], rel=off)
