"""Figure 10 of NUMFabric: two flows with bandwidth functions over three links, of which the middle one grows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGE_MS = 5.0
FLOWS = ("1", "2")


def _series(raw: RawResults, scheme: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times, ms, at the ends of the samples, and each flow's rates, Gb/s."""
    frame = raw.simulated().table("rate").to_pandas()
    frame = frame[frame["scheme"] == scheme].sort_values("time_ns")
    rates = {f: frame[frame["flow_id"] == f]["rate_bps"].to_numpy(dtype=float) / 1e9 for f in FLOWS}
    times = frame[frame["flow_id"] == FLOWS[0]]["time_ns"].to_numpy(dtype=float) / 1e6
    return times, rates


def measure(raw: RawResults) -> dict[str, Value]:
    """Rates of the flows before the capacity changes and at the end, and the convergence time after the change."""
    times, rates = _series(raw, "numfabric")
    _, goal = _series(raw, "ideal")
    halves = {"before": (times > CHANGE_MS - 2) & (times <= CHANGE_MS), "after": times > times[-1] - 2}
    found: dict[str, Value] = {
        f"{half}_{f}": float(rates[f][chosen].mean()) for half, chosen in halves.items() for f in FLOWS
    }
    off = np.any([abs(rates[f] - goal[f][-1]) > 0.1 * goal[f][-1] for f in FLOWS], axis=0)
    late = times[off & (times > CHANGE_MS)]
    found["took"] = math.inf if late.size and late[-1] == times[-1] else 1e3 * (late.max(initial=CHANGE_MS) - CHANGE_MS)
    return found


def draw(raw: RawResults) -> Figure:
    """Rates of the flows over time; exact rates are dotted."""
    figure, [plot] = figures.axes(width=5.6)
    times, rates = _series(raw, "numfabric")
    _, goal = _series(raw, "ideal")
    for f, colour in zip(FLOWS, figures.COLOURS, strict=False):
        plot.plot(times, goal[f], ":", color=colour)
        plot.plot(times, rates[f], "-", color=colour, label=f"flow {f}")
    plot.set(xlabel="ms", ylabel="throughput, Gb/s", ylim=(0, None))
    plot.legend(loc="upper left")
    return figure
