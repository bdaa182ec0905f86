"""Memory of a run: bytes per running flow, and none for flows that have finished."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from conftest import COMMAND

# Single packets between mostly idle hosts: many flows, each of which ends soon.
RATE = "100Gbps"
FLOWS_PER_MS = 8 * 100e9 * 0.5 / 8 / (1000 + 54) / 1000


def peak_mb(spec: Path, out: Path) -> float:
    """Peak memory of ``subak run``, MB."""
    wrapper = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    command = [sys.executable, "-c", wrapper, str(COMMAND), "run", str(spec), "--out", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return int(done.stdout) / 1024


def spec_of(folder: Path, millis: float) -> Path:
    spec = {
        "name": "many",
        "network": {"kind": "star", "hosts": 8, "rate": RATE},
        "workload": {"kind": "poisson", "sizes": "fixed", "size": 1000, "load": 0.5},
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": f"{millis}ms", "seeds": 1},
    }
    path = folder / f"many-{millis}.json"
    path.write_text(json.dumps(spec))
    return path


def test_a_flow_costs_some_hundred_bytes_and_its_row_is_there(tmp_path: Path) -> None:
    peaks, flows = [], []
    for millis in (0.5, 8.0):
        out = tmp_path / str(millis)
        peaks.append(peak_mb(spec_of(tmp_path, millis), out))
        table = pq.read_table(out / "results.parquet", columns=["kind", "flow", "fct_ns"]).to_pylist()
        rows = [row for row in table if row["kind"] == "flow"]
        flows.append(len(rows))
        assert [row["flow"] for row in rows] == list(range(len(rows)))
        assert all(row["fct_ns"] is not None for row in rows)
    assert flows[1] > 0.9 * 8 * FLOWS_PER_MS
    a_flow = (peaks[1] - peaks[0]) * 2**20 / (flows[1] - flows[0])
    # 605 were measured since the plan of a flow has the index of its scheme.
    assert a_flow < 640, f"{flows} flows took {peaks} MB: {a_flow:.0f} bytes a flow"
