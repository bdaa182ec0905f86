"""Figure 2 of Soze: four flows on one switch converge to their weighted shares, and the queue to its target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from subak.papers.soze import series
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = {"soze": 1.0, "soze-virtual": 0.98}
"""Fraction of a link that each scheme allocates."""
LINK = "switch0->h4"
RATE_GBPS = 100.0
WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])
CHANGE_NS, LAST_NS = 2_000_000, 1_000_000
K_US, SPAN = 3.0, math.log(1000)


def _ran(raw: RawResults) -> list[str]:
    return [scheme for scheme in SHARES if not raw.plan.schemes or scheme in raw.plan.schemes]


def _p_us(raw: RawResults) -> float:
    told = raw.plan.spec.get("scheme", {}).get("soze", {}).get("params", {}).get("p", "20us")
    return float(str(told).removesuffix("us"))


def measure(raw: RawResults) -> dict[str, Value]:
    """Errors, oscillations and queue lengths of the last millisecond, over runs with slightly shifted starts."""
    return series.over_runs(raw, lambda seed: _measure(raw, seed))


def _measure(raw: RawResults, seed: int) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for scheme in _ran(raw):
        times, rates = series.rates_gbps(raw, scheme, "assigned_bps", seed)
        # Without the last sample, since the run has ended by then.
        late = rates[(times > times[-1] - LAST_NS) & (times < times[-1])]
        want = SHARES[scheme] * RATE_GBPS * WEIGHTS / WEIGHTS.sum()
        mean = late.mean(axis=0)
        values[f"{scheme} off"] = round(100 * float(np.abs(mean / want - 1).max()), 3)
        values[f"{scheme} per weight"] = round(100 * float((mean / WEIGHTS).max() / (mean / WEIGHTS).min() - 1), 3)
        values[f"{scheme} swing"] = round(100 * float((late.std(axis=0) / mean).max()), 3)
        at, queue = series.queue_us(raw, scheme, LINK, RATE_GBPS, seed)
        values[f"{scheme} queue"] = round(float(queue[at > at[-1] - LAST_NS].mean()), 3)
    if "soze" in _ran(raw):
        target = _p_us(raw) * math.log(WEIGHTS.sum()) / SPAN + K_US
        values["soze queue over target"] = round(float(values["soze queue"]) / target, 4)
    return values


def draw(raw: RawResults) -> Figure:
    """Rates of the flows, and the length of the queue before the receiver."""
    ran = _ran(raw)
    figure, plots = figures.axes(rows=2, columns=len(ran), width=5, height=2.4)
    for k, scheme in enumerate(ran):
        times, rates = series.rates_gbps(raw, scheme, "assigned_bps")
        for flow, weight in enumerate(WEIGHTS):
            colour = figures.COLOURS[flow]
            label = f"weight {weight:g} at last"
            plots[k].plot(times[:-1] / 1e6, rates[:-1, flow], color=colour, linestyle="-", linewidth=0.9, label=label)
            plots[k].axhline(SHARES[scheme] * RATE_GBPS * weight / WEIGHTS.sum(), color=colour, linestyle=":")
        plots[k].set(title=scheme, ylim=(0, 60), xlim=(1.8, None))
        at, queue = series.queue_us(raw, scheme, LINK, RATE_GBPS)
        plots[k + len(ran)].plot(at / 1e6, queue, color=figures.COLOURS[3], linestyle="-", linewidth=0.7)
        plots[k + len(ran)].set(xlabel="ms", xlim=(1.8, None))
    plots[0].set_ylabel("Gb/s; dotted: exact")
    plots[len(ran) - 1].legend(fontsize="small")
    plots[len(ran)].set_ylabel("queue, us")
    return figure
