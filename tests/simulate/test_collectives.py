"""Collectives by name: their flows, times and bounds, against formulas of the literature and a second model."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import subak
from conftest import ROOT

RATE_BPS, MTU, MSS = 10e9, 1500, 1446


def collective(folder: Path, pattern: str, hosts: Any = 4, size: str = "1MB", **more: Any) -> subak.Results:
    workload = {"kind": "collective", "pattern": pattern, "hosts": hosts, "size": size, **more}
    spec = {
        "network": {"kind": "star", "hosts": 8, "link_delay": "1us"},
        "workload": workload,
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "20ms"},
    }
    return subak.run(spec, folder, progress=False)


def wire_ns(payload: float) -> float:
    return payload * MTU / MSS * 8e9 / RATE_BPS


# Bytes over the most loaded port of n ranks with a buffer of one, and steps one after the other.
LITERATURE = {
    "ring-all-reduce": (2 * 3 / 4, 6),
    "halving-all-reduce": (2 * 3 / 4, 4),
    "reduce-scatter": (3 / 4, 3),
    "all-gather": (3 / 4, 3),
    "all-to-all": (3 / 4, 1),
    # Up: two levels, one after the other. Down: the root sends two at once.
    "tree-all-reduce": (2 + 2 + 1, 4),
    "broadcast": (2 + 1, 2),
    "pipeline": (3, 3),
}


@pytest.mark.parametrize("pattern", LITERATURE)
def test_times_are_those_of_the_literature(pattern: str, tmp_path: Path) -> None:
    results = collective(tmp_path / "out", pattern)
    [job] = results.table("job").to_pylist()
    share, steps = LITERATURE[pattern]
    # The ideal fluid has the propagation of two links there, and shares ports evenly.
    least = wire_ns(1e6 * share)
    assert job["fct_ns"] == pytest.approx(least, rel=0.02, abs=steps * 10e3)
    assert job["fct_ns"] >= 0.999 * job["ideal_fct_ns"]
    assert job["slowdown"] < (1.6 if "tree" in pattern or pattern == "broadcast" else 1.02)


def test_the_bound_knows_the_port(tmp_path: Path) -> None:
    """Seven flows into one host take seven times as long as one; the bound says so."""
    flows = [{"id": f"f{k}", "src": f"h{k}", "dst": "h0", "size": "1MB"} for k in range(1, 8)]
    spec = {
        "network": {"kind": "star", "hosts": 8},
        "workload": {"kind": "jobs", "jobs": [{"id": "shuffle", "flows": flows}]},
        "scheme": [{"name": "ideal"}, {"name": "dctcp"}],
        "run": {"duration": "20ms"},
    }
    results = subak.run(spec, tmp_path / "out", progress=False)
    for job in results.table("job").to_pylist():
        assert job["ideal_fct_ns"] == pytest.approx(wire_ns(7e6), rel=0.01)
        assert 1 <= job["slowdown"] < 1.1


def test_chunks_of_a_pipeline_overlap(tmp_path: Path) -> None:
    whole = collective(tmp_path / "one", "pipeline", chunks=1).table("job")["fct_ns"][0].as_py()
    parts = collective(tmp_path / "ten", "pipeline", chunks=10).table("job")["fct_ns"][0].as_py()
    assert whole == pytest.approx(3 * wire_ns(1e6), rel=0.02)
    assert parts == pytest.approx((1 + 2 / 10) * wire_ns(1e6), rel=0.08)


def test_iterations(tmp_path: Path) -> None:
    results = collective(tmp_path / "out", "all-to-all", repeat=4, interval="2ms", start="1ms")
    jobs = results.table("job").to_pylist()
    assert [job["flow_id"] for job in jobs] == [f"iteration {k}" for k in range(4)]
    assert [job["start_ns"] for job in jobs] == [1_000_000 + 2_000_000 * k for k in range(4)]
    assert len({job["fct_ns"] for job in jobs}) == 1


def test_ranks_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    results = collective(tmp_path / "out", "pipeline", hosts=["h5", "h0", "h3"])
    rows = results.table("flow", ["src", "dst", "flow_id"]).to_pylist()
    assert [(row["src"], row["dst"], row["flow_id"]) for row in rows] == [
        ("h5", "h0", "iteration 0/0.0"),
        ("h0", "h3", "iteration 0/0.1"),
    ]


def test_a_collective_beside_other_traffic(tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 8},
        "workload": [
            {"name": "training", "kind": "collective", "pattern": "ring-all-reduce", "hosts": 8, "size": "1MB"},
            {"name": "web", "kind": "poisson", "sizes": "web-search", "load": 0.4},
        ],
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "5ms"},
    }
    results = subak.run(spec, tmp_path / "out", progress=False)
    [job] = results.table("job").to_pylist()
    assert job["class"] == "training"
    assert job["slowdown"] > 1.05


REFUSED = [
    ({"pattern": "ring"}, 'workload.pattern: .*"ring"'),
    ({"hosts": ["h0"]}, r"workload\.hosts: there are 1 ranks; name two hosts or more"),
    ({"hosts": ["h0", "h1", "h0"]}, r'workload\.hosts: "h0" is there twice'),
    ({"hosts": ["h0", "h9"]}, '"h9"'),
    ({"hosts": 9}, '"h8"'),
    (
        {"hosts": 6, "pattern": "halving-all-reduce"},
        r"workload\.hosts: halving pairs the ranks, and 6 is no power of two",
    ),
    ({"size": "3"}, r"workload\.size: 3 bytes are fewer than 4 parts"),
    ({"chunks": 4}, r"workload\.chunks: ring-all-reduce divides its buffer by the ranks"),
    ({"repeat": 3}, r"workload\.interval: iterations repeat, and have no interval"),
    ({"interval": "1ms"}, r"workload\.interval: there is one iteration"),
    (
        {"repeat": 100_000, "interval": "1us"},
        r"workload\.repeat: 2400000 flows; take fewer hosts, chunks or iterations",
    ),
    ({"repeat": 30, "interval": "1ms"}, 'job "iteration 20" starts after the end of the run'),
    ({"weights": {"uniform": [1, 2]}}, 'unknown key "weights"'),
]


@pytest.mark.parametrize(("changes", "says"), REFUSED)
def test_what_is_refused(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    given = {"pattern": "ring-all-reduce", "hosts": 4, **changes}
    with pytest.raises(subak.InputError) as refused:
        collective(tmp_path / "out", **given)
    assert re.search(says, str(refused.value)), str(refused.value)


def test_the_task_in_the_docs(tmp_path: Path) -> None:
    text = (ROOT / "examples/tasks/collectives.toml").read_text()
    assert len(text.splitlines()) < 10
    task = tomllib.loads(text)
    task["workload"]["size"] = "2MB"
    results = subak.run(task, tmp_path / "out", progress=False)
    jobs = results.to_pandas("job")
    assert len(jobs) == 9
    assert jobs["slowdown"].between(1, 4).all(), jobs[["scheme", "workload.pattern", "slowdown"]]
