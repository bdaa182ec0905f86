"""Logs and policies that are damaged or odd, and verdicts of a program that follows the definitions slot by slot."""

from __future__ import annotations

import os
import threading
import time
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from subak.cli import app
from subak.errors import InputError, InputWarning
from subak.policy import COLUMNS, Application, Offence, Policy, Setting, check, read_log, read_logs, read_policy
from typer.testing import CliRunner

SLOT_NS = 1_000_000
SLOTS = 60
HEAD = ",".join(COLUMNS)
ROW = "10.0.0.1,10.0.0.9,4000,80,tcp"
APPLICATION = '[[application]]\nname = "a"\nbudget = 4\nsources = ["10.0.0.1"]\n'


def _flow(port: int, source: str = "10.0.0.1") -> tuple[str, str, int, int, str]:
    return (source, "10.0.0.9", port, 80, "tcp")


def _log(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path


def _sums(rows: list[Setting]) -> list[Fraction]:
    """The sum of weights in each slot, up to the last row."""
    end = max(row.time_ns for row in rows) // SLOT_NS
    sums = []
    for slot in range(end):
        latest: dict[object, Setting] = {}
        for row in rows:
            before = latest.get(row.flow)
            if row.time_ns <= slot * SLOT_NS and (before is None or before.time_ns <= row.time_ns):
                latest[row.flow] = row
        sums.append(sum((Fraction(row.weight) for row in latest.values()), Fraction(0)))
    return sums


def _counted(sums: list[Fraction], budget: int, grace: int) -> list[bool]:
    """Slots above the budget, without excesses shorter than the grace."""
    above = [total > budget for total in sums]
    for start in range(len(above)):
        if above[start] and not (start and above[start - 1]):
            end = start
            while end < len(above) and sums[end] > budget:
                end += 1
            if end - start < grace:
                above[start:end] = [False] * (end - start)
    return above


def _is_offence(offences: list[Offence], slot: int) -> bool:
    middle = slot * SLOT_NS + SLOT_NS // 2
    return any(one.from_ns < middle < one.until_ns for one in offences)


@pytest.mark.parametrize("pays", [0, 1, 6])
def test_verdicts_are_those_of_the_definitions(pays: int) -> None:
    random = Random(pays)
    offending = 0
    for _ in range(80):
        rows = [
            Setting(random.randrange(SLOTS) * SLOT_NS, _flow(random.randrange(5)), random.randrange(9) / 4)
            for _ in range(random.randint(1, 40))
        ]
        # Of two rows of a flow at one time, the later counts.
        budget, grace, span, price = random.randint(1, 5), random.randrange(4), random.randint(1, 30), Fraction(500)
        one = Application("a", budget, (("10.0.0.1", range(65536)),), float(pays))
        policy = Policy((one,), grace * SLOT_NS, float(price), span * SLOT_NS)
        found = check(policy, rows)
        sums = _sums(rows)
        counted = _counted(sums, budget, grace)
        costs = [(t - budget) * price * SLOT_NS / 10**9 if c else 0 for t, c in zip(sums, counted, strict=True)]
        for slot, is_counted in enumerate(counted):
            first = slot - span
            paid = sum(costs[max(first + 1, 0) : slot], Fraction(0))
            paid += Fraction(costs[slot]) / 2 + (Fraction(costs[first]) / 2 if first >= 0 else 0)
            if pays and abs(paid - pays) < Fraction(1, 1000):
                continue
            expected = is_counted and (not pays or paid > pays)
            offending += expected
            assert _is_offence(found, slot) == expected, (slot, paid)
    assert offending > 100


def test_many_flows_and_many_offences_take_seconds() -> None:
    # Each row once cost the number of its application's flows, and each offence that of its rows.
    start = time.process_time()
    rows = [Setting(k, _flow(k % 40_000), 1.0) for k in range(80_000)]
    assert check(Policy((Application("a", 1e9, (("10.0.0.1", range(65536)),)),)), rows) == []
    rows = [Setting(k * 1000, _flow(1), 5.0 if k % 2 else 1.0) for k in range(80_000)]
    paying = Application("a", 4, (("10.0.0.1", range(65536)),), 1e-10)
    assert len(check(Policy((paying,), 100, 2.0, 1500), rows)) > 30_000
    assert time.process_time() - start < 20


@pytest.mark.parametrize("weight", ["nan", "-1", "inf", "1e999", "1e308", "1_000", "٣", "0x10", "", "1 2"])
def test_a_weight_that_is_no_number_is_refused_by_name(tmp_path: Path, weight: str) -> None:
    path = _log(tmp_path, f"{HEAD}\n0,{ROW},{weight}\n5,{ROW},1\n")
    with pytest.raises(InputError) as error:
        list(read_log(path))
    assert error.value.place == "line 2, weight"


def test_a_row_that_is_cut_is_warned_of(tmp_path: Path) -> None:
    for end, count in ((",10.0.0.1,10.0.0.9,40", 1), (f",{ROW},", 1), (f",{ROW},1", 2)):
        path = _log(tmp_path, f"{HEAD}\n0,{ROW},5\n2000{end}")
        with pytest.warns(InputWarning, match="line 3"):
            assert len(list(read_log(path))) == count
    path.write_text(f"{HEAD}\n0,10.0.0.1\n5,{ROW},1\n")
    with pytest.raises(InputError, match="line 2"):
        list(read_log(path))


def test_comments_before_the_columns_keep_the_numbers_of_lines(tmp_path: Path) -> None:
    lost: dict[Path, int] = {}
    path = _log(tmp_path, f"# missing 5\n{HEAD}\n# missing 7\n0,{ROW},5\n")
    assert len(list(read_logs([path, path], lost))) == 2
    assert lost == {path: 12}
    path = _log(tmp_path, f"# copied\n{HEAD}\nx,{ROW},5\n")
    with pytest.raises(InputError, match="line 3, time_ns"):
        list(read_log(path))


def test_a_byte_order_mark_and_a_wrong_byte(tmp_path: Path) -> None:
    path = _log(tmp_path, f"\ufeff{HEAD}\r\n0,{ROW},5\r\n")
    assert [row.weight for row in read_log(path)] == [5]
    text = (f"{HEAD}\n" + f"0,{ROW},3\n" * 1000).encode()
    path.write_bytes(text + b"\xff\n")
    with pytest.raises(InputError, match=f"byte {len(text)}:"):
        list(read_log(path))


def test_missing_weights_of_a_pipe_are_warned_of(tmp_path: Path) -> None:
    pipe, policy = tmp_path / "pipe", tmp_path / "policy.toml"
    os.mkfifo(pipe)
    policy.write_text(APPLICATION)
    writer = threading.Thread(target=pipe.write_text, args=(f"{HEAD}\n# missing 7\n0,{ROW},1\n",))
    writer.start()
    result = CliRunner().invoke(app, ["policy", "check", str(pipe), "--policy", str(policy)])
    writer.join()
    assert result.exit_code == 0
    assert "7 weights are missing" in result.stderr


def test_addresses_of_ipv6_in_any_form(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    rows = [f"0,{source},fd00::9,4000,80,tcp,1" for source in ("fd00:0::1", "FD00::1", "fd00::1")]
    path = _log(tmp_path, "\n".join([HEAD, *rows, "9,::ffff:10.0.0.7,fd00::9,1,80,tcp,1\n"]))
    assert {row.flow[0] for row in read_log(path)} == {"fd00::1", "10.0.0.7"}
    assert len({row.flow for row in read_log(path)}) == 2
    for source in ("[FD00:0::1]:4000", "[fd00::0:1]"):
        policy.write_text(APPLICATION.replace("10.0.0.1", source))
        assert check(read_policy(policy), [*read_log(path)][:3]) == []


@pytest.mark.parametrize(
    "source", ["fd00::1", "fd00::1:80", "[fd00::1", "fd00::1]", "10.0.0.1 ", "10.0.0.0/24", "[fd00::]/8", ":80", "[]"]
)
def test_a_source_that_could_never_match_is_refused(tmp_path: Path, source: str) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(APPLICATION.replace("10.0.0.1", source))
    with pytest.raises(InputError, match=r"application\[0\].sources\[0\]"):
        read_policy(policy)


@pytest.mark.parametrize(("key", "value"), [("budget", "1" + "0" * 400), ("price", "1e308"), ("pays", "1e308")])
def test_numbers_beyond_all_use_are_refused(tmp_path: Path, key: str, value: str) -> None:
    policy = tmp_path / "policy.toml"
    keys = {"price": "2", "pays": "10", "budget": "4"} | {key: value}
    text = APPLICATION.replace("budget = 4", f"budget = {keys['budget']}\npays = {keys['pays']}")
    policy.write_text(f"price = {keys['price']}\n{text}")
    with pytest.raises(InputError, match=key):
        read_policy(policy)


def test_keys_that_have_no_effect_are_warned_of(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    for keys, name in (("price = 2", "price"), ("span_ns = 60", "span_ns")):
        policy.write_text(f"{keys}\n{APPLICATION}")
        with pytest.warns(InputWarning, match=name):
            read_policy(policy)
    policy.write_text(f"price = 2\nspan_ns = 60\n{APPLICATION}pays = 10\n")
    with pytest.warns(InputWarning, match="less than grace_ns"):
        read_policy(policy)


def test_a_clock_that_is_set_back_is_warned_of(tmp_path: Path) -> None:
    # The second flow's end is the earlier one of its rows; the third one changes its weight with the clock set back.
    rows = ["5,{},9", "7,{},0", "9,{},9", "8,{},0", "9,{},9", "8,{},3"]
    flows = [f"10.0.0.1,10.0.0.9,{4000 + k // 2},80,tcp" for k in range(6)]
    log = _log(tmp_path, "\n".join([HEAD, *(row.format(flow) for row, flow in zip(rows, flows, strict=True)), ""]))
    with pytest.warns(InputWarning, match="1 flows end at a time before their last weight") as warned:
        assert len(list(read_log(log))) == 6
    assert len(warned) == 1
