"""Table 4.2 of the PERC thesis: convergence times of incasts and of flows over a chain of two links, in simulation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import Measured, RawResults, Value, figures, settle, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENDERS = (2, 3, 10)
CHANGE_NS = 200_000_000
"""Earliest time of the change of the flows on the chain, ns."""
STABLE_NS = 1_000_000_000
FILTER_MS = 20
"""Time constant of the filter of rates along the chain, ms; rates are sampled every millisecond."""


def _incast(raw: RawResults, scheme: str) -> dict[int, list[float]]:
    """Time from the last flow's start to convergence, ms, by the number of flows."""
    held = raw.simulated("s-perc" if scheme == "s-perc" else "tcp")
    rows = held.table("convergence").to_pylist()
    found: dict[int, list[float]] = {}
    for n in SENDERS:
        # Each start is a change; only the start of the last flow of a trial counts.
        mine = [r for r in rows if r["scheme"] == scheme and r["workload.senders"] == n and r["flows"] == n]
        found[n] = [r["convergence_ns"] * 1e-6 if r["converged"] else math.inf for r in mine]
    return found


def _own_rates(raw: RawResults, scheme: str) -> list[float]:
    """Convergence time for each time of the change, ms: until each smoothed rate stays near its average for 50 ms.

    The average is over the run's last second. TCP converges to rates of its own along the chain, far from max-min.
    """
    results, trial = raw.simulated("chain"), ["workload.flows", "seed"]
    frame = results.table("rate", ["scheme", "time_ns", "flow_id", "rate_bps", *trial]).to_pandas()
    changes = results.table("convergence", ["scheme", "time_ns", *trial]).to_pandas()
    changes = changes[(changes["scheme"] == scheme) & (changes["time_ns"] >= CHANGE_NS)]
    changed_ns = changes.groupby(trial)["time_ns"].min()
    frame = frame[frame["scheme"] == scheme]
    return [_own_rate(of, int(changed_ns[key])) for key, of in frame.groupby(trial, sort=False)]


def _own_rate(frame: Any, changed_ns: int) -> float:
    rates = frame.pivot(index="time_ns", columns="flow_id", values="rate_bps").fillna(0)
    stable = rates[rates.index > rates.index[-1] - STABLE_NS].mean()
    smooth = rates.ewm(alpha=1 - math.exp(-1 / FILTER_MS), adjust=False).mean()
    near = ((smooth / stable - 1).abs() <= 0.2).all(axis=1)[rates.index >= changed_ns]
    times_ns, near = near.index.to_numpy(), near.to_numpy()
    windows = (float(times_ns[k] - changed_ns) for k in range(len(near) - 50) if near[k : k + 51].all())
    lag_ms = -FILTER_MS * math.log(0.2)
    return max(0.0, next(windows, math.inf) * 1e-6 - lag_ms)


def _least_ratio(slow: dict[int, list[float]], fast: dict[int, list[float]]) -> Measured:
    """Smallest ratio of the mean times over the numbers of flows; a run without convergence has an infinite mean."""
    mean, _ = stats.statistic_of("mean")
    sides = [of[n] for n in SENDERS if slow[n] for of in (slow, fast)]

    def least(drawn: list[stats.Array]) -> stats.Array:
        return np.min([stats.over_each(mean(s), mean(f)) for s, f in zip(drawn[::2], drawn[1::2], strict=True)], axis=0)

    return stats.joint(sides, least, "starts", paired=True)


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean convergence times over the times between the starts, which are resampled, and their ratios."""
    found: dict[str, Value] = {}
    if raw.has("s-perc") and raw.has("tcp"):
        times = {s: _incast(raw, s) for s in ("s-perc", "dctcp", "reno")}
        for s, of in times.items():
            found[s.replace("-", "_")] = [stats.estimate(of[n], "mean", "starts") for n in SENDERS]
        found |= {f"{s}_over": _least_ratio(times[s], times["s-perc"]) for s in ("dctcp", "reno")}
    if raw.has("chain"):
        chain = {"s_perc": [1e3 * t for t in settle.times(raw.simulated("chain"), "s-perc", after_ns=CHANGE_NS)]}
        chain |= {s: _own_rates(raw, s) for s in ("dctcp", "reno")}
        found |= {f"{s}_chain": stats.estimate(of, "mean", "starts") for s, of in chain.items()}
        found["chain_over"] = stats.ratio(chain["dctcp"], chain["s_perc"], "mean", "starts", paired=True)
    return found


def draw(raw: RawResults) -> Figure:
    """Convergence times by the number of flows; runs without convergence are at the top."""
    figure, plots = figures.axes(width=5.5)
    for k, scheme in enumerate(("s-perc", "dctcp", "reno")):
        for n, values in _incast(raw, scheme).items():
            settled = [v for v in values if math.isfinite(v)]
            like: dict[str, Any] = {"color": figures.COLOURS[k], "linestyle": "none"}
            place = SENDERS.index(n) + 0.15 * (k - 1)
            label = scheme if n == SENDERS[0] else None
            plots[0].plot([place] * len(settled), settled, marker="o", label=label, **like)
            if len(settled) < len(values):
                plots[0].annotate(
                    f"{len(values) - len(settled)} never",
                    (place, 40_000 / 2**k),
                    color=figures.COLOURS[k],
                    ha="center",
                    fontsize=8,
                )
    plots[0].set_xticks(range(len(SENDERS)), [f"{n} flows" for n in SENDERS])
    plots[0].set(ylabel="ms until within 20%", yscale="log", ylim=(0.01, 80_000), xlim=(-0.5, 2.5))
    plots[0].legend(loc="center right")
    return figure
