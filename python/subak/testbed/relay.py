"""The relay: a program that carries the packets of links with delay or faults between TAP devices at their ends.

A child of the process that holds the namespaces. Commands are lines of its standard input; it writes its state to a
file without a name, its standard output. Other processes reach both by its process id.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import struct
import subprocess
import time
from collections.abc import Iterable
from typing import Any

from subak.errors import InputError

TUNSETIFF = 0x400454CA
TUNSETIFINDEX = 0x400454DA
IFF_TAP_WITHOUT_HEAD = 0x1002
ENDED = 3
"""Exit status of the process that holds the namespaces, if the relay ended before."""
PATIENCE_S = 10.0


def tap(name: str, number: int = 0) -> int:
    """Creates a TAP device in the thread's namespace; returns its file. The device ends with the last such file."""
    try:
        file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        what = f"/dev/net/tun cannot be opened: {error.strerror}"
        hint = "links with delay or faults use TAP devices: modprobe tun, or mknod /dev/net/tun c 10 200"
        raise InputError(None, "", what, hint) from None
    try:
        if number:
            fcntl.ioctl(file, TUNSETIFINDEX, struct.pack("I", number))
        fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_WITHOUT_HEAD))
    except OSError as error:
        os.close(file)
        what = f"a TAP device cannot be made: {error.strerror}"
        raise InputError(None, "", what, "run `subak doctor`, which says what this machine lacks") from None
    return file


def start(agent: str, links: list[dict[str, Any]], seed: int) -> subprocess.Popen[bytes]:
    """Starts the relay for these links."""
    files = {link[end] for link in links for end in ("from", "to")}
    state = os.memfd_create("subak-relay")
    pipe = subprocess.PIPE
    running = subprocess.Popen([agent, "relay"], stdin=pipe, stdout=state, stderr=pipe, pass_fds=sorted(files))
    os.close(state)
    assert running.stdin
    assert running.stderr
    try:
        running.stdin.write(json.dumps({"schema": 1, "seed": seed, "links": links}).encode() + b"\n")
        running.stdin.flush()
        _answer(running.pid, 0)
    except (InputError, BrokenPipeError):
        running.kill()
        said = running.stderr.read().decode().strip() or "subak-agent relay does not answer"
        raise InputError(None, "", said.removeprefix("subak-agent: "), "run `subak doctor`") from None
    return running


def tell(relay: int, changes: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Changes links, and returns the state of all. ``relay``: the relay's process id."""
    changes = list(changes)
    number = secrets.randbits(52) + 1
    line = json.dumps({"id": number, "changes": changes}).encode() + b"\n"
    try:
        file = os.open(f"/proc/{relay}/fd/0", os.O_WRONLY)
    except OSError:
        raise _ended() from None
    with open(file, "wb", buffering=0) as commands:
        view = memoryview(line)
        while view:
            view = view[commands.write(view) :]
    return _answer(relay, number)


def _answer(relay: int, number: int) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            with open(f"/proc/{relay}/fd/1", "rb") as state:
                told = json.loads(state.read())
        except ValueError:
            told = {"id": None}
        except OSError:
            raise _ended() from None
        if told["id"] == number:
            if told["error"]:
                raise InputError(None, "", f"the relay: {told['error']}", "see `subak testbed link --help`")
            return dict(told)
        time.sleep(0.001)
    raise InputError(None, "", f"the relay did not answer in {PATIENCE_S:g} s", "this machine has too much to do")


def _ended() -> InputError:
    return InputError(None, "", "the testbed's relay has ended", "make the testbed again")
