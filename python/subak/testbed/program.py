"""Runs a program on hosts: text in, text out, progress on standard error."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from typing import IO

from subak.errors import InputError

LOOK_S = 0.05


def run(
    command: list[str], text: str, goes_on: Callable[[float], bool], begun: Callable[[int], None] | None = None
) -> str:
    """Runs ``command`` with ``text`` as input; returns its output.

    The command is killed on an exception, or if ``goes_on`` returns false. ``goes_on`` gets the fraction done.
    ``begun`` gets the time at which the command begins its work, ns of the monotonic clock.
    """
    # Ctrl-C reaches only this process, which then ends the program.
    program = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdin
    assert program.stdout
    assert program.stderr
    errors = Errors(program.stderr, begun)
    answer: list[str] = []
    listeners = [
        threading.Thread(target=errors.listen, daemon=True),
        threading.Thread(target=lambda: answer.append(program.stdout.read()), daemon=True),  # type: ignore[union-attr]
    ]
    for listener in listeners:
        listener.start()
    try:
        try:
            with program.stdin:
                program.stdin.write(text)
        except BrokenPipeError:
            pass  # The program reports the reason on standard error.
        while program.poll() is None:
            if not goes_on(errors.share):
                raise KeyboardInterrupt
            if errors.failed:
                raise errors.failed
            try:
                program.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                continue
    finally:
        program.kill()
        program.wait()
        for listener in listeners:
            listener.join()
    if program.returncode != 0:
        what = errors.said[-1] if errors.said else f"it ended with {program.returncode}"
        name = command[0].rpartition("/")[2]
        raise InputError(None, "", f"{name}: {what.removeprefix(name + ': ')}", "run `subak doctor`")
    return answer[0]


class Errors:
    """Reader of a program's standard error: the fraction done and the begin as JSON, and errors as text."""

    def __init__(self, source: IO[str], begun: Callable[[int], None] | None = None) -> None:
        self.source = source
        self.begun = begun
        self.failed: InputError | None = None
        """Error of ``begun``."""
        self.share = 0.0
        self.said: list[str] = []

    def listen(self) -> None:
        """Reads standard error until it closes."""
        for line in self.source:
            try:
                told = json.loads(line)
                self.share = told["share"]
            except (ValueError, TypeError, KeyError):
                self.said.append(line.strip())
                continue
            if self.begun and "begun_ns" in told:
                try:
                    self.begun(told["begun_ns"])
                except InputError as error:
                    self.failed = error
