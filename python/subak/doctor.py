"""Checks of what this machine can run, and of what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from typing import Any

from subak import extras


@dataclass(frozen=True)
class Check:
    """A requirement: what was found on this machine (``None`` if missing), and the commands that need it."""

    name: str
    found: str | None
    needed_for: str
    hint: str


def checks() -> list[Check]:
    """All checks, in the order in which a new user needs them."""
    from subak import __version__

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return [
        Check("subak", __version__, "solve, run, report, export, diff", ""),
        Check("processors", str(len(os.sched_getaffinity(0))), "run --jobs", ""),
        _package("polars", "answers and results as polars data frames"),
        _package("pandas", "answers and results as pandas data frames"),
        _package("networkx", "networks from graphs and back: Network.from_networkx"),
        _package("matplotlib", "Results.plot, and the pictures of subak repro"),
        _package("ortools", "subak fit, and subak repro fit-*"),
        _package("distributed", "run and repro --cluster, and subak.run with a client of Dask"),
        Check("chromium", browser, "the test that looks at the report", "apt-get install chromium"),
        _package("pyroute2", "subak testbed, and subak run --backend testbed"),
        *_hosts(),
        Check("TAP devices", _tap(), "links of a testbed with delay, loss or faults", "modprobe tun"),
        Check("cargo", shutil.which("cargo"), "building Subak from source", "install Rust from https://rustup.rs"),
    ]


def as_json() -> dict[str, Any]:
    """The checks as ``subak doctor --json`` prints them."""
    return {"schema": 1, "checks": [{**asdict(c), "ok": c.found is not None} for c in checks()]}


def _hosts() -> list[Check]:
    """Checks of the kernel features that a testbed needs, by ``subak-agent``."""
    from subak.errors import InputError
    from subak.testbed.testbed import agent

    wanted = "subak run --backend testbed"
    root = Check("root", "yes" if os.geteuid() == 0 else None, "subak testbed", "run it with sudo")
    try:
        told = subprocess.run([agent(), "doctor"], capture_output=True, text=True, check=True, timeout=60).stdout
        needs = json.loads(told)["needs"]
    except InputError as error:
        return [root, Check("subak-agent", None, wanted, error.hint)]
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return [root, Check("subak-agent", None, wanted, f"it does not run: {error}")]
    return [root, *(Check(n["name"], n["found"], n["needed_for"], n["hint"]) for n in needs)]


def _tap() -> str | None:
    """The file by which TAP devices are made, if the relay of a testbed's links can use it."""
    path = "/dev/net/tun"
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return path
    except OSError:
        return None
    return path


def _package(name: str, needed_for: str) -> Check:
    found = importlib.util.find_spec(name)
    version = importlib.metadata.version(name) if found else None
    return Check(name, version, needed_for, extras.command(name))
