from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
COMMAND = Path(sys.executable).parent / "subak"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Subak = Callable[..., Ended]


@pytest.fixture(scope="session")
def subak() -> Subak:
    """Runs the real command; its output is no terminal."""

    def run(*arguments: str | Path, given: bytes = b"", cwd: Path | None = None) -> Ended:
        done = subprocess.run([COMMAND, *arguments], input=given, capture_output=True, timeout=120, cwd=cwd)
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def two_flows() -> dict[str, Any]:
    """The PERC thesis' figure 2.1: 18 and 12 Gb/s."""
    return json.loads((ROOT / "examples/cases/two-flows.json").read_text())
