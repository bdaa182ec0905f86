"""The documentation builds without warnings, and covers every scheme, experiment and command."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, made_once
from subak import _subak
from subak.repro import catalogue


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation site."""
    return made_once(tmp_path_factory, "docs", _build) / "site"


def _build(folder: Path) -> None:
    shutil.rmtree(folder / "docs", ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_build", "generated", "__pycache__"))
    # Pages include the examples, so that these must be beside them.
    (folder / "examples").unlink(missing_ok=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "python").unlink(missing_ok=True)
    (folder / "python").symlink_to(ROOT / "python")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", folder / "docs", folder / "site"]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    # Warnings are errors; kernels of notebooks write to standard error all the same.
    assert done.returncode == 0, done.stderr


def test_one_page_a_scheme(site: Path) -> None:
    for scheme in _subak.schemes():
        page = (site / f"generated/schemes/{scheme['name']}.html").read_text()
        assert all(param["name"] in page for param in scheme["params"])


def test_one_page_an_experiment(site: Path) -> None:
    for experiment in catalogue().values():
        page = (site / f"generated/experiments/{experiment.name}.html").read_text()
        page = html.unescape(page).replace("\u2019", "'")
        assert experiment.title in page
        begins = page[page.index("<strong>Claimed:</strong>") :]
        assert "<strong>Found:</strong>" in begins[: begins.index("</p>")], (
            "claimed and found are the first two sentences"
        )


def test_every_mechanism_of_the_papers_stands_there(site: Path) -> None:
    page = (site / "generated/mechanisms.html").read_text()
    counts, missing, *papers = re.findall("<table.*?</table>", page, re.DOTALL)
    every = [_mechanisms(name) for name in ("numfabric", "flowtune", "perc", "s-perc-abstract", "soze")]
    for table, mechanisms in zip(papers, every, strict=True):
        assert _rows(table) == [
            _letters("".join([one["section"], one["name"], *one["where"], one["status"], one["note"]]))
            for one in mechanisms
        ]
    absent = [one for mechanisms in every for one in mechanisms if one["status"] == "missing"]
    for row, one in zip(_rows(missing), absent, strict=True):
        assert row.endswith(_letters(one["section"] + one["name"] + one["note"]))
    assert _rows(counts)[-1].endswith(str(sum(map(len, every))))


def _mechanisms(paper: str) -> list[dict[str, Any]]:
    return list(tomllib.loads((ROOT / f"docs/mechanisms/{paper}.toml").read_text())["mechanism"])


def test_every_number_of_the_papers_stands_there(site: Path) -> None:
    page = (site / "generated/claims.html").read_text()
    counts, *papers = re.findall("<table.*?</table>", page, re.DOTALL)
    tables = [_claims(name) for name in ("numfabric", "flowtune", "perc", "s-perc-abstract", "soze")]
    for table, claims in zip(papers, tables, strict=True):
        for row, one in zip(_rows(table), claims, strict=True):
            assert row.startswith(_letters(one["section"] + one["number"]))
            assert all(_letters(text) in row for text in one.get("judged", one.get("reason", "")).split("; "))
    judged = sum("judged" in one for claims in tables for one in claims)
    every = sum(map(len, tables))
    assert _rows(counts)[-1].startswith(f"all{judged}")
    assert _rows(counts)[-1].endswith(f"{every - judged}{every}")


def _claims(paper: str) -> list[dict[str, str]]:
    return list(tomllib.loads((ROOT / f"docs/claims/{paper}.toml").read_text())["claim"])


def _rows(table: str) -> list[str]:
    """Letters and digits of each row of a table of a page, without the heading."""
    return [_letters(html.unescape(re.sub("<[^>]*>", "", row))) for row in re.split("<tr[^>]*>", table)[2:]]


def _letters(text: str) -> str:
    """The text without white space, and without the marks that a page may show in another form."""
    return re.sub(r"\W", "", text)


def test_variants_stand_side_by_side(site: Path) -> None:
    page = (site / "generated/experiments/perc-fig2.12.html").read_text()
    assert all(variant.name in page for variant in catalogue()["perc-fig2.12"].variants)
    assert "as set up" in page


def test_every_command_stands_there(site: Path) -> None:
    page = (site / "generated/commands.html").read_text()
    commands = ("solve", "converge", "run", "repro", "schemes", "export", "diff", "report", "doctor")
    assert all(f"subak {command}" in page for command in commands)


def test_notebooks_are_shown_with_what_they_say(site: Path) -> None:
    for path in (ROOT / "examples/notebooks").glob("*.ipynb"):
        page = (site / f"generated/notebooks/{path.stem}.html").read_text()
        assert page.count('class="cell_output') >= 4
        assert "Traceback" not in page


def test_the_manual_page_is_that_of_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import man; print(man.page() == man.PAGE.read_text())"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("True", ""), "`make man` writes it"


def test_the_tables_of_keys_are_those_of_the_declarations() -> None:
    program = """
import keys
for page in keys.PAGES:
    text = page.read_text()
    assert keys.BLOCK.search(text), page
    assert keys.written(text) == text, f"{page.name}: docs/keys.py writes it"
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT / "docs", check=True)


def test_one_page_a_part(site: Path) -> None:
    for part in _subak.parts():
        page = (site / f"generated/{part['role']}s/{part['name']}.html").read_text()
        assert all(param["name"] in page for param in part["params"])


def test_the_front_page_shows_every_experiment(site: Path) -> None:
    page = (site / "index.html").read_text()
    cards = re.findall(r'<div class="card is-.*?href="generated/experiments/([^"]+)\.html"', page, re.DOTALL)
    assert sorted(cards) == sorted(catalogue()), "one card each; links elsewhere on the page do not count"
    assert "<svg" in page
    assert "images/demo.png" in page


def test_equations_need_no_script(site: Path) -> None:
    page = (site / "generated/optimizers/xwi.html").read_text()
    assert "<math" in page
    assert not re.search("<script[^>]*mathjax", page, re.IGNORECASE)


WIDEST = 88
"""Largest number of characters in a line of code, which a page shows without scrolling."""


def test_no_line_of_code_is_cut_off() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*s/*.md")]
    long = []
    for page in pages:
        for kind, code in re.findall(r"^ *```([^\n]*)\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL):
            lines = [] if kind.startswith("{") else code.splitlines()
            long += [f"{page.name}: {line}" for line in lines if len(line) > WIDEST]
    assert long == []


def test_notes_are_of_something_that_there_is() -> None:
    for folder, known in (
        ("schemes", [one["name"] for one in _subak.schemes()]),
        ("optimizers", [one["name"] for one in _subak.parts() if one["role"] == "optimizer"]),
        ("transports", [one["name"] for one in _subak.parts() if one["role"] == "transport"]),
    ):
        assert {path.stem for path in (ROOT / "docs" / folder).glob("*.md")} <= set(known)


def test_the_map_of_the_crates_is_true() -> None:
    """The table of crates in the architecture page has every crate, with its dependencies in the workspace."""
    text = (ROOT / "docs/architecture.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| ([^|]+) \|$", text, flags=re.MULTILINE))
    crates = {path.parent.name: tomllib.loads(path.read_text()) for path in (ROOT / "crates").glob("*/Cargo.toml")}
    assert crates.keys() == rows.keys()
    for name, manifest in crates.items():
        uses = {one.removeprefix("subak-") for one in manifest.get("dependencies", {}) if one.startswith("subak-")}
        told = set() if rows[name] == "none of the others" else set(rows[name].split(", "))
        assert told == uses, name


def test_what_is_to_be_trusted_is_there() -> None:
    """Every test, file and command that the page on trust names exists."""
    text = (ROOT / "docs/trust.md").read_text()
    named = re.findall(r"`((?:crates|tests|fuzz|docs|python|packages)/[^`]+)`", text)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).is_file()] == []
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)", text)) <= targets
