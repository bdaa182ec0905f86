"""Soze on random networks at packet level: convergence times, and errors of networks that do not converge."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.papers.soze import networks
from subak.papers.soze.networks import LIMIT_RTTS, ONE, SEVERAL, Observations, Setup
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, finite, largest, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEVER = 500
"""Position in the plot of networks that do not converge."""


PARAMS = ("headroom", "integral", "queue_weight", "empties", "start_weights", "anew")
"""Parameters of ``soze-virtual``."""
START_WEIGHTS = 10.0
"""Default of the parameter ``start_weights`` of ``soze``."""
HEADROOM = 0.02
"""Default headroom of ``soze-virtual``."""
COLUMNS = ["hops", "scheme", "network", "settled_rtts", "median_off", "worst_off", "utilization", "peak_us"]
COLUMNS += ["held_peak_us", "k_plus_p_us", "resettled_rtts"]


@dataclass(frozen=True)
class _Job:
    hops: str
    scheme: str
    seed: int


@dataclass(frozen=True)
class _Both:
    """Observations from a cold start and after half of the weights have changed; k + p of Soze's target function."""

    cold: Observations
    changed: Observations
    most_us: float


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Random networks in packets, from a cold start and after a change of weights.

    ``PARAMS``; ``one``, ``several``: number of networks with one and with several congested hops, instead of the number
    of runs; ``published``: 1 to run the paper's parameters too; ``rate``: 1 if senders of ``soze`` keep a rate, 0 for a
    window.
    """
    given = Settings(settings, *PARAMS, "one", "several", "published", "rate")
    params = {name: settings[name] for name in PARAMS if name in settings}
    target = 1.0 - given.number("headroom", HEADROOM, 0, 0.9)
    # The headroom is set explicitly, so that no share for ACKs is added: ACKs share no link with data here.
    ours = params | {"headroom": 1.0 - target}
    published = {} if given.number("rate", 0, 0, 1) == 0 else networks.RATE_KEPT
    counts = {
        hops: computed.rounded(given.number(name, max(runs, 1), 0, 1e5))
        for hops, name in ((ONE, "one"), (SEVERAL, "several"))
    }
    schemes = ["soze", "soze-virtual"] if given.number("published", 1, 0, 1) > 0 else ["soze-virtual"]
    jobs = [_Job(hops, scheme, seed + k) for hops in counts for scheme in schemes for k in range(counts[hops])]

    def both(job: _Job) -> _Both:
        return _run(job, ours, target) if job.scheme == "soze-virtual" else _run(job, published, 1.0)

    seen = computed.Jobs(len(jobs), progress).each(jobs, both)
    values: dict[str, Any] = {}
    for hops, count in counts.items():
        if count:
            _unreachable(values, hops, range(seed, seed + count))
    for hops in (hops for hops, count in counts.items() if count):
        for scheme in schemes:
            mine = [one for job, one in zip(jobs, seen, strict=True) if (job.hops, job.scheme) == (hops, scheme)]
            _tell(values, f"{scheme} {hops}", LIMIT_RTTS[hops], mine)
    rows = [_row(job, one) for job, one in zip(jobs, seen, strict=True)]
    return {
        "setup": {"share of capacity that soze-virtual aims at": target},
        "tables": {"networks": {"columns": COLUMNS, "rows": rows}},
        "values": values,
    }


def _run(job: _Job, params: dict[str, Any], target: float) -> _Both:
    setup = networks.draw(job.hops, job.seed)
    simulation = setup.simulation(job.scheme, params, job.seed)
    cold = networks.watch(simulation, setup, target, LIMIT_RTTS[job.hops])
    stream = subak.Stream(job.seed, "soze new weights")
    weights = list(setup.weights)
    for flow in range(len(weights)):
        if stream.unit() < 0.5:
            weights[flow] = networks.weight(stream)
            simulation.set_weight(flow, weights[flow])
    changed = networks.watch(simulation, replace(setup, weights=weights), target, LIMIT_RTTS[job.hops])
    most_us = 23.0
    if job.scheme == "soze-virtual":
        most_us = 3.0 + params.get("integral", 3.0) * math.log(4000) * setup.rtt_ns / 1e3
    return _Both(cold, changed, most_us)


def _unreachable(values: dict[str, Any], hops: str, seeds: range) -> None:
    """The effect of the published minimum and initial rates on these networks, from exact rates alone."""
    seen = [out_of_reach(networks.draw(hops, seed)) for seed in seeds]
    below, goals = sum(one[0] for one in seen), sum(one[1] for one in seen)
    values[f"{hops}: goals below a packet a round trip"] = share("flows", below, goals)
    missed = sum(one[0] > 0 for one in seen)
    values[f"{hops}: a goal below a packet a round trip"] = share("networks", missed, len(seen))
    starts = [one[2] for one in seen]
    values[f"{hops}: first rates over the link"] = computed.sample("median", "networks", starts)


def out_of_reach(setup: Setup) -> tuple[int, int, float]:
    """The number of flows whose exact rate is below a packet per base RTT, the number of flows, and an overload.

    The overload is the sum of initial rates at the fullest link over its capacity.
    """
    rates, _ = setup.exact(1.0)
    packet_bps = networks.SIZES["mtu"] * 8e9 / setup.rtt_ns
    capacities = {link["id"]: link["capacity"] for link in setup.links}
    load = dict.fromkeys(capacities, 0.0)
    for path, weight in zip(setup.paths, setup.weights, strict=True):
        line_bps = capacities[path[0]]
        for link in path:
            load[link] += min(line_bps * weight / START_WEIGHTS, line_bps)
    fullest = largest(load[link] / capacity for link, capacity in capacities.items())
    return int(np.count_nonzero(rates < packet_bps)), len(rates), fullest


def _tell(values: dict[str, Any], what: str, limit: float, runs: list[_Both]) -> None:
    settles = [one.cold.settled_rtts <= limit for one in runs]
    calm = [one.cold.peak_us <= one.most_us for one in runs]
    full = [one.cold.utilization >= 0.97 for one in runs]
    hits = {
        "settles": settles,
        "settles, full, queues": [all(each) for each in zip(settles, full, calm, strict=True)],
        "queues": calm,
        "queues once settled": [one.cold.held_peak_us <= one.most_us for one in runs],
        "settles after weights change": [one.changed.settled_rtts <= limit for one in runs],
    }
    samples = {
        "round trips": [one.cold.settled_rtts for one in runs],
        "round trips after weights change": [one.changed.settled_rtts for one in runs],
        "median flow off": [100.0 * one.cold.median_off for one in runs],
        "worst flow off": [100.0 * one.cold.worst_off for one in runs],
        "utilization": [100.0 * one.cold.utilization for one in runs],
        "peak": [one.cold.peak_us for one in runs],
    }
    values |= {f"{what}: {name}": share("networks", sum(those), len(runs)) for name, those in hits.items()}
    values |= {f"{what}: {name}": computed.sample("median", "networks", data) for name, data in samples.items()}
    longest = largest(one.cold.held_peak_us for one in runs)
    values[f"{what}: held peak"] = computed.rounded(10 * longest) / 10


def _row(job: _Job, seen: _Both) -> list[Any]:
    cold = seen.cold
    errors = [cold.median_off, cold.worst_off, finite(cold.utilization)]
    queues = [cold.peak_us, cold.held_peak_us, seen.most_us]
    settled = finite(cold.settled_rtts), finite(seen.changed.settled_rtts)
    return [job.hops, job.scheme, job.seed, settled[0], *errors, *queues, settled[1]]


def draw(raw: RawResults) -> Figure:
    """Fraction of networks that have converged by time in RTTs, and the largest error of a flow's rate."""
    figure, plots = figures.axes(columns=2, width=5)
    rows = raw.rows("networks")
    for hops, style in (("one hop", "-"), ("several hops", "--")):
        for scheme, colour in (("soze", figures.COLOURS[0]), ("soze-virtual", figures.COLOURS[1])):
            mine = [row for row in rows if (row["hops"], row["scheme"]) == (hops, scheme)]
            label = f"{scheme}, {hops}"
            for plot, values in (
                (plots[0], [row["settled_rtts"] or NEVER for row in mine]),
                (plots[1], [100 * row["worst_off"] for row in mine]),
            ):
                values = sorted(values)
                shares = [(k + 1) / len(values) for k in range(len(values))]
                plot.step(values, shares, where="post", color=colour, linestyle=style, label=label)
    plots[0].set(xlabel="round trips until all rates are within 3%", ylabel="share of networks", xlim=(0, NEVER * 0.98))
    plots[1].set(xlabel="error of the worst flow at the end, %", ylabel="share of networks", xscale="log")
    plots[1].axvline(3, color="grey", linewidth=0.8, linestyle=":")
    plots[0].legend(fontsize="small")
    return figure
