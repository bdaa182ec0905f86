"""Subak: exact allocation of datacenter bandwidth, and simulation of schemes that share it.

``subak.solve`` answers one allocation problem exactly, ``subak.run`` simulates the schemes of a spec, and
``subak.Network`` has the links. Tables are Arrow tables, which polars, pandas and pyarrow read without copying.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from subak._subak import __version__
from subak.errors import InputError, InputWarning

if TYPE_CHECKING:
    from subak._subak import Answer, Router, Sizes, Stream, Table
    from subak.allocation import allocate
    from subak.api import Network, Rows, converge, solve, structure
    from subak.doubling import upgrades
    from subak.incremental import Incremental
    from subak.ned import Ned, ned_times
    from subak.results import Results
    from subak.rounds import Rounds
    from subak.runs import Difference, diff, movie, report, run
    from subak.schemas import schema
    from subak.scheme import (
        Controller,
        FairCodel,
        Fifo,
        Hop,
        LargestWait,
        Node,
        Pfc,
        Priority,
        Rank,
        Recovery,
        Red,
        Scheme,
        Sink,
        Source,
        Stfq,
        Telemetry,
    )
    from subak.simulation import Simulation
    from subak.sockets import set_weight
    from subak.soze import soze_margin
    from subak.soze_fluid import SozeFluid
    from subak.structures import Structure
    from subak.utilities import utility
    from subak.xwi import Xwi

__all__ = [
    "Answer",
    "Controller",
    "Difference",
    "FairCodel",
    "Fifo",
    "Hop",
    "Incremental",
    "InputError",
    "InputWarning",
    "LargestWait",
    "Ned",
    "Network",
    "Node",
    "Pfc",
    "Priority",
    "Rank",
    "Recovery",
    "Red",
    "Results",
    "Rounds",
    "Router",
    "Rows",
    "Scheme",
    "Simulation",
    "Sink",
    "Sizes",
    "Source",
    "SozeFluid",
    "Stfq",
    "Stream",
    "Structure",
    "Table",
    "Telemetry",
    "Xwi",
    "__version__",
    "allocate",
    "converge",
    "diff",
    "movie",
    "ned_times",
    "report",
    "run",
    "schema",
    "set_weight",
    "solve",
    "soze_margin",
    "structure",
    "upgrades",
    "utility",
]

_HOMES = {
    **dict.fromkeys(("Answer", "Router", "Sizes", "Stream", "Table"), "_subak"),
    "Incremental": "incremental",
    "Ned": "ned",
    "ned_times": "ned",
    "allocate": "allocation",
    "SozeFluid": "soze_fluid",
    "Rounds": "rounds",
    "Xwi": "xwi",
    "Network": "api",
    "Rows": "api",
    "converge": "api",
    "solve": "api",
    "structure": "api",
    "Simulation": "simulation",
    "Structure": "structures",
    "Difference": "runs",
    "Results": "results",
    "diff": "runs",
    "movie": "runs",
    "report": "runs",
    "schema": "schemas",
    "set_weight": "sockets",
    "run": "runs",
    "soze_margin": "soze",
    "upgrades": "doubling",
    "utility": "utilities",
    **dict.fromkeys(
        ("Controller", "FairCodel", "Fifo", "Hop", "LargestWait", "Node", "Pfc", "Priority", "Rank", "Recovery", "Red"),
        "scheme",
    ),
    **dict.fromkeys(("Scheme", "Sink", "Source", "Stfq", "Telemetry"), "scheme"),
}


def __getattr__(name: str) -> Any:
    # Imported on first use, so that the command starts fast.
    if name not in _HOMES:
        raise AttributeError(f"module 'subak' has no attribute '{name}'")
    return getattr(import_module(f"subak.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
