"""Swept keys as axes of figures: keys of a spec, and parameters of its schemes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from subak.errors import InputError
from subak.metrics import sweep_point_of

UNITS = {"bps": "bit/s", "ns": "us", "bytes": "bytes", "packets": "packets"}
"""Units of axes; times in results are in ns."""
LEAST = 2
"""Smallest number of values that make a curve."""


@dataclass(frozen=True)
class Point:
    """A row of a summary, identified by its swept values."""

    row: Mapping[str, Any]
    scheme: str
    """Label of the scheme, without swept parameters."""
    values: Mapping[str, Any]
    """Value of each swept key, as in the spec."""
    numbers: Mapping[str, float]
    """Value of each swept key as a number in the unit of its axis, if the value is numeric."""
    units: Mapping[str, str]

    def said(self, keys: Sequence[str]) -> str:
        """The values of ``keys``, as far as present, as text: ``buffer 50KB, k 20``."""
        return sweep_point_of(self.values, [key for key in keys if key in self.values])


def points(manifest: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> list[Point]:
    """The ``rows`` of a summary as points, with the swept values from the run's manifest."""
    schemes = {one["label"]: one for one in manifest.get("schemes", [])}
    known = {key: {json.dumps(s["value"]): s for s in some} for key, some in manifest.get("swept", {}).items()}
    return [_point(row, schemes.get(row["scheme"], {}), known) for row in rows]


def _point(row: Mapping[str, Any], scheme: Mapping[str, Any], known: Mapping[str, Any]) -> Point:
    values: dict[str, Any] = dict(row["axes"])
    numbers: dict[str, float] = {}
    units: dict[str, str] = {}
    swept = {key: known.get(key, {}).get(json.dumps(value)) for key, value in values.items()}
    own = dict(scheme.get("swept", {}))
    for key, one in (swept | own).items():
        told = one["value"] if one else values[key]
        values[key] = told
        if one and one["number"] is not None:
            units[key] = one["unit"] or ""
            numbers[key] = one["number"] * (1e-3 if one["unit"] == "ns" else 1.0)
        elif not one and isinstance(told, int | float) and not isinstance(told, bool):
            units[key], numbers[key] = "", float(told)
    return Point(row, scheme.get("base") or row["scheme"], values, numbers, units)


def axes(some: Sequence[Point]) -> list[str]:
    """The keys whose values are numbers, the one with the most values first."""
    found: dict[str, set[float]] = {}
    for point in some:
        for key, number in point.numbers.items():
            found.setdefault(key, set()).add(number)
    return sorted((key for key in found if len(found[key]) >= LEAST), key=lambda key: -len(found[key]))


def find(name: str, some: Sequence[Point], place: str, *, numeric: bool = True) -> str:
    """The swept key with this full name or last part: ``network.buffer`` or ``buffer``."""
    keys = list(dict.fromkeys(key for point in some for key in point.values))
    known = axes(some) if numeric else keys
    found = [key for key in known if key == name] or [key for key in known if key.split(".")[-1] == name]
    if len(found) == 1:
        return found[0]
    if not known:
        raise InputError(None, place, f'"{name}": the run sweeps no number', "sweep a key: a list in place of a value")
    what = f'"{name}" is several of the swept keys' if found else f'"{name}" is not a swept number of the run'
    if name in keys and not found:
        what = f'the values of "{name}" are no numbers'
    raise InputError(None, place, what, f"choose one of: {', '.join(found or known)}")


def label(key: str, some: Sequence[Point]) -> str:
    """The key and its unit: ``buffer, bytes``."""
    unit = next((point.units[key] for point in some if key in point.units), "")
    name = key.split(".")[-1]
    return f"{name}, {UNITS[unit]}" if unit in UNITS else name
