"""Words that the glossary bans do not occur in pages, help texts and descriptions of keys."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import typer
from conftest import ROOT
from subak import _subak
from subak.cli import app

TERMS: list[dict[str, Any]] = tomllib.loads((ROOT / "docs/glossary.toml").read_text())["term"]
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*s/*.md"))]
    if str(page.relative_to(ROOT)) != "docs/glossary.md"
]
CODE = re.compile(r"^ *```.*?^ *```|`[^`]*`", re.MULTILINE | re.DOTALL)


def _banned(*kinds: Any) -> list[tuple[re.Pattern[str], str]]:
    """A pattern for each banned word, and the glossary's term; a word with a capital letter is matched with case."""
    found = []
    for term in TERMS:
        for word in term["not"] if term.get("banned") in kinds else ():
            words = r"\s+".join(map(re.escape, word.split()))
            case = 0 if word != word.lower() else re.IGNORECASE
            found.append((re.compile(rf"(?<![\w-]){words}(?![\w-])", case), term["say"]))
    return found


def _used(texts: Iterator[tuple[str, str]], words: list[tuple[re.Pattern[str], str]]) -> list[str]:
    return [
        f'{place}: "{hit.group()}", say "{say}"'
        for place, text in texts
        for word, say in words
        if (hit := word.search(text))
    ]


def _helps(command: Any, name: str = "subak") -> Iterator[tuple[str, str]]:
    yield name, f"{command.help or ''}\n{command.epilog or ''}"
    yield from ((f"{name} {one.name}", getattr(one, "help", None) or "") for one in command.params)
    for inner, one in sorted(getattr(command, "commands", {}).items()):
        yield from _helps(one, f"{name} {inner}")


def _descriptions(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every text of a registry, with the nearest name above it."""
    if isinstance(value, dict):
        place = f"{place}.{value['name']}" if isinstance(value.get("name"), str) else place
        for key, inner in value.items():
            yield from _descriptions(inner, place if key in ("about", "keys", "params") else f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _descriptions(inner, place)
    elif isinstance(value, str):
        yield place, value


def test_entries_are_whole() -> None:
    """Each concept occurs once, with a term, words that it replaces, and a meaning of at most 20 words."""
    assert len({one["concept"] for one in TERMS}) == len(TERMS) > 80
    assert all(one["say"] and one["not"] and one["group"] for one in TERMS)
    assert [one["say"] for one in TERMS if not 0 < len(one["meaning"].split()) <= 20] == []
    assert {one.get("banned") for one in TERMS} <= {None, True, "pages"}
    assert len(_banned(True)) > 20


def test_pages_say_what_the_glossary_says() -> None:
    texts = ((str(page.relative_to(ROOT)), CODE.sub("", page.read_text())) for page in PAGES)
    assert _used(texts, _banned(True, "pages")) == []


def test_help_says_what_the_glossary_says() -> None:
    assert _used(_helps(typer.main.get_command(app)), _banned(True, "pages")) == []


def test_descriptions_say_what_the_glossary_says() -> None:
    registries = {
        "spec": json.loads(_subak.sections()),
        "network": json.loads(_subak.generators()),
        "scheme": _subak.schemes(),
        "part": _subak.parts(),
    }
    texts = (one for name, value in registries.items() for one in _descriptions(value, name))
    assert _used(texts, _banned(True)) == []
