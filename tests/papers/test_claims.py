"""The tables of the papers' numbers are whole: each number is judged by a check that exists, or has a reason."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from subak.repro import catalogue
from subak.repro.experiment import CLAIM

TABLES = sorted((ROOT / "docs/claims").glob("*.toml"))
PAPERS = {"flowtune", "numfabric", "perc", "s-perc-abstract", "soze"}
LONGEST = 70
"""Most characters of a number's words."""


def _read(table: Path) -> list[dict[str, Any]]:
    document = tomllib.loads(table.read_text())
    assert set(document) == {"claim"}
    return list(document["claim"])


def _wrong_reference(reference: str, *, judges: bool) -> str | None:
    """The fault of ``EXPERIMENT: KEY``: it must exist at paper scale, and judge if ``judges``."""
    name, colon, key = reference.partition(": ")
    if not colon or name not in catalogue():
        return f"{reference}: no such experiment"
    checks = [c for c in catalogue()[name].checks_at("paper") if c.key == key]
    if not checks:
        return f"{reference}: no such key at paper scale"
    if judges and not any(c.part == CLAIM and (c.rule or c.claim) for c in checks):
        return f"{reference}: it judges nothing of the paper"
    return None


def _faults(claim: dict[str, Any]) -> list[str]:
    """What is wrong with an entry."""
    if set(claim) not in ({"section", "number", "judged"}, {"section", "number", "reason"}):
        return [f"keys are {', '.join(sorted(claim))}"]
    if not all(isinstance(text, str) and text.strip() for text in claim.values()):
        return ["a value is empty, or no text"]
    found = [f"the number has {len(claim['number'])} characters"] if len(claim["number"]) > LONGEST else []
    if "reason" in claim:
        beside = re.findall(r"`([^`]*: [^`]*)`", claim["reason"])
        return [*found, *filter(None, (_wrong_reference(one, judges=False) for one in beside))]
    judged = claim["judged"].split("; ")
    found += [f"{one}: twice" for one, count in Counter(judged).items() if count > 1]
    return [*found, *filter(None, (_wrong_reference(one, judges=True) for one in judged))]


def test_tables_are_of_the_papers() -> None:
    assert {table.stem for table in TABLES} == PAPERS


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_claims_are_whole(table: Path) -> None:
    claims = _read(table)
    assert claims
    assert [f"{one.get('number')}: {fault}" for one in claims for fault in _faults(one)] == []
    places = Counter((one["section"], one["number"]) for one in claims)
    assert [place for place, count in places.items() if count > 1] == []


SOUND = {"section": "6.1", "number": "335 us", "judged": "numfabric-fig4a: numfabric_p50"}
UNJUDGED = {"section": "6.1", "number": "495 us", "reason": "Shown: `numfabric-fig4a: numfabric_p95`."}


@pytest.mark.parametrize(
    ("claim", "fault"),
    [
        (SOUND, None),
        (UNJUDGED, None),
        (SOUND | {"judged": "numfabric-fig4a: dgd_ratio; numfabric-fig4a: rcp-star_ratio"}, None),
        (SOUND | {"reason": "None."}, "keys are"),
        ({"section": "6.1", "number": "335 us"}, "keys are"),
        (SOUND | {"section": 6}, "no text"),
        (UNJUDGED | {"reason": " "}, "is empty"),
        (SOUND | {"number": "n" * (LONGEST + 1)}, "characters"),
        (SOUND | {"judged": "numfabric-fig4a"}, "no such experiment"),
        (SOUND | {"judged": "numfabric-fig4: numfabric_p50"}, "no such experiment"),
        (SOUND | {"judged": "numfabric-fig4a: numfabric_p5"}, "no such key"),
        (SOUND | {"judged": "numfabric-fig4a: numfabric_p95"}, "judges nothing"),
        (SOUND | {"judged": "numfabric-fig4a: numfabric_settled"}, "judges nothing"),
        (SOUND | {"judged": "soze-fig6: even"}, "judges nothing"),
        (SOUND | {"judged": f"{SOUND['judged']}; {SOUND['judged']}"}, "twice"),
        (UNJUDGED | {"reason": "Shown: `numfabric-fig4a: numfabric_p96`."}, "no such key"),
    ],
)
def test_a_wrong_entry_is_found(claim: dict[str, Any], fault: str | None) -> None:
    found = _faults(claim)
    assert (found == []) if fault is None else any(fault in one for one in found)
