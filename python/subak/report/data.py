"""The results of one run as the report needs them: cells by setting, scheme and seed, and rows by cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from subak.metrics import setting_of
from subak.runs import Results

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
        self.anchor = anchor
        self.results = Results(folder)
        self.manifest = self.results.manifest
        self.summary = self.results.summary()
        self.cells = self._cells()

    @property
    def name(self) -> str:
        """The name in the spec, and what tells the run from others of that name."""
        return str(self.manifest.get("name") or self.folder.name) + self.apart

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

    def _cells(self) -> list[Cell]:
        listed = self.manifest["cells"]
        return [Cell(c["cell"], self.setting(c["axes"]), c["scheme"], c["seed"]) for c in listed]


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_integer(column.type):
        column = column.cast(pa.float64(), safe=False)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
