"""Which link is worth an upgrade? A planner's question, answered by the structure of the allocation and by trial.

Run it with `python examples/planner.py`. Every pair of sites of a WAN exchanges as much data as possible. Each
bottleneck link is doubled in turn, in both directions, and the rates around it are updated. The table shows the gain of
the tenth of the pairs with the lowest rates, and of all pairs together.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import subak


def rates_bps(answer: subak.Answer) -> np.ndarray:
    """The rates of all flows, lowest first."""
    return np.sort(pa.table(answer.flows)["rate_bps"].to_numpy())


def main() -> None:
    """Prints a table of upgrades, the best first."""
    network = subak.Network.generate("wan", topology="b4-18", rate="100Gbps")
    flows = [{"id": f"{a}-{b}", "src": a, "dst": b} for a, b in permutations(network.hosts, 2)]
    order = subak.structure(network, k=1, flows=flows)
    capacity = dict(zip(*(pa.table(order.links)[name].to_pylist() for name in ("id", "capacity_bps")), strict=True))
    print(f"{len(flows)} flows, {sum(map(len, order.partition))} bottlenecks in {order.depth} iterations")

    now = subak.Incremental(network, flows=flows)
    before = rates_bps(now.solve())
    worst = len(before) // 10
    found = []
    bottlenecks = [link for part in order.partition for link in part]
    for a, b in sorted({tuple(sorted(link.split("->"))) for link in bottlenecks}):
        both = (f"{a}->{b}", f"{b}->{a}")
        for link in both:
            now.set_capacity(link, 2 * capacity[link])
        done = now.repair(1e-3)
        answer = now.answer()
        assert answer.status == "optimal", answer.certificate
        after = rates_bps(answer)
        gain = after[:worst].sum() / before[:worst].sum() - 1
        found.append((gain, after.sum() / before.sum() - 1, f"{a} - {b}", done.flows))
        for link in both:
            now.set_capacity(link, capacity[link])
        now.solve()
    print(f"{'doubled, both ways':28} {'worst tenth':>12} {'all':>8} {'flows moved':>12}")
    for gain, all_gain, name, moved in sorted(found, reverse=True)[:6]:
        print(f"{name:28} {gain:12.1%} {all_gain:8.1%} {moved:12}")


if __name__ == "__main__":
    main()
