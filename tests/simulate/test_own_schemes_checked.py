"""The commands ``subak new`` and ``subak check``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from own_schemes import MINE

# Failing trials are the subject of these tests.
pytestmark = pytest.mark.filterwarnings("ignore::subak.InputWarning")


def subak_command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "subak", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("like", ["dctcp", "rcp"])
def test_a_new_scheme_passes_every_check(like: str, tmp_path: Path) -> None:
    made = subak_command("new", "mine.py", "--like", like, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert f'python = "mine.py:{like.capitalize()}"' in made.stdout
    checked = subak_command("check", f"mine.py:{like.capitalize()}", folder=tmp_path)
    lines = checked.stdout.splitlines()
    assert (checked.returncode, checked.stderr) == (0, "")
    assert len(lines) == (13 if like == "rcp" else 12)
    assert all(line.startswith("ok ") for line in lines)
    assert any("its goal" in line for line in lines) == (like == "rcp")
    again = subak_command("new", "mine.py", folder=tmp_path)
    assert (again.returncode, again.stderr) == (2, "subak: mine.py: the file exists; name another one\n")


def test_a_new_scheme_in_c_passes_every_check(tmp_path: Path) -> None:
    made = subak_command("new", "mine.c", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    command = next(line for line in made.stdout.splitlines() if line.startswith("cc "))
    subprocess.run(command.split(), cwd=tmp_path, check=True, timeout=60)
    assert 'library = "mine.so"' in made.stdout
    checked = subak_command("check", "mine.so", folder=tmp_path)
    lines = checked.stdout.splitlines()
    assert (checked.returncode, checked.stderr) == (0, "")
    assert len(lines) == 12
    assert all(line.startswith("ok ") for line in lines)
    # The header may be there already, but nobody's own is overwritten.
    assert subak_command("new", "other.c", folder=tmp_path).returncode == 0
    (tmp_path / "subak_scheme.h").write_text("/* mine */")
    refused = subak_command("new", "third.c", folder=tmp_path)
    assert (refused.returncode, refused.stderr) == (2, "subak: subak_scheme.h: the file exists; name another one\n")
    assert not (tmp_path / "third.c").exists()


def test_a_compiled_scheme_passes_every_check(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    (tmp_path / "mine.py").write_text((ROOT / "examples/schemes/dctcp_compiled.py").read_text())
    checked = subak_command("check", "mine.py:Dctcp", folder=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert len(checked.stdout.splitlines()) == 12


@pytest.mark.parametrize("name", ["flowtune", "numfabric", "s-perc", "ned/paced"])
def test_a_built_in_scheme_is_given_what_it_needs(name: str, tmp_path: Path) -> None:
    checked = subak_command("check", name, "--json", folder=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    checks = {one["name"]: one for one in json.loads(checked.stdout)["checks"]}
    assert all(one["passed"] for one in checks.values())
    assert ("its goal" in checks) == ("/" not in name)


def test_a_goal_that_is_not_reached_is_told(tmp_path: Path) -> None:
    text = MINE.replace('goal = "own"', "") + "\n"
    place = re.search(r"^class (\w+)\(subak\.Scheme\):\n(?:    \"\"\".*\"\"\"\n)?", text, re.MULTILINE)
    assert place
    text = text[: place.end()] + '    goal = "max-min"\n    settles = (0.02, 10)\n' + text[place.end() :]
    (tmp_path / "mine.py").write_text(text)
    checked = subak_command("check", f"mine.py:{place[1]}", folder=tmp_path)
    line = next(line for line in checked.stdout.splitlines() if "its goal" in line)
    assert checked.returncode == 1
    assert re.search(r"rates are \d+(\.\d+)?% off after 10 RTTs, more than 5%$", line), line


def test_checks_of_a_scheme_that_fails(tmp_path: Path) -> None:
    first = "int(next(iter({str(k) for k in range(20)})))"
    by_a_set = MINE.replace("io.pace(window=self.bytes)", f"io.pace(window=1500 * (1 + {first}))")
    (tmp_path / "mine.py").write_text(by_a_set)
    checked = subak_command("check", "mine.py:Mine", "--json", folder=tmp_path)
    failing = [one for one in json.loads(checked.stdout)["checks"] if not one["passed"]]
    assert [one["name"] for one in failing] == ["the same bytes twice"]
    assert checked.returncode == 1
    (tmp_path / "mine.py").write_text(MINE.replace("io.pace(window=self.bytes)", "io.pace(window=self.size)"))
    checked = subak_command("check", "mine.py:Mine", folder=tmp_path)
    assert checked.returncode == 1
    assert "FAIL no fault" in checked.stdout
    assert "AttributeError: 'Sender' object has no attribute 'size' (mine.py, line 14)" in checked.stdout


def test_a_scheme_that_holds_its_flows_fails_the_checks(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("io.pace(window=self.bytes)", "io.pace(rate=0)"))
    checked = subak_command("check", "mine.py:Mine", folder=tmp_path)
    assert checked.returncode == 1
    lines = checked.stdout.splitlines()
    assert re.search(r"FAIL no fault +\d+ of \d+ flows are not complete after 1 s; no byte arrived: ", lines[0])


def test_a_hook_without_end_ends_the_checks(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("io.pace(window=self.bytes)", "while True: pass"))
    checked = subak_command("check", "mine.py:Mine", folder=tmp_path)
    assert checked.returncode == 1
    assert re.fullmatch(r"FAIL no fault .*more than 10 s \(hook_time\) \(mine.py, line 14\)\n", checked.stdout)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["check", "mine.py"], "names no class; write mine.py:CLASS"),
        (["check", "nothing"], 'unknown scheme "nothing"'),
        (["check", "a.c"], '"a.c" is source code; compile it: cc -O2 -shared -fPIC -o a.so a.c; then check a.so'),
        (["check", "mine.py:Mine"], "cannot be read"),
        (["new", "a.c", "--like", "rcp"], 'there is no template "rcp"; choose one of: dctcp'),
        (["new", "a.py", "--like", "hpcc"], 'there is no template "hpcc"; choose one of: dctcp, rcp'),
    ],
)
def test_commands_refuse(words: list[str], says: str, tmp_path: Path) -> None:
    refused = subak_command(*words, folder=tmp_path)
    assert refused.returncode == 2
    assert says in refused.stderr


def test_one_of_ours_passes_every_check(tmp_path: Path) -> None:
    assert subak_command("check", "dctcp", folder=tmp_path).returncode == 0
