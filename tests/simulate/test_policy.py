"""The policy checker of weights: applications that it reports, those that it accepts, and logs that it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT
from subak.cli import app
from subak.errors import InputError
from subak.papers.soze import policy as experiment
from subak.policy import COLUMNS, Application, Policy, Setting, check, read_log, read_policy
from typer.testing import CliRunner

POLICY = """
grace_ns = 100
[[application]]
name = "a"
budget = 4
sources = ["10.0.0.1", "10.0.0.2:5000-5099"]
[[application]]
name = "b"
budget = 2
sources = ["10.0.0.2:80", "[fd00::1]:1-2"]
"""


def _flow(source: str, port: int = 1) -> tuple[str, str, int, int, str]:
    return (source, "10.9.0.1", port, 443, "tcp")


def _log(rows: list[str]) -> str:
    return "\n".join([",".join(COLUMNS), *rows]) + "\n"


def test_a_thousand_random_logs() -> None:
    values = experiment.run({}, 1000, 5, lambda done, of, share: None)["values"]
    found = values["found"]
    assert (found["hits"], values["accused"]) == (found["count"], 0)
    assert found["count"] > 900, "runs with an offender"
    assert values["planted"] > 1000
    assert values["followed"] > 1000


def test_sums_that_are_too_large_for_the_grace_time_and_longer() -> None:
    policy = Policy((Application("a", 4, (("10.0.0.1", range(65536)),)),), grace_ns=100)
    one, two = _flow("10.0.0.1", 1), _flow("10.0.0.1", 2)
    rows = [Setting(0, one, 4), Setting(1000, two, 1), Setting(1099, one, 3)]
    assert check(policy, rows) == []
    rows[2] = Setting(1100, one, 3)
    (offence,) = check(policy, reversed(rows))
    assert (offence.application, offence.from_ns, offence.until_ns, offence.most) == ("a", 1000, 1100, 5)
    # Changes at the same time count together.
    assert check(policy, [Setting(0, one, 4), Setting(9, one, 1), Setting(9, two, 3), Setting(900, two, 2)]) == []


def test_the_command_names_offenders(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    rows = ["0,10.0.0.1,x,1,2,tcp,5", "0,10.0.0.2,x,80,2,tcp,2", "0,10.0.0.3,x,9,2,tcp,1", "500,fd00::1,x,3,2,tcp,0"]
    (tmp_path / "log.csv").write_text(_log(rows))
    arguments = ["policy", "check", str(tmp_path / "log.csv"), "--policy", str(tmp_path / "policy.toml")]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    named = {one["application"]: one["budget"] for one in json.loads(done.stdout)["offences"]}
    assert (done.exit_code, named) == (1, {"a": 4, "10.0.0.3": None})
    assert "weights came to 5 of a budget of 4" in CliRunner().invoke(app, arguments).stdout
    (tmp_path / "log.csv").write_text(_log(rows[1:2]))
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (0, "no application is over its weight budget\n")


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ("-1,a,b,1,2,tcp,1", "line 2, time_ns"),
        ("1.5,a,b,1,2,tcp,1", "line 2, time_ns"),
        ("1,a,b,70000,2,tcp,1", "line 2, sport"),
        ("1,a,b,1,,tcp,1", "line 2, dport"),
        ("1,,b,1,2,tcp,1", "line 2, src"),
        ("1,a,b,1,2,tcp,nan", "line 2, weight"),
        ("1,a,b,1,2,tcp,-1", "line 2, weight"),
        ("1,a,b,1,2", "line 2, protocol"),
        ("1,a,b,1,2,tcp,1,7", "line 2"),
    ],
)
def test_rows_that_are_none(tmp_path: Path, row: str, place: str) -> None:
    (tmp_path / "log.csv").write_text(_log([row]))
    with pytest.raises(InputError) as refused:
        list(read_log(tmp_path / "log.csv"))
    assert refused.value.place == place
    assert refused.value.hint


@pytest.mark.parametrize("column", ["note", "src"])
def test_columns_that_a_log_does_not_have(tmp_path: Path, column: str) -> None:
    (tmp_path / "log.csv").write_text(_log(["1,a,b,1,2,tcp,1,7"]).replace("weight\n", f"weight,{column}\n"))
    with pytest.raises(InputError, match=f"line 1: unknown column '{column}'"):
        list(read_log(tmp_path / "log.csv"))


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("grace_ns = 100", "grace_ns = -1", "grace_ns"),
        ("budget = 4", "budget = -4", "application[0].budget"),
        ('name = "b"', 'name = "a"', "application[1].name"),
        ("10.0.0.2:80", "10.0.0.2:5050", "application[1].sources[0]"),
        ("10.0.0.2:80", "10.0.0.2:9-8", "application[1].sources[0]"),
        ("10.0.0.2:80", "10.0.0.2:x", "application[1].sources[0]"),
        ("budget = 2", "budget = 2\nweight = 1", "application[1].weight"),
    ],
)
def test_policies_that_are_none(tmp_path: Path, old: str, new: str, place: str) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.replace(old, new))
    with pytest.raises(InputError) as refused:
        read_policy(tmp_path / "policy.toml")
    assert refused.value.place == place


@pytest.mark.parametrize(
    ("which", "content", "place", "words"),
    [
        ("policy", None, "", "there is no such file; name a TOML file"),
        ("policy", b"grace_ns 5", "line 1, column 10", "it is not TOML: expected '='"),
        ("policy", b"\xff", "byte 0", "it is not text in UTF-8"),
        ("log", None, "", "there is no such file; name a CSV file with the columns time_ns"),
        ("log", b"\xff", "byte 0", "it is not text in UTF-8"),
        ("log", b"time,src\n", "line 1", "there is no column time_ns"),
        ("log", b'"time_ns', "after line 0", "it is not CSV"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, which: str, content: bytes | None, place: str, words: str) -> None:
    path = tmp_path / which
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_policy(path) if which == "policy" else list(read_log(path))
    assert refused.value.place == place
    assert words in str(refused.value)
    assert str(path) in str(refused.value)


def test_the_example_of_the_page() -> None:
    files = [str(ROOT / "examples/policy" / name) for name in ("log.csv", "policy.toml")]
    done = CliRunner().invoke(app, ["policy", "check", files[0], "--policy", files[1]])
    assert done.exit_code == 1
    assert done.stdout == "backup: weights came to 4 of a budget of 1, from 20000000 ns to 90000000 ns\n"
