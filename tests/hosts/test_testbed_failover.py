"""Two allocators: hosts without paced connections use the one that serves, too."""

from __future__ import annotations

import os
import secrets
import socket
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attempts import Attempts
from subak.commands.allocator import ask
from subak.testbed.flowtune import allocator
from test_testbed_flowtune import TICK, star, wait_until
from test_testbed_unscheduled import FLOOD, resent

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
LINK_BPS = 50_000_000


def _free_ports() -> list[int]:
    """Two UDP ports that no other program has."""
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return [one.getsockname()[1], other.getsockname()[1]]


def _two_allocators(daemons: Any) -> list[Path]:
    """Replaces the allocator by two, the first of which serves, and restarts the agent; returns their sockets."""
    folder = Path(daemons.control).parent
    for running in reversed(daemons.processes):
        running.kill()
        running.communicate()
    daemons.processes.clear()
    text = (folder / "allocator.toml").read_text()
    between = folder / "between"
    between.touch(mode=0o600)
    between.write_text(secrets.token_hex(32))
    ports = _free_ports()
    controls = [folder / "first", folder / "second"]
    for number, control in enumerate(controls):
        standby = f'{{peer = "127.0.0.1:{ports[1 - number]}", key = "between", first = {str(number == 0).lower()}}}'
        own = text.replace("127.0.0.1:0", f"127.0.0.1:{ports[number]}", 1).replace('"socket"', f'"{control.name}"')
        path = folder / f"{control.name}.toml"
        path.write_text(f"standby = {standby}\n{own}")
        daemons._run([allocator(), "serve", "--attached", str(path)])
        wait_until(partial(_serves, controls[0]), lambda: controls)
    agent = [word for word in daemons._agent if word != daemons.listen]
    at = agent.index("--allocator")
    agent[at : at + 1] = [word for port in ports for word in ("--allocator", f"127.0.0.1:{port}")]
    daemons._agent = agent
    daemons.start_agent()
    return controls


def _serves(control: Path) -> bool:
    return bool(ask(control, {"ask": "status"})["serving"])


def _joined(control: Path) -> list[str]:
    return [peer["host"] for peer in ask(control, {"ask": "peers"}) if peer["joined"]]


def test_hosts_without_connections_follow_a_failover(tmp_path: Path) -> None:
    """Foreign traffic counts at the allocator that takes over, though no host has a paced connection."""
    with star(tmp_path, 3, LINK_BPS) as (daemons, run, _):
        first, second = _two_allocators(daemons)
        wait_until(lambda: len(_joined(first)) == 3, partial(_joined, first))
        run("h1", FLOOD, "10.0.16.1", "30e6", "60")

        def foreign(control: Path) -> float:
            links = ask(control, {"ask": "links"})
            return next(float(link["unscheduled_bps"]) for link in links if link["to"] == "h0")

        wait_until(lambda: abs(foreign(first) / 30e6 - 1) < 0.1, partial(foreign, first))
        assert not _serves(second)
        daemons.processes[0].kill()
        wait_until(lambda: _serves(second), lambda: "the second does not serve")
        wait_until(lambda: abs(foreign(second) / 30e6 - 1) < 0.1, partial(foreign, second))
        # h2 sends and receives nothing.
        wait_until(lambda: len(_joined(second)) == 3, partial(_joined, second))
        until = time.monotonic() + 1
        while time.monotonic() < until:
            assert len(_joined(second)) == 3


def _resent_at_a_failover(tmp_path: Path) -> int:
    """Retransmissions of two paced flows beside 30 Mb/s of UDP on a link of 50 Mb/s after the allocator ends."""
    with star(tmp_path, 4, LINK_BPS) as (daemons, run, to):
        first, second = _two_allocators(daemons)
        wait_until(lambda: len(_joined(first)) == 4, partial(_joined, first))
        for host in ("h0", "h1"):
            run(host, TICK, to, "30", "1")
        run("h2", FLOOD, to, "30e6", "30")

        def are_paced(control: Path) -> bool:
            flows = ask(control, {"ask": "flows"})
            return abs(sum(flow["rate_bps"] for flow in flows) / (0.96 * (LINK_BPS - 30e6)) - 1) < 0.1

        wait_until(lambda: are_paced(first), partial(ask, first, {"ask": "flows"}))
        time.sleep(2)
        before = resent(run)
        daemons.processes[0].kill()
        wait_until(lambda: _serves(second) and are_paced(second), lambda: "the second has no flows")
        time.sleep(3)
        return resent(run) - before


def test_a_failover_beside_foreign_traffic_costs_few_packets(tmp_path: Path) -> None:
    seen = []
    tries = Attempts(3)
    for attempt in tries:
        (tmp_path / f"{attempt}").mkdir()
        seen.append(_resent_at_a_failover(tmp_path / f"{attempt}"))
        if seen[-1] < 100:
            return
    tries.fail(f"retransmissions: {seen}")
