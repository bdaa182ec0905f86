"""Containers: connections of network namespaces behind a host are that host's, also if they appear later."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from subak.commands.allocator import ask
from subak.testbed.namespaces import GATEWAY
from subak.testbed.testbed import agent
from test_testbed_flowtune import TICK, star, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
LINK_BPS = 50_000_000
OWN, DOOR = "172.31.255.2", "172.31.255.1"
"""Addresses of the container and of its host on the veth between them."""


def _at(pid: int | str, *command: str) -> None:
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *command], check=True, timeout=20)


@contextmanager
def container(tmp_path: Path) -> Iterator[tuple[Any, subprocess.Popen[bytes], subprocess.Popen[bytes], int]]:
    """A container behind h0 that sends to h2: the daemons, its processes (the idle one, the sender), and h0's one."""
    with star(tmp_path, 3, LINK_BPS) as (daemons, run, to):
        # One agent for all hosts of a testbed has no containers: each host has one of its own.
        command = [one for one in daemons._agent if not one.startswith("--host=")]
        host = next(one for one in daemons._agent if one.startswith("--host=10.0.16.1@"))
        daemons.processes.pop(1).communicate(timeout=10)
        daemons._agent = [*command, host, "--containers"]
        daemons.start_agent()
        h0 = run("h0", "import os; print(os.getpid(), flush=True); import time; time.sleep(60)")
        pid = int(h0.stdout.readline())
        # The namespace is newer than the agent.
        inside = subprocess.Popen(["nsenter", f"--net=/proc/{pid}/ns/net", "unshare", "--net", "sleep", "60"])
        try:
            there = Path(f"/proc/{inside.pid}/ns/net")
            earlier = {Path(f"/proc/{one}/ns/net").stat().st_ino for one in ("self", pid)}
            wait_until(lambda: there.stat().st_ino not in earlier, there.stat)
            peer = ["type", "veth", "peer", "name", "c1", "netns", str(inside.pid)]
            _at(pid, "ip", "link", "add", "c0", *peer)
            for where, device, address in ((pid, "c0", DOOR), (inside.pid, "c1", OWN)):
                _at(where, "ip", "addr", "add", f"{address}/30", "dev", device)
                _at(where, "ip", "link", "set", device, "up")
            _at(inside.pid, "ip", "route", "add", "default", "via", DOOR)
            for node, device in (("hub", "r0"), ("h2", "l4")):
                route = ["ip", "route", "add", f"{OWN}/32", "via", GATEWAY, "dev", device, "onlink"]
                assert run(node, f"import subprocess; subprocess.run({route!r}, check=True)").wait(20) == 0
            command = ["nsenter", f"--net={there}", "python3", "-c", TICK, to, "12", "2"]
            sender = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            try:
                yield daemons, inside, sender, pid
            finally:
                sender.kill()
                sender.wait()
        finally:
            inside.kill()
            inside.wait()


def _granted(daemons: Any) -> bool:
    flows = ask(daemons.control, {"ask": "flows"})
    told = [(flow["from"], flow["to"], flow["weight"]) for flow in flows]
    return told == [("h0", "h2", 2)] and abs(flows[0]["rate_bps"] / (0.96 * LINK_BPS) - 1) < 0.05


def test_connections_of_containers_are_their_hosts(tmp_path: Path) -> None:
    with container(tmp_path) as (daemons, _, sender, _pid):
        flows, granted = partial(ask, daemons.control, {"ask": "flows"}), partial(_granted, daemons)
        wait_until(granted, flows)
        time.sleep(2)
        assert max(link["unscheduled_bps"] for link in ask(daemons.control, {"ask": "links"})) < 0.02 * LINK_BPS
        # The namespace is older than the next agent.
        daemons.processes.pop(1).communicate(timeout=10)
        wait_until(lambda: flows() == [], flows)
        daemons.start_agent()
        wait_until(granted, flows)
        assert sender.wait(30) == 0


def test_a_killed_container_leaves_its_share(tmp_path: Path) -> None:
    """Its connection has data in flight, for which the kernel tries a minute and more."""
    with container(tmp_path) as (daemons, inside, sender, pid):
        flows = partial(ask, daemons.control, {"ask": "flows"})
        wait_until(partial(_granted, daemons), flows)
        for process in (sender, inside):
            process.kill()
            process.wait()
        _at(pid, "ip", "link", "del", "c0")
        wait_until(lambda: flows() == [], flows)


@contextmanager
def second_agent(tmp_path: Path, *options: str) -> Iterator[None]:
    """Another agent of this machine, whose allocator does not answer."""
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("ab" * 32)
    command = [agent(), "flowtune", "--attached", "--allocator", "127.0.0.1:9", "--key", str(key), *options]
    pipe = subprocess.PIPE
    running = subprocess.Popen([*command, "--name", f"fs{os.getpid():x}"], stdin=pipe, stdout=pipe, text=True)
    try:
        assert running.stdout
        assert running.stdout.readline()
        yield
    finally:
        running.communicate(timeout=20)


@pytest.mark.parametrize("starts", ["before", "after"])
def test_namespaces_of_another_agent_are_not_taken_for_containers(tmp_path: Path, starts: str) -> None:
    """An agent with --containers starts before or after a testbed's agent, whose connections keep their rates."""
    beside = second_agent(tmp_path, "--containers", "--host", "127.0.0.1")
    with ExitStack() as early, ExitStack() as late:
        if starts == "before":
            early.enter_context(beside)
        daemons, run, to = early.enter_context(star(tmp_path, 3, LINK_BPS))
        flows = partial(ask, daemons.control, {"ask": "flows"})

        def shared_by(*hosts: str) -> bool:
            share_bps = 0.96 * LINK_BPS / len(hosts)
            told = sorted((flow["from"], abs(flow["rate_bps"] / share_bps - 1) < 0.1) for flow in flows())
            return told == [(host, True) for host in hosts]

        run("h0", TICK, to, "60", "1")
        wait_until(partial(shared_by, "h0"), flows)
        if starts == "after":
            late.enter_context(beside)
        for hosts in (("h0", "h1"), ("h0", "h1", "h1")):
            # A connection that begins beside the other agent.
            run("h1", TICK, to, "60", "1")
            wait_until(partial(shared_by, *hosts), flows)
        late.close()
        time.sleep(0.5)
        assert shared_by("h0", "h1", "h1"), flows()


def test_a_connection_that_another_agent_takes_is_logged(tmp_path: Path) -> None:
    """Its traffic counts as unscheduled from then on."""
    with star(tmp_path, 3, LINK_BPS) as (daemons, run, to):
        flows = partial(ask, daemons.control, {"ask": "flows"})
        run("h0", TICK, to, "60", "1")
        wait_until(lambda: len(flows()) == 1, flows)
        links = partial(ask, daemons.control, {"ask": "links"})
        h0 = next(word.partition("@")[2] for word in daemons._agent if word.startswith("--host=10.0.16.1@"))
        with second_agent(tmp_path, "--host", f"127.0.0.1@{h0}", "--sockets-here"):
            wait_until(lambda: flows() == [], flows)
            uplink = next(number for number, link in enumerate(links()) if link["from"] == "h0")
            wait_until(lambda: links()[uplink]["unscheduled_bps"] > 0.5 * LINK_BPS, links)
        log = daemons.logs[daemons.processes[-1].pid]
        log.seek(0)
        said = log.read()
        assert f"a connection of 10.0.16.1 to {to}: no longer paced, given another congestion control" in said


RENOUNCE = """
import socket, sys
line = socket.create_connection((sys.argv[1], 5201))
line.send(bytes(1 << 17))
try:
    line.setsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, b"reno")
    print("accepted", flush=True)
except PermissionError:
    print("refused", flush=True)
while True:
    line.send(bytes(1 << 14))
"""


def test_a_program_does_not_leave_pacing(tmp_path: Path) -> None:
    with star(tmp_path, 3, LINK_BPS) as (daemons, run, to):
        program = run("h0", RENOUNCE, to)
        assert program.stdout.readline() == "refused\n"
        flows = partial(ask, daemons.control, {"ask": "flows"})
        wait_until(lambda: [flow["from"] for flow in flows()] == ["h0"], flows)


def test_containers_belong_to_one_host(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    hosts = ["--host", "127.0.0.1", "--host", "127.0.0.2"]
    command = [agent(), "flowtune", "--containers", "--allocator", "127.0.0.1:9", "--key", str(key), *hosts]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert "there are 2; give one --host" in done.stderr
