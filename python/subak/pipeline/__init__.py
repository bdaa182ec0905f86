"""Placement of packet programs in switch pipelines (PERC thesis, chapter 6), for `subak fit`.

A program is a graph of match-action tables, a switch a graph of stages. Greedy solvers and an exact one place tables in
stages, and an independent validator checks every placement. Modules are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Answer": "fitting",
    "Dependency": "program",
    "Key": "program",
    "Measures": "placement",
    "Placed": "placement",
    "Placement": "placement",
    "Program": "program",
    "Register": "program",
    "Switch": "switch",
    "Table": "program",
    "Violation": "validate",
    "fit": "fitting",
    "measure": "placement",
    "violations": "validate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"subak.pipeline.{_HOMES[name]}"), name)
