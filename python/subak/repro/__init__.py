"""The papers' experiments: what was claimed, what Subak measures, and whether the two agree.

An experiment is a folder below ``subak/papers``: ``experiment.toml`` (the claim, the kind, the sizes, the variants),
``published.toml`` (published values and what must hold of ours), ``page.md``, and the analysis in ``__init__.py``. A
run never draws and an analysis never runs: raw results lie in between, as files.
"""

from __future__ import annotations

from subak.repro.catalogue import catalogue, find
from subak.repro.experiment import Check, Experiment, Size, Variant
from subak.repro.reproduce import Verdict, reproduce
from subak.repro.results import RawResults, RunPlan
from subak.repro.values import Measured, Value

__all__ = [
    "Check",
    "Experiment",
    "Measured",
    "RawResults",
    "RunPlan",
    "Size",
    "Value",
    "Variant",
    "Verdict",
    "catalogue",
    "find",
    "reproduce",
]
