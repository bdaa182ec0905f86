"""Raw results between the run and the analysis, and the values that the analysis finds in them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.errors import InputError

if TYPE_CHECKING:
    from subak.runs import Results

Listener = Callable[[int, int, float], None]
"""Hears what is done, how much there is, and the share of the work that is done."""


@dataclass(frozen=True)
class Measured:
    """A value with its confidence interval or with what it is of."""

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    """Such as ``1000 runs``."""


Value = Measured | float | int | str | list[float]
"""What an analysis says of one check."""


@dataclass(frozen=True)
class RunPlan:
    """How an experiment is run."""

    scale: str
    runs: int | None
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    jobs: int | None = None
    progress: Listener | None = None


@dataclass(frozen=True)
class RawResults:
    """What a run left in its folder."""

    folder: Path
    scale: str
    settings: dict[str, Any]

    @cached_property
    def report(self) -> dict[str, Any]:
        """What the round driver computed: ``setup``, ``tables``, ``series``, ``checks``, ``notes``."""
        path = self.folder / "raw.json"
        try:
            report: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(str(path), "", f"it cannot be read: {error}", "remove the folder to run again") from None
        return report

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of one of the round driver's tables, by column."""
        held = self.report["tables"][table]
        return [dict(zip(held["columns"], row, strict=True)) for row in held["rows"]]

    def simulated(self, spec: str = "") -> Results:
        """The results of the spec of that name."""
        from subak.runs import Results

        return Results(self.folder / (spec or "run"))


def passes(rule: tuple[str, Any], tolerance: float, value: Value) -> bool:
    """Whether ``value`` obeys ``rule``; what is not a number obeys none."""
    found = value.value if isinstance(value, Measured) else value
    op, bound = rule
    if op == "equals":
        return _equal(found, bound, tolerance)
    if not isinstance(found, int | float) or math.isnan(found):
        return False
    if op == "at_most":
        return bool(found <= bound)
    if op == "at_least":
        return bool(found >= bound)
    return bool(bound[0] <= found <= bound[1])


def _equal(found: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(_equal(f, w, tolerance) for f, w in zip(found, wanted, strict=True))
    if isinstance(wanted, bool | str) or isinstance(found, bool | str) or found is None:
        return bool(found == wanted)
    return bool(found == wanted) or abs(found - wanted) <= tolerance * abs(wanted)


def told(value: Value, unit: str = "") -> str:
    """The value as the table shows it."""
    if isinstance(value, Measured):
        text = _unit(_plain(value.value), unit)
        if value.low is not None and value.high is not None:
            text += f" [{_plain(value.low)}, {_plain(value.high)}]"
        return f"{text} ({value.note})" if value.note else text
    if isinstance(value, list):
        return _unit(", ".join(_plain(v) for v in value), unit)
    return _unit(_plain(value), unit)


def told_json(value: Any) -> str:
    """A value of a report, for people: ``rates_gbps 70, 30; rtts 1.5``."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{key.replace('_', ' ')} {told_json(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        nested = any(isinstance(inner, list) for inner in value)
        return ", ".join(f"({told_json(inner)})" if nested else told_json(inner) for inner in value)
    return _plain(value)


def as_json(value: Value) -> Any:
    """The value as a verdict's JSON holds it: what is not finite is text."""
    if isinstance(value, Measured):
        return as_json(value.value)
    if isinstance(value, list):
        return [as_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _plain(value: Any) -> str:
    if isinstance(value, bool | str):
        return str(value)
    if value is None or math.isnan(value):
        return "none"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit and text != "none" else text
