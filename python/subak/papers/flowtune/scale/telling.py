"""Distribution of rates to endpoints, directly or through intermediaries: load and cost of the allocator's link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import subak
from subak.papers.flowtune import web
from subak.papers.flowtune.fabric import two
from subak.repro.computed import total

TICK_NS = 10_000
LOAD = 0.8
NIC_BPS = 10e9
HEADERS = 38 + 20 + 8
"""Header bytes: Ethernet with check sequence, preamble and gap; IPv4; UDP."""
MTU = 1500 - 28
BARE_RECORD = 8
"""Size of a rate in the paper's encoding, plus two bytes for the endpoint within a group."""
EVERY = 100
"""Steps between two comparisons with the optimum."""


@dataclass(frozen=True)
class Ran:
    """Result of a run."""

    servers_a_nic: float
    """Number of servers that one 10 Gb/s link can send rates to."""
    of_optimum: float
    """Sum of current rates relative to the optimum, percent, mean over the comparisons."""
    records: float
    """Mean number of rates in a datagram to an endpoint."""
    bare_gain: float
    """Bytes of the frames to endpoints, relative to full frames of nothing but rates in the paper's encoding."""


def run(seed: int, group: int, steps: int, warmup: int) -> Ran:
    """Runs ``warmup`` steps, then ``steps`` measured ones, with intermediaries of ``group`` hosts; 1 means none."""
    network = subak.Network.generate(**web.TOPOLOGY)
    hosts, sizes, stream = len(network.hosts), subak.Sizes("facebook-web"), subak.Stream(seed, "telling")
    gap_s = 8.0 * sizes.mean_bytes / (LOAD * web.HOST_BPS * hosts)
    ends, starts_s, size_bytes = [], [], []
    next_s = stream.exponential(gap_s)
    while next_s < (warmup + steps) * TICK_NS * 1e-9:
        size_bytes.append(sizes.draw(stream))
        ends.append(two(stream, hosts))
        starts_s.append(next_s)
        next_s += stream.exponential(gap_s)
    src, dst = np.array(ends, dtype=np.uint32).T
    rows = subak.allocate(
        network,
        src,
        dst,
        starts_s,
        np.array(size_bytes),
        ticks=warmup + steps,
        tick=TICK_NS,
        group=group,
        gamma=web.GAMMA,
        seed=seed,
        compare_from=warmup,
        compare_every=EVERY,
    ).to_numpy()
    sent, rates, datagrams = (int(rows[name][warmup:].sum()) for name in ("bytes", "rates", "datagrams"))
    a_server_bps = 8.0 * sent / (steps * TICK_NS * 1e-9) / hosts
    looks = ~np.isnan(rows["optimum_bps"])
    of_optimum = total(100.0 * rows["rate_bps"][looks] / rows["optimum_bps"][looks]) / np.count_nonzero(looks)
    bare_gain = sent / (rates * BARE_RECORD) * MTU / (MTU + HEADERS)
    return Ran(NIC_BPS / a_server_bps, float(of_optimum), rates / datagrams, bare_gain)
