"""The release build gives the bytes of the test build, on any processor.

``data/same/bytes.json`` has hashes of results, of exact rates and of NED's prices. ``fuzz/tests/same_bytes.rs``
compares them with those of a build with overflow checks, and prints the present ones. A change of behaviour changes
them: check the change, and store the new hashes."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import subak
from conftest import ROOT, Subak

SAME = ROOT / "tests/data/same"
BYTES: dict[str, str] = json.loads((SAME / "bytes.json").read_text())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def doubles(values: Any) -> bytes:
    return np.asarray(values, "<f8").tobytes()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run(subak: Subak, tmp_path: Path, jobs: int) -> None:
    assert subak("run", SAME / "run.toml", "--out", tmp_path / "out", "--jobs", str(jobs)).code == 0
    assert digest(subak("export", tmp_path / "out").out.encode()) == BYTES["run.toml"]


@pytest.mark.parametrize("name", ["max-min.json", "utility.json", "pooled.json"])
def test_exact_rates(name: str) -> None:
    rates = pa.table(subak.solve(SAME / name).flows)["rate_bps"].to_pylist()
    assert digest(doubles(rates)) == BYTES[name]


@pytest.mark.parametrize("precision", ["double", "single", "approximate"])
def test_ned(precision: Any) -> None:
    case = json.loads((SAME / "utility.json").read_text())
    ned = subak.Ned(subak.Network.from_links(case["network"]), policy=case["policy"], precision=precision)
    paths = [[int(link.removeprefix("l")) for link in flow["path"]] for flow in case["flows"]]
    offsets = np.cumsum([0, *map(len, paths)])
    weights = [flow["weight"] for flow in case["flows"]]
    demands = [flow.get("demand", np.inf) for flow in case["flows"]]
    ned.add(subak.Rows(offsets, [link for path in paths for link in path], weight=weights, demand_bps=demands))
    ned.step(100)
    assert digest(doubles(ned.prices)) == BYTES[f"ned {precision}"]


def test_one_place_chooses_instructions_by_the_processor() -> None:
    """Only NED's kernels choose instructions by the processor, and a test of theirs runs them with each choice.

    The package is built for any x86-64. ``ahead.rs`` has prefetch hints, which every x86-64 accepts and which change no
    result.
    """
    chooses = re.compile(r"feature_detected|target_feature|pulp::x86|multiversion|(std|core)::arch|target-cpu|march=")
    sources = [
        path for suffix in ("rs", "toml") for path in [*ROOT.glob(f"crates/**/*.{suffix}"), *ROOT.glob(f"*.{suffix}")]
    ]
    sources += [ROOT / "Makefile", *(ROOT / ".cargo").glob("*")]
    found = {str(path.relative_to(ROOT)) for path in sources if chooses.search(path.read_text())}
    assert found == {"crates/solve/src/ned/kernels.rs", "crates/core/src/ahead.rs"}
