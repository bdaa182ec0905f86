"""Testbeds that exist between commands, each with a state file in /run and a process that holds its namespaces."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.testbed import relay
from subak.testbed.groups import groups, leave_all
from subak.testbed.layout import address

FOLDER = Path(os.environ.get("SUBAK_RUN", "/run/subak"))
"""Folder of the state files; commands with another folder do not see these testbeds."""
PATIENCE_S = 5.0


@dataclass(frozen=True)
class Standing:
    """A testbed that another command created, as its state file describes it."""

    name: str
    pid: int
    started: int
    nodes: list[dict[str, Any]]
    links: list[dict[str, Any]]
    programs: dict[str, Any] | None = None
    """Identifiers of the kernel programs' maps, if there are any."""
    relay: dict[str, Any] | None = None
    """The relay's process id (``pid``) and its ``links`` by their numbers, if any link is relayed."""

    @property
    def path(self) -> Path:
        """Path of the state file."""
        return FOLDER / f"{self.name}.json"

    @property
    def alive(self) -> bool:
        """Whether the process that holds the testbed runs.

        Process ids are reused, so that the start time is compared too.
        """
        return self.started != 0 and _started(self.pid) == self.started

    def save(self) -> None:
        """Writes the state file atomically."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(vars(self)))
        part.replace(self.path)

    def node(self, name: str) -> dict[str, Any]:
        """The node with this name."""
        for node in self.nodes:
            if node["name"] == name:
                return node
        names = ", ".join(node["name"] for node in self.nodes[:20])
        raise InputError(None, "HOST", f'the testbed {self.name} has no node "{name}"', f"choose one of: {names}")

    def namespace(self, name: str) -> str:
        """Path of a node's network namespace."""
        return f"/proc/{self.pid}/fd/{self.node(name)['file']}"

    def change(self, link: str, change: dict[str, Any], *, both: bool = False) -> list[str]:
        """Changes a relayed link, with ``both`` also its reverse link; returns the names of the changed links."""
        numbers = [number for number, known in enumerate(self.links) if known["id"] == link]
        if not numbers:
            names = ", ".join(known["id"] for known in self.links[:20])
            raise InputError(None, "LINK", f'the testbed {self.name} has no link "{link}"', f"choose one of: {names}")
        if both:
            ends = self.links[numbers[0]]["from"], self.links[numbers[0]]["to"]
            numbers += [n for n, known in enumerate(self.links) if (known["to"], known["from"]) == ends]
        places = {number: place for place, number in enumerate((self.relay or {}).get("links", []))}
        if self.relay is None or not all(number in places for number in numbers):
            hint = "give it a delay in the network, or make the testbed with: subak testbed up NETWORK --relay"
            raise InputError(None, "LINK", f'the link "{link}" is not relayed', hint)
        relay.tell(self.relay["pid"], [{"link": places[number], "change": change} for number in numbers])
        return [self.links[number]["id"] for number in numbers]

    def relayed(self) -> dict[int, dict[str, Any]]:
        """State of the relayed links by their numbers."""
        if self.relay is None:
            return {}
        return dict(zip(self.relay["links"], relay.tell(self.relay["pid"])["links"], strict=True))

    @property
    def label(self) -> str:
        """Name of the testbed's control groups; it differs from that of an earlier testbed of the same name."""
        return f"{self.name}-{self.pid}"

    def _end_inside(self) -> None:
        """Ends all processes in the testbed's namespaces."""
        own = {self.pid, (self.programs or {}).get("pid"), os.getpid()}
        namespaces = {_identity(self.namespace(node["name"])) for node in self.nodes} - {None}
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
            inside = [pid for pid in pids if pid not in own and _identity(f"/proc/{pid}/ns/net") in namespaces]
            if not inside:
                return
            for pid in inside:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def down(self) -> None:
        """Ends the testbed's commands and the process that holds its namespaces, which the kernel then removes."""
        leave_all(self.label)
        for group in groups(self.label):
            group.end()
        if self.alive:
            self._end_inside()
            os.kill(self.pid, signal.SIGKILL)
            until = time.monotonic() + PATIENCE_S
            # The processes of the kernel programs and of the relay end by themselves then.
            others = [(told or {}).get("pid", 0) for told in (self.programs, self.relay)]
            while (self.alive or any(_started(pid) for pid in others)) and time.monotonic() < until:
                time.sleep(0.01)
        self.path.unlink(missing_ok=True)


def _identity(path: str) -> tuple[int, int] | None:
    """Identity of a namespace while it exists; ``None`` if the file is gone, or the process a zombie."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def started(pid: int) -> int:
    """Start time of a process, in clock ticks since boot; 0 if there is none."""
    return _started(pid)


def _started(pid: int) -> int:
    try:
        # The name is in parentheses and may contain anything; the state is the first field after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def everything() -> list[Standing]:
    """All testbeds with a state file, running or not; invalid files are removed."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        try:
            found.append(Standing(**json.loads(path.read_text())))
        except (OSError, ValueError, TypeError):
            path.unlink(missing_ok=True)
    return found


def one(name: str | None) -> Standing:
    """The testbed with this name, or the only one."""
    up = [standing for standing in everything() if standing.alive]
    if name is not None:
        for standing in up:
            if standing.name == name:
                return standing
        names = ", ".join(standing.name for standing in up) or "none"
        raise InputError(None, "--name", f'no testbed called "{name}" is up', f"up are: {names}")
    if not up:
        raise InputError(None, "", "no testbed is up", "make one: subak testbed up NETWORK")
    if len(up) > 1:
        names = ", ".join(standing.name for standing in up)
        raise InputError(None, "--name", f"{len(up)} testbeds are up", f"say which: --name with one of {names}")
    return up[0]


def host_address(node: int) -> str:
    """The address of a host in a testbed without a spec."""
    return address(node, 0)
