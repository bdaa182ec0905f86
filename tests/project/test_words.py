"""Each public type name of the Rust code is used once, or has its reason here."""

from __future__ import annotations

import re
from collections import defaultdict

from conftest import ROOT

MOST_REASONS = 12

# Public type names that are used more than once, each with its reason.
REASONS: dict[str, str] = {}

# Excludes ``type Out = ...`` in an implementation, which has no visibility of its own.
PUBLIC = re.compile(r"^\s*pub (?:unsafe )?(?:struct|enum|trait|type|union) (\w+)", re.MULTILINE)


def public_types() -> dict[str, list[str]]:
    """Files that define each public type name."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in ("crates", "fuzz"):
        for path in sorted((ROOT / folder).rglob("*.rs")):
            if "target" not in path.relative_to(ROOT).parts:
                for name in PUBLIC.findall(path.read_text()):
                    found[name].append(str(path.relative_to(ROOT)))
    return found


def test_each_public_type_name_has_one_meaning() -> None:
    found = public_types()
    assert len(found) > 300, "the pattern finds the types"
    twice = {name: files for name, files in found.items() if len(files) > 1 and name not in REASONS}
    assert not twice, "rename one of each pair, or write the reason into REASONS"


def test_reasons_are_few_and_needed() -> None:
    found = public_types()
    assert len(REASONS) <= MOST_REASONS
    assert all(len(found[name]) > 1 and reason for name, reason in REASONS.items())
