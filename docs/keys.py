"""Writes the tables of keys into the pages, from the declarations of keys: ``python docs/keys.py``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pages import table
from subak import _subak

PAGES = [Path(__file__).parent / name for name in ("cases.md", "networks.md", "specs.md")]
BLOCK = re.compile(
    r"^(<!-- keys of (\S+), by docs/keys.py -->\n).*?(?=^<!-- end of keys -->)", re.MULTILINE | re.DOTALL
)


def written(text: str) -> str:
    """The page with the tables between its markers replaced by those of the present declarations."""
    tables = key_tables()
    return BLOCK.sub(lambda block: f"{block[1]}\n{tables[block[2]]}\n", text)


def key_tables() -> dict[str, str]:
    """A table of keys for each kind of network, each workload, each section of a spec, and the flows of a case."""
    sections = json.loads(_subak.sections())
    of_case = json.loads(_subak.case_sections())
    found = {name: one["keys"] for name, one in sections.items() if one["keys"]}
    for one in json.loads(_subak.generators()):
        found[one["kind"]] = one["keys"]
    found["flow"] = of_case["flow"]["keys"]
    made = {name: _keys(keys) for name, keys in found.items()}
    kinds = sections["workload"]["schema"]
    return made | {"workloads": "\n".join(_workload(one) for one in kinds)}


def _workload(one: dict[str, Any]) -> str:
    return f"### `{one['kind']}`\n\n{one['about'][0].upper()}{one['about'][1:]}.\n\n{_keys(one['keys'])}"


def _keys(keys: list[dict[str, Any]]) -> str:
    rows = [[f"`{key['name']}`", key["unit"], key["default"], key["about"]] for key in keys]
    inner = [f"\nKeys of `{key['name']}`:\n\n{_keys(key['keys'])}" for key in keys if "keys" in key]
    return table(["key", "type", "default", "meaning"], rows) + "".join(inner)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page.read_text()))
