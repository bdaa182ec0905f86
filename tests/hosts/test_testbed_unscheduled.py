"""Traffic that no agent paces: the agent measures it, and the allocator subtracts it from the capacity."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attempts import Attempts
from subak.commands.allocator import ask
from test_testbed_flowtune import SEND, TICK, rates_of, star, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
LINK_BPS = 50_000_000

FLOOD = """
import socket, sys, time
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bits, begun, sent = 8 * 1442, time.monotonic(), 0
while (now := time.monotonic() - begun) < float(sys.argv[3]):
    while sent * bits < now * float(sys.argv[2]):
        line.sendto(bytes(1400), (sys.argv[1], 9))
        sent += 1
    time.sleep(0.002)
"""
MOST_RESENT = 250
"""Retransmissions as the flood begins. It overloads the link by 28 Mb/s until agents have measured it in two intervals
of 20 ms, and paced flows lose some 30 packets in each 20 ms. A busy machine takes longer. More than 400 were lost while
the allocator took a tenth of each report."""
RESENT = """
with open("/proc/self/net/snmp") as file:
    names, values = [row.split() for row in file if row.startswith("Tcp:")]
print(values[names.index("RetransSegs")])
"""


def _into(daemons: Any, host: str) -> Any:
    return next(link for link in ask(daemons.control, {"ask": "links"}) if link["to"] == host)


def resent(run: Any) -> int:
    """Retransmissions of h0 and h1 since their namespaces began."""
    return sum(int(run(f"h{k}", RESENT).communicate()[0]) for k in (0, 1))


def _beside_a_flood(tmp_path: Path) -> tuple[list[float], int, int, float]:
    """Paced flows of weights 1 and 2 beside 30 Mb/s of UDP on a link of 50 Mb/s.

    Their rates over what the flood leaves to each, their retransmissions in the first seconds of the flood and in the
    rest of it, and the part of the link that they share after the flood.
    """
    with star(tmp_path, 4, LINK_BPS) as (daemons, run, to):
        senders = [run(f"h{k}", TICK, to, "29", str(weight)) for k, weight in ((0, 1), (1, 2))]
        flows = partial(ask, daemons.control, {"ask": "flows"})
        whole_bps = 0.96 * LINK_BPS
        wait_until(lambda: abs(sum(flow["rate_bps"] for flow in flows()) / whole_bps - 1) < 0.02, flows)
        time.sleep(2)
        before = resent(run)
        flood = run("h2", FLOOD, to, "30e6", "16")
        links = partial(_into, daemons, "h3")
        wait_until(lambda: abs(links()["unscheduled_bps"] / 30e6 - 1) < 0.1, links)
        left_bps = 0.96 * (LINK_BPS - 30e6)
        wait_until(lambda: abs(sum(flow["rate_bps"] for flow in flows()) / left_bps - 1) < 0.1, flows)
        time.sleep(2)
        onset = resent(run)
        since = time.monotonic()
        flood.wait(30)
        until = time.monotonic()
        later = resent(run)
        printed = [sender.communicate(timeout=60)[0].splitlines() for sender in senders]

    def rate(lines: list[str], least: float, most: float) -> float:
        windows = rates_of("\n".join(line for line in lines if least < float(line.split()[0]) < most), 1)
        return sum(windows) / len(windows)

    during = [rate(lines, since, until) / (left_bps * share / 3) for lines, share in zip(printed, (1, 2), strict=True)]
    after = sum(rate(lines, until + 3, float("inf")) for lines in printed) / whole_bps
    return during, onset - before, later - onset, after


def test_paced_flows_share_what_foreign_traffic_leaves(tmp_path: Path) -> None:
    """They share the rest by weight, and lose few packets as it begins and almost none later.

    After the flood they share the whole link again.
    """
    seen = []
    tries = Attempts(3)
    for attempt in tries:
        (tmp_path / f"{attempt}").mkdir()
        during, onset, later, after = _beside_a_flood(tmp_path / f"{attempt}")
        seen.append((during, onset, later, after))
        if all(abs(part - 1) < 0.1 for part in during) and onset < MOST_RESENT and later < 20 and after > 0.9:
            return
    tries.fail(f"parts of the rates, retransmissions at first and later, part of the link afterwards: {seen}")


def test_paced_traffic_is_not_taken_for_foreign(tmp_path: Path) -> None:
    with star(tmp_path, 3, LINK_BPS) as (daemons, run, to):
        for k in (0, 1):
            run(f"h{k}", SEND, to, "6", "0")
        flows = partial(ask, daemons.control, {"ask": "flows"})
        wait_until(lambda: len(flows()) == 2, flows)
        time.sleep(3)
        unscheduled = {link["to"]: link["unscheduled_bps"] for link in ask(daemons.control, {"ask": "links"})}
        assert unscheduled["h2"] < 0.01 * LINK_BPS, unscheduled
