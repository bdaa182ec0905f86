"""Processes that belong to a testbed, and folders of processes that were killed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

_FOLDER = "subak-flowtune-"


def started(pid: int) -> int:
    """Start time of a process, in clock ticks since boot; 0 if there is none."""
    try:
        # The name is in parentheses and may contain anything; the state is the first field after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def is_running(pid: int, start: int) -> bool:
    """Whether the process with this id and start time runs. Ids are reused, so that the start time is compared too."""
    return start != 0 and started(pid) == start


def known(name: str, pid: int) -> dict[str, Any]:
    """A running process of a testbed, for its state file."""
    return {"name": name, "pid": pid, "started": started(pid)}


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for files of this process' daemons. Its name identifies the process, whose kill leaves the folder."""
    prefix = f"{_FOLDER}{os.getpid()}-{started(os.getpid())}-"
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def remove_folders() -> None:
    """Removes the folders of processes that have ended."""
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        made_by = re.match(rf"{_FOLDER}(\d+)-(\d+)-", path.name)
        if made_by and path.lstat().st_uid == os.geteuid() and not is_running(*map(int, made_by.groups())):
            shutil.rmtree(path, ignore_errors=True)
