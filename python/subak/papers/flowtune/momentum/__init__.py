"""NED with momentum on fat-trees, from a start and after changes of the flows; and FlowBlocks of three tiers."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.papers.flowtune.fabric import Fabric, two
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOMENTA = (0.0, 0.5, 0.7, 0.8, 0.9)
SAFE = 1.6 / 6
"""NED's default gamma on paths of six links."""
GAMMAS = {"paper": 0.4, "gamma": SAFE, "half": SAFE / 2}
"""The paper's gamma (section 5.3), the default, and half of it."""
RESTARTED = "restarted"
"""The method ``accelerated``: momentum that grows, and restarts where it points uphill."""
PORTS, A_HOST, MOST_WEIGHT = (4, 6, 8), (1, 8), 16
"""Ports of a fat-tree's switches, fewest and most flows of a host, and the largest weight: each is drawn."""
REPLACED, CHANGES = 0.2, 5
"""Share of the flows that a change replaces, and the number of changes."""
TOLERANCE, STAYS, MOST_STEPS = 0.01, 20, 3000
LEAST_FACTOR = 0.5
"""Momentum at most halves a price, as in the method ``accelerated``: at 0 it could not rise again."""
GROUPS = (1, 2, 3, 4)
"""Groups of pods."""
PLAIN = "gamma 0"
"""NED with its default gamma."""
WHEN = {"start": slice(0, 1), "change": slice(1, None)}
"""Stages of a network: from prices of 1, and after each change of the flows."""


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Steps by momentum on ``runs`` random fat-trees, and whether FlowBlocks give the same bits on 1 to 4 threads.

    ``ports``: largest number of ports of a switch.
    """
    most = Settings(settings, "ports").count("ports", max(PORTS), max(PORTS))
    seeds = [seed + k for k in range(max(runs, 1))]
    jobs = computed.Jobs(2 * len(seeds), progress)
    taken = jobs.each([(one, most) for one in seeds], _steps)
    blocks = jobs.each([(one, most) for one in seeds], _blocks)
    values: dict[str, Any] = {}
    for law in taken[0]:
        settled = sum(all(map(math.isfinite, of[law])) for of in taken)
        values[f"{law} settled"] = computed.share("networks", settled, len(taken))
        for when, stages in WHEN.items():
            steps, plain = ([median(of[one][stages]) for of in taken] for one in (law, PLAIN))
            values[f"{law} {when}"] = computed.sample("median", "networks", steps)
            if law != PLAIN:
                values[f"{law} gain {when}"] = computed.ratio("median", "networks", plain, steps)
    values["same bits"] = all(same for one in blocks for _, _, same in one)
    # Where flows are few, some pairs of groups have none.
    most_blocks = {groups: max(count for one in blocks for g, count, _ in one if g == groups) for groups in GROUPS}
    values["blocks"] = all(count == groups**2 for groups, count in most_blocks.items())
    rows = [
        [one, law, at, finite(steps)]
        for one, of in zip(seeds, taken, strict=True)
        for law in of
        for at, steps in enumerate(of[law])
    ]
    told = [[one, *row] for one, of in zip(seeds, blocks, strict=True) for row in of]
    return {
        "values": values,
        "tables": {
            "steps": {"columns": ["seed", "law", "change", "steps"], "rows": rows},
            "blocks": {"columns": ["seed", "groups", "blocks", "same_bits"], "rows": told},
        },
    }


class _Flows:
    """Random flows of random weights on a random fat-tree, of which each change replaces a part."""

    def __init__(self, seed: int, most: int) -> None:
        self.stream = subak.Stream(seed, "momentum")
        ports = [k for k in PORTS if k <= most]
        self.ports = ports[self.stream.below(len(ports))]
        self.fabric = Fabric(seed, kind="fat-tree", k=self.ports, rate=40e9)
        low, high = A_HOST
        self.flows: list[tuple[int, int, list[int], float]] = []
        self.made = 0
        self.add((low + self.stream.below(high - low + 1)) * len(self.fabric.hosts))

    def add(self, count: int) -> None:
        hosts = self.fabric.hosts
        for _ in range(count):
            src, dst = two(self.stream, len(hosts))
            path = self.fabric.router.path(hosts[src], hosts[dst], self.made)
            self.flows.append((src, dst, list(path), float(1 + self.stream.below(MOST_WEIGHT))))
            self.made += 1

    def rows(self) -> subak.Rows:
        ptr = np.cumsum([0, *(len(path) for *_, path, _ in self.flows)])
        links = np.array([link for *_, path, _ in self.flows for link in path], dtype=np.uint32)
        return subak.Rows(ptr, links, weight=np.array([weight for *_, weight in self.flows]))

    def change(self) -> None:
        replaced = max(round(REPLACED * len(self.flows)), 1)
        self.stream.shuffle(self.flows)
        del self.flows[:replaced]
        self.add(replaced)

    def optimum(self) -> tuple[subak.Rows, Any]:
        """The flows as rows, and their exact rates."""
        rows = self.rows()
        answer = subak.solve(self.fabric.network, flows=rows, policy={"kind": "alpha-fair", "alpha": 1})
        return rows, np.asarray(answer.flows.to_numpy()["rate_bps"])

    def blocks(self, groups: int) -> int:
        """FlowBlocks that have flows, where pods are in so many groups."""
        hosts = len(self.fabric.hosts)
        # Hosts are numbered pod by pod.
        group = [h * self.ports // hosts * groups // self.ports for h in range(hosts)]
        return len({(group[src], group[dst]) for src, dst, *_ in self.flows})


def _steps(job: tuple[int, int]) -> dict[str, list[float]]:
    """By law, steps from prices of 1 to the optimum, and after each change from the prices before it."""
    flows = _Flows(*job)
    stages = [flows.optimum()]
    for _ in range(CHANGES):
        flows.change()
        stages.append(flows.optimum())
    network = flows.fabric.network
    found = {f"{name} {m:g}": _law(network, stages, gamma, m) for name, gamma in GAMMAS.items() for m in MOMENTA}
    return found | {RESTARTED: _law(network, stages, None, None)}


def _law(
    network: subak.Network, stages: list[tuple[subak.Rows, Any]], gamma: float | None, momentum: float | None
) -> list[float]:
    ned = subak.Ned(
        network, method="accelerated" if momentum is None else "ned", gamma=gamma, bounded=momentum is not None
    )
    found, numbers = [], np.zeros(0, dtype=np.uint32)
    for rows, want in stages:
        if len(numbers):
            ned.remove(numbers)
        numbers = ned.add(rows)
        found.append(_until(ned, numbers, want, momentum))
    return found


def _until(ned: subak.Ned, numbers: Any, want: Any, momentum: float | None) -> float:
    """Steps until the rates are and stay within the tolerance; infinite if they are not in time."""
    since, before = None, np.array(ned.prices)
    for step in range(1, MOST_STEPS + STAYS + 1):
        off = float(ned.errors(want, numbers)[0])
        if momentum:
            # The law's own step is from the prices with momentum.
            moved = np.array(ned.prices)
            ned.prices = np.maximum(moved + momentum * (moved - before), LEAST_FACTOR * moved)
            before = moved
        since = (since or step) if off <= TOLERANCE else None
        if since is not None and step >= since + STAYS:
            return float(since)
        if since is None and step >= MOST_STEPS:
            break
    return math.inf


def _blocks(job: tuple[int, int]) -> list[tuple[int, int, bool]]:
    """By number of groups of pods: FlowBlocks with flows, and whether 1 to 4 threads give the same bits."""
    flows = _Flows(*job)
    network, rows = flows.fabric.network, flows.rows()
    unweighted = subak.Rows(rows.link_ptr, rows.links)
    found = []
    for groups in GROUPS:
        times = subak.ned_times(network, unweighted, groups=groups, seconds=1e-4, compare=True)
        found.append((groups, flows.blocks(groups), bool(times["same_bits"])))
    return found


def draw(raw: RawResults) -> Figure:
    """Steps by momentum, from a start and after changes, as medians over the networks."""
    figure, plots = figures.axes(columns=2, width=5)
    rows = raw.rows("steps")

    def shown(law: str, when: str) -> float:
        mine = [r["steps"] or MOST_STEPS for r in rows if r["law"] == law and (r["change"] == 0) == (when == "start")]
        return median(mine)

    for plot, when in zip(plots, WHEN, strict=True):
        for name, gamma in GAMMAS.items():
            plot.plot(MOMENTA, [shown(f"{name} {m:g}", when) for m in MOMENTA], marker="o", label=f"gamma {gamma:.2f}")
        plot.axhline(shown(RESTARTED, when), color="black", linestyle=":", label="restarted")
        title = {"start": "from prices of 1", "change": "after a change of a fifth of the flows"}[when]
        plot.set(xlabel="momentum", ylabel="steps to within 1%, median", yscale="log", title=title)
        plot.legend()
    return figure
