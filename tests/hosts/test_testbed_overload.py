"""A link whose declared capacity exceeds the real one: flows lose packets, and the allocator detects and shares the
real capacity."""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from pathlib import Path

import pytest
from subak.commands.allocator import ask
from test_testbed_flowtune import TICK, rates_of, star, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")


def test_a_link_declared_at_twice_its_rate(tmp_path: Path) -> None:
    with star(tmp_path, 4, 50_000_000) as (daemons, run, to):
        links = partial(ask, daemons.control, {"ask": "links"})
        last = next(link["link"] for link in links() if link["to"] == "h3")
        ask(daemons.control, {"ask": "link", "link": last, "capacity": "100Mbps"})
        senders = [run(f"h{k}", TICK, to, "60", str(2**k)) for k in range(3)]

        def lowered() -> dict[str, float]:
            return {link["link"]: link["lowered_bps"] for link in links() if link["lowered_bps"]}

        wait_until(lambda: lowered().get(last, 1e9) < 52e6, links)
        # How long the allocator takes to find the link depends on the load of the machine: rates count from here.
        begin = time.monotonic() + 1
        assert ask(daemons.control, {"ask": "counters"})["lowered"] >= 1
        time.sleep(14)
        end = time.monotonic()
        for sender in senders:
            sender.terminate()
        printed = [sender.communicate(timeout=60)[0].splitlines(keepends=True) for sender in senders]
    together = ["".join(line for line in lines if begin < float(line.split()[0]) <= end) for lines in printed]
    rates = [statistics.median(rates_of(lines, 1)) for lines in together]
    # Exact rates would be 48 Mb/s divided 1:2:4, if the capacity were known.
    assert all(abs(rate / (48e6 * 2**k / 7) - 1) < 0.15 for k, rate in enumerate(rates)), rates
