"""The papers' experiments: published claims, measured values, and whether they agree.

An experiment is a folder below ``subak/papers``: ``experiment.toml`` (the claim, the kind, the sizes, the variants),
``published.toml`` (published values, and the rules that measured values must meet), ``page.md``, and the analysis in
``__init__.py``. Runs and analyses are separate steps: a run writes raw results to files, which the analysis reads.
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
