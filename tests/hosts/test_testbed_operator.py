"""Weights 1, 2 and 4 under each scheme of hosts, over round trips of 0.1, 10 and 40 ms."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import subak
from attempts import Attempts
from subak.testbed.testbed import agent

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
ATTEMPTS = 3
"""Number of attempts: a busy machine may disturb a run, which then does not count."""
DELAYS = {"h0": None, "h1": "4950us", "h2": "19950us", "h3": None}
"""Delays of hosts' links; h3 receives. A hop of hosts takes some 25 us."""
WEIGHTS = (1, 2, 4)
SOZE = {"p": "16ms", "k": "2ms", "m": 0.4, "alpha_rate": "50Mbps", "beta_rate": "3.125Mbps", "filter": "2ms"}
SCHEMES: dict[str, tuple[dict[str, Any], float]] = {
    "soze": (SOZE, 1.0),
    "soze-virtual": ({}, 0.97),
    "s-perc": ({}, 0.94),
    "s-perc-star": ({}, 0.94),
    "flowtune": ({}, 0.96),
}
"""Parameters of each scheme, and the share of a link that it gives to flows."""


def _spec(scheme: str) -> dict[str, Any]:
    nodes = [{"id": name, "kind": "host"} for name in DELAYS] + [{"id": "s", "kind": "switch"}]
    links = [
        {"source": a, "target": b, "capacity": "50Mbps", **({"delay": delay} if delay else {})}
        for name, delay in DELAYS.items()
        for a, b in ((name, "s"), ("s", name))
    ]
    flows = [{"src": f"h{k}", "dst": "h3", "weight": weight} for k, weight in enumerate(WEIGHTS)]
    return {
        "schema": 1,
        "network": {"directed": True, "multigraph": True, "nodes": nodes, "links": links},
        "workload": {"kind": "steps", "flows": flows},
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "measure": {"rates": "100ms"},
        "run": {"duration": "8s"},
        "scheme": [{"name": scheme, "params": SCHEMES[scheme][0]}],
    }


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_count_whatever_the_round_trip(tmp_path: Path, scheme: str) -> None:
    told = json.loads(subprocess.run([agent(), "doctor"], capture_output=True, check=True, timeout=60).stdout)
    if missing := [need for need in told["needs"] if need["found"] is None]:
        pytest.skip(f"{missing[0]['name']}: {missing[0]['hint']}")
    spec = _spec(scheme)
    answer = subak.solve({"network": spec["network"], "flows": spec["workload"]["flows"], "policy": spec["policy"]})
    exact = answer.to_numpy()["rate_bps"]
    given = SCHEMES[scheme][1]
    seen = []
    tries = Attempts(ATTEMPTS)
    for attempt in tries:
        results = subak.run(spec, tmp_path / f"{attempt}", backend="testbed")
        assert results.complete, results.failed
        rows = [row for row in results.table("rate").to_pylist() if row["time_ns"] > 3 * 10**9]
        # Medians, since a busy machine stalls some samples.
        rates = [median(row["rate_bps"] for row in rows if row["flow"] == flow) for flow in range(len(WEIGHTS))]
        off = [rate / (given * best) - 1 for rate, best in zip(rates, exact, strict=True)]
        seen.append(([round(rate / 1e6, 2) for rate in rates], [f"{part:+.1%}" for part in off]))
        print(scheme, *seen[-1])
        if all(abs(part) < 0.05 for part in off):
            return
    tries.fail(f"{scheme}, Mb/s and off from the exact rates: {seen}")
