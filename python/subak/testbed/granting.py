"""The process that holds Flowtune's daemons of a testbed that stays.

It ends with the process that holds the namespaces.

The process reads one JSON line from standard input, and writes one to standard output when the daemons are ready.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from subak.errors import InputError
from subak.testbed import holder, processes
from subak.testbed.flowtune import Flowtune
from subak.testbed.layout import Layout, Plan
from subak.testbed.testbed import Testbed


@dataclass(frozen=True)
class _Held:
    """The part of a testbed that the daemons need, if another process created it."""

    plan: Plan
    pid: int
    files: list[int]

    def namespace(self, node: int) -> str:
        return f"/proc/{self.pid}/fd/{self.files[node]}"


def start(testbed: Testbed, layout: Layout, configured: dict[str, Any], name: str) -> dict[str, Any]:
    """Starts the daemons; returns the identifiers of their maps, the URL of their page, and the pid of their holder."""
    told = {**holder.order(testbed.plan, layout), "pid": testbed.pid, "files": testbed.files}
    line = json.dumps({**told, "configured": configured, "name": name}) + "\n"
    command = [sys.executable, "-m", "subak.testbed.granting"]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert running.stdin
    assert running.stdout
    running.stdin.write(line)
    running.stdin.close()
    answer = running.stdout.readline()
    ready: dict[str, Any] = json.loads(answer) if answer else {}
    if "error" in ready:
        raise InputError(None, **ready["error"])
    if not ready:
        raise InputError(None, "", "Flowtune's daemons could not be started", "run `subak doctor`")
    return ready


def main() -> None:
    """Holds the daemons until the process that holds the namespaces ends, or until it is terminated."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = json.loads(sys.stdin.readline())
    plan, trees = holder.read(told)
    held = _Held(plan, told["pid"], told["files"])
    ending = os.pidfd_open(held.pid)
    try:
        daemons = Flowtune(held, Layout(plan, trees), told["configured"], told["name"])
    except InputError as error:
        print(json.dumps({"error": {"place": error.place, "what": error.what, "hint": error.hint}}), flush=True)
        sys.exit(2)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with daemons:
        names = ("subak-allocator serve", "subak-agent flowtune")
        running = [processes.known(*one) for one in zip(names, (p.pid for p in daemons.processes), strict=True)]
        ready = {"weights": daemons.weights, "page": daemons.page, "pid": os.getpid(), "processes": running}
        print(json.dumps(ready), flush=True)
        holder.close_streams()
        select.select([ending], [], [])


if __name__ == "__main__":
    main()
