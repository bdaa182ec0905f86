"""Trials of schemes in Python on processes of this machine: an interpreter runs one trial at a time.

Each worker is ``python -m subak.processes``. It reads the spec once, then numbers of trials, and writes each
result. The main module of the caller is never imported, so that a script needs no guard.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import IO, Any

from subak import _subak

Came = tuple[int, bytes | None, bytes | None, str | None, float, float]
"""Result of a trial: number, table, packets, error, wall-clock time and processor time in seconds."""

LOOK_S = 0.1
"""Interval, s, at which a run without new results checks for cancellation."""


def suits(spec: _subak.Spec) -> bool:
    """Whether some scheme of ``spec`` is a file of Python, and no trial runs on hosts."""
    return spec.is_interpreted() and not spec.is_on_hosts()


def runs(spec: _subak.Spec, jobs: int) -> Callable[[list[int]], Iterator[Came | None]]:
    """A function that runs trials of ``spec`` on at most ``jobs`` processes."""
    return lambda trials: _Pool(spec, trials).come(min(jobs, len(trials)))


class _Pool:
    """The processes of one run, each with a thread that hands it trials."""

    def __init__(self, spec: _subak.Spec, trials: list[int]) -> None:
        self._content = pickle.dumps(spec.parts())
        self._waiting = list(reversed(trials))
        self._missing = len(trials)
        self._came: SimpleQueue[Came] = SimpleQueue()
        self._lock = Lock()
        self._open: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def come(self, jobs: int) -> Iterator[Came | None]:
        """Yields the results in any order, and ``None`` periodically while there is none."""
        threads = [Thread(target=self._work, daemon=True) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        try:
            while self._missing:
                try:
                    came = self._came.get(timeout=LOOK_S)
                except Empty:
                    yield None
                    continue
                self._missing -= 1
                yield came
        finally:
            with self._lock:
                self._ended = True
                for process in self._open:
                    process.kill()
            for thread in threads:
                thread.join()

    def _work(self) -> None:
        """Runs trials on one process after another: a new one where the last has died."""
        process = None
        while (trial := self._next()) is not None:
            process = process or self._start()
            if process is None:
                break
            try:
                came = _ask(process, trial)
            except (EOFError, OSError, pickle.UnpicklingError):
                came = trial, None, None, _died(process.wait()), 0.0, 0.0
                self._close(process)
                process = None
            self._came.put(came)
        if process:
            self._close(process)

    def _next(self) -> int | None:
        with self._lock:
            return self._waiting.pop() if self._waiting and not self._ended else None

    def _start(self) -> subprocess.Popen[bytes] | None:
        command = [sys.executable, "-m", "subak.processes"]
        with self._lock:
            if self._ended:
                return None
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._open.add(process)
        # Where it has died, the first trial's answer says so.
        with suppress(OSError):
            _pipe(process.stdin).write(self._content)
        return process

    def _close(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._open.discard(process)
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                _pipe(pipe).close()
        process.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _ask(process: subprocess.Popen[bytes], trial: int) -> Came:
    pickle.dump(trial, _pipe(process.stdin))
    _pipe(process.stdin).flush()
    came: Came = pickle.load(_pipe(process.stdout))
    return came


def _died(code: int) -> str:
    if code < 0:
        name = signal.Signals(-code).name
        return f"its process was ended by {name}: perhaps memory ran out, or a library of the scheme crashed"
    return f"its process ended with status {code}"


def main() -> None:
    """Runs trials whose numbers come from standard input until it ends."""
    # A terminal sends Ctrl-C to all processes; this one ends with the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    # What a scheme prints goes to standard error.
    os.dup2(2, 1)
    asked = sys.stdin.buffer
    tree, files = pickle.load(asked)
    spec = _subak.Spec.brought(tree.encode(), files)
    while True:
        try:
            trial = pickle.load(asked)
        except EOFError:
            return
        pickle.dump(_run(spec, trial), answers)
        answers.flush()


def _run(spec: _subak.Spec, trial: int) -> Came:
    def wanted() -> bool:
        return True

    try:
        with tempfile.TemporaryDirectory(prefix="subak-") as folder:
            came: Any = spec.run_trial(trial, folder, wanted)
    except Exception as error:
        return trial, None, None, f"{type(error).__name__}: {error}", 0.0, 0.0
    result: Came = came or (trial, None, None, "it was broken off", 0.0, 0.0)
    return result


if __name__ == "__main__":
    main()
