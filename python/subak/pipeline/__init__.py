"""Packet programs onto switch pipelines (perc-thesis, chapter 6): what `subak fit` does.

A program is a graph of tables, a switch a graph of stages; greedy solvers and an exact one place the first in the
second, and an independent validator checks every placement. OR-tools and lark are imported where they are needed only.
"""

from __future__ import annotations

from subak.pipeline.fit import Answer, fit
from subak.pipeline.placement import Measures, Placed, Placement, measure
from subak.pipeline.program import Dependency, Key, Program, Register, Table
from subak.pipeline.switch import Switch
from subak.pipeline.validate import Violation, violations

__all__ = [
    "Answer",
    "Dependency",
    "Key",
    "Measures",
    "Placed",
    "Placement",
    "Program",
    "Register",
    "Switch",
    "Table",
    "Violation",
    "fit",
    "measure",
    "violations",
]
