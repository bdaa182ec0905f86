"""Packet programs onto switch pipelines (perc-thesis, chapter 6): what `subak fit` does.

A program is a graph of tables, a switch a graph of stages; greedy solvers and an exact one place the first in the
second, and an independent validator checks every placement. All is imported when it is first asked for.
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
