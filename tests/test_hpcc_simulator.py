"""HPCC, DCQCN, TIMELY and priority flow control beside the simulator that HPCC's authors released.

``data/hpcc_simulator.csv`` has what that simulator measured (commit 9f4be2a): 32 hosts at 100 Gb/s under 8 leaves, one
switch above at 400 Gb/s, 1 us a link, 32 MB a switch; two traces of web-search sizes at half load. ``alone_ns`` is its
base of the slowdown. It is one draw of its marks, and so is ours.
"""

from __future__ import annotations

import csv
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import subak
from conftest import ROOT

REFERENCE = Path(__file__).parent / "data/hpcc_simulator.csv"
SCHEMES = ("hpcc", "dcqcn", "timely")
EDGES = (0, 10_000, 100_000, 1_000_000, np.inf)
"""Bins of sizes, bytes."""
QUANTILES = {0.5: 0.05, 0.95: 0.12, 0.99: 0.25}
"""How far a quantile of the slowdowns may be from the reference's, as a share."""
WIDER = {("dcqcn", 0.5): 0.06, ("dcqcn", 0.95): 0.17, ("dcqcn", 0.99): 0.35}
"""What marks are drawn decides DCQCN's tails: over three seeds they are this far, and the page says so."""


def _topology() -> str:
    lines = ["41 9 40", " ".join(str(s) for s in range(32, 41))]
    lines += [f"{host} {32 + host // 4} 100Gbps 0.001ms 0" for host in range(32)]
    return "\n".join(lines + [f"{leaf} 40 400Gbps 0.001ms 0" for leaf in range(32, 40)]) + "\n"


def _spec(folder: Path, flows: list[tuple[int, int, int, int]]) -> dict[str, Any]:
    """The example, on that topology and these flows: source, destination, bytes, start in ns."""
    (folder / "topology.txt").write_text(_topology())
    rows = [f"{src} {dst} 3 100 {size} {2 + start / 1e9:.9f}" for src, dst, size, start in flows]
    (folder / "flow.txt").write_text("\n".join([str(len(rows)), *rows]) + "\n")
    spec = tomllib.loads((ROOT / "examples/hpcc-simulator.toml").read_text())
    spec["network"]["file"] = str(folder / "topology.txt")
    spec["workload"]["file"] = str(folder / "flow.txt")
    spec["scheme"][0]["params"]["t"] = "8.2us"
    return spec


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The flows of both traces: what the reference and we measured, as slowdowns too."""
    with REFERENCE.open() as file:
        rows = list(csv.DictReader(file))
    return pd.concat([_trace(name, rows, tmp_path_factory.mktemp(name)) for name in ("ws1", "ws2")])


def _trace(name: str, rows: list[dict[str, str]], folder: Path) -> pd.DataFrame:
    rows = [row for row in rows if row["trace"] == name]
    key = ["src", "dst", "size_bytes", "start_ns"]
    flows = [(int(r["src"]), int(r["dst"]), int(r["size_bytes"]), int(r["start_ns"])) for r in rows]
    ours = subak.run(_spec(folder, flows), folder / "out", jobs=2).table("flow").to_pandas()
    for end in ("src", "dst"):
        ours[end] = ours[end].astype(str).str.removeprefix("h").astype(int)
    reference = pd.DataFrame(rows).drop(columns="trace").astype(int)
    both = ours.merge(reference, on=key)
    assert len(both) == len(SCHEMES) * len(rows)
    both["reference_ns"] = np.select([both["scheme"] == s for s in SCHEMES], [both[f"{s}_ns"] for s in SCHEMES])
    both["ours"], both["theirs"] = both["fct_ns"] / both["alone_ns"], both["reference_ns"] / both["alone_ns"]
    return both


@pytest.mark.parametrize("scheme", SCHEMES)
def test_completion_times_are_the_simulators(compared: pd.DataFrame, scheme: str) -> None:
    mine = compared[compared["scheme"] == scheme]
    assert mine["fct_ns"].mean() / mine["reference_ns"].mean() == pytest.approx(1, abs=0.03)
    for low, high in pairwise(EDGES):
        of_bin = mine[(mine["size_bytes"] > low) & (mine["size_bytes"] <= high)]
        for q, within in QUANTILES.items():
            ratio = of_bin["ours"].quantile(q) / of_bin["theirs"].quantile(q)
            assert ratio == pytest.approx(1, abs=WIDER.get((scheme, q), within)), (low, q)


def test_short_flows_are_as_far_behind_hpccs_as_there(compared: pd.DataFrame) -> None:
    """Flows up to 30 KB: quantiles of the slowdown over HPCC's, and the reference's intervals."""
    short = compared[compared["size_bytes"] <= 30_000].groupby("scheme")["ours"]
    for q, scheme, low, high in (
        (0.95, "dcqcn", 3.9, 4.6),
        (0.95, "timely", 5.2, 6.6),
        (0.99, "dcqcn", 4.4, 6.5),
        (0.99, "timely", 6.8, 9.2),
    ):
        assert low <= short.quantile(q)[scheme] / short.quantile(q)["hpcc"] <= high, (scheme, q)


def test_nothing_is_paused_or_lost_at_half_load(compared: pd.DataFrame) -> None:
    assert (compared["drops"] == 0).all()


@pytest.mark.parametrize(
    ("senders", "size", "pauses", "medians_us"),
    [(16, 500_000, (0, 0, 0), (728, 624, 680)), (28, 2_000_000, (0, 118, 573), (5060, 4240, 4710))],
)
def test_incasts_pause_as_often(
    tmp_path: Path, senders: int, size: int, pauses: tuple[int, ...], medians_us: tuple[int, ...]
) -> None:
    """All from other leaves to host 0: pauses within a factor of 1.5 of the simulator's, medians within 8%."""
    spec = _spec(tmp_path, [(4 + k, 0, size, 100_000) for k in range(senders)])
    results = subak.run(spec, tmp_path / "out", jobs=2)
    paused = results.table("link").to_pandas().groupby("scheme")["pauses"].sum()
    medians = results.table("flow").to_pandas().groupby("scheme")["fct_ns"].median() / 1e3
    for scheme, wanted, median_us in zip(SCHEMES, pauses, medians_us, strict=True):
        assert wanted / 1.5 <= paused[scheme] <= wanted * 1.5, scheme
        assert medians[scheme] == pytest.approx(median_us, rel=0.08), scheme
