"""Containers: connections of network namespaces behind a host are that host's, also if they appear later."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


def test_containers_belong_to_one_host(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    hosts = ["--host", "127.0.0.1", "--host", "127.0.0.2"]
    command = [agent(), "flowtune", "--containers", "--allocator", "127.0.0.1:9", "--key", str(key), *hosts]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert "there are 2; give one --host" in done.stderr
