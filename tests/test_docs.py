"""The documentation names what the program has: columns, networks, commands."""

from __future__ import annotations

import json
import re

import pytest
from conftest import ROOT, Subak
from subak import _subak

COMMANDS = ["solve", "converge", "run", "repro", "report", "export", "diff", "schemes", "doctor"]


def test_every_column_is_documented() -> None:
    text = (ROOT / "docs/results.md").read_text()
    for column in json.loads(_subak.columns()):
        assert f"| `{column['name']}` | {column['about'].strip()} |" in text


def test_every_network_is_documented() -> None:
    text = (ROOT / "docs/networks.md").read_text()
    for generator in json.loads(_subak.generators()):
        assert f"## {generator['kind']}\n" in text
        for key in generator["keys"]:
            assert f"| `{key['name']}` | {key['unit']} | {key['default']} | {key['about']} |" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(subak: Subak, command: str) -> None:
    ended = subak(command, "--help")
    assert ended.code == 0
    assert f"Example: subak {command}" in ended.out
    assert "--json" in ended.out


def test_help_names_every_command_and_network(subak: Subak) -> None:
    ended = subak("--help")
    named = re.findall(r"^│ (\w+)  ", ended.out, re.MULTILINE)
    assert sorted(named) == sorted(COMMANDS)
    assert "leaf-spine: leaves, spines" in subak("run", "--help").out


def test_schemes(subak: Subak) -> None:
    listed = subak("schemes", "--json").json["schemes"]
    assert {"ideal", "reno", "dctcp", "s-perc"} <= {one["name"] for one in listed}
    for one in listed:
        assert one["kind"] in ("oracle", "proactive", "reactive")
        assert one["paper"]
        assert all(set(param) == {"name", "default", "unit", "about"} for param in one["params"])
    assert "marking threshold" in subak("schemes", "dctcp").out
    ended = subak("schemes", "dctpc")
    assert (ended.code, "dctcp" in ended.err) == (2, True)


def test_doctor(subak: Subak) -> None:
    checks = {check["name"]: check for check in subak("doctor", "--json").json["checks"]}
    assert checks["subak"]["ok"]
    assert "chromium" in subak("doctor").out


def test_version(subak: Subak) -> None:
    assert subak("--version").out == f"subak {_subak.__version__}\n"


def test_usage_errors_end_with_2(subak: Subak) -> None:
    for arguments in (["nonsense"], ["solve"], ["solve", "a", "b"], ["run", "--jobs", "many", "a.toml"]):
        ended = subak(*arguments)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err


def test_specs_and_cases_of_the_docs_are_those_that_run(subak: Subak) -> None:
    for path in sorted((ROOT / "examples").glob("*.toml")):
        assert subak("run", path, "--print-cells", "--json").code == 0, path
    for path in sorted((ROOT / "examples/cases").iterdir()):
        assert subak("solve", path).code == 0, path
