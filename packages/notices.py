"""Writes the licence texts of the crates in a wheel: ``python packages/notices.py TARGET``.

TARGET is the wheel's, such as x86_64-unknown-linux-gnu. Licences require their texts in every distributed build.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTICES = ROOT / "packages/wheel/data/share/doc/subak/NOTICES"
TEXTS = re.compile(r"licen[cs]e|unlicense|copying|copyright|notice", re.IGNORECASE)
HEAD = """\
The compiled part of this package, subak/_subak, is made of Subak itself, of Rust's standard library
(MIT OR Apache-2.0) and of these crates. Below stand the texts that come with them, equal ones once.
"""


def crates(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """The third-party packages that are linked into subak-py, without those that only its build uses."""
    packages = {one["id"]: one for one in metadata["packages"]}
    needs = {
        node["id"]: [d["pkg"] for d in node["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
        for node in metadata["resolve"]["nodes"]
    }
    found: set[str] = set()
    left = [one["id"] for one in packages.values() if one["name"] == "subak-py"]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += needs[one]
    others = [packages[one] for one in found if packages[one]["source"]]
    return sorted(others, key=lambda one: (one["name"], one["version"]))


def texts(crate: dict[str, Any]) -> dict[str, str]:
    """Licence texts of a crate, by file name."""
    folder = Path(crate["manifest_path"]).parent
    files = {path for path in folder.iterdir() if TEXTS.match(path.name)}
    if crate["license_file"]:
        files.add(folder / crate["license_file"])
    # A folder LICENSES has all texts.
    files |= {inner for path in files if path.is_dir() for inner in path.iterdir()}
    return {path.name: _plain(path) for path in sorted(files) if path.is_file()}


def _plain(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def notices(listed: list[dict[str, Any]]) -> str:
    """Content of the file with all licence texts."""
    names, bare = [], []
    by_words: dict[tuple[str, ...], tuple[str, list[str]]] = {}
    for one in listed:
        name = f"{one['name']} {one['version']}"
        names.append(f"{name}: {one['license'] or 'see its text'}")
        held = texts(one)
        if not held:
            bare.append(names[-1])
        for file, text in held.items():
            by_words.setdefault(tuple(text.split()), (text, []))[1].append(f"{name}, {file}")
    parts = [HEAD, *names, "\nThese come without a text, under the licence that is named:\n", *bare]
    for text, of in by_words.values():
        parts += ["\n" + "=" * 100, *of, "-" * 100, text]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Writes the file, unless it exists with this content."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", sys.argv[1]]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    text = notices(crates(json.loads(told)))
    if not NOTICES.exists() or NOTICES.read_text(encoding="utf-8") != text:
        NOTICES.parent.mkdir(parents=True, exist_ok=True)
        NOTICES.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
