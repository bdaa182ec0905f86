"""Third-party packages that only some commands need, and how to install them."""

from __future__ import annotations

EXTRAS = {
    "dask": "cluster",
    "distributed": "cluster",
    "lark": "fit",
    "matplotlib": "plot",
    "numba": "compiled",
    "ortools": "fit",
    "pcpp": "fit",
    "pyroute2": "testbed",
}
"""Extra of the package ``subak`` that installs each of them."""
OTHERS = ("networkx",)
"""Packages for which there is no extra."""


def missing(error: ModuleNotFoundError) -> str:
    """The package that ``error`` misses, if it is one of these; else an empty text."""
    name = (error.name or "").partition(".")[0]
    return name if name in EXTRAS or name in OTHERS else ""


def command(name: str) -> str:
    """The ``pip`` command that installs the package ``name``."""
    return f'pip install "subak[{EXTRAS[name]}]"' if name in EXTRAS else f"pip install {name}"
