"""Soze's window: the same spec in the simulator and on hosts."""

from __future__ import annotations

import os
import statistics
import tomllib
from pathlib import Path
from typing import Any

import pytest
import subak
from attempts import Attempts
from conftest import ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
ATTEMPTS = 3
"""Number of attempts: a busy machine may disturb a run, which then does not count."""
HALF_NS = 1_000_000_000
PHASE_NS = 400_000_000
JOINS = 6


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
    tries = Attempts(ATTEMPTS)
    for attempt in tries:
        results = subak.run(spec("one"), tmp_path / str(attempt))
        simulated, on_hosts = rates(results, "packet"), rates(results, "testbed")
        assert simulated[0] / simulated[1] == pytest.approx(3, rel=0.05)
        off.append((abs(on_hosts[0] / on_hosts[1] / 3 - 1), abs(sum(on_hosts) / 100 - 1)))
        if off[-1][0] < 0.05 and off[-1][1] < 0.1:
            return
    tries.fail(f"ratio of the rates on hosts, and their sum, are off by {off}")


def joins_and_leaves() -> dict[str, Any]:
    """A spec in which a flow of weight 3 joins one of weight 1 and leaves it, several times."""
    held = spec("one")
    often = [
        {
            "src": "h0",
            "dst": "h2",
            "weight": 3,
            "start": f"{(2 * i + 1) * PHASE_NS}ns",
            "stop": f"{(2 * i + 2) * PHASE_NS}ns",
        }
        for i in range(JOINS)
    ]
    held["workload"]["flows"] = [{"src": "h1", "dst": "h3"}, *often]
    held["measure"]["rates"] = "2ms"
    held["run"]["duration"] = f"{(2 * JOINS + 1) * PHASE_NS}ns"
    return held


def settling_ms(results: subak.Results, backend: str) -> tuple[float, float]:
    """Median time, in ms, from a join and from a leave to rates (means of 10 ms) within 15% of the exact ones."""
    rows = results.table("rate", ["scheme", "time_ns", "flow", "rate_bps"]).to_pandas()
    by_flow = rows[rows["scheme"] == backend].pivot_table(index="time_ns", columns="flow", values="rate_bps").fillna(0)
    first, other = (by_flow[0] / 1e6).rolling(5).mean(), (by_flow.drop(columns=0).sum(axis=1) / 1e6).rolling(5).mean()
    times: dict[bool, list[float]] = {True: [], False: []}
    for change in range(1, 2 * JOINS + 1):
        joins, at = change % 2 == 1, change * PHASE_NS
        phase = (first.index > at) & (first.index <= at + PHASE_NS)
        near = (first[phase] / (25 if joins else 100) - 1).abs() <= 0.15
        if joins:
            near &= (other[phase] / 75 - 1).abs() <= 0.15
        times[joins].append(float(near.idxmax() - at) / 1e6 if near.any() else PHASE_NS / 1e6)
    return statistics.median(times[True]), statistics.median(times[False])


def test_rates_settle_on_hosts_in_as_many_rtts_as_in_the_simulator(tmp_path: Path) -> None:
    """Both have the same RTTs, so that times are compared: within a factor of two."""
    told = []
    tries = Attempts(ATTEMPTS)
    for attempt in tries:
        results = subak.run(joins_and_leaves(), tmp_path / str(attempt))
        simulated, on_hosts = settling_ms(results, "packet"), settling_ms(results, "testbed")
        assert max(simulated) < 40
        told.append((simulated, on_hosts))
        if all(0.5 <= a / b <= 2 for a, b in zip(on_hosts, simulated, strict=True)):
            return
    tries.fail(f"times from joins and leaves in the simulator and on hosts, ms: {told}")


def test_a_flow_alone_on_hosts_does_not_wait_for_delayed_acknowledgements(tmp_path: Path) -> None:
    """The flow's window over an idle path of 0.2 ms is two packets."""
    alone = []
    tries = Attempts(ATTEMPTS)
    for attempt in tries:
        held = spec("one")
        held["workload"]["flows"] = held["workload"]["flows"][1:]
        held["scheme"] = held["scheme"][1:]
        alone.append(rates(subak.run(held, tmp_path / str(attempt)), "testbed")[0])
        if alone[-1] > 80:
            return
    tries.fail(f"a flow alone has {alone} of 100 Mb/s")
