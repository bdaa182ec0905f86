"""Random sets of flows over links (PERC thesis, section 3.3), and the rounds of a scheme's messages on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import subak
from subak.repro.computed import rounded

DELAY_NS = 10_000
JITTER_NS = 10
MOST_TRACED = 1_000_000
"""Updates that a trace has at most."""


@dataclass(frozen=True)
class Setup:
    """Links without ends, and flows over them."""

    capacities_bps: list[float]
    paths: list[list[int]]
    weights: list[float]

    @cached_property
    def network(self) -> subak.Network:
        """The links, each with a delay of 10 us."""
        rows = [{"id": f"l{k}", "capacity": c, "delay": "10us"} for k, c in enumerate(self.capacities_bps)]
        return subak.Network.from_links(rows)

    @property
    def rtt_ns(self) -> int:
        """The longest round trip with the largest jitter."""
        return 2 * max(len(path) for path in self.paths) * (DELAY_NS + JITTER_NS)

    def structure(self, k: float) -> subak.Structure:
        """The order in which WF^k finds the bottlenecks."""
        flows = [
            {"id": f"f{k}", "path": [f"l{link}" for link in path], "weight": weight}
            for k, (path, weight) in enumerate(zip(self.paths, self.weights, strict=True))
        ]
        return subak.structure(self.network, k, flows=flows)


def draw(links: int, flows: int, hops: int, seed: int, *, mixed: bool = False, heaviest: int = 1) -> Setup:
    """A random setup: flows cross ``hops`` distinct links of 10 Gb/s, or of 1 to 100 Gb/s if ``mixed``."""
    stream = subak.Stream(seed, "setup")
    capacities = [(1.0 + stream.below(100)) * 1e9 if mixed else 10e9 for _ in range(links)]
    deck = list(range(links))
    paths = []
    for _ in range(flows):
        for k in range(min(hops, links)):
            other = k + stream.below(links - k)
            deck[k], deck[other] = deck[other], deck[k]
        paths.append(deck[: min(hops, links)])
    weights = [1.0 + stream.below(max(heaviest, 1)) for _ in range(flows)]
    return Setup(capacities, paths, weights)


@dataclass(frozen=True)
class Outcome:
    """Result of a run. Rounds count from the time when flows and links' timers have been stable for one round."""

    converged: bool
    rounds: float
    """Rounds until the last update that differed from the exact rate."""
    after_drop: float
    """Rounds from the last loss to that update; 0 without losses."""
    bound: float
    """Rounds that theory allows."""
    drops: int
    start_ns: int
    round_ns: int
    messages: subak.Rounds
    updates: list[dict[str, Any]] = field(default_factory=list)

    def at(self, time_ns: Any) -> Any:
        """A time, or an array of times, in rounds."""
        return (time_ns - float(self.start_ns)) / self.round_ns


@dataclass(frozen=True)
class Plan:
    """How long a run lasts, and what happens to its messages."""

    seed: int
    round_ns: int | None = None
    """Length of a round; the longest round trip by default."""
    stagger: float = 1.0
    """Flows start at random times within this many rounds."""
    most: float = 600.0
    """Rounds after which the run ends without convergence."""
    settle: float = 5.0
    """Rounds for which rates must stay exact."""
    drop: float = 0.0
    drop_rounds: float = 100.0
    params: Mapping[str, Any] = field(default_factory=dict)
    record: Iterable[str] = ()


def run(setup: Setup, scheme: str, plan: Plan) -> Outcome:
    """Runs the scheme's messages on the setup until its rates stay exact."""
    round_ns = plan.round_ns or setup.rtt_ns

    def rounds_ns(rounds: float) -> int:
        return rounded(rounds * round_ns)

    # Every link has started its timers within the first round.
    first_ns = 3 * round_ns
    start_ns = first_ns + rounds_ns(plan.stagger) + round_ns
    drop_until_ns = start_ns + rounds_ns(plan.drop_rounds)
    messages = subak.Rounds(
        setup.network,
        scheme,
        round=round_ns,
        params=plan.params,
        seed=plan.seed,
        jitter=JITTER_NS,
        drop=plan.drop,
        drop_until=drop_until_ns,
        record=plan.record,
    )
    starts = subak.Stream(plan.seed, "starts")
    at_ns = [first_ns + rounds_ns(plan.stagger * starts.unit()) for _ in setup.paths]
    messages.add_all(setup.paths, setup.weights, at_ns)
    quiet_ns = drop_until_ns if plan.drop > 0 else start_ns
    give_up_ns = quiet_ns + rounds_ns(plan.most)
    settle_ns = rounds_ns(plan.settle)
    updates: list[dict[str, Any]] = []
    now_ns = start_ns
    while True:
        messages.run(now_ns)
        if "updates" in plan.record:
            updates += messages.take_updates().to_arrow().slice(0, MOST_TRACED - len(updates)).to_pylist()
        converged = now_ns >= max(messages.last_wrong_ns or 0, quiet_ns) + settle_ns
        if converged or now_ns >= give_up_ns:
            break
        now_ns += round_ns
    wrong_ns = messages.last_wrong_ns or 0
    bound = messages.bound_rounds
    return Outcome(
        converged,
        max(wrong_ns - start_ns, 0) / round_ns,
        0.0 if messages.last_drop_ns is None else max(wrong_ns - messages.last_drop_ns, 0) / round_ns,
        float("inf") if bound is None else bound,
        messages.drops,
        start_ns,
        round_ns,
        messages,
        updates,
    )
