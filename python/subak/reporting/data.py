"""The results of one run as the report needs them: cells by setting, scheme and seed, and rows by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from subak.metrics import setting_of, shown_labels
from subak.results import Results
from subak.swept import Point, points

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Cell:
    """One simulation: what was fixed, which scheme ran, from which seed."""

    number: int
    setting: str
    scheme: str
    seed: int


class RunData:
    """A folder that ``subak run`` wrote."""

    def __init__(self, folder: Path, anchor: str) -> None:
        self.folder = folder
        self.apart = ""
        self.tag = ""
        self.anchor = anchor
        self.results = Results(folder)
        self.manifest = self.results.manifest
        self.summary = self.results.summary()
        self.cells = self._cells()

    @property
    def name(self) -> str:
        """The name in the spec, and what tells the run from others of that name."""
        return str(self.manifest.get("name") or self.folder.name) + self.apart

    def shown(self, scheme: str) -> str:
        """What the report calls a scheme: the ideal says of what."""
        return self._shown.get(scheme, scheme)

    @cached_property
    def _shown(self) -> dict[str, str]:
        return shown_labels(self.manifest)

    @cached_property
    def points(self) -> list[Point]:
        """The rows of the summary by what is swept."""
        return points(self.manifest, self.summary["rows"])

    @cached_property
    def schemes(self) -> list[str]:
        """Labels of the schemes, in the spec's order."""
        return list(dict.fromkeys(cell.scheme for cell in self.cells))

    @cached_property
    def settings(self) -> list[str]:
        """What the axes were set to, such as ``load 0.6``, in the spec's order."""
        return list(dict.fromkeys(cell.setting for cell in self.cells))

    def of(self, setting: str, scheme: str) -> list[Cell]:
        """The cells of a setting and a scheme, one for each seed."""
        return [cell for cell in self.cells if (cell.setting, cell.scheme) == (setting, scheme)]

    def rows(self, kind: str, *columns: str) -> Mapping[int, Columns]:
        """The rows of a kind by cell; null is NaN in a column of numbers."""
        table = self.results.table(kind, ["cell", *columns], partial=True)
        if not table.num_rows:
            return {}
        cells = table["cell"].to_numpy()
        starts = np.flatnonzero(np.diff(cells, prepend=cells[0] + 1))
        values = {name: _values(table[name]) for name in columns}
        parts = {name: np.split(array, starts[1:]) for name, array in values.items()}
        return {int(cells[start]): {name: parts[name][i] for name in columns} for i, start in enumerate(starts)}

    def setting(self, axes: Mapping[str, Any]) -> str:
        """The values of the axes in words; empty where nothing is swept."""
        return setting_of(axes, self.manifest["axes"])

    def criterion(self, number: int) -> str:
        """The spec's criterion of convergence of this number in words; empty where it has no other."""
        given = self.manifest["spec"].get("measure", {}).get("convergence")
        if not isinstance(given, list) or number >= len(given):
            return ""
        share = f"{100 * given[number].get('share', 0.95):g}% of the flows"
        return f"{share} within {100 * given[number].get('within', 0.1):g}%"

    def scene(self, setting: str) -> dict[str, Any]:
        """What the manifest tells of a setting: its network, its faults and its times; empty where it does not."""
        for one in self.manifest.get("settings", []):
            if self.setting(one["axes"]) == setting:
                return dict(one)
        return {}

    @property
    def networks(self) -> list[dict[str, Any]]:
        """The networks of the run, as the manifest describes them."""
        return list(self.manifest.get("networks", []))

    def _cells(self) -> list[Cell]:
        listed = self.manifest["cells"]
        return [Cell(c["cell"], self.setting(c["axes"]), c["scheme"], c["seed"]) for c in listed]


@dataclass(frozen=True)
class Line:
    """What one curve of a chart is of: a scheme of a run, and its place among all."""

    label: str
    slot: int
    run: RunData
    scheme: str


class View:
    """One run, or several beside each other in the same charts."""

    def __init__(self, runs: Sequence[RunData]) -> None:
        self.runs = runs
        names = [(run, scheme, run.shown(scheme)) for run in runs for scheme in run.schemes]
        shown = [label for _, _, label in names]
        self.lines = [
            Line(label if shown.count(label) == 1 else f"{label}, {run.tag or run.name}", slot, run, scheme)
            for slot, (run, scheme, label) in enumerate(names)
        ]

    @cached_property
    def settings(self) -> list[str]:
        """What the axes were set to in any of the runs."""
        return list(dict.fromkeys(setting for run in self.runs for setting in run.settings))

    def of(self, setting: str, line: Line) -> list[tuple[int, int]]:
        """The cells of a setting and a line, as ``rows`` has them."""
        run = self.runs.index(line.run)
        return [(run, cell.number) for cell in line.run.of(setting, line.scheme)]

    def rows(self, kind: str, *columns: str) -> dict[tuple[int, int], Columns]:
        """The rows of a kind by run and cell."""
        return {(i, cell): rows for i, run in enumerate(self.runs) for cell, rows in run.rows(kind, *columns).items()}

    def summaries(self, setting: str, line: Line) -> Mapping[str, Any] | None:
        """The metrics of a line at a setting."""
        for row in line.run.summary["rows"]:
            if row["scheme"] == line.scheme and line.run.setting(row["axes"]) == setting:
                return dict(row)
        return None


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_integer(column.type):
        column = column.cast(pa.float64(), safe=False)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
