"""Figures 12 and 13 of Soze: three flows that start and stop in steps, under Soze and TIMELY."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.soze import series
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("soze", "soze-virtual", "timely")
STEP_NS, LAST_NS = 20_000_000, 15_000_000
LINK = "switch0->h3"
RATE_GBPS = 25


def _settled_ms(times: np.ndarray, rates: np.ndarray, step: int) -> float:
    """Convergence time of the rates in a step, ms, at the resolution of the samples."""
    begin, end = step * STEP_NS, (step + 1) * STEP_NS
    # A sample describes the time before it; the one at the end of a step belongs to the next step's flows.
    inside = (times > begin) & (times < end)
    inside &= np.isfinite(rates).any(axis=1)
    at, mine = times[inside], rates[inside]
    total = np.nansum(mine, axis=1)
    late = total[at > end - LAST_NS].mean()
    mean = np.nanmean(mine, axis=1, keepdims=True)
    # Rates of 0 are off: the bounds are then 0.
    off = (np.nanmax(np.abs(mine - mean), axis=1) >= 0.1 * mean[:, 0]) | (np.abs(total - late) >= 0.1 * late)
    last = np.flatnonzero(off)
    if len(last) == 0:
        return 0.1
    return STEP_NS / 1e6 if last[-1] == len(off) - 1 else float((at[last[-1]] - begin) / 1e6)


def measure(raw: RawResults) -> dict[str, Value]:
    """Utilization, convergence times and queue lengths, over runs whose flows start a few microseconds apart."""
    return series.over_runs(raw, lambda seed: _measure(raw, seed))


def _measure(raw: RawResults, seed: int) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    steps = int(series.rates_gbps(raw, "soze", "rate_bps", seed)[0][-1] // STEP_NS)
    used: dict[str, float] = {}
    slow: dict[str, float] = {}
    waits: dict[str, float] = {}
    for scheme in SCHEMES:
        at, rates = series.rates_gbps(raw, scheme, "rate_bps", seed)
        queue_at, queue = series.queue_us(raw, scheme, LINK, RATE_GBPS, seed)

        def late(when: np.ndarray) -> np.ndarray:
            return (when % STEP_NS > STEP_NS - LAST_NS) & (when < steps * STEP_NS)

        used[scheme] = float(np.nansum(rates[late(at)], axis=1).mean()) / RATE_GBPS * 100
        slow[scheme] = float(np.mean([_settled_ms(at, rates, step) for step in range(steps)]))
        waits[scheme] = float(queue[late(queue_at)].mean())
        values[f"{scheme} used"] = used[scheme]
        values[f"{scheme} settled"] = slow[scheme]
        values[f"{scheme} queue"] = waits[scheme]
    for scheme in ("soze", "soze-virtual"):
        values[f"{scheme} used more"] = used[scheme] / used["timely"]
        values[f"{scheme} faster"] = slow[scheme] / slow["timely"]
        values[f"{scheme} queue less"] = waits[scheme] / max(waits["timely"], 0.01)
    return values


def draw(raw: RawResults) -> Figure:
    """Received rates, and the length of the queue before the receiver."""
    figure, plots = figures.axes(rows=2, columns=3, width=4, height=2.4)
    for k, scheme in enumerate(SCHEMES):
        times, rates = series.rates_gbps(raw, scheme, "rate_bps")
        for flow in range(rates.shape[1]):
            plots[k].plot(times / 1e6, rates[:, flow], color=figures.COLOURS[flow], linestyle="-", linewidth=0.8)
        plots[k].set(title=scheme, ylim=(0, 26))
        times, queue = series.queue_us(raw, scheme, LINK, RATE_GBPS)
        plots[k + 3].plot(times / 1e6, queue, color=figures.COLOURS[3], linestyle="-", linewidth=0.6)
        plots[k + 3].set(xlabel="ms")
    plots[0].set_ylabel("Gb/s")
    plots[3].set_ylabel("queue, us")
    return figure
