"""Figures for papers, LaTeX tables, and the animation of a run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import subak as package
from browser import browser, chromium
from conftest import Subak
from PIL import Image
from subak.reporting import figures

SPEC: dict[str, Any] = {
    "name": "drawn",
    "network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "workload": {"kind": "poisson", "sizes": "web-search", "load": [0.3, 0.6]},
    "scheme": [{"name": "dctcp"}, {"name": "ideal"}],
    "fault": [{"kind": "down", "node": "spine1", "down": "1ms", "up": "2ms"}],
    "measure": {"rates": "100us", "queues": "50us"},
    "run": {"duration": "3ms", "seeds": 2},
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package.run(SPEC, tmp_path_factory.mktemp("drawn") / "out").folder


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
@pytest.mark.parametrize("what", ["slowdown", "cdf", "sweep", "rates", "queues"])
def test_every_figure_in_every_form(subak: Subak, out: Path, tmp_path: Path, what: str, form: str) -> None:
    path = tmp_path / f"figure.{form}"
    ended = subak("plot", out, "--what", what, "--font-size", "9", "--output", path)
    assert ended.code == 0, ended
    start = path.read_bytes()[:300]
    assert {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[form] in start
    again = tmp_path / f"again.{form}"
    assert subak("plot", out, "--what", what, "--font-size", "9", "--output", again).code == 0
    assert again.read_bytes() == path.read_bytes(), "the same figure, the same bytes"


def test_a_figure_has_the_curves_the_names_and_the_size_of_text(subak: Subak, out: Path, tmp_path: Path) -> None:
    path = tmp_path / "cdf.svg"
    wanted = ("--what", "cdf", "--sweep-point", "load 0.6", "--chart", "slowdown, all sizes", "--font-size", "11")
    assert subak("plot", out, *wanted, "--output", path).code == 0
    text = path.read_text()
    for said in ("dctcp", "ideal (max-min)", "share of flows", "slowdown"):
        assert said in text
    assert "font: 11px" in text or "font-size: 11px" in text
    chart = figures.charts([out], "cdf", "load 0.6", "slowdown, all sizes")
    assert [one.choice for one in chart] == ["all sizes"]
    assert {series.name for series in chart[0].series} == {"dctcp", "ideal (max-min)"}
    for series in chart[0].series:
        assert series.y[-1] <= 1
        assert min(series.x) >= 1


def test_pgf_is_written_or_says_that_it_wants_tex(subak: Subak, out: Path, tmp_path: Path) -> None:
    ended = subak("plot", out, "--what", "rates", "--format", "pgf", "--output", tmp_path / "rates.pgf")
    if shutil.which("xelatex"):
        assert "pgfpicture" in (tmp_path / "rates.pgf").read_text()
    else:
        assert ended.code == 2
        assert "pgf wants TeX" in ended.err


def test_what_cannot_be_drawn_is_refused(subak: Subak, out: Path, tmp_path: Path) -> None:
    for wrong, said in (
        (("--what", "histogram"), "choose one of: slowdown"),
        (("--what", "cdf", "--sweep-point", "load 0.9"), '"load 0.3"; "load 0.6"'),
        (("--what", "cdf", "--chart", "weight"), "no title has"),
        (("--what", "convergence"), "No convergence was measured"),
        (("--format", "gif"), "choose one of: svg, pdf, pgf, png"),
        (("--what", "table", "--metric", "colour"), "slowdown_mean"),
        (("--output", str(tmp_path / "none" / "x.svg")), "cannot be written"),
    ):
        ended = subak("plot", out, *wrong, cwd=tmp_path)
        assert ended.code == 2, wrong
        assert said in ended.err, (wrong, ended.err)


def test_a_table_of_latex(subak: Subak, out: Path) -> None:
    wanted = ("--metric", "slowdown_mean", "--metric", "utilization")
    lines = subak("plot", out, "--what", "table", *wanted).out.splitlines()
    assert lines[0] == r"\begin{tabular}{llrr}"
    assert lines[2] == r"Sweep point & Scheme & Mean slowdown & Utilization \\"
    rows = [line for line in lines if line.startswith("load")]
    assert len(rows) == 4
    for row in rows:
        assert row.endswith(r"\\")
        assert row.count(" & ") == 3
        assert re.search(r"\d\\% \$\\pm\$ ", row), row


def test_the_movie_holds_what_was_sampled(subak: Subak, out: Path, tmp_path: Path) -> None:
    path = tmp_path / "movie.html"
    assert subak("report", out, "--movie", "--sweep-point", "load 0.6", "--output", path).code == 0
    text = path.read_text()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script [^>]*src|<link|@import", text)
    told = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert [scheme["label"] for scheme in told["schemes"]] == ["dctcp", "ideal (max-min)"]
    assert len(told["links"]) == 16
    assert told["faults"][0]["from"] == pytest.approx(1e-3)
    rows = package.Results(out).to_pandas("queue")
    rows = rows[(rows["scheme"] == "dctcp") & (rows["load"] == 0.6) & (rows["seed"] == 1)]
    dctcp = told["schemes"][0]
    assert dctcp["times"] == pytest.approx(sorted(set(rows["time_ns"] / 1e9)))
    names = [link["id"] for link in told["links"]]
    for place, time in enumerate(dctcp["times"]):
        mine = rows[(rows["time_ns"] / 1e9 - time).abs() < 1e-9].set_index("link")
        assert dctcp["queue"][place] == [int(mine["queued_bytes"][name]) for name in names]
    assert 0 < max(map(max, dctcp["load"])) <= 101
    down = [i for i, name in enumerate(names) if "spine1" in name]
    during = [place for place, time in enumerate(dctcp["times"]) if 1.1e-3 < time < 2e-3]
    assert all(dctcp["load"][place][i] == 0 for place in during for i in down)


def test_a_movie_says_what_it_lacks(subak: Subak, out: Path, tmp_path: Path) -> None:
    spec = {**SPEC, "measure": {}, "workload": {"kind": "permutation", "size": "10kB"}}
    package.run(spec, tmp_path / "bare")
    for given, said in (
        ((tmp_path / "bare",), 'add queues = "100us"'),
        ((out, out), "a movie is of one run"),
        ((out, "--sweep-point", "load 7"), '"load 0.3"; "load 0.6"'),
    ):
        ended = subak("report", *given, "--movie", "--output", tmp_path / "m.html")
        assert ended.code == 2
        assert said in ended.err


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
def test_the_movie_in_a_browser(out: Path, tmp_path: Path) -> None:
    page = package.movie(out, output=tmp_path / "movie.html")
    for frame, name in ((0, "first"), (20, "later")):
        picture = tmp_path / f"{name}.png"
        command = [*chromium(tmp_path / "profile"), "--window-size=900,700", f"--screenshot={picture}"]
        subprocess.run([*command, f"{page.as_uri()}#frame={frame}"], check=True, capture_output=True, timeout=120)
    with Image.open(tmp_path / "first.png") as first, Image.open(tmp_path / "later.png") as later:
        assert first.convert("RGB").tobytes() != later.convert("RGB").tobytes(), "time shows"
