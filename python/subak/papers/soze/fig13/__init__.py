"""Figure 13 of Soze: RTTs of one to three flows, under Soze and TIMELY."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.soze import series
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("soze", "soze-virtual", "timely")
STEP_NS, LAST_NS = 20_000_000, 15_000_000
FLOWS = (1, 2, 3, 2, 1)
"""Number of running flows in each step."""
SENDERS, LAST = ("h0->switch0", "h1->switch0", "h2->switch0"), "switch0->h3"
RATE_GBPS, IDLE_US = 25, 8.71


def _ran(raw: RawResults) -> list[str]:
    return [scheme for scheme in SCHEMES if not raw.plan.schemes or scheme in raw.plan.schemes]


def _rtt_us(raw: RawResults, scheme: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, ns, and the largest of the flows' RTTs, us."""
    frame = raw.simulated("").table("queue", ["scheme", "seed", "link", "time_ns", "queued_bytes"]).to_pandas()
    mine = frame[(frame["scheme"] == scheme) & (frame["seed"] == seed)].pivot(
        index="time_ns", columns="link", values="queued_bytes"
    )
    wait = mine[LAST] + mine[[link for link in SENDERS if link in mine]].max(axis=1)
    return mine.index.to_numpy(dtype=float), IDLE_US + wait.to_numpy(dtype=float) * 8 / RATE_GBPS / 1e3


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean RTT by number of flows, and the tail of RTTs, over runs whose flows start a few microseconds apart."""
    return series.over_runs(raw, lambda seed: _measure(raw, seed))


def _measure(raw: RawResults, seed: int) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    means: dict[str, float] = {}
    for scheme in _ran(raw):
        times, rtts = _rtt_us(raw, scheme, seed)
        step = (times // STEP_NS).astype(int)
        late = (times % STEP_NS > STEP_NS - LAST_NS) & (step < len(FLOWS)) & (step < times[-1] // STEP_NS)
        by_flows = {}
        for flows in sorted(set(FLOWS)):
            inside = late & np.isin(step, [k for k, n in enumerate(FLOWS) if n == flows])
            if inside.any():
                by_flows[flows] = float(rtts[inside].mean())
        means[scheme] = float(rtts[late].mean())
        values[f"{scheme} rtt"] = means[scheme]
        values[f"{scheme} by flows"] = ", ".join(f"{x:.1f}" for x in by_flows.values())
        values[f"{scheme} p99 wait"] = float(np.quantile(rtts[late], 0.99)) - IDLE_US
        values[f"{scheme} rises"] = by_flows[max(by_flows)] / by_flows[1]
    for scheme in ("soze", "soze-virtual"):
        if scheme in means:
            values[f"{scheme} over timely"] = means[scheme] / means["timely"]
    return values


def draw(raw: RawResults) -> Figure:
    """Largest RTT of the flows over time, one plot per scheme."""
    figure, plots = figures.axes(columns=3, width=4)
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        times, rtts = _rtt_us(raw, scheme, raw.plan.seed)
        plot.plot(times / 1e6, rtts, color=figures.COLOURS[0], linestyle="-", linewidth=0.5)
        plot.set(title=scheme, xlabel="ms", yscale="log", ylim=(8, 1000))
    plots[0].set_ylabel("round trip, us")
    return figure
