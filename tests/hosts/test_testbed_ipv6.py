"""TCP over IPv6 under Flowtune: agents know the hosts' IPv6 prefixes, and pace it as TCP over IPv4."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from subak.commands.allocator import ask
from subak.testbed.layout import address
from subak.testbed.namespaces import MAC
from test_testbed_flowtune import TICK, rates_of, star, wait_until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/sys/net/ipv6").is_dir(), reason="namespaces want root, and IPv6"
)
LINK_BPS = 50_000_000
COUNT = 3
PREFIXES = tuple(f"--ipv6=fd00:0:0:{k + 1}::/64={address(k + 1, 0)}" for k in range(COUNT))
"""Hosts follow the switch, which is node 0."""
RECEIVE = """
import socket, threading
door = socket.create_server(("::", 5202), family=socket.AF_INET6)
print("open", flush=True)
def read(line):
    while line.recv(1 << 16):
        pass
while True:
    threading.Thread(target=read, args=door.accept()[:1], daemon=True).start()
"""
TICK6 = TICK.replace("5201", "5202")


def _place(daemons_run: Any, node: str, commands: list[str]) -> None:
    program = f"import subprocess\nfor one in {commands!r}:\n    subprocess.run(['sh', '-c', one], check=True)"
    assert daemons_run(node, program).wait(20) == 0


def _connect(run: Any) -> None:
    """Gives hosts IPv6 addresses, and all nodes routes. Neighbours are set: each device has the same MAC address."""

    def enabled(devices: list[str]) -> list[str]:
        settings = Path("/proc/sys/net/ipv6/conf")
        begun = [f"echo 1 > {settings}/{device}/addr_gen_mode" for device in devices]
        return begun + [f"echo 0 > {settings}/{name}/disable_ipv6" for name in ("all", *devices, "lo")]

    def towards(device: str, to: str) -> list[str]:
        neighbour = f"ip -6 neigh replace fe80::1 lladdr {MAC} dev {device} nud permanent"
        return [neighbour, f"ip -6 route add {to} via fe80::1 dev {device} onlink"]

    for k in range(COUNT):
        own = f"ip -6 addr add fd00:0:0:{k + 1}::1/128 dev lo nodad"
        _place(run, f"h{k}", [*enabled([f"l{2 * k}"]), own, *towards(f"l{2 * k}", "fd00::/16")])
    there = [one for k in range(COUNT) for one in towards(f"r{2 * k}", f"fd00:0:0:{k + 1}::/64")]
    devices = [f"r{2 * k}" for k in range(COUNT)]
    _place(run, "hub", [*enabled(devices), "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding", *there])


def _rate(printed: str, since: float, until: float) -> float:
    lines = [line for line in printed.splitlines() if since < float(line.split()[0]) < until]
    return median(rates_of("\n".join(lines), 0.2))


def test_ipv6_is_paced_as_ipv4(tmp_path: Path) -> None:
    """Weights 1 over IPv4 and 3 over IPv6, at the start and after the agent was killed and started again."""
    with star(tmp_path, COUNT, LINK_BPS, ("--weights=free", *PREFIXES)) as (daemons, run, to):
        _connect(run)
        receiver = run("h2", RECEIVE)
        assert receiver.stdout.readline() == "open\n"
        senders = [run("h0", TICK, to, "14", "1"), run("h1", TICK6, "fd00:0:0:3::1", "14", "3")]
        flows = partial(ask, daemons.control, {"ask": "flows"})
        granted_bps = 0.96 * LINK_BPS / 4

        def shared() -> bool:
            rates = sorted(flow["rate_bps"] for flow in flows())
            return len(rates) == 2 and all(abs(rates[k] / granted_bps / (1, 3)[k] - 1) < 0.05 for k in (0, 1))

        spans = []
        for _ in range(2):
            wait_until(shared, flows)
            since = time.monotonic()
            time.sleep(3)
            spans.append((since, time.monotonic()))
            into = next(link for link in ask(daemons.control, {"ask": "links"}) if link["to"] == "h2")
            assert into["unscheduled_bps"] < 0.02 * LINK_BPS, into
            os.kill(daemons.processes[1].pid, signal.SIGKILL)
            daemons.processes[1].wait()
            daemons.processes.pop(1)
            daemons.start_agent()
        printed = [sender.communicate(timeout=60)[0] for sender in senders]
    for since, until in spans:
        rates = [_rate(lines, since + 0.5, until) for lines in printed]
        assert abs(rates[1] / rates[0] / 3 - 1) < 0.1, rates
        assert abs(sum(rates) / granted_bps / 4 - 1) < 0.1, rates


def test_ipv6_to_unknown_hosts_is_unscheduled(tmp_path: Path) -> None:
    with star(tmp_path, COUNT, LINK_BPS) as (daemons, run, _):
        _connect(run)
        receiver = run("h2", RECEIVE)
        assert receiver.stdout.readline() == "open\n"
        run("h1", TICK6, "fd00:0:0:3::1", "6", "1")
        links = partial(ask, daemons.control, {"ask": "links"})
        wait_until(lambda: any(link["unscheduled_bps"] > 0.5 * LINK_BPS for link in links()), links)
        assert ask(daemons.control, {"ask": "flows"}) == []
