"""Entries of a table during execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from subak.errors import InputError

Outcome = tuple[int, tuple[int, ...]]
"""Index of an action in the table's list, and its action data."""
Found = tuple[bool, Outcome]
REMEMBERED = 1 << 16
"""Largest number of lookups whose outcome is cached."""


class Entries:
    """Entries of one table; ``find`` returns whether the keys' values match, and the action."""

    def __init__(self, kinds: Sequence[str], widths: Sequence[int], default: Outcome) -> None:
        self.kinds, self.widths = list(kinds), list(widths)
        self._missed: Found = (False, default)
        self._exact: dict[Any, Found] = {}
        self._masked: list[tuple[int, tuple[tuple[str, int, int], ...], Found]] = []
        self._seen: dict[Any, Found] = {}
        self.find: Callable[..., Found] = self._finder()

    def __len__(self) -> int:
        return len(self._exact) + len(self._masked)

    def add(self, keys: Sequence[Any], outcome: Outcome, priority: int) -> None:
        """Adds an entry; among matches the longest prefix wins, then the highest priority."""
        if len(keys) != len(self.kinds):
            raise InputError(None, "entry", f"{len(keys)} values for {len(self.kinds)} keys", "give one a key")
        self._seen.clear()
        if all(kind == "exact" for kind in self.kinds):
            value = tuple(keys) if len(keys) != 1 else keys[0]
            self._exact[value] = (True, outcome)
            return
        tests = tuple(_test(*one) for one in zip(keys, self.kinds, self.widths, strict=True))
        length = sum(k[1] for k, kind in zip(keys, self.kinds, strict=True) if kind == "lpm" and isinstance(k, tuple))
        self._masked.append(((length << 32) + priority, tests, (True, outcome)))
        self._masked.sort(key=lambda entry: -entry[0])

    def _finder(self) -> Callable[..., Found]:
        exact, missed = self._exact, self._missed
        if not self.kinds:
            return lambda: missed
        if all(kind == "exact" for kind in self.kinds):
            get = exact.get
            if len(self.kinds) == 1:
                return lambda value: get(value, missed)
            return lambda *values: get(values, missed)
        return self._search

    def _search(self, *values: int) -> Found:
        found = self._seen.get(values)
        if found is None:
            found = next((f for _, tests, f in self._masked if _passes(tests, values)), self._missed)
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            self._seen[values] = found
        return found


def _test(key: Any, kind: str, width: int) -> tuple[str, int, int]:
    full = (1 << width) - 1
    if key is None:
        return ("mask", 0, 0)
    if kind == "range":
        low, high = key if isinstance(key, tuple) else (key, key)
        return ("range", low, high)
    if kind == "lpm":
        value, length = key if isinstance(key, tuple) else (key, width)
        mask = full & ~((1 << (width - length)) - 1)
        return ("mask", value & mask, mask)
    value, mask = key if isinstance(key, tuple) else (key, full)
    return ("mask", value & mask, mask)


def _passes(tests: tuple[tuple[str, int, int], ...], values: tuple[int, ...]) -> bool:
    for (kind, a, b), value in zip(tests, values, strict=True):
        if kind == "mask":
            if value & b != a:
                return False
        elif not a <= value <= b:
            return False
    return True
