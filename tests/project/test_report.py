"""The report is one self-contained file; a browser draws it in light and dark theme, wide and narrow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from browser import asked, browser, chromium
from conftest import Subak
from PIL import Image
from subak.metrics import warning_texts
from subak.reporting import build

SPEC = """
name = "a <small> run"
network = {kind = "star", hosts = 6}
workload = {kind = "poisson", sizes = "web-search", load = [0.3, 0.6]}
scheme = [{name = "dctcp"}, {name = "s-perc"}, {name = "ideal"}]
measure = {fct = true, rates = "100us", queues = "100us"}
run = {duration = "4ms", seeds = 2}
"""
CHURN = """
name = "churn"
network = {kind = "star", hosts = 6}
workload = {kind = "churn", flows_per_host = 1, replace = 0.5, epoch = "1ms"}
scheme = [{name = "s-perc"}]
run = {duration = "4ms"}
[measure]
rates = "100us"
convergence = [{of = "assigned", against = "scheme"}, {within = 0.2, of = "assigned", against = "scheme"}]
"""


@pytest.fixture(scope="module")
def folders(subak: Subak, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = []
    for name, text in (("sizes", SPEC), ("churn", CHURN)):
        folder = tmp_path_factory.mktemp(name)
        (folder / "spec.toml").write_text(text)
        ended = subak("run", folder / "spec.toml", "--out", folder / "out")
        assert ended.code == 0, ended
        made.append(folder / "out")
    return made


@pytest.fixture(scope="module")
def page(subak: Subak, folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    ended = subak("report", *folders, "--output", path, "--json")
    assert ended.code == 0, ended
    assert ended.json["report"] == str(path)
    return path


def test_needs_nothing_beside_it(page: Path) -> None:
    text = page.read_text()
    assert len(text) < 5_000_000
    assert not re.search(r'(?:src|href)="(?!#)|url\((?!#)|@import|<script [^>]*src|<link', text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), "a name of SVG's is the only address"


def test_warnings_are_at_the_top(folders: list[Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0], tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["warnings"] = [{"kind": f"kind {i // 2}", "text": f"bin {i} has <few> flows"} for i in range(12)]
    path.write_text(json.dumps(manifest))
    text = build([tmp_path / "out"])
    assert text.index("bin 0 has &lt;few&gt; flows") < text.index("<h2>")
    assert "4 more" in text
    manifest["warnings"] = [{"kind": "few", "text": f"bin {i} has <few> flows", "scheme": f"s{i}"} for i in range(20)]
    path.write_text(json.dumps(manifest))
    text = build([tmp_path / "out"])
    assert text.count("&lt;few&gt;") == 1, "those of one kind are one"
    assert "20 warnings are like this: s0, s1" in text
    assert "s11, and 8 more" in text


def test_different_warnings_of_one_kind_are_all_said() -> None:
    """Keys without effect have one kind, and each is another key."""
    keys = ["filter", "hold", "seed", "hash"]
    plain = [{"kind": "no-effect", "text": f"{key} has no effect"} for key in keys]
    assert warning_texts(plain) == [f"{key} has no effect" for key in keys]
    of_schemes = [warning | {"scheme": scheme} for scheme in ("a", "b", "c") for warning in plain]
    assert warning_texts(of_schemes) == [f"a: {key} has no effect (3 warnings are like this: a, b, c)" for key in keys]


def test_hover_and_table_behind_every_chart(page: Path) -> None:
    for figure in figures(page.read_text()):
        assert 'class="tip"' in figure
        assert '<details class="values">' in figure
        assert figure.count("<tr>") > 2


def figures(text: str) -> list[str]:
    """The charts of a page, or of a section."""
    every = [figure.split("</figure>")[0] for figure in re.split(r"<figure[ >]", text)[1:]]
    return [figure for figure in every if "data-axes" in figure]


def test_every_legend_has_the_curves_of_its_charts(page: Path) -> None:
    for legend, rest in re.findall(
        r'<ul class="legend">(.*?)</ul>(.*?)(?=<ul class="legend">|</section>)', page.read_text(), re.DOTALL
    ):
        named = re.findall(r"</svg>(.*?)</li>", legend)
        assert named
        for name in named:
            assert f"<th>{name}</th>" in rest, name


def test_sweeps_are_curves(page: Path) -> None:
    text = page.read_text()
    sweep = text[text.index("<h2>Sweep") : text.index("<h2>Network")]
    assert "Mean slowdown against load" in sweep
    assert "p99 slowdown of flows up to 10 kB against load" in sweep
    for figure in figures(sweep):
        assert 1 < figure.count("<polyline") <= 3


def test_runs_beside_each_other(page: Path) -> None:
    text = page.read_text()
    together = text[: text.index('<h1 id="run0"')]
    assert "All runs: slowdown by size" in together
    assert "All runs: queues" in together


def test_network_and_faults(subak: Subak, tmp_path: Path) -> None:
    spec = """
    name = "an outage"
    network = {kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2}
    workload = {kind = "poisson", sizes = "web-search", load = 0.5}
    scheme = [{name = "dctcp"}, {name = "ideal", policy = {kind = "fct"}}]
    measure = {rates = "50us", queues = "50us"}
    fault = [{kind = "down", link = "leaf0->spine0", both = true, down = "1ms", up = "2ms"}]
    run = {duration = "3ms"}
    """
    (tmp_path / "spec.toml").write_text(spec)
    assert subak("run", tmp_path / "spec.toml", "--out", tmp_path / "out").code == 0
    text = build([tmp_path / "out"])
    assert "4 hosts, 4 switches; 16 directed links: 8 of 10 Gb/s, 8 of 40 Gb/s" in text
    network = text[text.index("<h2>Network") :]
    network = network[: network.index("<h2>Slowdown")]
    assert network.count('class="host"') == 4
    assert network.count('class="wire"') == 8
    assert "leaf0-&gt;spine0 is down" in network
    rates = text[text.index("<h2>Rates") : text.index("<h2>Queueing")]
    assert rates.count('class="span"') == len(figures(rates)) > 0
    assert "time, ms" in rates
    links = text[text.index("<h2>Links") : text.index("<h2>Convergence")]
    assert len(figures(links)) == 4, "the hottest over time"
    assert "ideal (fct)" in links
    # One picture per scheme, with all wires, and one row per link.
    assert links.count('class="wire hot h') == 2 * 8
    loads = [float(v) for v in re.findall(r">(\d+\.\d)%", links)]
    assert len(loads) == 2 * 16
    assert 0 < max(loads) <= 100
    jain = text[text.index("<h2>Fairness") : text.index("<h2>Queueing")]
    assert len(figures(jain)) == 1


def test_says_what_was_run(page: Path, folders: list[Path]) -> None:
    text = page.read_text()
    assert "a &lt;small&gt; run" in text
    assert "<small> run" not in text
    for said in ("load 0.3", "load 0.6", "dctcp", "s-perc", "ideal", "subak 0.", "SHA-256", "Mean slowdown", "Settled"):
        assert said in text
    for section in (
        "Comparison",
        "Slowdown by size",
        "Rates",
        "Queueing delay",
        "Queues",
        "Links",
        "Completion times",
        "Network",
        "Convergence",
        "What was run",
    ):
        of = 1 if section == "Completion times" else len(folders)
        assert text.count(f"<h2>{section}</h2>") == of


def test_explains_what_is_empty(page: Path) -> None:
    text = page.read_text()
    assert "No convergence was measured" in text  # The first run.
    assert "No completion times were measured" in text  # The second run.
    assert "No queues were sampled" in text


def test_draws_every_scheme_and_sweep_point(page: Path) -> None:
    text = page.read_text()
    slowdown = text[text.index("<h2>Slowdown by size") : text.index("<h2>Completion times")]
    assert len(figures(slowdown)) == 4  # Two loads, mean and 99th percentile.
    assert "ideal (max-min)" in slowdown
    completion = text[text.index("<h2>Completion times") : text.index("<h2>Rates")]
    assert set(re.findall('data-choice="(.*?)"', completion)) == {
        "all sizes",
        "up to 10 kB",
        "10 kB to 100 kB",
        "100 kB to 1 MB",
        "over 1 MB",
    }
    for figure in figures(slowdown) + figures(completion):
        assert 0 < figure.count("<polyline") <= 3
        assert "nan" not in figure.lower()


def test_draws_every_criterion_of_convergence(page: Path) -> None:
    text = page.read_text()
    convergence = text[text.rindex("<h2>Convergence") : text.rindex("<h2>What was run")]
    assert re.findall("<figcaption>(.*?)</figcaption>", convergence) == [
        "95% of the flows within 10%",
        "95% of the flows within 20%",
    ]


def test_folder_without_a_run(subak: Subak, tmp_path: Path, folders: list[Path]) -> None:
    ended = subak("report", tmp_path, "--output", tmp_path / "report.html")
    assert ended.code == 2
    assert str(tmp_path) in ended.err
    assert not (tmp_path / "report.html").exists()
    ended = subak("report", folders[0], "--output", tmp_path / "none" / "report.html")
    assert ended.code == 2
    assert "none/report.html" in ended.err


def test_runs_of_one_name_and_runs_that_were_interrupted(subak: Subak, folders: list[Path], tmp_path: Path) -> None:
    """The second run has only one of its trials."""
    cut = tmp_path / "cut"
    ended = subak("run", folders[0] / "spec.toml", "--out", cut, "--trial", "2")
    assert ended.code == 0, ended
    ended = subak("report", folders[0], cut, "--output", tmp_path / "report.html")
    assert ended.code == 0, ended
    text = (tmp_path / "report.html").read_text()
    for folder in (folders[0], cut):
        assert text.count(f"a &lt;small&gt; run ({folder})") == 2  # In the table of contents, and above the run.
    assert text.count("this is of 1 of 12 trials") == 1


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
@pytest.mark.parametrize("width", [400, 1280])
def test_in_a_browser(page: Path, tmp_path: Path, width: int) -> None:
    light, dark = (screenshot(page, tmp_path / f"{theme}.png", width, theme) for theme in ("light", "dark"))
    assert brightness(light[0]) > 230  # The page's edge.
    assert brightness(dark[0]) < 60
    for pixels in (light, dark):
        assert len(set(pixels)) > 100, "the page is blank"
    # Both themes draw the same shapes at the same places.
    apart = sum(drawn(a, light[0]) != drawn(b, dark[0]) for a, b in zip(light, dark, strict=True))
    assert apart < 0.01 * len(light)
    # Nothing exceeds the right edge, except scrolling tables.
    edge = [pixel for x in range(1, 9) for pixel in light[width - x :: width]]
    assert sum(drawn(pixel, light[0]) for pixel in edge) < 0.02 * len(edge)
    # The lines of the charts have each theme's own colours.
    assert {(0x0B, 0x6C, 0xB3), (0xC2, 0x4A, 0x00)} <= set(light)
    assert {(0x5D, 0xB2, 0xF2), (0xFF, 0x93, 0x50)} <= set(dark)


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
@pytest.mark.parametrize("width", [400, 1280])
def test_no_text_of_an_axis_lies_on_another(page: Path, tmp_path: Path, width: int) -> None:
    assert asked(page, tmp_path, "report_overlaps.js", width) == []


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
def test_the_pages_script_does_what_it_says(page: Path, tmp_path: Path) -> None:
    assert asked(page, tmp_path, "report_works.js", 1280) == [True] * 7


def screenshot(page: Path, path: Path, width: int, theme: str) -> list[tuple[int, int, int]]:
    """Pixels of the page as a browser draws it; $SUBAK_SCREENSHOTS is a folder in which pictures are kept."""
    scheme = {"dark": 0, "light": 1}[theme]
    command = [*chromium(path.parent / theme), f"--blink-settings=preferredColorScheme={scheme}"]
    command += [f"--window-size={width},1800", f"--screenshot={path}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    if kept := os.environ.get("SUBAK_SCREENSHOTS"):
        shutil.copy(path, Path(kept) / f"report-{theme}-{width}.png")
    with Image.open(path) as picture:
        return list(picture.convert("RGB").get_flattened_data())


def drawn(pixel: tuple[int, int, int], background: tuple[int, int, int]) -> bool:
    return max(abs(a - b) for a, b in zip(pixel, background, strict=True)) > 40


def brightness(pixel: tuple[int, int, int]) -> float:
    return sum(pixel) / 3
