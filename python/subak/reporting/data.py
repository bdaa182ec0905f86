"""Results of one run for the report: trials by sweep point, scheme and seed, and rows by trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from subak.metrics import shown_labels, sweep_point_of
from subak.results import Results
from subak.swept import Point, points

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Trial:
    """One simulation: its sweep point, scheme and seed."""

    number: int
    sweep_point: str
    scheme: str
    seed: int


class RunData:
    """Results of a run, from the folder that ``subak run`` wrote."""

    def __init__(self, folder: Path, anchor: str) -> None:
        self.folder = folder
        self.apart = ""
        self.tag = ""
        self.anchor = anchor
        self.results = Results(folder)
        self.manifest = self.results.manifest
        self.summary = self.results.summary()
        self.trials = self._trials()

    @property
    def name(self) -> str:
        """Name of the run in its spec, with a suffix that distinguishes runs of the same name."""
        return str(self.manifest.get("name") or self.folder.name) + self.apart

    def shown(self, scheme: str) -> str:
        """Display name of a scheme; an ideal includes its policy."""
        return self._shown.get(scheme, scheme)

    @cached_property
    def _shown(self) -> dict[str, str]:
        return shown_labels(self.manifest)

    @cached_property
    def points(self) -> list[Point]:
        """Rows of the summary as points, identified by their swept values."""
        return points(self.manifest, self.summary["rows"])

    @cached_property
    def schemes(self) -> list[str]:
        """Labels of the schemes, in the spec's order."""
        return list(dict.fromkeys(trial.scheme for trial in self.trials))

    @cached_property
    def sweep_points(self) -> list[str]:
        """Sweep points such as ``load 0.6``, in the spec's order."""
        return list(dict.fromkeys(trial.sweep_point for trial in self.trials))

    def of(self, sweep_point: str, scheme: str) -> list[Trial]:
        """The trials of a sweep point and a scheme, one for each seed."""
        return [trial for trial in self.trials if (trial.sweep_point, trial.scheme) == (sweep_point, scheme)]

    def rows(self, kind: str, *columns: str) -> Mapping[int, Columns]:
        """Rows of a kind (such as ``flow``) by trial; in numeric columns null is NaN."""
        table = self.results.table(kind, ["trial", *columns], partial=True)
        if not table.num_rows:
            return {}
        trials = table["trial"].to_numpy()
        starts = np.flatnonzero(np.diff(trials, prepend=trials[0] + 1))
        values = {name: _values(table[name]) for name in columns}
        parts = {name: np.split(array, starts[1:]) for name, array in values.items()}
        return {int(trials[start]): {name: parts[name][i] for name in columns} for i, start in enumerate(starts)}

    def sweep_point(self, axes: Mapping[str, Any]) -> str:
        """The values of the axes as text, such as ``load 0.6``; empty without a sweep."""
        return sweep_point_of(axes, self.manifest["axes"])

    def criterion(self, number: int) -> str:
        """Text of the spec's convergence criterion with this number; empty if there is only one."""
        given = self.manifest["spec"].get("measure", {}).get("convergence")
        if not isinstance(given, list) or number >= len(given):
            return ""
        share = f"{100 * given[number].get('share', 0.95):g}% of the flows"
        return f"{share} within {100 * given[number].get('within', 0.1):g}%"

    def scene(self, sweep_point: str) -> dict[str, Any]:
        """Network, faults and times of a sweep point from the manifest; empty if it has none."""
        for one in self.manifest.get("sweep_points", []):
            if self.sweep_point(one["axes"]) == sweep_point:
                return dict(one)
        return {}

    @property
    def networks(self) -> list[dict[str, Any]]:
        """Networks of the run from the manifest."""
        return list(self.manifest.get("networks", []))

    def _trials(self) -> list[Trial]:
        listed = self.manifest["trials"]
        return [Trial(c["trial"], self.sweep_point(c["axes"]), c["scheme"], c["seed"]) for c in listed]


@dataclass(frozen=True)
class Line:
    """A curve of a chart: a scheme of a run, and its position among all curves."""

    label: str
    slot: int
    run: RunData
    scheme: str


class View:
    """One run, or several in the same charts."""

    def __init__(self, runs: Sequence[RunData]) -> None:
        self.runs = runs
        names = [(run, scheme, run.shown(scheme)) for run in runs for scheme in run.schemes]
        shown = [label for _, _, label in names]
        self.lines = [
            Line(label if shown.count(label) == 1 else f"{label}, {run.tag or run.name}", slot, run, scheme)
            for slot, (run, scheme, label) in enumerate(names)
        ]

    @cached_property
    def sweep_points(self) -> list[str]:
        """Sweep points of any of the runs."""
        return list(dict.fromkeys(sweep_point for run in self.runs for sweep_point in run.sweep_points))

    def of(self, sweep_point: str, line: Line) -> list[tuple[int, int]]:
        """Run and number of each trial of a sweep point and a line: the keys of ``rows``."""
        run = self.runs.index(line.run)
        return [(run, trial.number) for trial in line.run.of(sweep_point, line.scheme)]

    def rows(self, kind: str, *columns: str) -> dict[tuple[int, int], Columns]:
        """Rows of a kind (such as ``flow``), by run and trial."""
        return {(i, trial): rows for i, run in enumerate(self.runs) for trial, rows in run.rows(kind, *columns).items()}

    def summaries(self, sweep_point: str, line: Line) -> Mapping[str, Any] | None:
        """Row of the summary, with the metrics, for a line at a sweep point; ``None`` if there is none."""
        for row in line.run.summary["rows"]:
            if row["scheme"] == line.scheme and line.run.sweep_point(row["axes"]) == sweep_point:
                return dict(row)
        return None


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_integer(column.type):
        column = column.cast(pa.float64(), safe=False)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
