"""An experiment for tests of records, and copies of experiments."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from subak.repro import Experiment

ROW = "perc-drops"
"""An experiment whose values are fractions of random runs, with a variant."""


def copy_of(row: Experiment, folder: Path) -> Experiment:
    """The experiment in a folder of its own, with the shared modules of its paper: its hashes are the same."""
    own = folder / row.paper / row.folder.name
    shutil.copytree(row.folder, own, ignore=shutil.ignore_patterns("__pycache__", "record.json", "samples.parquet"))
    for shared in row.folder.parent.glob("*.py"):
        shutil.copy(shared, own.parent)
    return replace(row, folder=own)
