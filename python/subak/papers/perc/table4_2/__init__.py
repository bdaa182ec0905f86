"""Table 4.2: convergence of incasts and of a chain of two, in simulation."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENDERS = (2, 3, 10)
CHANGE_NS = 200_000_000
FILTER_MS = 20
"""Time constant of the average of rates along the chain, sampled every millisecond."""


def _incast(raw: RawResults, scheme: str) -> dict[int, list[float]]:
    """Milliseconds from the last flow's start, by the number of flows."""
    held = raw.simulated("s-perc" if scheme == "s-perc" else "tcp")
    rows = held.table("convergence").to_pylist()
    found: dict[int, list[float]] = {}
    for n in SENDERS:
        # Each start is a change; the last one of a cell counts.
        mine = [r for r in rows if r["scheme"] == scheme and r["workload.senders"] == n and r["flows"] == n]
        found[n] = [r["convergence_ns"] * 1e-6 if r["converged"] else math.inf for r in mine]
    return found


def _mean(values: list[float]) -> float:
    # A run that never settled is N/A in the thesis' table, and so is the mean.
    return fmean(values)


def _own_rates(raw: RawResults, scheme: str) -> float:
    """Milliseconds from the change until the beginning of 50 ms in which every smoothed rate is near its own average.

    The average is that of the run's last second. TCPs along the chain settle at rates of their own, far from max-min.
    """
    frame = raw.simulated("chain").table("rate", ["scheme", "time_ns", "flow_id", "rate_bps"]).to_pandas()
    rates = frame[frame["scheme"] == scheme].pivot(index="time_ns", columns="flow_id", values="rate_bps").fillna(0)
    stable = rates[rates.index > rates.index[-1] - 1_000_000_000].mean()
    smooth = rates.ewm(alpha=1 - math.exp(-1 / FILTER_MS), adjust=False).mean()
    near = ((smooth / stable - 1).abs() <= 0.2).all(axis=1)[rates.index > CHANGE_NS].to_numpy()
    windows = (k for k in range(len(near) - 50) if near[k : k + 51].all())
    lag_ms = -FILTER_MS * math.log(0.2)
    return max(0.0, next(windows, math.inf) + 1 - lag_ms)


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean times and their ratios."""
    means = {s: [_mean(v) for v in _incast(raw, s).values()] for s in ("s-perc", "dctcp", "reno")}
    over = {s: min(t / f for t, f in zip(means[s], means["s-perc"], strict=True)) for s in ("dctcp", "reno")}
    chain = {"s-perc": settle.times(raw.simulated("chain"), "s-perc", after_ns=CHANGE_NS)[0] * 1e3}
    chain |= {s: _own_rates(raw, s) for s in ("dctcp", "reno")}
    return {
        "s_perc": means["s-perc"],
        "dctcp": means["dctcp"],
        "reno": means["reno"],
        "dctcp_over": over["dctcp"],
        "reno_over": over["reno"],
        "s_perc_chain": chain["s-perc"],
        "dctcp_chain": chain["dctcp"],
        "reno_chain": chain["reno"],
        "chain_over": chain["dctcp"] / chain["s-perc"],
    }


def draw(raw: RawResults) -> Figure:
    """Times by the number of flows; what never settled is at the top."""
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
                    (place, 3000 / 2**k),
                    color=figures.COLOURS[k],
                    ha="center",
                    fontsize=8,
                )
    plots[0].set_xticks(range(len(SENDERS)), [f"{n} flows" for n in SENDERS])
    plots[0].set(ylabel="ms until within 20%", yscale="log", ylim=(0.01, 6000), xlim=(-0.5, 2.5))
    plots[0].legend(loc="center right")
    return figure
