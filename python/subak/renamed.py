"""Names that changed before the first release: old names are accepted for one version, with a warning."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from subak.errors import InputError, InputWarning

P = ParamSpec("P")
T = TypeVar("T")

OPTIONS = {
    "--driver": "--backend",
    "--cell": "--trial",
    "--print-cells": "--print-trials",
    "--setting": "--sweep-point",
}
"""Options of the command line: old and new names."""

COLUMNS = {"cell": "trial"}
"""Columns of results: old and new names."""

FOLDERS = {"cells": "trials"}
"""Folders of results: old and new names."""

MANIFEST = {"cells": "trials", "settings": "sweep_points"}
"""Lists in a run's manifest: old and new names."""


def options(words: Sequence[str]) -> list[str]:
    """Replaces old options of a command line by new ones; words after ``--`` stay."""
    end = list(words).index("--") if "--" in words else len(words)
    return [*map(_option, words[:end]), *words[end:]]


def _option(word: str) -> str:
    name, equals, value = word.partition("=")
    if name not in OPTIONS:
        return word
    print(f"subak: {_note(name, OPTIONS[name])}", file=sys.stderr)
    return OPTIONS[name] + equals + value


def _note(old: str, new: str) -> str:
    return f"{old} is now called {new}; the next version does not read the old name"


def keywords(**new_of: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorates a function to accept old keyword names, ``old="new"``; both names of one keyword are an error."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def renamed(*args: P.args, **kwargs: P.kwargs) -> T:
            given: dict[str, Any] = dict(kwargs)
            for old, new in new_of.items():
                if old not in given:
                    continue
                if new in given:
                    what = f'it is the old name of "{new}", and both are given'
                    raise InputError(None, old, what, f'keep "{new}"')
                warnings.warn(_note(old, new), InputWarning, stacklevel=2)
                given[new] = given.pop(old)
            return function(*args, **given)

        return renamed

    return decorate


def columns(wanted: Sequence[str] | None, known: Sequence[str]) -> dict[str, str]:
    """Columns to read, each with its new name. Files and ``wanted`` may use old names."""
    there = {COLUMNS.get(name, name): name for name in known}
    if wanted is None:
        return {name: new for new, name in there.items()}
    for name in wanted:
        if name in COLUMNS and name not in there:
            warnings.warn(_note(f"column {name}", COLUMNS[name]), InputWarning, stacklevel=4)
    return {there.get(name, there.get(COLUMNS.get(name, name), name)): name for name in wanted}


def manifest(told: Any) -> Any:
    """The manifest with old keys replaced by new ones."""
    if not isinstance(told, dict) or "trials" in told or not isinstance(told.get("cells"), list):
        return told
    new = {MANIFEST.get(key, key): value for key, value in told.items()}
    new["trials"] = [_entry(one, COLUMNS) for one in new["trials"]]
    if isinstance(new.get("warnings"), list):
        new["warnings"] = [_entry(one, MANIFEST) for one in new["warnings"]]
    return new


def _entry(told: Any, names: dict[str, str]) -> Any:
    return {names.get(key, key): value for key, value in told.items()} if isinstance(told, dict) else told
