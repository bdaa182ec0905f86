"""A row of the catalogue to make records of, and copies of rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from subak.repro import Experiment

ROW = "perc-drops"
"""Shares over random runs, with a variant."""


def copy_of(row: Experiment, folder: Path) -> Experiment:
    """The row in a folder of its own, beside what its paper's rows share: it measures the same."""
    own = folder / row.paper / row.folder.name
    shutil.copytree(row.folder, own, ignore=shutil.ignore_patterns("__pycache__", "record.json", "samples.parquet"))
    for shared in row.folder.parent.glob("*.py"):
        shutil.copy(shared, own.parent)
    return replace(row, folder=own)
