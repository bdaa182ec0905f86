"""The live page of a run: its content, access to it, and unchanged results."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from browser import browser
from PIL import Image
from subak import runs
from subak.watching import Page

COMMAND = Path(sys.executable).with_name("subak")
SPEC = {
    "schema": 1,
    "name": "watched",
    "network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 3, "host_rate": "1Gbps"},
    "workload": {"kind": "steps", "flows": [{"src": f"h{k}", "dst": "h5", "weight": k + 1} for k in range(3)]},
    "policy": {"kind": "alpha-fair", "alpha": 1},
    "measure": {"rates": "1ms"},
    "run": {"duration": "100ms", "warmup": "5ms", "seeds": 2},
    "scheme": [{"name": "numfabric"}],
}


def _get(address: str, **headers: str) -> bytes:
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read()


def _state(page: Page, query: str = "") -> dict[str, Any]:
    state: dict[str, Any] = json.loads(_get(f"{page.address}state.json{query}"))
    return state


def test_a_watched_run_is_the_same_run(tmp_path: Path) -> None:
    spec = runs.load(SPEC)
    with Page() as page:
        before = _state(page, "?network=1")
        assert (before["nodes"], before["flows"], before["network"]) == ([], [], 0)
        spec.run(tmp_path / "watched", 1, None, None, watched=page.watched)
        state = _state(page, "?network=1")
    spec.run(tmp_path / "alone", 1, None, None)
    assert (tmp_path / "watched/results.parquet").read_bytes() == (tmp_path / "alone/results.parquet").read_bytes()
    # Two trials have run; the page shows the state at the end of the last one.
    assert state["network"] == 2
    assert [what.split(":")[0] for _, _, what in state["events"]] == ["trial 0", "trial 0", "trial 1", "trial 1"]
    assert state["status"]["says"].startswith("trial 1: numfabric, seed 2, 100.000 ms")
    names = state["hosts"]
    flows = {(names[str(a)], names[str(b)]): (rate, weight) for a, b, _, rate, weight in state["flows"]}
    assert set(flows) == {(f"h{k}", "h5") for k in range(3)}
    assert all(abs(rate / weight / (1e9 / 6) - 1) < 0.1 for rate, weight in flows.values()), flows
    last = next(k for k, (_, to, _) in enumerate(state["links"]) if state["nodes"][to][0] == "h5")
    assert 0.9e9 < state["load"][last] < 1.01e9
    assert state["capacity"][last] == 1e9


def test_it_is_read_only_and_for_this_machine() -> None:
    with Page() as page:
        assert b"<title>Subak" in _get(page.address)
        for path, headers, code in (
            ("nothing", {}, 404),
            ("../../etc/passwd", {}, 404),
            ("state.json", {"Host": "evil.example"}, 403),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                _get(page.address + path, **headers)
            assert refused.value.code == code
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(page.address, data=b"x", timeout=10)
        assert refused.value.code == 501
        address = page.address
    with pytest.raises(urllib.error.URLError):
        _get(address)


def test_the_command_prints_where(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(SPEC | {"run": {"duration": "1s", "seeds": 1}}))
    command = [COMMAND, "run", tmp_path / "spec.json", "--out", tmp_path / "out", "--watch"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr
    address = json.loads(run.stderr.readline())["page"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
    assert json.loads(_get(address + "state.json"))["status"]["says"]
    run.communicate(timeout=120)
    assert run.returncode == 0


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
def test_the_page_shows_the_run(tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,700"]
    command = [str(browser()), *quiet, f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=4000"]
    with Page() as page:
        runs.load(SPEC).run(tmp_path / "out", 1, None, None, watched=page.watched)
        shot = [*command, f"--screenshot={picture}", page.address]
        subprocess.run(shot, check=True, capture_output=True, timeout=120)
        dump = [*command, "--dump-dom", page.address]
        text = subprocess.run(dump, check=True, capture_output=True, timeout=120).stdout
    if kept := os.environ.get("SUBAK_SCREENSHOTS"):
        shutil.copy(picture, Path(kept) / "watched-run.png")
    says = b"numfabric, seed 2, 100.000 ms; 3 flows"
    for words in (says, b'<td class="">h0</td>', b">Run</h2>", b"100.000 of 100.000 ms"):
        assert words in text, text.decode()
    with Image.open(picture) as shown:
        colours = set(shown.convert("RGB").get_flattened_data())
    # Full links are red, idle ones are not.
    assert {(0xC8, 0x37, 0x2D), (0x9F, 0xB8, 0xC8)} <= colours
