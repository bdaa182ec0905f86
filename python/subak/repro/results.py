"""Raw results: the output of a run, and the input of the analysis."""

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
"""Callback for progress: work done, total work, and fraction of the work done."""


@dataclass(frozen=True)
class RunPlan:
    """Plan of a run of an experiment."""

    scale: str
    runs: int
    seed: int
    runs_of: dict[str, int] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    """Changes to the experiment's specs for this run."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Parameters for an experiment that its own code computes, without specs."""
    schemes: tuple[str, ...] = ()
    """Schemes to run; all if empty."""
    specs: tuple[str, ...] = ()
    """Specs to run; all if empty."""
    jobs: int | None = None
    progress: Listener | None = None
    cluster: Cluster | None = None
    """Workers that run the trials of specs instead of this machine."""


@dataclass(frozen=True)
class RawResults:
    """The folder of a run's raw results."""

    folder: Path
    plan: RunPlan
    variants: Mapping[str, RawResults] = field(default_factory=dict)
    """Raw results of the variants that were run, by name."""
    _read: dict[str, Results] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scale(self) -> str:
        """Scale of the run: ``smoke`` or ``paper``."""
        return self.plan.scale

    @cached_property
    def report(self) -> dict[str, Any]:
        """The report that the experiment's code computed: ``setup``, ``tables``, ``series``, ``values``, ``notes``."""
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
        """Whether the results were computed by the experiment's own code, not simulated from specs."""
        return (self.folder / "raw.json").exists()

    def values(self) -> dict[str, Value]:
        """Computed values by key; sampled values have a confidence interval."""
        try:
            return {key: stats.from_json(value) for key, value in self.report["values"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            path = str(self.folder / "raw.json")
            raise InputError(path, "values", f"it cannot be read: {error}", "remove the folder to run again") from None

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of one of the report's tables, by column."""
        held = self.report["tables"][table]
        return [dict(zip(held["columns"], row, strict=True)) for row in held["rows"]]

    def simulated(self, spec: str = "") -> Results:
        """Simulation results of the spec ``spec``; an experiment's only spec has the empty name."""
        from subak.results import Results

        if spec not in self._read:
            self._read[spec] = Results(self.folder / (spec or "run"))
        return self._read[spec]

    def has(self, spec: str) -> bool:
        """Whether the spec of this name was simulated."""
        return (self.folder / spec).exists()


def write(path: Path, text: str) -> None:
    """Writes a file atomically."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "choose another --out") from None
