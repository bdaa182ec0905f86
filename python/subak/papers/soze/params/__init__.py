"""Soze's parameters m and p: values for which its control loop converges with feedback delay, and at packet level."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.papers.soze import networks, readings, recurrence
from subak.papers.soze.networks import LIMIT_RTTS, ONE
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SIGNALS = {
    "wait": "a rate, what a packet waited",
    "backlog": "a rate, what waits",
    "exact": "a rate, what waits, exact senders",
    "window": "a window, what waits",
}


INSIDE = (0.01, 0.25, 0.5, 1.0, 1.5, 1.9, 1.99)
OUTSIDE = (0.0, 2.0, 2.01, 2.1, 3.0)
SCALES = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)
"""Values of p in packets, in units of ln(alpha / beta) RTTs; 0 means the paper's 20 us."""
EXPONENTS = (0.25, 1.0, 1.9)
CHANGES: dict[str, dict[str, Any]] = {
    "wait": {},
    "backlog": {"signal": "backlog", "filter": 0.0},
    "exact": {"signal": "backlog", "filter": 0.0, "sender": "exact", "least_rate": "beta"},
    "window": {"signal": "backlog", "filter": 0.0, "state": "window"},
}
"""Telemetry of links, and the type of senders: changes relative to ``networks.RATE_KEPT``."""


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Soze's parameters on the paper's recurrences, with feedback delay, and in packets on one congested link.

    ``exponents``: number of exponents m that are simulated in packets.
    """
    exponents = EXPONENTS[: Settings(settings, "exponents").count("exponents", len(EXPONENTS), len(EXPONENTS))]
    seeds = range(seed, seed + max(runs, 1))
    values: dict[str, Any] = {}
    tables = {"delayed": _on_recurrences(values)}
    cells = [(signal, scale, m) for signal in CHANGES for scale in SCALES for m in exponents]
    pairs = [(*cell, one) for cell in cells for one in seeds]
    jobs = computed.Jobs(len(pairs) + len(readings.READINGS) * len(seeds), progress)
    seen = dict(zip(pairs, jobs.each(pairs, lambda job: _settles(*job)), strict=True))
    rows = []
    for signal, scale, m in cells:
        hits = sum(seen[signal, scale, m, one] for one in seeds)
        p = f"{scale:g}" if scale else "20 us"
        values[f"{signal}, p {p}, m {m:g}"] = computed.share("networks", hits, len(seeds))
        rows.append([signal, scale, m, hits, len(seeds)])
    tables["readings"] = readings.readings(values, seeds, jobs)
    tables["packets"] = {"columns": ["signal", "p_over_span_rtts", "m", "settled", "networks"], "rows": rows}
    return {"values": values, "tables": tables}


def _on_recurrences(values: dict[str, Any]) -> dict[str, Any]:
    comes_together, delay_settles = recurrence.comes_together, recurrence.delay_settles
    values["m inside settles"] = all(map(comes_together, INSIDE))
    values["m outside settles"] = any(map(comes_together, OUTSIDE))
    values["p above settles"] = all(delay_settles(p)[0] for p in (0.505, 0.6, 0.9, 2.0, 10.0))
    values["p below settles"] = any(delay_settles(p)[0] for p in (0.495, 0.4, 0.2))
    values["p above the stricter bound swings"] = any(not delay_settles(p)[1] for p in (1.01, 1.5, 5.0))
    values["p below the stricter bound swings"] = all(not delay_settles(p)[1] for p in (0.6, 0.8, 0.95))
    cells = [(m, times) for m in (0.1, 0.25, 0.5, 1.0, 1.5, 1.9) for times in (0.8, 0.9, 0.95, 1.05, 1.1, 1.2)]
    bounds = [times * recurrence.least_integral(m) for m, times in cells]
    settles = recurrence.delayed_settles(np.array(bounds), np.array([m for m, _ in cells])).tolist()
    rows = [[*cell, p, one] for cell, p, one in zip(cells, bounds, settles, strict=True)]
    values["delayed: above settles"] = all(row[3] for row in rows if row[1] > 1)
    values["delayed: below settles"] = any(row[3] for row in rows if row[1] < 1)
    return {"columns": ["m", "times_the_bound", "p_over_span_rtts", "settles"], "rows": rows}


def _settles(signal: str, scale: float, m: float, seed: int) -> bool:
    """Whether the network converges within 200 RTTs."""
    setup = networks.draw(ONE, seed)
    p_us = 20.0 if scale == 0 else scale * math.log(1000) * setup.rtt_ns / 1e3
    params = networks.RATE_KEPT | {"p": p_us * 1e-6, "m": m} | CHANGES[signal]
    limit = LIMIT_RTTS[ONE]
    return networks.watch(setup.simulation("soze", params, seed), setup, 1.0, limit).settled_rtts <= limit


def draw(raw: RawResults) -> Figure:
    """Fraction of networks for which Soze converges, by the parameter p."""
    figure, plots = figures.axes(columns=4, width=3.4)
    rows = raw.rows("packets")
    for plot, signal in zip(plots, SIGNALS, strict=True):
        scales = list(dict.fromkeys(row["p_over_span_rtts"] for row in rows))
        for colour, m in zip(figures.COLOURS, dict.fromkeys(row["m"] for row in rows), strict=False):
            mine = [row for row in rows if (row["signal"], row["m"]) == (signal, m)]
            shares = [100 * row["settled"] / row["networks"] for row in mine]
            plot.plot(range(len(scales)), shares, marker="o", color=colour, label=f"m = {m:g}")
        plot.set_xticks(range(len(scales)), [f"{p:g}" if p else "20 us" for p in scales])
        plot.set(title=SIGNALS[signal], xlabel="p over ln(alpha / beta) round trips", ylim=(-3, 103))
    plots[0].set_ylabel("networks that settle, %")
    plots[0].legend(fontsize="small")
    return figure
