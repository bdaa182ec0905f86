"""The tables of the papers' mechanisms are whole, and each mechanism's places in the repository exist."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

TABLES = sorted((ROOT / "docs/mechanisms").glob("*.toml"))
PAPERS = {"flowtune", "numfabric", "perc", "s-perc-abstract", "soze"}
STATUSES = {"as written", "variant", "in part", "missing", "hardware"}
TEXTS = ("section", "name", "status", "note")
LONGEST_NAME = 120
MOST_MISSING = 12
"""Most mechanisms that all papers together may lack."""


def _read(table: Path) -> list[dict[str, Any]]:
    document = tomllib.loads(table.read_text())
    assert set(document) == {"mechanism"}
    return list(document["mechanism"])


def _missing_place(place: str, root: Path) -> str | None:
    """The fault of a place, ``PATH`` or ``PATH:SYMBOL``."""
    path, colon, symbol = place.partition(":")
    file = root / path
    if Path(path).is_absolute() or ".." in Path(path).parts or not file.exists():
        return f"{place}: no such file in the repository"
    if colon and not (file.is_file() and re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", file.read_text())):
        return f"{place}: the file has no such word"
    return None


def _faults(mechanism: dict[str, Any], root: Path = ROOT) -> list[str]:
    """What is wrong with an entry."""
    if set(mechanism) != {*TEXTS, "where"}:
        return [f"keys are {', '.join(sorted(mechanism))}"]
    if not all(isinstance(mechanism[key], str) for key in TEXTS):
        return ["section, name, status and note are texts"]
    where, status, note = mechanism["where"], mechanism["status"], mechanism["note"]
    if not (isinstance(where, list) and all(isinstance(place, str) for place in where)):
        return ["where is a list of texts"]
    found = [fault for place in where if (fault := _missing_place(place, root))]
    if status not in STATUSES:
        found.append(f'unknown status "{status}"')
    if not mechanism["section"].strip():
        found.append("no section")
    if not 0 < len(mechanism["name"]) <= LONGEST_NAME:
        found.append(f"the name has {len(mechanism['name'])} characters")
    if status not in ("missing", "hardware") and not where:
        found.append(f"{status} without a place")
    if status in ("variant", "in part", "missing") and not note.strip():
        found.append(f"{status} without a note")
    if status == "as written" and note:
        found.append("as written with a note")
    return found


def _repeated(mechanisms: list[dict[str, Any]]) -> list[str]:
    return [name for name, count in Counter(one.get("name") for one in mechanisms).items() if count > 1]


def test_tables_are_of_the_papers() -> None:
    assert {table.stem for table in TABLES} == PAPERS


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_mechanisms_are_whole(table: Path) -> None:
    mechanisms = _read(table)
    assert mechanisms
    assert [f"{one.get('name')}: {fault}" for one in mechanisms for fault in _faults(one)] == []
    assert _repeated(mechanisms) == []


def test_few_mechanisms_are_missing() -> None:
    missing = [f"{table.stem}: {one['name']}" for table in TABLES for one in _read(table) if one["status"] == "missing"]
    assert len(missing) <= MOST_MISSING, missing


SOUND = {"section": "2", "name": "A rate", "status": "variant", "where": ["src/a.rs:rate"], "note": "It is halved."}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"where": ["src"]}, None),
        ({"where": [], "status": "missing"}, None),
        ({"where": [], "status": "hardware", "note": ""}, None),
        ({"note": "", "status": "as written"}, None),
        ({"page": 3}, "keys are"),
        ({"section": 2}, "are texts"),
        ({"section": ""}, "no section"),
        ({"where": "src/a.rs"}, "list of texts"),
        ({"status": "partly"}, "unknown status"),
        ({"name": ""}, "0 characters"),
        ({"name": "n" * 121}, "121 characters"),
        ({"where": []}, "variant without a place"),
        ({"where": [], "status": "as written", "note": ""}, "as written without a place"),
        ({"where": [], "status": "in part"}, "in part without a place"),
        ({"note": ""}, "variant without a note"),
        ({"note": " ", "status": "in part"}, "in part without a note"),
        ({"note": "", "status": "missing"}, "missing without a note"),
        ({"status": "as written"}, "with a note"),
        ({"where": ["src/b.rs"]}, "no such file"),
        ({"where": ["../a.rs"]}, "no such file"),
        ({"where": ["src/a.rs:rat"]}, "no such word"),
        ({"where": ["src:rate"]}, "no such word"),
    ],
)
def test_a_wrong_entry_is_found(change: dict[str, Any], fault: str | None, tmp_path: Path) -> None:
    (tmp_path / "root/src").mkdir(parents=True)
    (tmp_path / "a.rs").write_text("fn rate() {}\n")
    (tmp_path / "root/src/a.rs").write_text("fn rate() {}\n")
    found = _faults(SOUND | change, tmp_path / "root")
    assert (found == []) if fault is None else any(fault in one for one in found)


def test_a_repeated_name_is_found() -> None:
    assert _repeated([SOUND, SOUND | {"section": "3"}, SOUND | {"name": "A weight"}]) == ["A rate"]
