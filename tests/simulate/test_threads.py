"""Specs for which runs on several threads might differ: cut links of 1 ns, faults at multiples of links' delays,
pauses, jobs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import subak
from conftest import ROOT

SPECS = sorted((ROOT / "tests/data/threads").glob("*.toml"))


def tables(spec: Path, out: Path, threads: int) -> dict[str, bytes]:
    subak.run(tomllib.loads(spec.read_text()), out, threads=threads)
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.parquet")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.stem)
def test_threads_change_no_byte(spec: Path, tmp_path: Path) -> None:
    one = tables(spec, tmp_path / "one", 1)
    assert one
    for threads in (2, 7):
        assert tables(spec, tmp_path / str(threads), threads) == one
