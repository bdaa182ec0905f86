"""What the package does where the packages of its extras are not installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT
from subak.extras import EXTRAS

WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
sys.argv = ["subak", *{arguments!r}]
from subak.cli import main
main()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """``subak`` with ``arguments``, in an interpreter that finds no package of an extra."""
    program = WITHOUT.format(names=[*EXTRAS, "networkx"], arguments=arguments)
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_extras_are_those_of_the_package() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name: [one.partition(">")[0] for one in packages] for name, packages in told["optional-dependencies"].items()
    }
    for name, extra in EXTRAS.items():
        assert name in extras[extra]
        assert not any(one.startswith(name) for one in told["dependencies"])
        assert name in extras["dev"]


@pytest.mark.parametrize(
    "arguments",
    [("solve", "examples/cases/chain.toml"), ("repro", "--list"), ("schemes",), ("fit", "--help"), ("doctor",)],
)
def test_commands_that_need_no_extra_run(arguments: tuple[str, ...]) -> None:
    told = run(*arguments)
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("fit", "l2l3-simple", "--switch", "rmt"), "ortools"),
        (("repro", "fit-table6.4", "--scale", "smoke"), "ortools"),
        (("repro", "fit-sperc", "--scale", "smoke"), "lark"),
    ],
)
def test_commands_that_need_an_extra_name_it(arguments: tuple[str, ...], missing: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out")) if arguments[0] == "repro" else ()
    told = run(*arguments, *out)
    assert told.returncode == 2
    assert told.stderr == f'subak: {missing} is missing; install it: pip install "subak[{EXTRAS[missing]}]"\n'


@pytest.mark.parametrize("command", [[], ["solve"], ["testbed", "up"]])
def test_help_imports_no_package_that_it_can_do_without(command: list[str]) -> None:
    """numpy, pyarrow and rich take longer to import than the rest of the command."""
    program = f"""
import sys
for name in ("numpy", "pyarrow", "pandas", "rich", "matplotlib"):
    sys.modules[name] = None
sys.argv = ["subak", *{command!r}, "--help"]
from subak.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Usage: {' '.join(['subak', *command])} [OPTIONS]")
    assert "Show this message and exit." in done.stdout


def test_the_list_of_commands_has_whole_sentences() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "subak", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "..." not in told.split("Commands:")[1]
