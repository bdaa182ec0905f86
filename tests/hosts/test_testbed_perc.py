"""s-PERC and s-PERC* between namespaces of this machine: max-min by control packets, some of which are lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import subak
from attempts import Attempts
from subak.testbed.testbed import agent
from test_testbed import processes_of, wait_for_ends

root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
COMMAND = Path(sys.executable).with_name("subak")
DATA = 0.94
"""Fraction of a link for data: 4% are for control packets, and 2% are unused."""


def _links(*both_ways: tuple[str, str, float]) -> list[dict[str, Any]]:
    ends = [(a, b, rate) for one, other, rate in both_ways for a, b, rate in ((one, other, rate), (other, one, rate))]
    return [{"from": a, "to": b, "capacity": f"{rate}Mbps"} for a, b, rate in ends]


def _spec(links: list[dict[str, Any]], flows: list[dict[str, Any]], **scheme: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "network": {"links": links},
        "workload": {"kind": "steps", "flows": flows},
        "measure": {"rates": "50ms"},
        "run": {"duration": "2s", "warmup": "500ms"},
        "scheme": [scheme],
    }


FIGURE = (
    _links(("hB", "s0", 20), ("hW", "s0", 100), ("s0", "s1", 30), ("s1", "hb", 100), ("s1", "hw", 12)),
    [{"src": "hB", "dst": "hb"}, {"src": "hW", "dst": "hw"}],
    [18, 12],
)
"""Figure 2.1 of the PERC thesis, in Mb/s instead of Gb/s: links l20, l30 and l12."""
CHAIN = (
    _links(
        *(("hA", "s0", 100), ("hB", "s0", 100), ("s0", "s1", 60), ("s1", "ha", 100), ("hC", "s1", 100)),
        *(
            ("s1", "s2", 30),
            ("s2", "hb", 100),
            ("hD", "s2", 100),
            ("s2", "s3", 10),
            ("s3", "hc", 100),
            ("s3", "hd", 100),
        ),
    ),
    [{"src": f"h{flow.upper()}", "dst": f"h{flow}"} for flow in "abcd"],
    [35, 25, 5, 5],
)
"""Figure 2.11 of the PERC thesis: links of 60, 30 and 10 Mb/s, of which each shares a flow with the next."""
INCAST = (
    _links(("s", "to", 60), *((f"h{k}", "s", 60) for k in range(10))),
    [{"src": f"h{k}", "dst": "to"} for k in range(10)],
    [6] * 10,
)
WEIGHTS = (
    _links(("s", "to", 60), *((f"h{k}", "s", 60) for k in range(3))),
    [{"src": f"h{k}", "dst": "to", "weight": weight} for k, weight in enumerate((3, 2, 1))],
    [30, 20, 10],
)
CASES: list[tuple[Any, dict[str, Any], float]] = [
    (FIGURE, {"name": "s-perc"}, 0.1),
    (CHAIN, {"name": "s-perc", "params": {"division_kb": 52}}, 0.1),
    (INCAST, {"name": "s-perc-star"}, 0.1),
    (WEIGHTS, {"name": "s-perc-star", "params": {"reverse": False, "division_kb": 340}}, 0.1),
    (FIGURE, {"name": "s-perc-star", "loss": 0.01}, 0.2),
]


@root
@pytest.mark.parametrize(("case", "scheme", "within"), CASES)
def test_shares_are_max_min(case: Any, scheme: dict[str, Any], within: float, tmp_path: Path) -> None:
    _needs_programs()
    links, flows, goals = case
    spec = _spec(links, flows, **{key: scheme[key] for key in scheme if key != "loss"})
    if "loss" in scheme:
        spec["fault"] = [{"kind": "loss", "kinds": ["ctl"], "probability": scheme["loss"]}]
    tries = Attempts(4)
    for attempt in tries:
        results = subak.run(spec, tmp_path / f"{attempt}", backend="testbed")
        assert results.complete, results.failed
        rows = [row for row in results.table("rate").to_pylist() if row["time_ns"] > 5 * 10**8]
        rates = [median(row["rate_bps"] / 1e6 for row in rows if row["flow"] == flow) for flow in range(len(goals))]
        if all(abs(rate / (DATA * goal) - 1) < within for rate, goal in zip(rates, goals, strict=True)):
            return
    tries.fail(f"{rates} of {goals} Mb/s")


@root
def test_flows_that_come_and_go_complete_as_in_the_simulator(tmp_path: Path) -> None:
    _needs_programs()
    spec = _spec([], [], name="s-perc-star") | {
        "network": {"kind": "star", "hosts": 4, "rate": "10Gbps"},
        "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.4},
        "measure": {"fct": True},
        "run": {"duration": "10ms", "seeds": 1},
        "testbed": {"scale": 0.005},
    }
    hosts = subak.run(spec, tmp_path / "hosts", backend="testbed")
    assert hosts.complete, hosts.failed
    done = [row["slowdown"] for row in hosts.table("flow").to_pylist() if row["fct_ns"] is not None]
    simulated = [row["slowdown"] for row in subak.run(spec, tmp_path / "simulated").table("flow").to_pylist()]
    assert len(done) == len(simulated)
    assert 0.5 < median(done) / median(simulated) < 2


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"scheme": [{"name": "s-perc", "params": {"compact": True}}]}, "one rate for each link", "leave it away"),
    ({"scheme": [{"name": "s-perc-star", "params": {"short": "10KB"}}]}, "short flows", "leave it away"),
    ({"scheme": [{"name": "s-perc", "params": {"division_kb": 4000}}]}, "512 KB", "divide exactly"),
    ({"scheme": [{"name": "n-perc"}]}, "does not run on hosts", "s-perc"),
]


@pytest.mark.parametrize(("change", "what", "hint"), WRONG)
def test_what_hosts_cannot_do_is_refused(change: dict[str, Any], what: str, hint: str, tmp_path: Path) -> None:
    links, flows, _ = FIGURE
    with pytest.raises(subak.InputError) as refused:
        subak.run(_spec(links, flows, name="s-perc") | change, tmp_path / "out", backend="testbed")
    assert what in str(refused.value)
    assert hint in str(refused.value)


@root
def test_what_packets_cannot_hold_is_refused(tmp_path: Path) -> None:
    _needs_programs()
    long = _links(("h0", "s0", 50), *((f"s{k}", f"s{k + 1}", 50) for k in range(8)), ("s8", "h1", 50))
    results = subak.run(_spec(long, [{"src": "h0", "dst": "h1"}], name="s-perc"), tmp_path / "long", backend="testbed")
    assert "10 links" in results.failed[0]
    links, flows, _ = WEIGHTS
    small = [{**flow, "weight": 0.01} for flow in flows]
    results = subak.run(_spec(links, small, name="s-perc"), tmp_path / "small", backend="testbed")
    assert "weights from 1/16" in results.failed[0]


@root
def test_nothing_of_a_killed_run_stays(tmp_path: Path) -> None:
    _needs_programs()
    links, flows, _ = FIGURE
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(_spec(links, flows, name="s-perc-star") | {"run": {"duration": "30s"}}))
    command = [COMMAND, "run", spec, "--backend", "testbed", "--out", tmp_path / "out"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 20
    while len(family := processes_of(run.pid)) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(family) == 3, "namespaces, links and traffic have a process each"
    time.sleep(0.5)
    os.kill(run.pid, signal.SIGKILL)
    run.wait(10)
    # Kernel programs end with these processes, since nothing is pinned. test_testbed.py checks the kernel.
    wait_for_ends(family)


def _needs_programs() -> None:
    told = json.loads(subprocess.run([agent(), "doctor"], capture_output=True, check=True, timeout=60).stdout)
    missing = [need for need in told["needs"] if need["found"] is None]
    if missing:
        pytest.skip(f"{missing[0]['name']}: {missing[0]['hint']}")
