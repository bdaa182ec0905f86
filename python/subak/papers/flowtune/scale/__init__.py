"""Scaling of Flowtune's allocator: servers per allocator link, and the cost of knowing part of the network."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNOWLEDGE = {
    "big switch, full": "big switch,\nfull core",
    "big switch, a quarter": "big switch,\nquarter core",
    "pods, anywhere": "a pod each,\nflows anywhere",
    "pods, half within": "a pod each,\nhalf within",
}


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
