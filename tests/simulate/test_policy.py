"""The policy checker of weights: applications that it reports, those that it accepts, and logs that it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

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


SECOND_NS = 1_000_000_000
# A weight of 1 above the budget of 4 costs 2 a second, and 10 are the most in 10 s.
PAYING = """
grace_ns = 100
price = 2
span_ns = 10000000000
[[application]]
name = "a"
budget = 4
pays = 10
sources = ["10.0.0.1"]
"""


def _offences(tmp_path: Path, policy: str, weights: list[tuple[float, float]]) -> list[tuple[float, float, float]]:
    """Start, end and payment of each offence, from the weights of one flow by time in s."""
    (tmp_path / "policy.toml").write_text(policy)
    rows = [Setting(round(time_s * SECOND_NS), _flow("10.0.0.1"), weight) for time_s, weight in weights]
    found = check(read_policy(tmp_path / "policy.toml"), rows)
    assert all((one.application, one.budget, one.pays) == ("a", 4, 10) for one in found)
    return [(one.from_ns / SECOND_NS, one.until_ns / SECOND_NS, pytest.approx(one.paid)) for one in found]


def test_weight_above_the_budget_is_paid_for(tmp_path: Path) -> None:
    def offences(*weights: tuple[float, float]) -> list[tuple[float, float, float]]:
        return _offences(tmp_path, PAYING, list(weights))

    # 5 s of 1 above the budget: 5 s x 1 x 2 = 10, the most.
    assert offences((0, 4), (10, 5), (15, 4), (40, 0)) == []
    # A sixth second costs 2 more than it may pay: from 15 s on, up to 12.
    assert offences((0, 4), (10, 5), (16, 4), (40, 0)) == [(15, 16, 12)]
    # 3 above cost 6 a second: 10 after 1.667 s.
    assert offences((0, 7), (2, 4), (40, 0)) == [(pytest.approx(5 / 3), 2, 12)]
    # From 10 s to 12 s it pays 4. From 18 s on 2 a second: 8 until 20 s. Then as much leaves the span as is paid, until
    # 22 s. Then the payments grow to 10 at 23 s.
    assert offences((0, 4), (10, 5), (12, 4), (18, 5), (23, 4), (40, 0)) == []
    assert offences((0, 4), (10, 5), (12, 4), (18, 5), (24, 4), (40, 0)) == [(23, 24, 12)]
    # 10 in each span: no second span adds to the first.
    assert offences((0, 5), (5, 4), (10, 5), (15, 4), (40, 0)) == []
    # Two weights in a row: 2 x 1 x 2 + 1.5 x 2 x 2 = 10 at 3.5 s.
    assert offences((0, 5), (2, 6), (4, 4), (40, 0)) == [(3.5, 4, 12)]


def test_random_payments_are_those_of_a_sum_over_milliseconds(tmp_path: Path) -> None:
    """Times in units of 10 ms, compared with a sum over each of these units."""
    rng = Random(3)
    (tmp_path / "policy.toml").write_text(PAYING.replace("grace_ns = 100", "grace_ns = 0"))
    policy = read_policy(tmp_path / "policy.toml")
    unit_ns, span = SECOND_NS // 100, 1000
    offences = 0
    for _ in range(30):
        times = sorted(rng.sample(range(4000), rng.randint(2, 30)))
        weights = [rng.choice([0, 1, 4, 4.5, 5, 6, 9]) for _ in times]
        rows = [Setting(t * unit_ns, _flow("10.0.0.1"), w) for t, w in zip(times, weights, strict=True)]
        above = [0.0] * 4000
        for first, last, weight in zip(times, times[1:], weights, strict=False):
            above[first:last] = [max(0.0, weight - 4)] * (last - first)
        found = check(policy, rows)
        offences += len(found)
        for at in range(times[-1]):
            # The payments of the last 10 s, in the middle of the unit.
            paid = 0.02 * (sum(above[max(0, at - span + 1) : at]) + 0.5 * above[at])
            paid += 0.01 * (above[at - span] if at >= span else 0)
            inside = any(one.from_ns <= (at + 0.5) * unit_ns <= one.until_ns for one in found)
            assert inside == (above[at] > 0 and paid > 10) or abs(paid - 10) < 1e-4, (at, paid)
    assert offences > 20


def test_what_is_shorter_than_the_grace_time_costs_nothing(tmp_path: Path) -> None:
    policy = PAYING.replace("grace_ns = 100", "grace_ns = 1000000000")
    often = [row for k in range(50) for row in ((2 * k, 50), (2 * k + 0.9, 4))]
    assert _offences(tmp_path, policy, [*often, (200, 0)]) == []
    assert _offences(tmp_path, PAYING, [*often, (200, 0)])


def test_clocks_may_differ_by_some_milliseconds(tmp_path: Path) -> None:
    """A weight moves to another host, whose clock is behind."""
    (tmp_path / "policy.toml").write_text(POLICY.replace("grace_ns = 100", ""))
    policy = read_policy(tmp_path / "policy.toml")
    one, other = _flow("10.0.0.1"), _flow("10.0.0.2", 5000)
    for behind_ns, count in ((9_999_999, 0), (10_000_000, 1)):
        rows = [Setting(0, one, 4), Setting(SECOND_NS, one, 0), Setting(SECOND_NS - behind_ns, other, 4)]
        assert len(check(policy, rows)) == count


def test_weights_of_hosts_are_rounded() -> None:
    """Hosts store a weight in units of 1/65536: ten flows of 0.1 come to 1.00006."""
    policy = Policy((Application("a", 1, (("10.0.0.1", range(65536)),)),))
    stored = round(0.1 * 65536) / 65536
    assert 10 * stored > 1.00005
    rows = [Setting(0, _flow("10.0.0.1", port), stored) for port in range(10)]
    assert check(policy, [*rows, Setting(9, _flow("10.0.0.1"), 0)]) == []
    rows.append(Setting(0, _flow("10.0.0.1", 11), 0.001))
    assert check(policy, [*rows, Setting(9, _flow("10.0.0.1"), 0)])


def test_what_hosts_could_not_log_is_said(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    log = tmp_path / "log.csv"
    log.write_text(_log(["0,10.0.0.1,x,1,2,tcp,4", "# missing 7", "5,10.0.0.1,x,1,2,tcp,0", "# missing 2"]))
    arguments = ["policy", "check", str(log), "--policy", str(tmp_path / "policy.toml")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    assert done.stderr == f"subak: {log}: 9 weights are missing, which the host could not log\n"
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["missing"] == {str(log): 9}
    log.write_text(_log(["# missing 7", "-1,10.0.0.1,x,1,2,tcp,4"]))
    with pytest.raises(InputError, match="line 3, time_ns"):
        list(read_log(log))


def test_the_command_says_what_was_not_paid_for(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(PAYING)
    rows = ["0,10.0.0.1,x,1,2,tcp,5", "6000000000,10.0.0.1,x,1,2,tcp,0"]
    (tmp_path / "log.csv").write_text(_log(rows))
    arguments = ["policy", "check", str(tmp_path / "log.csv"), "--policy", str(tmp_path / "policy.toml")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    what = "payments came to 12 of at most 10, for weights of 5 of a budget of 4"
    assert done.stdout == f"a: {what}, from 5000000000 ns to 6000000000 ns\n"


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
        ("budget = 2", "budget = 2\npays = 1", "application[1].pays"),
        ("budget = 2", "budget = 2\npays = -1", "application[1].pays"),
        ("grace_ns = 100", "price = -1", "price"),
        ("grace_ns = 100", "span_ns = 0", "span_ns"),
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
