from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import commands
import pytest
from allocator_endpoint import Daemon, Endpoint, Make, making, two_to_one

ROOT = Path(__file__).parent.parent
COMMAND = Path(sys.executable).parent / "subak"
HOSTS_NICE = -10


def script(name: str) -> ModuleType:
    """Loads a script of ``docs`` as a module. Only while it is loaded can it import others of ``docs``.

    Afterwards ``docs/coverage.py`` would be taken for the package of that name, which Numba imports.
    """
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(ROOT / "docs"))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return module


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that ``make`` fills, once for all processes of a test run."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"once-{name}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            make(folder)
            (folder / "made").touch()
    return folder


@contextmanager
def only_testbed() -> Iterator[None]:
    """Runs tests of hosts one at a time: they check what programs leave in the kernel, and measure times of real
    packets. What they start goes before other tests."""
    with (Path(tempfile.gettempdir()) / "subak-one-testbed").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = os.getpriority(os.PRIO_PROCESS, 0)
        may = os.geteuid() == 0
        if may:
            os.setpriority(os.PRIO_PROCESS, 0, HOSTS_NICE)
        try:
            yield
        finally:
            if may:
                os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.fixture(autouse=True)
def _one_testbed(request: pytest.FixtureRequest) -> Iterator[None]:
    with only_testbed() if request.module.__name__.startswith("test_testbed") else nullcontext():
        yield


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Subak = Callable[..., Ended]


@pytest.fixture(scope="session")
def subak() -> Subak:
    """Runs the real command; its standard output is a pipe, not a terminal."""
    commands.start()

    def run(*arguments: str | Path, given: bytes = b"", cwd: Path | None = None) -> Ended:
        done = commands.run(*map(str, arguments), given=given, cwd=cwd)
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def two_flows() -> dict[str, Any]:
    """Figure 2.1 of the PERC thesis: flows whose max-min rates are 18 and 12 Gb/s."""
    return json.loads((ROOT / "examples/cases/two-flows.json").read_text())


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """A function that starts allocators, each in its own folder."""
    yield from making(tmp_path)


@pytest.fixture
def two(make: Make) -> tuple[Daemon, Endpoint, Endpoint, int, int]:
    """An allocator, and two hosts that send to a third one."""
    return two_to_one(make)
