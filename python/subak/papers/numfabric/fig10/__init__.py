"""Figure 10 of NUMFabric: two flows with bandwidth functions over three links, of which the middle one grows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGE_MS = 5.0
FLOWS = ("1", "2")


def _series(raw: RawResults, scheme: str) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """For each start of flow 2: times, ms, at the ends of the samples, and each flow's rates, Gb/s."""
    frame = raw.simulated().table("rate").to_pandas()
    frame = frame[frame["scheme"] == scheme].sort_values("time_ns")
    found = []
    for _, of in frame.groupby("workload.flows", sort=False):
        rates = {f: of[of["flow_id"] == f]["rate_bps"].to_numpy(dtype=float) / 1e9 for f in FLOWS}
        found.append((of[of["flow_id"] == FLOWS[0]]["time_ns"].to_numpy(dtype=float) / 1e6, rates))
    return found


def _took_us(times: np.ndarray, rates: dict[str, np.ndarray], goal: dict[str, np.ndarray]) -> float:
    """Time from the change until both rates stay within 10% of the last exact ones, us."""
    off = np.any([abs(rates[f] - goal[f][-1]) > 0.1 * goal[f][-1] for f in FLOWS], axis=0)
    late = times[off & (times > CHANGE_MS)]
    return math.inf if late.size and late[-1] == times[-1] else 1e3 * (late.max(initial=CHANGE_MS) - CHANGE_MS)


def measure(raw: RawResults) -> dict[str, Value]:
    """Rates of the flows before the capacity changes and at the end, and the convergence time after the change."""
    held, exact = _series(raw, "numfabric"), _series(raw, "ideal")
    found: dict[str, Value] = {}
    for f in FLOWS:
        before = [rates[f][(times > CHANGE_MS - 2) & (times <= CHANGE_MS)].mean() for times, rates in held]
        after = [rates[f][times > times[-1] - 2].mean() for times, rates in held]
        found[f"before_{f}"] = stats.estimate(before, "mean", "random starts")
        found[f"after_{f}"] = stats.estimate(after, "mean", "random starts")
    took = [_took_us(times, rates, goal) for (times, rates), (_, goal) in zip(held, exact, strict=True)]
    return found | {"took": stats.estimate(took, "mean", "random starts")}


def draw(raw: RawResults) -> Figure:
    """Rates of the flows over time, for the first start; exact rates are dotted."""
    figure, [plot] = figures.axes(width=5.6)
    (times, rates), (_, goal) = _series(raw, "numfabric")[0], _series(raw, "ideal")[0]
    for f, colour in zip(FLOWS, figures.COLOURS, strict=False):
        plot.plot(times, goal[f], ":", color=colour)
        plot.plot(times, rates[f], "-", color=colour, label=f"flow {f}")
    plot.set(xlabel="ms", ylabel="throughput, Gb/s", ylim=(0, None))
    plot.legend(loc="upper left")
    return figure
