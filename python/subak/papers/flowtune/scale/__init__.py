"""Scaling of Flowtune's allocator: servers per allocator link, and the cost of knowing part of the network."""

from __future__ import annotations

from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from subak.papers.flowtune import table_multicore
from subak.papers.flowtune.scale import knowledge, telling
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNOWLEDGE = {
    "big switch, full": "big switch,\nfull core",
    "big switch, a quarter": "big switch,\nquarter core",
    "pods, anywhere": "a pod each,\nflows anywhere",
    "pods, half within": "a pod each,\nhalf within",
}


GROUPS = (1, 16, 48)
"""Hosts per intermediary: one rack, and three racks; 1 means no intermediary."""
TOLD = ["servers_a_nic", "of_optimum", "records", "bare_gain"]


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Intermediaries, one big switch, one allocator per pod, and the communication in a parallel iteration.

    ``steps``: measured steps of 10 us; ``warmup``: steps before them; ``flows_a_host``: flows per host where rates are
    compared with the optimum; ``k``: ports of the fat-tree's switches; ``seconds``: measuring time of an iteration;
    ``rows``: rows of the table of section 5.2.
    """
    given = Settings(settings, "steps", "warmup", "flows_a_host", "k", "seconds", "rows")
    steps, warmup = given.count("steps", 3000, 1_000_000), given.count("warmup", 1000, 1_000_000)
    flows, k = given.count("flows_a_host", 8, 1000), given.count("k", 8, 16)
    seconds, table = given.number("seconds", 0.3, 1e-4, 100), table_multicore.TABLE[: given.count("rows", 7, 7)]
    seeds = [seed + run for run in range(max(runs, 1))]
    jobs = computed.Jobs((len(GROUPS) + len(KNOWLEDGE) + len(table)) * len(seeds), progress)
    values: dict[str, Any] = {}
    pairs = [(one, group) for one in seeds for group in GROUPS]
    told = dict(zip(pairs, jobs.each(pairs, lambda job: telling.run(*job, steps, warmup)), strict=True))

    def of(group: int, what: str) -> list[float]:
        return [getattr(told[one, group], what) for one in seeds]

    for group in GROUPS:
        servers = of(group, "servers_a_nic")
        values[f"servers a NIC {group}"] = computed.sample("mean", "runs", servers)
        values[f"of the optimum {group}"] = computed.sample("mean", "runs", of(group, "of_optimum"))
        if group > 1:
            values[f"gain {group}"] = computed.ratio("mean", "runs", servers, of(1, "servers_a_nic"))
    values["records of a datagram"] = computed.sample("mean", "runs", of(1, "records"))
    values["gain of bare records"] = computed.sample("mean", "runs", of(1, "bare_gain"))
    rows = [[group, one, *(getattr(ran, what) for what in TOLD)] for (one, group), ran in told.items()]
    tables = {"telling": {"columns": ["hosts", "seed", *TOLD], "rows": rows}}
    for name, (kind, number) in KINDS.items():
        big_switch, pods = partial(knowledge.big_switch, number, flows), partial(knowledge.pods, k, number, flows)
        costs = jobs.each(seeds, big_switch if kind == "big switch" else pods)
        for what in ("throughput", "points", "overload"):
            values[f"{what}: {name}"] = computed.sample("mean", "runs", [getattr(cost, what) for cost in costs])
        rows = [[cost.throughput, cost.points, cost.overload] for cost in costs]
        tables[name] = {"columns": ["throughput", "points", "overload"], "rows": rows}
    for size in table:
        # One after the other: these are times.
        shares = [jobs.each([one], partial(_communication, size, seconds))[0] for one in seeds]
        values[f"communication {size[0]}/{size[1]}"] = computed.sample("median", "runs", shares)
    return {"values": values, "tables": tables}


KINDS = {
    "big switch, full": ("big switch", 40e9),
    "big switch, a quarter": ("big switch", 10e9),
    "pods, anywhere": ("pods", 0.0),
    "pods, half within": ("pods", 0.5),
}
"""What the allocator knows: a big switch with this rate of spines, or pods with this share of flows within."""


def _communication(size: tuple[int, int], seconds: float, seed: int) -> float:
    """The fraction of an iteration on two threads that is communication, percent.

    It is the processor time beyond that of a single thread without FlowBlocks.
    """
    times = table_multicore.times(*size, seed, seconds, 2)
    return float(100.0 * (1.0 - times["single_us"] / (2.0 * times["threads_us"])))


def draw(raw: RawResults) -> Figure:
    """Servers per allocator link by hosts per intermediary; throughput and fairness by the allocator's knowledge."""
    figure, (servers, cost) = figures.axes(columns=2, width=5)
    rows = raw.rows("telling")
    groups = sorted({row["hosts"] for row in rows})
    means = [mean(row["servers_a_nic"] for row in rows if row["hosts"] == group) for group in groups]
    servers.bar(range(len(groups)), means)
    servers.axhline(89, color="gray", linestyle="--", label="the paper, without")
    servers.set_xticks(range(len(groups)), ["none" if group == 1 else str(int(group)) for group in groups])
    servers.set(xlabel="servers of an intermediary", ylabel="servers that 10 Gb/s can tell", ylim=(0, 150))
    servers.legend(loc="upper left")
    for k, (column, label) in enumerate((("throughput", "throughput"), ("points", "fairness: 2^points"))):
        shares = []
        for name in KNOWLEDGE:
            values = [row[column] for row in raw.rows(name)]
            shares.append(mean(values) if column == "throughput" else 100 * 2 ** mean(values))
        cost.bar([at + 0.4 * k - 0.2 for at in range(len(shares))], shares, width=0.4, label=label)
    cost.axhline(100, color="gray", linestyle="--")
    cost.set_xticks(range(len(KNOWLEDGE)), list(KNOWLEDGE.values()), fontsize="small")
    cost.set(ylabel="% of the optimum's", ylim=(0, 130))
    cost.legend(loc="upper center", ncols=2)
    return figure
