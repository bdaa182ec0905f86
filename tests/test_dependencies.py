"""Libraries come from the registry, under the licenses that deny.toml allows."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib

from conftest import ROOT


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


def _is_allowed(expression: str, allowed: list[str]) -> bool:
    """Of an SPDX expression: each part of an AND has an allowed one among its ORs. `/` is an old way to write OR."""
    parts = [re.findall(r"[\w.+-]+", part) for part in re.sub(r"\s*/\s*", " OR ", expression).split(" AND ")]
    return all(set(part) & set(allowed) for part in parts)
