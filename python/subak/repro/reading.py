"""Reads the TOML files of an experiment: errors name the place and give a hint."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from subak.errors import InputError

Kind = TypeVar("Kind")
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}
_REQUIRED: Any = object()


class Section:
    """A table of a TOML file, read key by key; ``done`` raises an error for keys that were not read."""

    def __init__(self, file: Path, place: str, held: dict[str, Any]) -> None:
        self._file, self._place, self._held = file, place, held
        self._asked: set[str] = set()

    @classmethod
    def of_file(cls, path: Path) -> Section:
        """The whole file as a table."""
        try:
            with path.open("rb") as file:
                return cls(path, "", tomllib.load(file))
        except FileNotFoundError:
            raise InputError(str(path), "", "it is missing", "see docs/reproducing.md for what it holds") from None
        except (OSError, ValueError) as error:
            raise InputError(str(path), "", f"it cannot be read: {error}", "correct it") from None

    def error(self, key: str, what: str, hint: str) -> InputError:
        """An error at ``key`` of this table."""
        return InputError(str(self._file), ".".join(filter(None, (self._place, key))), what, hint)

    def get(self, key: str, kind: type[Kind], default: Any = _REQUIRED) -> Kind:
        """The value of ``key``, which is required if there is no ``default``."""
        self._asked.add(key)
        if key not in self._held:
            if default is _REQUIRED:
                raise self.error(key, "it is missing", f"give {_WORDS[kind]}")
            return default  # type: ignore[no-any-return]
        value = self._held[key]
        fits = isinstance(value, (int, float) if kind is float else kind) and (
            kind is bool or not isinstance(value, bool)
        )
        if not fits:
            raise self.error(key, f"it is {value!r}", f"give {_WORDS[kind]}")
        return value  # type: ignore[no-any-return]

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        """The value of ``key``, which must be a text; a required one must not be empty."""
        found = self.get(key, str, default)
        if default is _REQUIRED and not found.strip():
            raise self.error(key, "it is empty", "say it in words")
        return found

    def among(self, key: str, choices: Sequence[str], default: Any = _REQUIRED) -> str:
        """The value of ``key``, which must be one of ``choices``."""
        found = self.get(key, str, default)
        if found not in choices:
            raise self.error(key, f'there is no "{found}"', f"choose one of: {', '.join(choices)}")
        return found

    def texts(self, key: str, default: Any = _REQUIRED) -> tuple[str, ...]:
        """The value of ``key``, which must be a list of texts."""
        found: list[Any] = self.get(key, list, default)
        if not all(isinstance(one, str) for one in found):
            raise self.error(key, f"it is {found!r}", "give a list of texts")
        return tuple(found)

    def raw(self, key: str) -> Any:
        """The value of ``key``, of any type; ``None`` if the key is missing."""
        self._asked.add(key)
        return self._held.get(key)

    def section(self, key: str, default: Any = _REQUIRED) -> Section:
        """The table ``key`` inside this one."""
        return Section(self._file, ".".join(filter(None, (self._place, key))), self.get(key, dict, default))

    def sections(self, key: str) -> list[Section]:
        """The list of tables ``key``; empty if the key is missing."""
        found = self.get(key, list, [])
        if not all(isinstance(one, dict) for one in found):
            raise self.error(key, "it is no list of tables", f"write [[{key}]] before each")
        return [Section(self._file, f"{key}[{k}]", one) for k, one in enumerate(found)]

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def done(self) -> None:
        """Raises an error for keys that were not read."""
        for key in self._held:
            if key not in self._asked:
                raise self.error(key, "there is no such key", f"choose among: {', '.join(sorted(self._asked))}")
