"""What this machine can run, and what is missing for the rest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """One thing the machine has or lacks, and what it is for."""

    name: str
    found: str | None
    needed_for: str
    mend: str


def checks() -> list[Check]:
    """Every check, in the order in which a new user needs them."""
    from subak import __version__

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return [
        Check("subak", __version__, "solve, run, report, export, diff", ""),
        Check("processors", str(len(os.sched_getaffinity(0))), "run --jobs", ""),
        _package("polars", "answers and results as polars data frames"),
        _package("pandas", "answers and results as pandas data frames"),
        _package("networkx", "networks from graphs and back: Network.from_networkx"),
        _package("matplotlib", "Results.plot, and the pictures of subak repro"),
        Check("chromium", browser, "the test that looks at the report", "apt-get install chromium"),
        Check("cargo", shutil.which("cargo"), "building Subak from source", "install Rust from https://rustup.rs"),
    ]


def as_json() -> dict[str, Any]:
    """The checks as ``subak doctor --json`` prints them."""
    return {"schema": 1, "checks": [{**asdict(c), "ok": c.found is not None} for c in checks()]}


def _package(name: str, needed_for: str) -> Check:
    found = importlib.util.find_spec(name)
    version = importlib.metadata.version(name) if found else None
    return Check(
        name, version, needed_for, 'pip install "subak[plot]"' if name == "matplotlib" else f"pip install {name}"
    )
