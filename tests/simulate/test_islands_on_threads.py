"""One simulation on several threads, on a network of two islands."""

from pathlib import Path
from typing import Any

import pytest
import subak


def _summary(folder: Path, rate_bps: float, threads: int) -> dict[str, Any]:
    """The summary of two flows in two islands that end in the drain."""
    ends = [(f"h{i}{k}", f"s{i}") for i in range(2) for k in range(2)]
    links = [{"from": a, "to": b, "capacity": rate_bps, "delay": "1us"} for e in ends for a, b in (e, e[::-1])]
    flows = [{"src": "h00", "dst": "h01", "size": 300_000}, {"src": "h10", "dst": "h11", "size": 200_000}]
    spec = {
        "network": {"links": links},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "10us", "drain": "10ms"},
    }
    results = subak.run(spec, folder / str(threads), progress=False, jobs=1, threads=threads)
    return results.table("summary").to_pandas().iloc[0].dropna().to_dict()


@pytest.mark.parametrize("rate_bps", [1e9, 2.5e10, 3.2e10, 1e11, 4e11])
def test_a_run_ends_with_its_last_flow(tmp_path: Path, rate_bps: float) -> None:
    """What may arrive before the islands meet is more than an integer holds from 32 Gb/s on."""
    alone = _summary(tmp_path, rate_bps, 1)
    assert _summary(tmp_path, rate_bps, 2) == alone
    assert _summary(tmp_path, rate_bps, 3) == alone
