"""Third-party libraries come from the registry, under licenses that deny.toml allows."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from importlib import metadata

from conftest import ROOT
from packaging.specifiers import SpecifierSet


def test_licenses_and_sources() -> None:
    allowed = tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"]
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    packages = json.loads(told)["packages"]
    assert len(packages) > 50
    for one in packages:
        if one["source"] is None:
            assert one["manifest_path"].startswith(str(ROOT)), one["name"]
            continue
        assert one["source"] == "registry+https://github.com/rust-lang/crates.io-index", one["name"]
        assert _is_allowed(one["license"] or "", allowed), f"{one['name']} is under {one['license']}"


def test_the_locked_versions_take_the_oldest_python() -> None:
    oldest = (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=") + ".0"
    )
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert len(pins) > 100
    for name, version in pins.items():
        held = metadata.distribution(name)
        assert held.version == version, f"{name} {held.version} is not the locked one: `make setup`"
        (wants,) = held.metadata.get_all("Requires-Python") or [""]
        assert SpecifierSet(wants).contains(oldest), (
            f"{name} {version} wants Python {wants}; pin one that {oldest} takes"
        )


def _is_allowed(expression: str, allowed: list[str]) -> bool:
    """Whether an SPDX expression is allowed: each part of its AND has an allowed license among its ORs. `/` is an
    old form of OR."""
    parts = [re.findall(r"[\w.+-]+", part) for part in re.sub(r"\s*/\s*", " OR ", expression).split(" AND ")]
    return all(set(part) & set(allowed) for part in parts)
