"""Who sets the weight of a connection: the operator, who may let programs choose within their host's weight."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from subak.commands.allocator import ask
from subak.testbed.testbed import agent
from test_testbed_flowtune import SEND, TICK, star, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")

SAY = """
import socket, sys
line = socket.socket()
for weight in sys.argv[1:]:
    try:
        line.setsockopt(socket.SOL_TCP, 0x5a01, int(float(weight) * 65536).to_bytes(4, sys.byteorder))
        print("ok")
    except OSError as error:
        print(error.errno)
"""


def _rates_by_host(daemons: Any) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {}
    for flow in ask(daemons.control, {"ask": "flows"}):
        rates.setdefault(flow["from"], []).append(flow["rate_bps"] / 96e6)
    return {host: sorted(of) for host, of in sorted(rates.items())}


def _is_near(found: dict[str, list[float]], expected: dict[str, list[float]]) -> bool:
    return {host: len(of) for host, of in found.items()} == {host: len(of) for host, of in expected.items()} and all(
        abs(rate / share - 1) < 0.06
        for host in expected
        for rate, share in zip(found[host], expected[host], strict=True)
    )


def test_a_program_gains_nothing_over_other_hosts(tmp_path: Path) -> None:
    """By default a program gains nothing over other hosts by large weights or many connections; within its host
    weights count."""
    with star(tmp_path, 3, 100_000_000, ()) as (daemons, run, to):
        run("h1", SEND, to, "20", "0")
        for weight in ("1000", "500", "250", "250"):
            run("h0", TICK, to, "20", weight)
        rates = partial(_rates_by_host, daemons)
        wait_until(lambda: _is_near(rates(), {"h0": [0.0625, 0.0625, 0.125, 0.25], "h1": [0.5]}), rates)


def test_a_host_and_a_control_group_have_shares(tmp_path: Path) -> None:
    with star(tmp_path, 3, 100_000_000, ("--host-weight=3", "--most-weight=10")) as (daemons, run, to):
        mounts = [row.split() for row in Path("/proc/mounts").read_text().splitlines()]
        group = Path(next(row[1] for row in mounts if row[2] == "cgroup2"))
        group /= f"subak-test-{os.getpid()}"
        group.mkdir()
        try:
            maps = daemons.weights
            agent = Path(sys.executable).with_name("subak-agent")
            subprocess.run([agent, "weigh", "--map", str(maps["groups"]), str(group), "1"], check=True)
            join = f"open('{group}/cgroup.procs', 'w').write('0')\n"
            for _ in range(2):
                run("h0", join + SEND, to, "20", "0")
            run("h0", TICK, to, "20", "10")
            # On h0 the group has weight 1, the other connections 3.
            rates = partial(_rates_by_host, daemons)
            wait_until(lambda: _is_near(rates(), {"h0": [0.125, 0.125, 0.75]}), rates)
            assert run("h1", SAY, "10", "10.1", "0.0005").communicate(timeout=20)[0].split() == ["ok", "34", "34"]
        finally:
            (group / "cgroup.kill").write_text("1")
            wait_until(lambda: not (group / "cgroup.procs").read_text(), lambda: group)
            group.rmdir()


def test_programs_have_no_say_where_weights_are_fixed(tmp_path: Path) -> None:
    with star(tmp_path, 3, 100_000_000, ("--weights=fixed", "--weight=10.0.0.0/8=2")) as (daemons, run, to):
        assert run("h0", SAY, "1", "3").communicate(timeout=20)[0].split() == ["1", "1"]
        run("h0", SEND, to, "20", "0")
        run("h1", SEND, to, "20", "0")
        flows = partial(ask, daemons.control, {"ask": "flows"})
        wait_until(lambda: [flow["weight"] for flow in flows()] == [2, 2], flows)


@pytest.mark.parametrize("scheme", ["flowtune", "soze"])
def test_fixed_weights_hold_for_the_agents_own_hosts(tmp_path: Path, scheme: str) -> None:
    """The agent of another namespace refuses weights there, and not in the namespaces of this testbed."""
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("ab" * 32)
    options = {
        "flowtune": ["--host=127.0.0.1", "--allocator=127.0.0.1:9", "--key", str(key)],
        "soze": ["--rate=1Gbps"],
    }[scheme]
    place = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    command = [*place, agent(), scheme, "--weights=fixed", "--name", f"o{os.getpid():x}", *options]
    with star(tmp_path, 2, 100_000_000) as (_, run, _to):
        other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            assert other.stdout
            assert "ready" in other.stdout.readline()
            inside = ["nsenter", f"--net=/proc/{other.pid}/ns/net", sys.executable, "-c", SAY, "1"]
            said = subprocess.run(inside, capture_output=True, text=True, timeout=20, check=True).stdout
            assert said.split() == ["1"]
            assert run("h0", SAY, "1").communicate(timeout=20)[0].split() == ["ok"]
        finally:
            other.kill()
            other.communicate()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--weights=none"], "within"),
        (["--least-weight=0"], "0.001 to 65535"),
        (["--host-weight=nan"], "0.001 to 65535"),
        (["--least-weight=3", "--most-weight=2"], "is above"),
    ],
)
def test_wrong_bounds_are_refused(options: list[str], what: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("ab" * 32)
    agent = [Path(sys.executable).with_name("subak-agent"), "flowtune", "--host=127.0.0.1", "--allocator=127.0.0.1:9"]
    said = subprocess.run(
        [*agent, "--key", key, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert said.returncode == 2
    assert what in said.stderr
