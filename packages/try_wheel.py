"""Installs and uses a wheel as a newcomer without Rust does: ``python packages/try_wheel.py WHEEL``.

It works in a folder of its own, without this environment and without cargo on the path. It installs the wheel with the
locked versions of its libraries, solves a first case, runs the quick start and an experiment, and executes a notebook.
It prints the seconds of each step.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = """
import nbclient, nbformat
book = nbformat.read("examples/notebooks/allocation.ipynb", as_version=4)
nbclient.NotebookClient(book, timeout=120).execute()
print(book.cells[1].outputs[0].data["text/plain"])
"""
PATH = ("/usr/local/bin", "/usr/bin", "/bin")


def steps(wheel: Path, python: Path) -> list[tuple[str, list[str | Path]]]:
    """The steps in order: a name, and the command."""
    subak = python.with_name("subak")
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--constraint", ROOT / "requirements.lock"]
    return [
        ("an environment", [sys.executable, "-m", "venv", python.parents[1]]),
        ("installation", [*pip, wheel]),
        ("the first answer", [subak, "solve", "examples/cases/two-flows.json"]),
        ("the demo's run", [subak, "run", "examples/demo.toml", "--out", "out/demo"]),
        ("its report", [subak, "report", "out/demo", "--output", "out/demo/report.html"]),
        ("an experiment", [subak, "repro", "perc-fig3.5"]),
        ("matplotlib", [*pip, f"{wheel}[plot]"]),
        ("its picture", [subak, "repro", "perc-fig3.5"]),
        ("Jupyter", [*pip, "nbclient", "ipykernel"]),
        ("a notebook", [python, "-c", NOTEBOOK]),
    ]


def main() -> None:
    """Runs all steps; the exit status is 1 if one fails, and later steps are omitted."""
    wheel = Path(sys.argv[1]).resolve()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = folder / "venv/bin/python"
        shutil.copytree(ROOT / "examples", folder / "examples")
        env = {"PATH": os.pathsep.join([str(python.parent), *PATH]), "HOME": os.environ.get("HOME", name)}
        env |= {
            key: os.environ[key] for key in ("PIP_INDEX_URL", "PIP_CACHE_DIR", "SSL_CERT_FILE") if key in os.environ
        }
        for what, command in steps(wheel, python):
            since = time.monotonic()
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
                sys.exit(f"{what} failed")
            now = time.monotonic()
            print(f"{what:<20}{now - since:6.1f} s{now - begun:8.1f} s so far", flush=True)


if __name__ == "__main__":
    main()
