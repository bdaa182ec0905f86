"""Logs of weights that agents write on hosts, and what ``subak policy check`` finds in them (Soze, section 3.4)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from subak.commands.allocator import ask
from subak.policy import COLUMNS, Setting, read_log
from subak.testbed import by_hand
from subak.testbed import testbed as testbeds
from test_testbed_flowtune import RECEIVE, star, wait_until
from test_testbed_ipv6 import COUNT, LINK_BPS, PREFIXES, _connect
from test_testbed_ipv6 import RECEIVE as RECEIVE6

COMMAND = Path(sys.executable).with_name("subak")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")

# Sends from a port, with weights that each apply for a time.
SEND = """
import socket, sys, time
to, port = sys.argv[1], int(sys.argv[2])
any_of, there = ("::", 5202) if ":" in to else ("", 5201)
line = socket.create_connection((to, there), source_address=(any_of, port))
for part in sys.argv[3:]:
    weight, seconds = map(float, part.split(":"))
    line.setsockopt(socket.SOL_TCP, 0x5a01, round(weight * 65536))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        line.send(bytes(1 << 16))
line.shutdown(socket.SHUT_WR)
print(line.recv(64).decode())
"""
# Sets weights as fast as it can during a transfer.
HASTE = """
import socket, sys
def set_weight(weight):
    line.setsockopt(socket.SOL_TCP, 0x5a01, weight * 65536)
line = socket.create_connection((sys.argv[1], 5201), source_address=("", 5000))
line.send(bytes(1 << 14))
sys.stdin.readline()
for k in range(int(sys.argv[2])):
    set_weight(2 + k % 7)
set_weight(9)
print("set", flush=True)
sys.stdin.readline()
"""
POLICY = """
[[application]]
name = "batch"
budget = 4
sources = ["{h0}:5000-5099", "{h1}:5000-5099"]

[[application]]
name = "web"
budget = 2
sources = ["{h0}:6000-6099", "{h1}:6000-6099"]
"""


class Hosts:
    """Hosts whose network runs Soze's virtual queues. The hosts themselves run no scheme yet."""

    def __init__(self, up: by_hand.ByHand, folder: Path) -> None:
        self.up, self.folder = up, folder
        self.running: list[subprocess.Popen[str]] = []
        self.to = self.address("h2")

    def address(self, host: str) -> str:
        found = self.up.address(self.up.plan.names.index(host))
        assert found
        return found

    def run(self, host: str, *command: str) -> subprocess.Popen[str]:
        inside = ["nsenter", f"--net={self.up.namespace(self.up.plan.names.index(host))}", *command]
        pipe = subprocess.PIPE
        self.running.append(subprocess.Popen(inside, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return self.running[-1]

    def send(self, host: str, port: int, *parts: str) -> subprocess.Popen[str]:
        return self.run(host, sys.executable, "-c", SEND, self.to, str(port), *parts)

    def soze(self, host: str, log: Path | None = None) -> subprocess.Popen[str]:
        """Starts the agent of a host."""
        more = ["--log-weights", str(log or self.log(host))]
        rules = ["--all", "--weights=free", "--name", f"log{os.getpid():x}{host}"]
        daemon = self.run(host, testbeds.agent(), "soze", "--rate=200Mbps", "--rtt=2ms", *rules, *more)
        assert daemon.stdout
        assert daemon.stderr
        assert "ready" in daemon.stdout.readline(), daemon.stderr.read()
        return daemon

    def log(self, host: str) -> Path:
        return self.folder / f"{host}.csv"


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    places = testbeds.Testbed.places

    def without_hosts(self: testbeds.Testbed, ecn_bytes: int = 0) -> dict[str, Any]:
        told = places(self, ecn_bytes)
        return told | {"hosts": told["hosts"][2:]}

    monkeypatch.setattr(testbeds.Testbed, "places", without_hosts)
    network = tmp_path / "network.json"
    star_of_three = {"kind": "star", "hosts": 3, "rate": "200Mbps"}
    network.write_text(json.dumps({"network": star_of_three, "testbed": {"rtt": "2ms"}}))
    with by_hand.made(str(network), by_hand.Sharing("soze-virtual")) as up:
        made = Hosts(up, tmp_path)
        receiver = made.run("h2", sys.executable, "-c", RECEIVE)
        assert receiver.stdout
        assert receiver.stdout.readline() == "open\n"
        try:
            yield made
        finally:
            for one in made.running:
                one.kill()
                one.communicate()


def _rows(path: Path, port: int) -> list[Setting]:
    return [row for row in read_log(path) if row.flow[2] == port]


def _weights(path: Path, port: int) -> list[float]:
    return [row.weight for row in _rows(path, port)]


def _check(policy: Path, *logs: Path) -> tuple[int, dict[str, Any], str]:
    """Exit status, offences by application, and standard error of the policy checker."""
    command = [COMMAND, "policy", "check", *logs, "--policy", policy, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, {one["application"]: one for one in json.loads(done.stdout)["offences"]}, done.stderr


def _later(path: Path, by_ns: int) -> Path:
    """The log of a host whose clock is ahead."""
    text = path.read_text().splitlines()
    rows = [row.partition(",") for row in text[1:]]
    moved = path.with_suffix(".later.csv")
    moved.write_text("\n".join([text[0], *(f"{int(time_ns) + by_ns},{rest}" for time_ns, _, rest in rows)]) + "\n")
    return moved


def test_an_application_over_its_budget_is_named(hosts: Hosts) -> None:
    """``batch`` moves weight between two hosts, and ``web`` takes more than its budget."""
    for host in ("h0", "h1"):
        hosts.soze(host)
    before_ns = time.time_ns()
    senders = [
        hosts.send("h0", 5000, "3:1", "1:1.5"),
        hosts.send("h1", 5001, "1:1.3", "3:1"),
        hosts.send("h1", 6000, "2:1", "5:0.7", "2:0.3"),
    ]
    for sender in senders:
        said, errors = sender.communicate(timeout=60)
        assert sender.returncode == 0, errors
        assert int(said) > 100_000
    flows = {("h0", 5000): [3, 1, 0], ("h1", 5001): [1, 3, 0], ("h1", 6000): [2, 5, 2, 0]}
    for (host, port), weights in flows.items():
        path = hosts.log(host)
        wait_until(lambda p=path, n=port, w=weights: _weights(p, n) == w, partial(path.read_text))
        rows = _rows(path, port)
        assert rows[0].flow == (hosts.address(host), hosts.to, port, 5201, "tcp")
        times = [row.time_ns for row in rows]
        assert before_ns < times[0] < times[-1] < time.time_ns()
        assert times == sorted(times)
    spans = _rows(hosts.log("h1"), 6000)
    assert abs(spans[2].time_ns - spans[1].time_ns - 0.7e9) < 0.3e9
    policy = hosts.folder / "policy.toml"
    policy.write_text(POLICY.format(h0=hosts.address("h0"), h1=hosts.address("h1")))
    logs = hosts.log("h0"), hosts.log("h1")
    # Clocks that differ by 8 ms accuse nobody else.
    for given in (logs, (_later(logs[0], 8_000_000), logs[1]), (logs[0], _later(logs[1], 8_000_000))):
        status, named, _ = _check(policy, *given)
        assert (status, list(named)) == (1, ["web"])
        assert named["web"]["most"] == 5
        assert abs(named["web"]["until_ns"] - named["web"]["from_ns"] - 0.7e9) < 0.3e9
    # It may pay for 3 over its budget for 0.7 s: 2.1.
    for pays, status in ((4.2, 0), (1.0, 1)):
        policy.write_text("price = 1\n" + POLICY.format(h0=hosts.address("h0"), h1=hosts.address("h1")))
        policy.write_text(policy.read_text().replace("budget = 2", f"budget = 2\npays = {pays}"))
        assert _check(policy, *logs)[0] == status


def test_a_restarted_agent_continues_its_log(hosts: Hosts) -> None:
    path = hosts.log("h0")
    first = hosts.soze("h0")
    sender = hosts.send("h0", 5000, "3:6")
    wait_until(lambda: _weights(path, 5000) == [3], path.read_text)
    time.sleep(1.5)
    first.kill()
    first.communicate()
    ended_ns = time.time_ns()
    time.sleep(1)
    hosts.soze("h0")
    # Its connection has the kernel's congestion control now. It ended when the agent was last alive.
    wait_until(lambda: _weights(path, 5000) == [3, 0], path.read_text)
    assert -1.5e9 < _rows(path, 5000)[1].time_ns - ended_ns < 0.1e9
    assert hosts.send("h0", 5001, "2:0.3").communicate(timeout=30)[0]
    wait_until(lambda: _weights(path, 5001) == [2, 0], path.read_text)
    sender.kill()
    text = path.read_text()
    assert text.count(COLUMNS[0]) == 1
    assert text.endswith("\n")


def test_a_log_that_is_moved_is_followed_by_a_new_one(hosts: Hosts) -> None:
    path, moved = hosts.log("h0"), hosts.folder / "h0.csv.1"
    hosts.soze("h0")
    sender = hosts.send("h0", 5000, "3:4", "1:1")
    wait_until(lambda: _weights(path, 5000) == [3], path.read_text)
    path.rename(moved)
    wait_until(path.exists, moved.read_text)
    sender.communicate(timeout=30)
    wait_until(lambda: _weights(path, 5000) == [3, 1, 0], path.read_text)
    assert _weights(moved, 5000) == [3]


def test_lost_events_are_counted_and_the_last_weight_is_right(hosts: Hosts) -> None:
    """The agent is stopped meanwhile, so that the kernel's ring buffer overflows."""
    path = hosts.log("h0")
    daemon = hosts.soze("h0")
    hasty = hosts.run("h0", sys.executable, "-c", HASTE, hosts.to, "30000")
    assert hasty.stdin
    assert hasty.stdout
    wait_until(lambda: _weights(path, 5000) == [1], path.read_text)
    daemon.send_signal(signal.SIGSTOP)
    hasty.stdin.write("\n")
    hasty.stdin.flush()
    assert hasty.stdout.readline() == "set\n"
    daemon.send_signal(signal.SIGCONT)
    wait_until(lambda: "# missing" in path.read_text() and _rows(path, 5000)[-1].weight == 9, path.read_text)
    counted = int(path.read_text().partition("# missing ")[2].split()[0])
    # The last one is there, whether it was counted or not.
    assert counted > 10_000
    assert counted + len(_rows(path, 5000)) in (30002, 30003), "each is there or counted"
    policy = hosts.folder / "policy.toml"
    policy.write_text(POLICY.format(h0=hosts.address("h0"), h1=hosts.address("h1")))
    assert f"{path}: {counted} weights are missing" in _check(policy, path)[2]
    hasty.stdin.write("\n")
    hasty.stdin.flush()
    wait_until(lambda: _weights(path, 5000)[-1] == 0, path.read_text)
    assert daemon.stderr
    assert f"{counted} weights are missing in {path}" in daemon.stderr.readline()
    daemon.kill()
    daemon.communicate()


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_stops_no_agent(hosts: Hosts) -> None:
    with _small_disk(hosts.folder / "disk") as disk:
        path, other = disk / "log.csv", disk / "other"
        daemon = hosts.soze("h0", path)
        sender = hosts.send("h0", 5000, *(f"{1 + k % 3}:0.01" for k in range(400)), "7:2")
        wait_until(lambda: len(_rows(path, 5000)) > 2, path.read_text)
        with pytest.raises(OSError, match="No space"):
            other.write_bytes(bytes(1 << 20))
        said, errors = sender.communicate(timeout=60)
        assert sender.returncode == 0, errors
        # Its rate is not bounded by the disk.
        assert int(said) > 10_000_000
        assert daemon.poll() is None
        other.unlink()
        wait_until(lambda: "# missing" in path.read_text(), path.read_text)
        wait_until(lambda: _weights(path, 5000)[-1] == 0, path.read_text)
        counted = int(path.read_text().partition("# missing ")[2].split()[0])
        assert 0 < counted < 402
        assert counted + len(_rows(path, 5000)) == 402, "each is there or counted"
        assert daemon.stderr
        warnings = [daemon.stderr.readline() for _ in range(2)]
        daemon.kill()
        assert not daemon.communicate()[1]
        assert "No space left on device" in warnings[0]
        assert f"{counted} weights are missing" in warnings[1]


def test_what_is_no_log_is_refused(hosts: Hosts) -> None:
    path = hosts.folder / "notes.txt"
    path.write_text("something\n")
    for wrong in (path, hosts.folder, hosts.folder / "none" / "log.csv"):
        daemon = hosts.run("h0", testbeds.agent(), "soze", "--rate=1Gbps", "--log-weights", str(wrong))
        errors = daemon.communicate(timeout=20)[1]
        assert daemon.returncode == 2
        assert f"--log-weights: {wrong}" in errors
    assert path.read_text() == "something\n"


def test_flowtune_logs_the_weights_within_a_host(tmp_path: Path) -> None:
    """Two programs of a host divide its weight of 1; an agent that takes them over logs them anew."""
    log = tmp_path / "log.csv"
    options = ("--weights=within", f"--log-weights={log}")
    with star(tmp_path, 3, 100_000_000, options) as (daemons, run, to):
        senders = [run("h0", SEND, to, "5000", "3:9")]
        wait_until(lambda: _weights(log, 5000)[-1:] == [1], log.read_text)
        senders.append(run("h0", SEND, to, "5001", "1:5"))

        def shared(since: int = 0) -> bool:
            """Whether both have got their parts at one time."""
            times = {row.time_ns for row in _rows(log, 5000)[since:] if row.weight == 0.75}
            return bool(times & {row.time_ns for row in _rows(log, 5001) if row.weight == 0.25})

        wait_until(shared, log.read_text)
        daemon = daemons.processes[1]
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.wait()
        since = len(_rows(log, 5000))
        daemons.start_agent()
        wait_until(partial(shared, since), log.read_text)
        for sender in senders:
            sender.communicate(timeout=60)
        wait_until(lambda: [_weights(log, port)[-1] for port in (5000, 5001)] == [0, 0], log.read_text)
        policy = tmp_path / "policy.toml"
        text = '[[application]]\nname = "h0"\nbudget = {}\nsources = ["{}"]\n'
        source = _rows(log, 5000)[0].flow[0]
        # The receiver's short answers have no weights.
        assert {row.flow[0] for row in read_log(log)} == {source}
        # A flowlet may last for less than the default of grace_ns.
        for budget, status in ((1.02, 0), (0.9, 1)):
            policy.write_text("grace_ns = 0\n" + text.format(budget, source))
            assert _check(policy, log)[0] == status
        daemons.end()
        assert daemons.report["weights_logged"] >= 5
        assert daemons.report["weights_missing"] == 0


@pytest.mark.skipif(not Path("/proc/sys/net/ipv6").is_dir(), reason="the kernel has no IPv6")
def test_flowtune_logs_ipv6_addresses(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    with star(tmp_path, COUNT, LINK_BPS, ("--weights=free", f"--log-weights={log}", *PREFIXES)) as (daemons, run, _):
        _connect(run)
        receiver = run("h2", RECEIVE6)
        assert receiver.stdout.readline() == "open\n"
        sender = run("h1", SEND, "fd00:0:0:3::1", "5000", "3:1")
        sender.communicate(timeout=30)
        flows = partial(ask, daemons.control, {"ask": "flows"})
        wait_until(lambda: flows() == [] and _weights(log, 5000)[-1:] == [0], log.read_text)
        # A busy machine delays the sender, so that several flowlets follow each other.
        assert set(_weights(log, 5000)) == {3, 0}
        assert {row.flow for row in read_log(log)} == {("fd00:0:0:2::1", "fd00:0:0:3::1", 5000, 5202, "tcp")}
