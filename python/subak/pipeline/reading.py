"""Reads a JSON or TOML document whose values store their path in it, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from subak.errors import InputError

MOST = 10**12
"""Largest number that a document may have."""


class Node:
    """A value of a document, with its place."""

    def __init__(self, value: Any, file: str | None, place: str = "") -> None:
        self.value = value
        self.file = file
        self.place = place

    def error(self, what: str, hint: str) -> InputError:
        """An error at the place of the value."""
        return InputError(self.file, self.place, what, hint)

    def mapping(self, known: Iterable[str] | None = None, needed: Iterable[str] = ()) -> dict[str, Node]:
        """Entries of the object; keys outside ``known`` and missing ``needed`` keys are errors."""
        if not isinstance(self.value, dict):
            raise self.error(f"{_kind(self.value)} stands where an object should", "write an object with named values")
        entries = _Entries((str(key), self._inside(f".{key}", value)) for key, value in self.value.items())
        entries.owner = self
        if known is not None:
            allowed = list(known)
            for key, node in entries.items():
                if key not in allowed:
                    raise node.error(f'there is no key "{key}" here', _choices(key, allowed))
        for key in needed:
            if key not in entries:
                raise self.error(f'"{key}" is missing', f'give "{key}"')
        return entries

    def items(self) -> list[Node]:
        """Entries of the list; raises an error if the value is no list."""
        if not isinstance(self.value, list):
            raise self.error(f"{_kind(self.value)} stands where a list should", "write a list")
        return [self._inside(f"[{i}]", value) for i, value in enumerate(self.value)]

    def text(self) -> str:
        """The value as a non-empty string; raises an error otherwise."""
        if not isinstance(self.value, str) or not self.value:
            raise self.error(f"{_kind(self.value)} stands where a name should", "write a string that is not empty")
        return self.value

    def one_of(self, allowed: Iterable[str]) -> str:
        """The value, which must be one of the strings ``allowed``."""
        known = list(allowed)
        if self.value not in known:
            raise self.error(f'"{self.value}" is none of the words known here', _choices(str(self.value), known))
        return str(self.value)

    def whole(self, least: int = 0) -> int:
        """The value, which must be an integer from ``least`` to ``MOST``."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"{_kind(self.value)} stands where a whole number should", f"give {least} or more")
        if not least <= self.value <= MOST:
            raise self.error(f"{self.value} is out of range", f"give a whole number from {least} to 10^12")
        return self.value

    def number(self) -> float:
        """The value, which must be a number from 0 to ``MOST``."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.error(f"{_kind(self.value)} stands where a number should", "give a number of 0 or more")
        if not 0 <= self.value <= MOST:
            raise self.error(f"{self.value} is out of range", "give a finite number of 0 or more")
        return float(self.value)

    def flag(self) -> bool:
        """The value, which must be true or false."""
        if not isinstance(self.value, bool):
            raise self.error(f"{_kind(self.value)} stands where true or false should", "write true or false")
        return self.value

    def _inside(self, step: str, value: Any) -> Node:
        return Node(value, self.file, (self.place + step).lstrip("."))


class _Entries(dict[str, Node]):
    """Entries of an object; access to a missing one is an input error."""

    owner: Node

    def __missing__(self, key: str) -> Node:
        raise self.owner.error(f'"{key}" is missing', f'give "{key}"')


def _choices(given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    return f'did you mean "{near[0]}"?' if near else f"choose one of: {', '.join(known)}"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), f"the number {value}" if isinstance(value, int | float) else type(value).__name__)
