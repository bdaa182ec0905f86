"""Examples and the code in the documentation run unchanged."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import subak
from conftest import ROOT


@pytest.mark.parametrize("page", ["docs/exact.md"])
def test_python_of_a_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), page, "exec"), {})


def test_spec_of_the_page(tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs/specs.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "spec.toml").write_text(blocks[0])
    results = subak.run(tmp_path / "spec.toml", tmp_path / "out")
    assert len(results.table("summary")) == 3 * 2 * 2, "loads, schemes, seeds"


def test_planner() -> None:
    done = subprocess.run([sys.executable, ROOT / "examples/planner.py"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("306 flows, ")
    gains = [float(line[28:].split()[0].rstrip("%")) for line in lines[2:]]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0


def test_central_allocator(tmp_path: Path) -> None:
    results = subak.run(ROOT / "examples/flowtune.toml", tmp_path / "out")
    flows = results.table("flow", ["scheme", "fct_ns"]).to_pandas()
    assert flows["fct_ns"].notna().all(), "every flow completes, whatever happens to the allocator"
    links = results.table("link", ["scheme", "link", "ctl_bytes"]).to_pandas()
    told = links[links["link"].str.startswith("controller->")].groupby("scheme")["ctl_bytes"].sum()
    assert told["flowtune"] > 0
    assert told.drop("flowtune").sum() == 0


def test_one_link_of_a_network() -> None:
    example = runpy.run_path(str(ROOT / "examples/one_link.py"))
    spec = example["SPEC"] | {"run": {"duration": "5ms"}}
    whole, over = example["flows"](spec), example["over_link"](spec, "leaf0->h3")
    assert list(over.index) == [flow for flow, path in whole["path"].items() if "leaf0->h3" in path.split()]
    assert (over["demand"] <= 10e9).all()
    assert (example["alone"](spec, over)["slowdown"] > 0.999).all()


def test_one_link_is_exact_where_all_flows_cross_it() -> None:
    example = runpy.run_path(str(ROOT / "examples/one_link.py"))
    workload = {"kind": "incast", "senders": 5, "size": "200KB", "interval": "7us", "receiver": "h0"}
    spec = example["SPEC"] | {"workload": workload, "run": {"duration": "5ms"}}
    whole = example["flows"](spec)
    estimate = example["alone"](spec, example["over_link"](spec, "leaf0->h0"))
    assert estimate["fct_ns"].tolist() == whole["fct_ns"].tolist()
