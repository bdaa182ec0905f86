"""Figure 1.3 of the PERC thesis: rates of flows A, B and C, which start one after the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import subak
from subak.repro import RawResults, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RTT_NS = 20_000
"""RTT of every flow: half of it is the delay of the flow's own first link; the other links have no delay."""
GAP_RTTS = 20
SHARED_GBPS = [70, 30, 10]
PATHS = {"A": [1], "B": [1, 2], "C": [2, 3]}
Rates = list[tuple[float, str, float]]
"""Every change of a rate: time in RTTs, flow, and rate in Gb/s."""


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """The rates of each flow under both schemes."""
    Settings(settings)
    values: dict[str, Any] = {}
    tables, series = {}, {}
    for scheme in ("fair", "s-perc"):
        rates = _arrivals(scheme, seed)
        rows = []
        for event, arriving in enumerate(PATHS):
            since = float(event * GAP_RTTS)
            changes = sorted((one for one in rates if since <= one[0] < since + GAP_RTTS), key=lambda one: one[:2])
            values[f"{scheme} {arriving}"] = [_said(at - since, flow, gbps) for at, flow, gbps in changes]
            rows += [[arriving, at - since, flow, gbps] for at, flow, gbps in changes]
        tables[scheme] = {"columns": ["event", "rtts_since", "flow", "rate_gbps"], "rows": rows}
        series[scheme] = {"columns": ["rtts", "flow", "rate_gbps"], "points": [list(one) for one in rates]}
    return {
        "setup": {"links_gbps": SHARED_GBPS, "paths": PATHS},
        "tables": tables,
        "series": series,
        "values": values,
    }


def _said(rtts: float, flow: str, gbps: float) -> str:
    # Rounded, so that a rate which is exact up to rounding errors compares as equal.
    return f"RTT {math.ceil(rtts - 1e-9)}: {flow} {math.floor(gbps * 1e9 + 0.5) / 1e9:.12g}"


def _arrivals(scheme: str, seed: int) -> Rates:
    shared = [{"id": str(k), "capacity": gbps * 1e9} for k, gbps in enumerate(SHARED_GBPS, start=1)]
    own = [{"id": flow, "capacity": 1e12, "delay": f"{RTT_NS // 2}ns"} for flow in PATHS]
    network = subak.Network.from_links([*shared, *own])
    rounds = subak.Rounds(network, scheme, round=RTT_NS, seed=seed, jitter=0, record="rates")
    from_ns = 3 * RTT_NS
    for k, (flow, path) in enumerate(PATHS.items()):
        rounds.add([flow, *map(str, path)], start=from_ns + k * GAP_RTTS * RTT_NS)
    rounds.run(from_ns + 3 * GAP_RTTS * RTT_NS)
    rates: Rates = []
    now: dict[str, float] = {}
    for row in rounds.take_rates():
        flow, gbps = list(PATHS)[row["flow"]], row["rate_bps"] / 1e9
        if gbps != now.get(flow):
            now[flow] = gbps
            rates.append(((row["time_ns"] - from_ns) / RTT_NS, flow, gbps))
    return rates


def draw(raw: RawResults) -> Figure:
    """Rate of each flow over time, one plot per scheme."""
    series = raw.report["series"]
    figure, plots = figures.axes(columns=len(series), width=5.4)
    for plot, (scheme, held) in zip(plots, series.items(), strict=True):
        end = max(at for at, _, _ in held["points"]) + 4
        for name in "ABC":
            points = [(at, rate) for at, flow, rate in held["points"] if flow == name]
            times, rates = zip(*points, (end, points[-1][1]), strict=True)
            plot.step(times, rates, where="post", label=f"flow {name}")
        plot.set(title=scheme, xlabel="time (RTTs)", ylabel="rate at the source (Gb/s)", ylim=(0, 95))
        plot.legend(loc="upper right", ncols=3)
    return figure
