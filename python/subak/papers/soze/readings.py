"""Our interpretations of unclear points of the Soze paper: each alternative, and which ones prevent convergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from subak.papers.soze import networks
from subak.papers.soze.networks import LIMIT_RTTS, ONE, Observations, Setup
from subak.repro import computed
from subak.repro.computed import finite, total

Change = Callable[[Setup], dict[str, Any]]
"""The parameters of one changed interpretation, which may depend on the network."""


def _word(**params: Any) -> Change:
    return lambda setup: params


def _scenario(setup: Setup) -> dict[str, Any]:
    """alpha of 100 Gb/s, and beta equal to the smallest exact rate per unit of weight."""  # noqa: D403
    rates, _ = setup.exact(1.0)
    least_bps = min(float(rate) / weight for rate, weight in zip(rates, setup.weights, strict=True))
    return {"alpha_rate": 100e9, "beta_rate": least_bps}


def _start(setup: Setup) -> dict[str, Any]:
    """Initial rates that exactly fill the link."""
    return {"start_weights": total(setup.weights)}


def _scale(setup: Setup) -> dict[str, Any]:
    """A p of 1.5 ln(alpha / beta) RTTs."""
    return {"p": 1.5e-9 * math.log(1000) * setup.rtt_ns}


FLOOR, BACKLOG, NO_FILTER = _word(least_rate="beta"), _word(signal="backlog"), _word(filter=0)
EXACT, WHOLE = _word(sender="exact"), _word(update="whole")
ALL = (FLOOR, _start, BACKLOG, NO_FILTER, _scale, EXACT)
"""All changes that help convergence."""


def _but(left_out: Change) -> tuple[Change, ...]:
    return tuple(one for one in ALL if one is not left_out)


READINGS: dict[str, tuple[Change, ...]] = {
    "as it stands": (),
    "whole updates": (WHOLE,),
    "an update a round trip": (_word(update="rtt"),),
    "a window": (_word(state="window-of-rate"),),
    "a window kept": (_word(state="window"), BACKLOG, NO_FILTER),
    "alpha and beta of the scenario": (_scenario,),
    "no filter": (NO_FILTER,),
    "a floor of beta": (FLOOR,),
    "a start that fits": (_start,),
    "what waits": (BACKLOG,),
    "p of 1.5 round trips": (_scale,),
    "exact senders": (EXACT,),
    "to the letter": (WHOLE, NO_FILTER, FLOOR, _scenario),
    "to the letter, a start that fits": (WHOLE, NO_FILTER, FLOOR, _scenario, _start),
    "all cures": ALL,
    "all cures but the floor": _but(FLOOR),
    "all cures but the start": _but(_start),
    "all cures but what waits": _but(BACKLOG),
    "all cures but no filter": _but(NO_FILTER),
    "all cures but p": _but(_scale),
    "all cures but exact senders": _but(EXACT),
    "all cures, whole updates": (*ALL, WHOLE),
}
"""Interpretations by name: the changes relative to ``networks.RATE_KEPT``."""
COLUMNS = ["reading", "network", "settled_rtts", "median_off", "worst_off", "peak_us"]


def readings(values: dict[str, Any], seeds: range, jobs: computed.Jobs) -> dict[str, Any]:
    """Runs each interpretation on the networks of ``seeds``, with one congested link; returns the table."""
    pairs = [(name, seed) for name in READINGS for seed in seeds]
    seen = dict(zip(pairs, jobs.each(pairs, lambda job: _run(*job)), strict=True))
    for name in READINGS:
        mine = [seen[name, seed] for seed in seeds]
        hits = sum(one.settled_rtts <= LIMIT_RTTS[ONE] for one in mine)
        off, peaks = [100.0 * one.median_off for one in mine], [one.peak_us for one in mine]
        values[f"{name}: settles"] = computed.share("networks", hits, len(mine))
        values[f"{name}: median flow off"] = computed.sample("median", "networks", off)
        values[f"{name}: peak"] = computed.sample("median", "networks", peaks)
    rows = [
        [name, seed, finite(one.settled_rtts), one.median_off, one.worst_off, one.peak_us]
        for (name, seed), one in seen.items()
    ]
    return {"columns": COLUMNS, "rows": rows}


def _run(name: str, seed: int) -> Observations:
    setup = networks.draw(ONE, seed)
    params = dict(networks.RATE_KEPT)
    for change in READINGS[name]:
        params |= change(setup)
    return networks.watch(setup.simulation("soze", params, seed), setup, 1.0, LIMIT_RTTS[ONE])
