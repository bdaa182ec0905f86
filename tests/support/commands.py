"""The ``subak`` command in a process of its own, without the half second that its imports take.

``run`` starts a server that has imported what commands use. For each call the server forks a child, which has the
caller's arguments, folder, environment and pipes, and ends as the command does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

PRELOADED = (
    "matplotlib.figure",
    "numpy",
    "ortools.sat.python.cp_model",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "subak.cli",
)
MOST_BYTES = 1 << 20
"""Bytes of a request at the most."""


class Done(NamedTuple):
    """What is left of a command that has ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run(*arguments: str, given: bytes = b"", cwd: Path | None = None, timeout: float = 120) -> Done:
    """The result of ``subak ARGUMENTS``, with ``given`` as standard input. Commands run one at a time."""
    server = start()
    if os.environ.get("PYTHONPATH") != server.path:
        # Other modules may be found there than those that the server has imported.
        command = [Path(sys.executable).parent / "subak", *arguments]
        ended = subprocess.run(command, input=given, capture_output=True, cwd=cwd, timeout=timeout, check=False)
        return Done(ended.returncode, ended.stdout, ended.stderr)
    return server(arguments, given, cwd, timeout)


class _Server:
    def __init__(self) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one = threading.Lock()
        self.path = os.environ.get("PYTHONPATH")
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(its.fileno())],
            # Pipes, as the children's: files of Python remember what they were opened on.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[its.fileno()],
        )
        its.close()

    def __call__(self, arguments: tuple[str, ...], given: bytes, cwd: Path | None, timeout: float) -> Done:
        with self._one:
            pipes = [os.pipe() for _ in range(3)]
            (stdin, into), (out, stdout), (err, stderr) = pipes
            asked = {"arguments": arguments, "folder": str(cwd or Path.cwd()), "environment": dict(os.environ)}
            socket.send_fds(self._socket, [json.dumps(asked).encode()], [stdin, stdout, stderr])
            for end in (stdin, stdout, stderr):
                os.close(end)
            kept: list[bytes] = [b"", b""]
            threads = [
                threading.Thread(target=_write, args=(into, given)),
                *(threading.Thread(target=_read, args=(end, kept, k)) for k, end in enumerate((out, err))),
            ]
            for thread in threads:
                thread.start()
            pid = int(self._socket.recv(MOST_BYTES))
            self._socket.settimeout(timeout)
            try:
                code = int(self._socket.recv(MOST_BYTES))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._socket.settimeout(None)
                self._socket.recv(MOST_BYTES)
                raise subprocess.TimeoutExpired(["subak", *arguments], timeout, kept[0], kept[1]) from None
            finally:
                self._socket.settimeout(None)
                for thread in threads:
                    thread.join()
            return Done(code, *kept)

    def close(self) -> None:
        self._socket.close()
        self._process.communicate()


@cache
def start() -> _Server:
    """The server, which has the environment of the first call."""
    server = _Server()
    atexit.register(server.close)
    return server


def _write(end: int, given: bytes) -> None:
    with open(end, "wb") as file:
        try:
            file.write(given)
            file.flush()
        except BrokenPipeError:
            file.detach()
            os.close(end)


def _read(end: int, kept: list[bytes], k: int) -> None:
    with open(end, "rb") as file:
        kept[k] = file.read()


def _serve(line: socket.socket) -> Callable[[], None]:
    """Forks a child for each request. Returns in the child, with the command to run; ends with the caller."""
    for name in PRELOADED:
        __import__(name)
    from subak.cli import main

    gc.collect()
    gc.freeze()
    while True:
        text, fds, _, _ = socket.recv_fds(line, MOST_BYTES, 3)
        if not text:
            os._exit(0)
        asked = json.loads(text)
        pid = os.fork()
        if not pid:
            line.close()
            for number, end in enumerate(fds):
                os.dup2(end, number)
                os.close(end)
            os.chdir(asked["folder"])
            os.environ.clear()
            os.environ.update(asked["environment"])
            sys.argv = ["subak", *asked["arguments"]]
            return main
        for end in fds:
            os.close(end)
        line.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))()
