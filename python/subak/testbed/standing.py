"""Testbeds that exist between commands, each with a state file in /run and a process that holds its namespaces."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.testbed import processes, relay
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
        """Whether the process that holds the testbed runs."""
        return processes.is_running(self.pid, self.started)

    def ended(self) -> list[dict[str, Any]]:
        """Processes of the testbed's scheme that have ended, each with ``name`` and ``pid``: somebody killed them."""
        known = (self.programs or {}).get("processes", [])
        return [
            {"name": one["name"], "pid": one["pid"]}
            for one in known
            if not processes.is_running(one["pid"], one["started"])
        ]

    def check(self, place: str) -> None:
        """Raises ``InputError`` at ``place`` if a process of the testbed's scheme has ended."""
        if ended := self.ended():
            words = " and ".join(f"{one['name']} (process {one['pid']})" for one in ended)
            what = f"{words} of the testbed {self.name} ended: connections have the kernel's congestion control"
            raise InputError(None, place, what, self.again)

    @property
    def again(self) -> str:
        """How to start the testbed again."""
        return f"start it again: subak testbed down --name {self.name}, then the command `subak testbed up` as before"

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
            while (self.alive or any(processes.started(pid) for pid in others)) and time.monotonic() < until:
                time.sleep(0.01)
        self.path.unlink(missing_ok=True)
        processes.remove_folders()


def _identity(path: str) -> tuple[int, int] | None:
    """Identity of a namespace while it exists; ``None`` if the file is gone, or the process a zombie."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def reserved(name: str) -> Iterator[None]:
    """Reserves a testbed's name while the testbed is made; raises ``InputError`` if it is up, or being made."""
    path = FOLDER / f"{name}.lock"
    hint = f"remove it: subak testbed down --name {name}; or use another name"
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror}"
        raise InputError(None, "", what, "make /run/subak writable for root") from None
    if file is None:
        what = f'another command is making a testbed called "{name}"'
        raise InputError(None, "--name", what, f"wait until it is up, then {hint}")
    try:
        if any(standing.name == name and standing.alive for standing in everything()):
            raise InputError(None, "--name", f'a testbed called "{name}" is up already', hint)
        if left := remains(name):
            left.down()
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _locked(path: Path) -> int | None:
    """The locked file at ``path``; ``None`` if another process has locked it. The kernel unlocks it at its end."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        # The process that had the lock before removes the file.
        with suppress(FileNotFoundError):
            if os.path.sameopenfile(file, there := os.open(path, os.O_RDONLY)):
                os.close(there)
                return file
            os.close(there)
        os.close(file)


def clean() -> list[str]:
    """Removes all testbeds, and what killed commands left; returns the testbeds' names."""
    found = everything()
    for standing in found:
        standing.down()
    for path in FOLDER.glob("*.lock"):
        if (file := _locked(path)) is not None:
            path.unlink(missing_ok=True)
            os.close(file)
    processes.remove_folders()
    return [standing.name for standing in found]


def everything() -> list[Standing]:
    """All testbeds with a state file, running or not; invalid files are removed."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        try:
            found.append(Standing(**json.loads(path.read_text())))
        except (OSError, ValueError, TypeError):
            path.unlink(missing_ok=True)
    return found


def remains(name: str) -> Standing | None:
    """What is left of a testbed with this name whose own process was killed."""
    return next((standing for standing in everything() if standing.name == name and not standing.alive), None)


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
