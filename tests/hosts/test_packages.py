"""Packages of the daemons: they are built, installed, run and purged."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

NAMES = ("subak-allocator", "subak-agent")
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="packages are installed by root"),
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb: this is no Debian"),
]


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=ROOT, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def _installed(name: str) -> bool:
    asked = subprocess.run(["dpkg", "-s", name], capture_output=True, text=True, check=False)
    return "Status: install ok installed" in asked.stdout


def _newer(package: Path, folder: Path) -> Path:
    """The package with a later version."""
    content = folder / package.stem
    _run("dpkg-deb", "--raw-extract", package, content)
    control = content / "DEBIAN/control"
    control.write_text(re.sub("(Version: .*)", r"\1+1", control.read_text()))
    _run("dpkg-deb", "--root-owner-group", "--build", content, f"{content}+1.deb")
    return Path(f"{content}+1.deb")


def test_the_allocator_has_real_time_priority() -> None:
    """A busy machine would otherwise delay its heartbeats, and the standby take over."""
    path = ROOT / "packages" / "systemd" / "subak-allocator.service"
    unit = path.read_text().splitlines()
    assert {"CPUSchedulingPolicy=rr", "CPUSchedulingPriority=1"} <= set(unit)
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
        assert not re.search("Unknown|Failed to parse|ignoring", done.stderr), done.stderr


def test_packages_are_installed_upgraded_removed_and_purged(tmp_path: Path) -> None:
    if any(map(_installed, NAMES)):
        pytest.skip("packages are installed here; they are not this test's to purge")
    had = Path("/etc/subak").exists()
    built = _run("packages/build.sh").split()
    assert len(built) == len(NAMES)
    for name in NAMES:
        # Static: the program depends on no shared library.
        headers = _run("readelf", "--program-headers", "--dynamic", ROOT / "dist" / name)
        assert "INTERP" not in headers
        assert "NEEDED" not in headers
    try:
        _run("dpkg", "--install", *built)
        assert _run("/usr/bin/subak-allocator", "--version").startswith("subak-allocator ")
        assert len(_run("/usr/bin/subak-allocator", "key").strip()) == 64
        assert "needs" in _run("/usr/bin/subak-agent", "doctor")
        for unit in ("subak-allocator", "subak-flowtune", "subak-soze"):
            assert Path(f"/usr/lib/systemd/system/{unit}.service").is_file()
        for name in NAMES:
            assert name in Path(f"/usr/share/bash-completion/completions/{name}").read_text()
            with gzip.open(f"/usr/share/man/man1/{name}.1.gz", "rt") as page:
                assert f".TH {name}" in page.read()
        settings = Path("/etc/subak/flowtune.env")
        settings.write_text(settings.read_text().replace("10.0.0.1\n", "10.0.0.7\n"))
        _run("dpkg", "--install", *(_newer(Path(one), tmp_path) for one in built))
        assert "HOST=10.0.0.7" in settings.read_text()
        assert re.search(r"Version: .*\+1\n", _run("dpkg", "--status", "subak-agent"))
        _run("dpkg", "--remove", *NAMES)
        assert settings.is_file()
        assert not Path("/usr/bin/subak-agent").exists()
    finally:
        _run("dpkg", "--purge", *NAMES)
    left = [Path("/usr/bin") / name for name in NAMES] + [Path("/etc/subak")] * (not had)
    assert not [path for path in left if path.exists()]
