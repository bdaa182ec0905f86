"""Soze's window: the same spec in the simulator and on hosts."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import subak
from conftest import ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
ATTEMPTS = 3
"""Number of attempts: a busy machine may disturb a run, which then does not count."""
HALF_NS = 1_000_000_000


def spec(name: str) -> dict[str, Any]:
    """A spec of the experiment soze-hosts, shortened to two seconds, with Soze under both backends."""
    path = ROOT / f"python/subak/papers/soze/hosts/spec-{name}.toml"
    held = tomllib.loads(path.read_text())
    soze = next(one for one in held["scheme"] if one["name"] == "soze")
    assert soze["params"].get("state", "window") == "window"
    held["scheme"] = [{**soze, "label": backend, "backend": backend} for backend in ("packet", "testbed")]
    held["run"]["duration"] = "2s"
    return held


def rates(results: subak.Results, backend: str) -> list[float]:
    """Mean rate of each flow in the second half, Mb/s."""
    rows = results.table("rate", ["scheme", "time_ns", "flow", "rate_bps"]).to_pandas()
    late = rows[(rows["scheme"] == backend) & (rows["time_ns"] > HALF_NS)]
    return [float(of["rate_bps"].mean()) / 1e6 for _, of in late.groupby("flow")]


def test_weights_3_and_1_come_to_the_same_rates_on_hosts_and_in_the_simulator(tmp_path: Path) -> None:
    off = []
    for attempt in range(ATTEMPTS):
        results = subak.run(spec("one"), tmp_path / str(attempt))
        simulated, on_hosts = rates(results, "packet"), rates(results, "testbed")
        assert simulated[0] / simulated[1] == pytest.approx(3, rel=0.05)
        off.append(max(abs(a / b - 1) for a, b in zip(on_hosts, (75, 25), strict=True)))
        if off[-1] < 0.1:
            return
    pytest.fail(f"rates on hosts are off by {off}")


def test_a_flow_alone_on_hosts_does_not_wait_for_delayed_acknowledgements(tmp_path: Path) -> None:
    """The flow's window over an idle path of 0.2 ms is two packets."""
    alone = []
    for attempt in range(ATTEMPTS):
        held = spec("one")
        held["workload"]["flows"] = held["workload"]["flows"][1:]
        held["scheme"] = held["scheme"][1:]
        alone.append(rates(subak.run(held, tmp_path / str(attempt)), "testbed")[0])
        if alone[-1] > 80:
            return
    pytest.fail(f"a flow alone has {alone} of 100 Mb/s")
