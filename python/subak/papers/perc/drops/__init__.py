"""Section 4.3.3 of the PERC thesis: s-PERC* after control packets were lost."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import subak
from subak.papers.perc import setups
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, largest, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SWITCHES = 10
HOPS = 8
"""Links per flow: with 10 us per link the RTT is 160 us, and a round of 200 us is about 1.2 RTTs."""
PROBABILITIES = {"0.0001": 1e-4, "0.001": 1e-3, "0.01": 1e-2}
COLUMNS = ["drop", "runs", "losses_min", "losses_max"]
COLUMNS += ["rounds_after_median", "rounds_after_max", "share_of_bound_max"]


def _mesh(flows: int, seed: int) -> setups.Setup:
    """The full mesh with flows over paths that visit no switch twice."""
    stream = subak.Stream(seed, "mesh")
    paths = []
    for _ in range(flows):
        switches = list(range(SWITCHES))
        stream.shuffle(switches)
        paths.append([a * (SWITCHES - 1) + b - (b > a) for a, b in pairwise(switches[: HOPS + 1])])
    return setups.Setup([10e9] * (SWITCHES * (SWITCHES - 1)), paths, [1.0] * flows)


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Runs with each probability of a loss.

    ``flows``: number of flows; ``rounds``: rounds in which messages are lost; ``rto_us``: RTO of the sources, us.
    """
    given = Settings(settings, "flows", "rounds", "rto_us")
    flows, rto_us = given.count("flows", 400, 10_000), given.number("rto_us", 400, 1, 1e6)
    rounds = given.number("rounds", 80, 1, 1e5)
    runs = max(runs, 1)
    jobs = [(drop, seed + k) for drop in PROBABILITIES.values() for k in range(runs)]

    def one(job: tuple[float, int]) -> setups.Outcome:
        drop, of = job
        params = {"rto": rto_us * 1e-6}
        plan = setups.Plan(of, round_ns=200_000, drop=drop, drop_rounds=rounds, params=params)
        return setups.run(_mesh(flows, of), "s-perc-star", plan)

    taken = computed.Jobs(len(jobs), progress).each(jobs, one)
    rows: list[Any] = []
    values: dict[str, Any] = {}
    for k, (name, drop) in enumerate(PROBABILITIES.items()):
        mine = taken[k * runs : (k + 1) * runs]
        after, losses = [one.after_drop for one in mine], [float(one.drops) for one in mine]
        share = largest(one.after_drop / one.bound for one in mine)
        rows.append([drop, runs, min(losses), largest(losses), quantile(after, 0.5), largest(after), share])
        within = sum(one.converged and one.after_drop <= one.bound for one in mine)
        values[f"exact_{name}"] = computed.share("runs", sum(one.converged for one in mine), runs)
        values[f"within_{name}"] = computed.share("runs", within, runs)
        values[f"share_of_bound_{name}"] = share
    network = "full mesh of 10 switches, 90 links of 10 us, 8 links a flow"
    return {
        "setup": {"network": network, "flows": flows, "round_us": 200, "rto_us": rto_us},
        "tables": {"drops": {"columns": COLUMNS, "rows": rows}},
        "values": values,
    }


def draw(raw: RawResults) -> Figure:
    """Rounds from the last lost packet to convergence, and their bound."""
    figure, (plot,) = figures.axes(width=5.6)
    rows = raw.rows("drops")
    at = range(len(rows))
    plot.plot(at, [row["rounds_after_median"] for row in rows], marker="o", linestyle="none", label="median run")
    plot.plot(at, [row["rounds_after_max"] for row in rows], marker="^", linestyle="none", label="worst run")
    for k, row in enumerate(rows):
        where: dict[str, Any] = {"textcoords": "offset points", "xytext": (8, -3), "fontsize": 8}
        plot.annotate(f"{row['share_of_bound_max']:.2f} of 6 W2", (k, row["rounds_after_max"]), **where)
    plot.set_xticks(list(at), [f"{row['drop']:g}\n{row['losses_min']:g}-{row['losses_max']:g} lost" for row in rows])
    plot.set(
        xlabel="probability of a loss at each link", ylabel="rounds from the last loss until exact", ylim=(0, None)
    )
    plot.set_xlim(-0.4, len(rows) - 0.3)
    plot.margins(y=0.15)
    plot.set_ylim(bottom=0)
    plot.legend()
    return figure
