"""Optimizer/transport pairs in specs, against rates computed by hand, written without knowledge of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import subak as sb

PAIRS = [
    ("ned", "swift"),
    ("ned", "s-perc"),
    ("dgd", "s-perc"),
    ("ned-central", "levels"),
    ("exact-central", "swift"),
]
GBPS = 1e9


def _network(folder: Path, edges: list[tuple[str, str, str]]) -> dict[str, str]:
    nodes = sorted({name for one in edges for name in one[:2]})
    graph = {
        "directed": False,
        "nodes": [{"id": name, "kind": "switch" if name.startswith("s") else "host"} for name in nodes],
        "links": [{"source": a, "target": b, "capacity": rate, "delay": "2us"} for a, b, rate in edges],
    }
    (folder / "network.json").write_text(json.dumps(graph))
    return {"file": str(folder / "network.json")}


def _rates(tmp_path: Path, spec: dict[str, Any]) -> dict[str, list[float]]:
    """Rates in the last fifth of the run, Gb/s, by scheme, in the order of the flows."""
    run = sb.run({"measure": {"rates": "4ms"}, "run": {"duration": "20ms"}, **spec}, tmp_path / "out", jobs=1)
    rows = run.table("rate", ["scheme", "time_ns", "flow", "rate_bps"]).to_pylist()
    last = [row for row in rows if row["time_ns"] == 20_000_000]
    found: dict[str, list[float]] = {}
    for row in sorted(last, key=lambda row: row["flow"]):
        found.setdefault(row["scheme"], []).append(row["rate_bps"] / GBPS)
    return found


def _schemes() -> list[dict[str, str]]:
    return [{"optimizer": optimizer, "transport": transport} for optimizer, transport in PAIRS]


def _near(found: dict[str, list[float]], want: list[float]) -> None:
    """Fails unless rates are within 10% of ``want``, after one common factor for capacity that a scheme leaves
    unused (up to 15%)."""
    assert len(found) == len(PAIRS)
    for scheme, got in found.items():
        factor = sum(got) / sum(want)
        assert 0.85 <= factor <= 1.01, (scheme, got)
        assert got == pytest.approx([factor * rate for rate in want], rel=0.1), scheme


def test_a_parking_lot_of_four_links(tmp_path: Path) -> None:
    """Proportional fairness: the long flow pays the price of four links, so 2 Gb/s beside 8 Gb/s at each."""
    trunk = [(f"s{k}", f"s{k + 1}", "10Gbps") for k in range(4)]
    hosts = [(f"a{k}", f"s{k}", "40Gbps") for k in range(5)] + [(f"b{k}", f"s{k}", "40Gbps") for k in range(5)]
    flows = [{"src": "a0", "dst": "b4"}] + [{"src": f"a{k}", "dst": f"b{k + 1}"} for k in range(4)]
    spec = {
        "network": _network(tmp_path, trunk + hosts),
        "workload": {"kind": "steps", "flows": flows},
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "controller": {"at": "s2"},
        "scheme": _schemes(),
    }
    _near(_rates(tmp_path, spec), [2, 8, 8, 8, 8])


def test_unequal_nics_share_a_link_by_weight(tmp_path: Path) -> None:
    """Weighted proportional fairness on one link depends on weights only, with NICs of 10, 40 and 4 Gb/s."""
    edges = [
        ("a", "s", "10Gbps"),
        ("b", "s", "40Gbps"),
        ("c", "s", "4Gbps"),
        ("d", "s", "10Gbps"),
        ("e", "s", "10Gbps"),
    ]
    flows = [{"src": name, "dst": "d", "weight": weight} for name, weight in (("a", 1), ("b", 2), ("c", 1))]
    spec = {
        "network": _network(tmp_path, edges),
        "workload": {"kind": "steps", "flows": flows},
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "controller": {"at": "e"},
        "scheme": _schemes(),
    }
    _near(_rates(tmp_path, spec), [2.5, 5, 2.5])


def test_levels_share_by_weight(tmp_path: Path) -> None:
    """Weighted max-min over two links: the first one limits the flow over both, which leaves the rest of the second."""
    edges = [("a", "s0", "40Gbps"), ("s0", "s1", "10Gbps"), ("s1", "s2", "20Gbps"), ("s2", "d", "40Gbps")]
    edges += [("b", "s0", "40Gbps"), ("c", "s1", "40Gbps")]
    flows = [
        {"src": "a", "dst": "d", "weight": 1},
        {"src": "b", "dst": "c", "weight": 9},
        {"src": "c", "dst": "d", "weight": 1},
    ]
    spec = {
        "network": _network(tmp_path, edges),
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"optimizer": "given", "transport": "levels"}],
    }
    assert _rates(tmp_path, spec)["given/levels"] == pytest.approx([1, 9, 19], rel=0.05)
