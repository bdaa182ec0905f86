"""Raw results, between the run and the analysis."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.errors import InputError
from subak.repro import stats
from subak.repro.values import Value

if TYPE_CHECKING:
    from subak.cluster import Cluster
    from subak.results import Results

Listener = Callable[[int, int, float], None]
"""Hears what is done, how much there is, and the share of the work that is done."""


@dataclass(frozen=True)
class RunPlan:
    """How an experiment is run."""

    scale: str
    runs: int
    seed: int
    runs_of: dict[str, int] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    """What is different from the specs."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What an experiment without specs is told."""
    schemes: tuple[str, ...] = ()
    """Only these of the specs; all if empty."""
    specs: tuple[str, ...] = ()
    """Only these specs; all if empty."""
    jobs: int | None = None
    progress: Listener | None = None
    cluster: Cluster | None = None
    """Workers that run the trials of specs in place of this machine."""


@dataclass(frozen=True)
class RawResults:
    """What a run left in its folder."""

    folder: Path
    plan: RunPlan
    variants: Mapping[str, RawResults] = field(default_factory=dict)
    """Those that were run, by name."""
    _read: dict[str, Results] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scale(self) -> str:
        """``smoke`` or ``paper``."""
        return self.plan.scale

    @cached_property
    def report(self) -> dict[str, Any]:
        """What was computed: ``setup``, ``tables``, ``series``, ``values``, ``notes``."""
        path = self.folder / "raw.json"
        hint = "remove the folder to run again"
        try:
            report: dict[str, Any] = json.loads(path.read_bytes())
            if not isinstance(report["values"], dict) or not isinstance(report["tables"], dict):
                raise ValueError("it holds no values")
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise InputError(str(path), "", f"it cannot be read: {error}", hint) from None
        return report

    @property
    def has_report(self) -> bool:
        """Whether it was computed, not simulated from specs."""
        return (self.folder / "raw.json").exists()

    def values(self) -> dict[str, Value]:
        """What was computed, by key; samples with their intervals."""
        try:
            return {key: stats.from_json(value) for key, value in self.report["values"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            path = str(self.folder / "raw.json")
            raise InputError(path, "values", f"it cannot be read: {error}", "remove the folder to run again") from None

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of one of the report's tables, by column."""
        held = self.report["tables"][table]
        return [dict(zip(held["columns"], row, strict=True)) for row in held["rows"]]

    def simulated(self, spec: str = "") -> Results:
        """The results of the spec of that name."""
        from subak.results import Results

        if spec not in self._read:
            self._read[spec] = Results(self.folder / (spec or "run"))
        return self._read[spec]

    def has(self, spec: str) -> bool:
        """Whether the spec of that name was simulated."""
        return (self.folder / spec).exists()


def write(path: Path, text: str) -> None:
    """Writes a file whole, or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "choose another --out") from None
