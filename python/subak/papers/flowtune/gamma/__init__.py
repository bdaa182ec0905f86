"""NED's step size gamma: where NED converges, how fast, and the throughput under a stream of flows."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.papers.flowtune import web
from subak.papers.flowtune.fabric import Fabric, rows
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEVER = 8000
"""Position in the plot of values of gamma for which NED does not converge in 5000 steps."""


TIERS: dict[str, dict[str, Any]] = {
    "two tiers": {
        "kind": "leaf-spine",
        "leaves": 8,
        "hosts_per_leaf": 48,
        "spines": 8,
        "host_rate": 40e9,
        "spine_rate": 40e9,
    },
    "three tiers": {"kind": "fat-tree", "k": 8, "rate": 40e9},
}
"""A two-tier network of Flowtune's table (section 5.2), and a three-tier network."""
LONGEST = {"two tiers": 4, "three tiers": 6}
"""Number of links of the longest path."""
GAMMAS = (0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5)
STREAMED = (0.2, 0.4, 0.8, 1.0, 1.5)
MOST_STEPS, STAYS = 5000, 20
"""Largest number of steps of a run, and of further steps for which rates must stay within a thousandth."""
BATCH = 50
LOST = -1.0
"""Result of a run that does not converge, and whose error no longer falls. It is infinite if the error still falls: by
a tenth or more in the second half."""


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Steps from prices of 1 to the optimum by gamma, and throughput under a stream of flows.

    ``most_a_host``: largest number of flows per host; ``steps``: number of intervals of the stream; ``warmup``: number
    of these, at the start, that are not measured.
    """
    given = Settings(settings, "most_a_host", "steps", "warmup")
    most = given.count("most_a_host", 64, 1000)
    timing = web.Timing.of(given, 3000, 1000)
    sizes = [n for n in (1, 8, 64) if n <= most]
    seeds = [seed + k for k in range(max(runs, 1))]
    jobs = [(tiers, size, one) for tiers in TIERS for size in sizes for one in seeds]
    streams = [web.Job("NED", 0.6, one, gamma, timing, every=20) for gamma in STREAMED for one in seeds]
    all_of = computed.Jobs(len(jobs) + len(streams), progress)
    settled = dict(zip(jobs, all_of.each(jobs, _settle), strict=True))
    shares = [ran.flow for ran in all_of.each(streams, web.run)]
    values: dict[str, Any] = {}
    table = []
    for tiers in TIERS:
        for size in sizes:
            for g, gamma in enumerate(GAMMAS):
                steps = [_steps(settled[tiers, size, one][g]) for one in seeds]
                name = f"{tiers} {size} {gamma:g}"
                values[f"steps {name}"] = computed.sample("median", "networks", steps)
                values[f"settles {name}"] = computed.share("networks", sum(map(np.isfinite, steps)), len(steps))
                table += [[tiers, size, gamma, finite(one)] for one in steps]
    for tiers in TIERS:
        for g, gamma in enumerate(GAMMAS):
            ends = [end[g] for job, end in settled.items() if job[0] == tiers]
            hits = sum(np.isfinite(_steps(end)) for end in ends)
            values[f"settles {tiers} {gamma:g}"] = computed.share("networks", hits, len(ends))
            values[f"lost {tiers} {gamma:g}"] = computed.share("networks", ends.count(LOST), len(ends))
    # Step sizes for which gamma times the number of links of the longest path is below 2.
    safe = [
        end
        for (tiers, *_), ends in settled.items()
        for gamma, end in zip(GAMMAS, ends, strict=True)
        if gamma < 2 / LONGEST[tiers]
    ]
    values["unsettled"] = sum(not np.isfinite(_steps(end)) for end in safe)
    values["lost"] = safe.count(LOST)
    of = {g: [share for job, share in zip(streams, shares, strict=True) if job.gamma == g] for g in STREAMED}
    for gamma in STREAMED:
        values[f"throughput {gamma:g}"] = computed.sample("mean", "runs", of[gamma])
        values[f"throughput {gamma:g} over 0.4"] = computed.ratio("mean", "runs", of[gamma], of[0.4])
    streamed = [[job.gamma, job.seed, share] for job, share in zip(streams, shares, strict=True)]
    return {
        "values": values,
        "tables": {
            "settling": {"columns": ["tiers", "flows_a_host", "gamma", "steps"], "rows": table},
            "stream": {"columns": ["gamma", "seed", "f_norm"], "rows": streamed},
        },
    }


def _steps(end: float) -> float:
    return math.inf if end == LOST else end


def _settle(job: tuple[str, int, int]) -> list[float]:
    """Steps until the rates are exact from prices of 1, for each gamma."""
    tiers, a_host, seed = job
    fabric = Fabric(seed, **TIERS[tiers])
    stream = subak.Stream(seed, "gamma")
    flows = rows([fabric.path(stream, f) for f in range(a_host * len(fabric.hosts))])
    answer = subak.solve(fabric.network, flows=flows, policy={"kind": "alpha-fair", "alpha": 1})
    want = answer.flows.to_numpy()["rate_bps"]
    return [_until(fabric.network, flows, want, gamma) for gamma in GAMMAS]


def _until(network: subak.Network, flows: subak.Rows, want: Any, gamma: float) -> float:
    ned = subak.Ned(network, gamma=gamma)
    numbers = ned.add(flows)
    since = None
    # Largest error in the last steps of the first half and of the second half.
    off_in = [0.0, 0.0]
    batch: list[float] = []
    for step in range(1, MOST_STEPS + 1):
        if not batch:
            # Steps beyond the end do not matter.
            batch = ned.errors(want, numbers, BATCH)[::-1].tolist()
        off = batch.pop()
        place = step % (MOST_STEPS // 2)
        if place == 0 or place > MOST_STEPS // 2 - STAYS:
            half = (step - 1) // (MOST_STEPS // 2)
            off_in[half] = max(off_in[half], off)
        since = (since or step) if off <= 1e-3 else None
        if since is not None and step >= since + STAYS:
            return float(since)
    return math.inf if off_in[1] < 0.9 * off_in[0] else LOST


def draw(raw: RawResults) -> Figure:
    """Steps until NED converges, by gamma, network and flows; and throughput under a stream of flows."""
    figure, (steps, stream) = figures.axes(columns=2, width=5)
    rows = raw.rows("settling")
    for tiers, flows in dict.fromkeys((row["tiers"], row["flows_a_host"]) for row in rows):
        mine = [row for row in rows if (row["tiers"], row["flows_a_host"]) == (tiers, flows)]
        gammas = list(dict.fromkeys(row["gamma"] for row in mine))
        medians = [median(row["steps"] or NEVER for row in mine if row["gamma"] == gamma) for gamma in gammas]
        steps.plot(gammas, medians, marker="o", label=f"{tiers}, {flows} a host")
    steps.axhline(NEVER, color="grey", linewidth=0.8, linestyle=":")
    steps.annotate("never", (0.1, NEVER), va="bottom", color="grey")
    steps.set(yscale="log", xlabel="gamma", ylabel="steps to within a thousandth, median")
    steps.legend(fontsize="small")
    rows = raw.rows("stream")
    stream.scatter([row["gamma"] for row in rows], [row["f_norm"] for row in rows], s=12)
    stream.set(xlabel="gamma", ylabel="throughput, % of the optimum's", title="flows come and go, load 0.6")
    return figure
