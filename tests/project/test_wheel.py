"""The wheel and the source distribution: complete, correctly named, and usable without Rust."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, made_once


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel for this machine, from the existing build."""
    folder = made_once(tmp_path_factory, "wheel", lambda folder: _run("packages/wheel.sh", "here", folder))
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
            if not item.endswith(("subak.1", "cli.py", "NOTICES")):
                part.writestr(item, whole.read(item))
    code, told = _looked_at(less)
    assert code == 1
    assert "it lacks subak/cli.py, share/man/man1/subak.1, share/doc/subak/NOTICES" in told


def test_it_has_the_licences_of_what_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        (name,) = (name for name in held.namelist() if name.endswith("NOTICES"))
        told = held.read(name).decode()
    tree = ["cargo", "tree", "--offline", "--locked", "-p", "subak-py", "--edges", "normal", "--prefix", "none"]
    crates = {
        match[1] for match in re.finditer(r"^(\S+ v\S+)(?: \(proc-macro\))?(?: \(\*\))?$", _run(*tree), re.MULTILINE)
    }
    assert len(crates) > 50
    listed = told[: told.index("These come without a text")].splitlines()
    bare = told[told.index("These come without a text") :].split("=" * 100)[0]
    for crate in crates:
        name, _, version = crate.partition(" v")
        assert any(line.startswith(f"{name} {version}: ") for line in listed), crate
        assert f"\n{name} {version}, " in told or f"\n{name} {version}: " in bare, (
            f"{crate} has neither text nor excuse"
        )
    texts = [" ".join(one.partition("-" * 100)[2].split()) for one in told.split("=" * 100)[1:]]
    assert len(texts) == len(set(texts)), "equal texts stand there once"
    assert any("Copyright (c) 2017-present PyO3 Project and Contributors" in text for text in texts)


def _venv(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
    return folder / "bin"


def test_the_readme_says_how_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"^pip install dist/.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    machine = os.uname().machine
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    # The folder as `make wheel` leaves it.
    (tmp_path / "dist").mkdir()
    for name in (wheel.name, wheel.name.replace(machine, other), "subak-0.1.0.tar.gz", "subak-agent"):
        (tmp_path / "dist" / name).write_bytes(wheel.read_bytes())
    programs = _venv(tmp_path / "venv")
    done = subprocess.run(
        f"{line} --no-deps --disable-pip-version-check",
        shell=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (programs / "subak").exists()


def test_a_newer_wheel_takes_the_place_of_an_older_one(wheel: Path, tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "dist").mkdir()
    there = tmp_path / "dist" / wheel.name
    shutil.copy(wheel, there)
    make = ["make", "--silent", "-C", tmp_path, f"PYTHON={sys.executable}", ".venv/.wheel"]
    _run(*make)
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(there, "w") as changed:
        for item in whole.namelist():
            marker = b"MARKER = 7\n" if item == "subak/units.py" else b""
            changed.writestr(item, whole.read(item) + marker)
    _run(*make)
    python = tmp_path / ".venv/bin/python"
    assert _run(python, "-I", "-c", "import subak.units; print(subak.units.MARKER)").strip() == "7"


FAKE_MATURIN = """\
#!/bin/sh
for last; do :; done
mkdir -p "$last"
touch "$last/subak-0.1.0-cp311-abi3-linux_$(uname -m).whl"
"""


@pytest.mark.parametrize(
    ("meanwhile", "named"),
    [
        ("", ""),
        ("echo changed >crates/a.rs", "crates/a.rs"),
        ("mv python/b.py python/c.py", "python/b.py python/c.py"),
        ("rm crates/a.rs", "crates/a.rs"),
        ("touch python/b.pyc packages/NOTICES", ""),
    ],
)
def test_sources_that_change_meanwhile_make_no_wheel(meanwhile: str, named: str, tmp_path: Path) -> None:
    for name in ("packages", "crates", "python", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ROOT / "packages/wheel.sh", tmp_path / "packages")
    for name in ("crates/a.rs", "python/b.py", "Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml"):
        (tmp_path / name).touch()
    for name, script in {"maturin": FAKE_MATURIN + meanwhile, "python": "#!/bin/sh"}.items():
        (tmp_path / ".venv/bin" / name).write_text(script + "\n")
        (tmp_path / ".venv/bin" / name).chmod(0o755)
    command = [tmp_path / "packages/wheel.sh", "here"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, len(list(tmp_path.glob("dist/*.whl")))) == ((1, 0) if named else (0, 1)), done.stderr
    assert named in done.stderr


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
    # The crate of the package, with all crates on which it depends.
    tree = _run("cargo", "tree", "--offline", "--locked", "-p", "subak-py", "--edges", "normal", "--prefix", "none")
    crates = {Path(line.split("(")[1].rstrip(")")).name for line in tree.splitlines() if f"({ROOT}" in line}
    assert {"py", "lab", "solve", "packet"} <= crates
    sources = set(_run("git", "ls-files", *(f"crates/{crate}/src" for crate in crates)).split())
    assert sources - names == set()
    # Pip builds from the unpacked distribution, whose lock file may have more packages than its reduced workspace.
    with tarfile.open(made) as held:
        held.extractall(tmp_path, filter="data")
    (root,) = (path for path in tmp_path.iterdir() if path.is_dir())
    unpacked = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["maturin"]
    locked = ["--locked"] if unpacked.get("locked") else []
    _run("cargo", "metadata", "--offline", *locked, "--format-version", "1", "--manifest-path", root / "Cargo.toml")
    for source in root.glob("crates/*/src/**/*.rs"):
        for included in re.findall(r'include_(?:str|bytes)!\("(.+?)"\)', source.read_text()):
            assert (source.parent / included).exists(), f"{source} wants {included}"
