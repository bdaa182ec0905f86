"""The wheel and the source distribution: whole, as their names say, and enough for one who has no Rust."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This machine's, of what setup has built."""
    folder = tmp_path_factory.mktemp("wheel")
    _run("packages/wheel.sh", "here", folder)
    (made,) = folder.glob("*.whl")
    return made


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=ROOT, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def _looked_at(wheel: Path) -> tuple[int, str]:
    command = [sys.executable, ROOT / "packages/check_wheel.py", wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_it_is_as_its_name_says(wheel: Path) -> None:
    code, told = _looked_at(wheel)
    assert (code, told.count("as its name says")) == (0, 1), told


def test_what_is_wrong_with_a_wheel_is_told(wheel: Path, tmp_path: Path) -> None:
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}
    arch = wheel.stem.rpartition("linux_")[2].split("_", 2)[-1]
    tag = "subak-0.1.0-cp311-abi3-manylinux_2_17_"
    named = {
        f"{tag}{other[arch]}.whl": f"it is called {other[arch]}",
        "subak-0.1.0-cp311-abi3-manylinux_2_5_" + arch + ".whl": "newer than its name says",
        "subak-0.1.0-cp312-cp312-linux_" + arch + ".whl": "stable ABI",
    }
    for name, fault in named.items():
        (tmp_path / name).write_bytes(wheel.read_bytes())
        code, told = _looked_at(tmp_path / name)
        assert code == 1
        assert fault in told
    less = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(less, "w") as part:
        for item in whole.namelist():
            if not item.endswith(("subak.1", "cli.py")):
                part.writestr(item, whole.read(item))
    code, told = _looked_at(less)
    assert code == 1
    assert "it lacks subak/cli.py, share/man/man1/subak.1" in told


def test_it_is_enough_without_rust(wheel: Path) -> None:
    told = _run(sys.executable, "packages/try_wheel.py", wheel)
    assert told.splitlines()[-1].startswith("a notebook"), told


def test_the_source_distribution_holds_all_that_is_built(tmp_path: Path) -> None:
    _run(Path(sys.executable).with_name("maturin"), "sdist", "--out", tmp_path)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    tracked = _run("git", "ls-files", "python", "packages/wheel", "Cargo.lock", "LICENSE", "README.md").split()
    assert set(tracked) - names == set()
    # The crate of the package, with all that it is made of.
    tree = _run("cargo", "tree", "--offline", "--locked", "-p", "subak-py", "--edges", "normal", "--prefix", "none")
    crates = {Path(line.split("(")[1].rstrip(")")).name for line in tree.splitlines() if f"({ROOT}" in line}
    assert {"py", "lab", "solve", "packet"} <= crates
    sources = set(_run("git", "ls-files", *(f"crates/{crate}/src" for crate in crates)).split())
    assert sources - names == set()
    # Pip builds what it has unpacked: the lock file has more than is left of the workspace, and that must not matter.
    with tarfile.open(made) as held:
        held.extractall(tmp_path, filter="data")
    (root,) = (path for path in tmp_path.iterdir() if path.is_dir())
    unpacked = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["maturin"]
    locked = ["--locked"] if unpacked.get("locked") else []
    _run("cargo", "metadata", "--offline", *locked, "--format-version", "1", "--manifest-path", root / "Cargo.toml")
    for source in root.glob("crates/*/src/**/*.rs"):
        for included in re.findall(r'include_(?:str|bytes)!\("(.+?)"\)', source.read_text()):
            assert (source.parent / included).exists(), f"{source} wants {included}"
