"""Imports among the package's modules have no cycle, so that modules can be read from the bottom up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "python/subak"


def modules(package: Path) -> dict[str, Path]:
    """Every module by name; for the extension module, its stub file."""
    found = {}
    for path in [*package.rglob("*.py"), *package.rglob("*.pyi")]:
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def needs(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a module imports: at the top, in functions, and for type checking."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: write the whole name of what is imported"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known or node.module in known:
                    yield inner if inner in known else str(node.module)


def cycle(package: Path) -> list[str]:
    """A cycle of imports, with its first module again at the end; empty if there is none."""
    known = modules(package)
    try:
        TopologicalSorter({name: set(needs(path, known)) for name, path in known.items()}).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_imports_go_round() -> None:
    assert cycle(PACKAGE) == []


@pytest.mark.parametrize(
    "late", ["def f():\n    from a import top\n", "if TYPE_CHECKING:\n    from a.top import T\n", "import a.top\n"]
)
def test_a_circle_is_seen_wherever_the_import_stands(late: str, tmp_path: Path) -> None:
    package = tmp_path / "a"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "top.py").write_text("from a import low\n")
    (package / "low.py").write_text("")
    assert cycle(package) == []
    (package / "low.py").write_text(late)
    assert set(cycle(package)) == {"a.top", "a.low"}
