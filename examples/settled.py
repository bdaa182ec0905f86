"""Flows change when rates have settled, or after a longest wait, as in section 2.7.1 of the PERC thesis.

Four hosts at 100 Gb/s have 32 flows between random pairs. In turn one flow starts and one stops. Rates have settled
when the assigned rates of a fraction of the flows stay near the exact ones for a dwell time. The next change follows at
once. Exact rates are those of the part of a link that the scheme gives to data.

The criteria of other papers: ``Criterion(share=0.95, hold_ns=5_000_000)`` in NUMFabric, section 6.1, which has filtered
rates at receivers; ``Criterion(share=0.95, hold_ns=1_200_000)``, 100 RTTs, in section 4.3.1 of the thesis.
"""

import random
from dataclasses import dataclass

import numpy as np
import subak

NETWORK = {"kind": "star", "hosts": 4, "rate": "100Gbps", "link_delay": "3us"}
FLOWS = 32


@dataclass(frozen=True)
class Criterion:
    """When rates count as settled. Times in nanoseconds."""

    within: float = 0.1
    """Largest relative distance from the exact rate."""
    share: float = 1.0
    """Fraction of the flows that have to be within it."""
    hold_ns: int = 120_000
    """Time for which they have to stay: ten RTTs."""
    longest_ns: int = 5_000_000
    """Longest time to settle, without the dwell time; then the change counts as not settled."""
    every_ns: int = 1_000
    """Time between two samples."""

    @property
    def samples(self) -> int:
        """Number of samples in the dwell time, at least one."""
        return max(-(-self.hold_ns // self.every_ns), 1)


class Changes:
    """A simulation whose flows change when rates have settled."""

    def __init__(self, scheme: str, criterion: Criterion, seed: int) -> None:
        self.simulation = subak.Simulation(NETWORK, scheme, seed=seed)
        self.exact = subak.Network.generate("star", hosts=4, rate="100Gbps", link_delay="3us")
        self.criterion, self.draw = criterion, random.Random(seed)
        self.pairs: dict[int, tuple[str, str]] = {}
        self.start()
        self.data_share = self.alone() / 100e9

    def alone(self) -> float:
        """Mean rate over a dwell time of the one flow there is, which gets all that the scheme gives to data, bit/s."""
        asked = self.criterion
        for _ in range(asked.longest_ns // (asked.samples * asked.every_ns) + 1):
            rates = self.rates(self.simulation.now_ns + asked.samples * asked.every_ns)[:, list(self.pairs)]
            mean = float(rates.mean())
            if mean > 0 and (np.abs(rates / mean - 1) <= asked.within).all():
                return mean
        raise RuntimeError("the rate of a flow alone does not settle")

    def start(self) -> None:
        """Starts a flow between two random hosts."""
        src, dst = self.draw.sample(range(4), 2)
        pair = f"h{src}", f"h{dst}"
        self.pairs[self.simulation.add(*pair)] = pair

    def stop(self) -> None:
        """Stops a random flow."""
        flow = self.draw.choice(list(self.pairs))
        self.simulation.stop(flow)
        del self.pairs[flow]

    def goal(self) -> np.ndarray:
        """Exact max-min rates of the present flows, bit/s."""
        flows = [{"src": src, "dst": dst} for src, dst in self.pairs.values()]
        return self.data_share * subak.solve(self.exact, flows=flows).to_numpy()["rate_bps"]

    def rates(self, until_ns: int) -> np.ndarray:
        """Advances to a time; assigned rates on the way, a row for each sample and a column for each flow, bit/s."""
        every = self.criterion.every_ns
        times = range(self.simulation.now_ns + every, until_ns + 1, every)
        table = self.simulation.sample(times).to_pandas()
        return table.pivot(index="time_ns", columns="flow", values="assigned_bps").fillna(0.0).to_numpy()

    def settle(self) -> int | None:
        """Advances until rates have settled. Returns the time to settle, ns, or ``None`` after the longest wait."""
        asked, goal = self.criterion, self.goal()
        held, settled_ns = 0, 0
        while settled_ns <= asked.longest_ns:
            samples = asked.samples - held
            rates = self.rates(self.simulation.now_ns + samples * asked.every_ns)[:, list(self.pairs)]
            near = (np.abs(rates / goal - 1) <= asked.within).mean(axis=1) >= asked.share
            if near.all():
                return settled_ns
            still = int(near[::-1].argmin())
            settled_ns += (held + samples - still) * asked.every_ns
            held = still
        return None


def run(scheme: str, changes: int, criterion: Criterion | None = None, seed: int = 1) -> list[int | None]:
    """Times to settle after each change, ns; ``None`` where rates did not settle within the longest wait."""
    network = Changes(scheme, criterion or Criterion(), seed)
    while len(network.pairs) < FLOWS:
        network.start()
    network.settle()
    times = []
    for number in range(changes):
        network.stop() if number % 2 else network.start()
        times.append(network.settle())
    return times


if __name__ == "__main__":
    for scheme in ("fair", "s-perc-star", "rcp"):
        times = run(scheme, 30)
        settled = sorted(time for time in times if time is not None)
        middle = settled[len(settled) // 2] / 1e3 if settled else float("nan")
        print(f"{scheme}: {len(settled)} of {len(times)} changes settle, the median in {middle:g} us")
