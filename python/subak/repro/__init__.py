"""The papers' experiments: what was published, what Subak measures, and whether the one bears out the other.

An experiment is a folder below ``subak/papers``: ``experiment.toml`` (what it shows, how large it is), ``page.md``, the
analysis in ``__init__.py`` and, where it simulates specs, ``published.toml`` (values and what must hold of ours). A
run never draws and an analysis never runs: raw results lie in between, as files.
"""

from __future__ import annotations

from subak.repro.catalogue import Check, Experiment, Size, catalogue, find
from subak.repro.reproduce import Verdict, reproduce
from subak.repro.results import Measured, RawResults, RunPlan, Value

__all__ = [
    "Check",
    "Experiment",
    "Measured",
    "RawResults",
    "RunPlan",
    "Size",
    "Value",
    "Verdict",
    "catalogue",
    "find",
    "reproduce",
]
