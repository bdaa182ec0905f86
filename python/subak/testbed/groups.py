"""Control groups of a testbed's commands: one for each running command with a weight, and one for all others."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from subak.errors import InputError

PATIENCE_S = 5.0
COMMANDS = "commands"
"""Name of the group of commands without a weight."""


@dataclass(frozen=True)
class Group:
    """A Linux control group (cgroup v2)."""

    folder: Path

    def join(self) -> None:
        """Moves this process, and the processes that it starts, into the group."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def leave(self) -> None:
        """Removes the group if no process is left in it; processes that a command left running keep its weight."""
        with suppress(OSError):
            self.folder.rmdir()

    def end(self) -> None:
        """Ends the processes in the group, and removes it."""
        until = time.monotonic() + PATIENCE_S
        while self.folder.exists() and time.monotonic() < until:
            try:
                (self.folder / "cgroup.kill").write_text("1")
                below = sorted((path for path in self.folder.rglob("*") if path.is_dir()), reverse=True)
                for folder in (*below, self.folder):
                    folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)


def groups(testbed: str) -> list[Group]:
    """The control groups of a testbed's commands."""
    root = _root()
    ours = re.compile(rf"subak-{re.escape(testbed)}-(\d+|{COMMANDS})")
    return [Group(folder) for folder in root.iterdir() if ours.fullmatch(folder.name)] if root else []


def new_group(testbed: str) -> Group:
    """Creates a group for a command with a weight."""
    root = _root()
    if root is None:
        what = "no cgroup2 is mounted, by which a command has a weight"
        raise InputError(None, "--weight", what, "mount -t cgroup2 none /sys/fs/cgroup")
    folder = root / f"subak-{testbed}-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise InputError(None, "--weight", f"{folder} cannot be made: {error.strerror}", "run as root") from None
    return Group(folder)


def join_common(testbed: str) -> None:
    """Moves this process into the group of commands without a weight, if there are control groups."""
    if (root := _root()) is None:
        return
    folder = root / f"subak-{testbed}-{COMMANDS}"
    try:
        folder.mkdir(exist_ok=True)
        Group(folder).join()
    except OSError as error:
        hint = "run as root, with cgroup2 mounted for writing"
        raise InputError(None, "", f"{folder}: {error.strerror}", hint) from None


def leave_all(testbed: str) -> None:
    """Moves this process out of the testbed's groups, which are about to be removed."""
    own = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip()
    if (root := _root()) and any(group.folder == root / own.lstrip("/") for group in groups(testbed)):
        (root / "cgroup.procs").write_text(str(os.getpid()))


def _root() -> Path | None:
    """Mount point of version 2 control groups."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, *_ = line.split(" ")
        if kind == "cgroup2":
            return Path(folder)
    return None


def weigh(agent: str, programs: dict[str, object], whose: str, weight: float) -> None:
    """Sets the weight of new connections from a control group, or to an address."""
    maps = programs.get("weights")
    assert isinstance(maps, dict)
    number = maps["groups" if whose.startswith("/") else "destinations"]
    done = subprocess.run(
        [agent, "weigh", "--map", str(number), whose, str(weight)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        what = (done.stderr.strip().splitlines() or ["it failed"])[-1].removeprefix("subak-agent: ")
        raise InputError(None, "--weight", what, "give a weight from 0.001 to 1000000, while the testbed is up")
