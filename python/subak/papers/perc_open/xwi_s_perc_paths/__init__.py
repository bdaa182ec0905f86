"""Several paths a flow over s-PERC: xWI pools them, beside NUMFabric."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc_open import waits
from subak.repro import Measured, RawResults, Value, figures, settle, stats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SCHEMES = {"numfabric": "over Swift (NUMFabric)", "xwi-s-perc": "over s-PERC"}
SUBFLOWS = (1, 2, 4, 8)
CHURNED = (1, 2, 4)
CRITERIA = {"numfabric": {10: 0, 20: 2}, "xwi-s-perc": {10: 1, 20: 3}}
"""By scheme: index of the criterion of convergence, by its tolerance in percent."""
CHANGE_MS = 5.0
FLOWS = ("1", "2")


def _worst(rates: pd.DataFrame, scheme: str, subflows: int) -> list[float]:
    """Rate of the slowest flow of each permutation, Gb/s, over the second half of the run."""
    mine = rates[(rates["scheme"] == scheme) & (rates["workload.subflows"] == subflows)]
    means = mine[mine["time_ns"] > rates["time_ns"].max() / 2].groupby(["seed", "flow"])["rate_bps"].mean()
    return [float(r) / 1e9 for r in means.groupby("seed").min()]


def _times(raw: RawResults, scheme: str, subflows: int, within: int) -> list[float]:
    axes: dict[str, object] = {"workload.subflows": subflows}
    found = settle.times(raw.simulated("churn"), scheme, CRITERIA[scheme][within], after_ns=1, axes=axes)
    return [1e6 * t for t in found]


def _series(raw: RawResults, scheme: str) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """For each run: times, ms, at the ends of the samples, and each flow's rates, Gb/s."""
    frame = raw.simulated("functions").table("rate").to_pandas()
    frame = frame[frame["scheme"] == scheme].sort_values("time_ns")
    found = []
    for _, run in frame.groupby("seed", sort=True):
        rates = {f: run[run["flow_id"] == f]["rate_bps"].to_numpy(dtype=float) / 1e9 for f in FLOWS}
        found.append((run[run["flow_id"] == FLOWS[0]]["time_ns"].to_numpy(dtype=float) / 1e6, rates))
    return found


def _took_us(times: np.ndarray, rates: dict[str, np.ndarray]) -> float:
    """Time from the change until both rates stay within 10% of those of the last 2 ms, us."""
    goal = {f: rates[f][times > times[-1] - 2].mean() for f in FLOWS}
    off = np.any([abs(rates[f] - goal[f]) > 0.1 * goal[f] for f in FLOWS], axis=0)
    return float(1e3 * (times[off & (times > CHANGE_MS)].max(initial=CHANGE_MS) - CHANGE_MS))


def measure(raw: RawResults) -> dict[str, Value]:
    """Worst rates, waits, convergence times and rates under bandwidth functions, over each transport."""
    found: dict[str, Value] = {}
    for scheme in SCHEMES:
        found |= _functions(_series(raw, scheme), scheme)
    if not raw.has("permutation"):
        return found
    over = partial(stats.estimate, statistic="mean", of="permutations")
    rates = raw.simulated("permutation").table("rate").to_pandas()
    found["ideal_worst"] = [over(_worst(rates, "ideal", n)) for n in SUBFLOWS]
    for scheme in SCHEMES:
        axes = [{"workload.subflows": n} for n in SUBFLOWS]
        found[f"{scheme}_worst"] = [over(_worst(rates, scheme, n)) for n in SUBFLOWS]
        found[f"{scheme}_wait"] = [over(waits.p99_us(raw.simulated("permutation"), scheme, a)) for a in axes]
        for within in (10, 20):
            times = [_times(raw, scheme, n, within) for n in CHURNED]
            found[f"{scheme}_settled_{within}"] = [settle.settled(t) for t in times]
            found[f"{scheme}_p50_{within}"] = [settle.at(t, 0.5) for t in times]
    late = [t for s in SCHEMES for n in CHURNED for t in _times(raw, s, n, 20) if math.isinf(t)]
    return found | {"missed": len(late)}


def _functions(series: list[tuple[np.ndarray, dict[str, np.ndarray]]], scheme: str) -> dict[str, Value]:
    def mean(f: str, begin: float, end: float) -> Measured:
        values = [rates[f][(times > begin) & (times <= end)].mean() for times, rates in series]
        return stats.estimate(values, "mean", "runs")

    end = float(series[0][0][-1])
    return {
        f"{scheme}_before": [mean(f, CHANGE_MS - 2, CHANGE_MS) for f in FLOWS],
        f"{scheme}_after": [mean(f, end - 2, end) for f in FLOWS],
        f"{scheme}_took": stats.estimate([_took_us(*one) for one in series], "mean", "runs"),
    }


def draw(raw: RawResults) -> Figure:
    """Worst rate and wait by number of subflows, convergence times, and the rates under bandwidth functions."""
    figure, [worst, wait, times, functions] = figures.axes(rows=2, columns=2)
    rates = raw.simulated("permutation").table("rate").to_pandas()
    exact = [np.mean(_worst(rates, "ideal", n)) for n in SUBFLOWS]
    worst.plot(SUBFLOWS, exact, ":", color="black", label="exact")
    curves: dict[str, list[float]] = {}
    for k, (scheme, label) in enumerate(SCHEMES.items()):
        colour = figures.COLOURS[k]
        worst.plot(SUBFLOWS, [np.mean(_worst(rates, scheme, n)) for n in SUBFLOWS], "-o", color=colour, label=label)
        axes = [{"workload.subflows": n} for n in SUBFLOWS]
        means = [np.mean(waits.p99_us(raw.simulated("permutation"), scheme, a)) for a in axes]
        wait.plot(SUBFLOWS, means, "-o", color=colour, label=label)
        curves |= {f"{label}, subflows: {n}": _times(raw, scheme, n, 20) for n in (1, 4)}
        at, of = _series(raw, scheme)[0]
        for f, dash in zip(FLOWS, ("-", "--"), strict=True):
            functions.plot(at, of[f], dash, color=colour, label=f"flow {f}, {label}")
    worst.set(xlabel="subflows", ylabel="rate of the slowest flow, Gb/s", ylim=(0, None))
    wait.set(xlabel="subflows", ylabel="p99 of the packets' queueing delay, us", ylim=(0, None))
    settle.draw(times, curves, "us until 95% of the flows are within 20%")
    functions.set(xlabel="ms", ylabel="rate under bandwidth functions, Gb/s", ylim=(0, None))
    for plot in (worst, wait, functions):
        plot.legend(fontsize=8)
    times.legend(fontsize=8, loc="lower right")
    times.set_xlim(20, 10_000)
    return figure
