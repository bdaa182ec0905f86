"""``subak solve`` and cells of the table of policies and schemes, against an independent model of the goals."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import goals_model as model
import numpy as np
import pytest
import subak

GBPS = 1e9


def alpha_fair(alpha: float) -> dict[str, Any]:
    return {"kind": "alpha-fair", "alpha": alpha}


MAX_MIN = {"kind": "max-min"}
FUNCTIONS = {"kind": "bandwidth-function"}
POLICIES = [
    MAX_MIN,
    *(alpha_fair(alpha) for alpha in (0.25, 0.5, 1, 2, 5)),
    *({"kind": kind, "epsilon": epsilon} for kind, epsilon in (("fct", 0.125), ("fct", 0.5), ("srpt", 0.25))),
    {"kind": "edf", "epsilon": 0.125},
    FUNCTIONS,
]


def _function(rng: Random, bends: int = 3, flat: bool = True) -> list[list[float]]:
    """A bandwidth function, with pieces that may be flat."""
    slope = rng.uniform(0.2, 2) * GBPS
    points = [[0.0, 0.0], [1.0, slope]]
    for k in range(bends - 1):
        rise = rng.choice([0.0, 1.0, 3.0] if flat else [0.5, 1.0, 3.0])
        points.append([points[-1][0] + 1.5 * (k + 1), points[-1][1] + rise * slope])
    return points


def _flow(rng: Random, policy: dict[str, Any], flat: bool = True) -> dict[str, Any]:
    """The keys that a policy reads, but for paths."""
    kind = policy["kind"]
    if kind == "bandwidth-function":
        return {"bandwidth_function": _function(rng, flat=flat)}
    keys: dict[str, Any] = {"weight": rng.choice([1, 2, 4] if policy.get("alpha") != 5 else [1, 2])}
    if kind in ("fct", "srpt"):
        keys["size"] = 10 ** rng.randint(4, 7) * rng.randint(1, 9)
    if kind == "edf":
        keys["deadline"] = rng.randint(1, 40) * 1e-3
    return keys


def _case(rng: Random, policy: dict[str, Any], paths: int) -> dict[str, Any]:
    """Flows over random sets of links."""
    speeds = [2.5, 4, 10] if policy.get("alpha") == 5 else [1, 2.5, 4, 10, 25, 40]
    names = [f"l{k}" for k in range(rng.randint(3, 7))]
    flows = []
    for _ in range(rng.randint(2, 9)):
        drawn = {tuple(sorted(rng.sample(names, rng.randint(1, 3)))) for _ in range(paths)}
        flows.append({"paths": [list(path) for path in sorted(drawn)], **_flow(rng, policy)})
    return {
        "network": [{"id": n, "capacity": rng.choice(speeds) * GBPS} for n in names],
        "flows": flows,
        "policy": policy,
    }


def _capacities(network: list[dict[str, Any]], share: float = 1.0) -> dict[str, float]:
    return {link["id"]: share * link["capacity"] for link in network}


@pytest.mark.parametrize("paths", [1, 2, 3])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: " ".join(str(v) for v in policy.values()))
def test_exact_rates_are_those_of_the_model(policy: dict[str, Any], paths: int) -> None:
    """Errors are relative to a flow's rate, or to a thousandth of the largest where flows starve."""
    for seed in range(4):
        case = _case(Random(f"{policy} {paths} {seed}"), policy, paths)
        want = model.rates(_capacities(case["network"]), case["flows"], policy)
        got = np.array([flow["rate_bps"] for flow in subak.solve(case)])
        least = max(want) * (1e-2 if "epsilon" in policy else 1e-3)
        assert np.abs(got - want) / np.maximum(want, least) == pytest.approx(0, abs=1e-4), (seed, got, want)


def test_the_model_is_right_where_the_papers_print_rates() -> None:
    """PERC thesis, section 1.4; NUMFabric, figure 9; and two sums by hand."""
    links = {"l20": 20e9, "l30": 30e9, "l12": 12e9}
    two = [{"path": ["l20", "l30"]}, {"path": ["l30", "l12"]}]
    assert model.rates(links, two, MAX_MIN) == pytest.approx([18e9, 12e9])
    lot = [{"path": ["a", "b"]}, {"path": ["a"]}, {"path": ["b"]}]
    assert model.rates({"a": 3e9, "b": 3e9}, lot, alpha_fair(1)) == pytest.approx([1e9, 2e9, 2e9], rel=1e-6)
    # Flow 1 has priority up to 10 Gb/s; then flow 2 gets twice as much of the rest, up to 10 Gb/s.
    first = [(0, 0), (2, 10e9), (2.5, 15e9), (3, 20e9)]
    second = [(0, 0), (2, 0.0), (2.5, 10e9), (3, 10e9)]
    flows = [{"path": ["l"], "bandwidth_function": points} for points in (first, second)]
    for capacity, want in ((10e9, [10e9, 0]), (25e9, [15e9, 10e9]), (28e9, [18e9, 10e9])):
        assert model.rates({"l": capacity}, flows, FUNCTIONS) == pytest.approx(want, abs=1e5)
    pooled = [{"paths": [["a"], ["b"]]}, {"path": ["a"]}]
    assert model.rates({"a": 3e9, "b": 5e9}, pooled, alpha_fair(2)) == pytest.approx([5e9, 3e9], rel=1e-6)


# Cells: two networks with both ends of the flows apart, so that ACKs do not share links with data.


def _both_ways(edges: list[tuple[str, str, float]]) -> list[dict[str, Any]]:
    ends = [(a, b, gbps) for x, y, gbps in edges for a, b in ((x, y), (y, x))]
    return [{"id": f"{a}->{b}", "from": a, "to": b, "capacity": g * GBPS, "delay": 2e-6} for a, b, g in ends]


def _path(*nodes: str) -> list[str]:
    return [f"{a}->{b}" for a, b in pairwise(nodes)]


def _chain() -> tuple[list[dict[str, Any]], list[list[list[str]]]]:
    """Three links of unequal rates in a row, one long flow and two short ones at each."""
    edges = [("s0", "s1", 10.0), ("s1", "s2", 5.0), ("s2", "s3", 10.0), ("a", "s0", 40.0), ("b", "s3", 40.0)]
    paths = [_path("a", "s0", "s1", "s2", "s3", "b")]
    for k in range(3):
        for c in range(2):
            edges += [(f"x{k}{c}", f"s{k}", 20.0), (f"y{k}{c}", f"s{k + 1}", 20.0)]
            paths.append(_path(f"x{k}{c}", f"s{k}", f"s{k + 1}", f"y{k}{c}"))
    return _both_ways([*edges, ("ctl", "s0", 10.0)]), [[path] for path in paths]


def _spines(rng: Random, paths: int) -> tuple[list[dict[str, Any]], list[list[list[str]]]]:
    """Two leaves behind two spines, NICs of 10 and 25 Gb/s."""
    edges = [(f"leaf{leaf}", f"spine{s}", 10.0) for leaf in range(2) for s in range(2)]
    edges += [(f"h{k}", f"leaf{k // 4}", 25.0 if k % 2 else 10.0) for k in range(8)] + [("ctl", "spine0", 10.0)]
    flows = []
    for _ in range(7):
        src, dst, spine = rng.randrange(4), 4 + rng.randrange(4), rng.randrange(2)
        over = [_path(f"h{src}", "leaf0", f"spine{(spine + p) % 2}", "leaf1", f"h{dst}") for p in range(paths)]
        flows.append(over)
    return _both_ways(edges), flows


CELLS: list[tuple[dict[str, Any], int, list[str]]] = [
    (MAX_MIN, 1, ["s-perc", "given/levels", "soze-virtual", "exact-central/paced"]),
    (alpha_fair(0.5), 1, ["ned/paced", "numfabric", "exact-central/s-perc"]),
    (alpha_fair(1), 1, ["ned/swift", "dgd", "rcp-star/swift", "xwi-s-perc", "flowtune"]),
    (alpha_fair(2), 1, ["ned/s-perc", "numfabric", "ned-central/levels"]),
    (alpha_fair(1), 2, ["ned/levels", "numfabric", "ned-central/paced", "exact-central/soze-virtual"]),
    ({"kind": "fct", "epsilon": 0.125}, 1, ["ned-central/paced", "exact-central/s-perc"]),
    ({"kind": "edf", "epsilon": 0.125}, 1, ["ned-central/swift", "exact-central/paced"]),
    (FUNCTIONS, 1, ["ned/paced", "ned/swift", "xwi-s-perc", "exact-central/paced"]),
]


def _given(scheme: str) -> dict[str, str]:
    optimizer, slash, transport = scheme.partition("/")
    return {"optimizer": optimizer, "transport": transport, "label": scheme} if slash else {"name": scheme}


@pytest.mark.parametrize(
    ("policy", "paths", "schemes"), CELLS, ids=lambda one: str(one.get("kind")) if isinstance(one, dict) else None
)
def test_cells_have_the_rates_of_the_model(
    policy: dict[str, Any], paths: int, schemes: list[str], tmp_path: Path
) -> None:
    """Rates from 50 to 60 ms are within 5% of the model's, after the common factor of what a scheme leaves free."""
    rng = Random(f"{policy} {paths}")
    network, routes = _chain() if paths == 1 else _spines(rng, paths)
    flows = [{"paths": way, **_flow(rng, policy, flat=False)} for way in routes]
    for flow in flows:
        # No flow ends, and no utility changes, within the run.
        flow |= {key: flow[key] * factor for key, factor in (("size", 1e6), ("deadline", 1e3)) if key in flow}
    spec = {
        "network": network,
        "policy": policy,
        "workload": {"kind": "steps", "flows": flows},
        "controller": {"at": "ctl"},
        "scheme": [_given(scheme) for scheme in schemes],
        "measure": {"rates": "10ms"},
        "run": {"duration": "60ms", "drain": "0s"},
    }
    rows = subak.run(spec, tmp_path / "run", jobs=1, progress=False).table("rate").to_pylist()
    for scheme in schemes:
        last = [row for row in rows if row["scheme"] == scheme and row["time_ns"] == 60_000_000]
        got = np.array([row["rate_bps"] for row in sorted(last, key=lambda row: row["flow"])])
        want, share = _best(network, flows, policy, scheme, got)
        least = 0.5 * 5e9 if "epsilon" in policy else 0.0
        errors = np.abs(got - want) / np.maximum(want, least)
        assert max(errors) < 0.05, (scheme, share, got / GBPS, want / GBPS)


def _best(network: Any, flows: Any, policy: dict[str, Any], scheme: str, got: Any) -> tuple[Any, float]:
    """The goal on links of which a scheme uses the share by which it comes nearest."""
    found = []
    for share in np.arange(0.85, 1.0, 0.0125):
        links = _capacities(network, share)
        if policy is FUNCTIONS and not scheme.startswith("exact"):
            want = model.utility_rates(links, flows, 5.0)
        else:
            want = model.rates(links, flows, policy)
        found.append((float(np.abs(got - want).max()), share, want))
    _, share, want = min(found, key=lambda one: one[0])
    return want, float(share)
