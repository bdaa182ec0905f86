"""Checks wheels: whether each has the content that its file name states. ``python packages/check_wheel.py WHEEL...``.

It reads files and runs nothing, so that it also checks wheels for other processors.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME = re.compile(r"subak-[^-]+-cp311-abi3-(?:manylinux\w+\.)?(manylinux|linux)(?:_(\d+)_(\d+))?_(x86_64|aarch64)\.whl")
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
OF_THE_SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-[\w-]+)\.so\.\d+")
EXTENSION = "subak/_subak.abi3.so"
NEEDED_FILES = (EXTENSION, "subak/cli.py", "subak/py.typed", "subak/_subak.pyi")
OF_DATA = ("share/man/man1/subak.1", "share/doc/subak/NOTICES")


def faults(wheel: Path) -> list[str]:
    """Errors of a wheel, as text; empty if it is correct."""
    named = NAME.fullmatch(wheel.name)
    if not named:
        return ["its name is not that of a wheel for CPython's stable ABI from 3.11 on, on Linux"]
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
        missing = [name for name in NEEDED_FILES if name not in names]
        missing += [one for one in OF_DATA if not any(name.endswith(one) for name in names)]
        if missing:
            return [f"it lacks {', '.join(missing)}"]
        with tempfile.TemporaryDirectory() as folder:
            return _of_extension(held.extract(EXTENSION, folder), named)


def _of_extension(path: str, named: re.Match[str]) -> list[str]:
    command = ["readelf", "--wide", "--file-header", "--dynamic", "--version-info", path]
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    found = []
    machine = re.search(r"Machine:\s+(.+)", told.stdout)
    if not machine or machine[1].strip() != MACHINES[named[4]]:
        found.append(f"it is called {named[4]} and is for {machine[1].strip() if machine else 'nothing known'}")
    libraries = re.findall(r"\(NEEDED\).*\[(.+?)\]", told.stdout)
    foreign = [name for name in libraries if not OF_THE_SYSTEM.fullmatch(name)]
    if foreign:
        found.append(f"it wants {', '.join(foreign)}, which not every machine has")
    newest = max((tuple(map(int, one)) for one in re.findall(r"GLIBC_(\d+)\.(\d+)", told.stdout)), default=(0, 0))
    if named[2] and newest > (int(named[2]), int(named[3])):
        found.append(f"it wants glibc {newest[0]}.{newest[1]}, newer than its name says")
    return found


def main() -> None:
    """Prints a line for each wheel; the exit status is 1 if one has an error."""
    wrong = False
    for wheel in map(Path, sys.argv[1:]):
        said = faults(wheel)
        wrong |= bool(said)
        print(f"{wheel}: {'; '.join(said) or 'as its name says'}, {wheel.stat().st_size / 1e6:.1f} MB")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
