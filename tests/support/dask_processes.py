"""A Dask scheduler and its workers, as child processes of the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Dask:
    """A Dask scheduler and its workers, as child processes of the test."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._environment = os.environ | {"PYTHONWARNINGS": "ignore"} | environment
        self._processes: list[subprocess.Popen[bytes]] = []
        told = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", told
        )
        within(30, lambda: told.exists() and told.read_text().endswith("}"))
        self.address: str = json.loads(told.read_text())["address"]

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Starts one more worker, with one thread."""
        nanny = () if "--nanny" in options else ("--no-nanny",)
        folder = self._folder / f"worker{len(self._processes)}"
        words = (self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", folder, *nanny, *options)
        return self._start("worker", *words)

    def _start(self, what: str, *words: str | Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host", "127.0.0.1", *words]
        with (self._folder / f"said{len(self._processes)}").open("wb") as said:
            one = subprocess.Popen(command, stdout=said, stderr=said, env=self._environment, cwd=self._folder)
        self._processes.append(one)
        return one

    def close(self) -> None:
        for one in reversed(self._processes):
            if "--nanny" in one.args:
                # A nanny that is asked to terminate ends its worker too.
                one.terminate()
                one.wait(30)
            one.kill()
            one.wait()


def within(seconds: float, there: Callable[[], Any]) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
