"""Figure 7 of Flowtune: FCT of a coflow on real hosts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("flowtune", "cubic")
COLUMNS = ["scheme", "seed", "flow", "start_ns", "fct_ns", "retransmissions"]


def _flows(raw: RawResults, scheme: str) -> Any:
    """Transfers of a scheme: a frame with one row per transfer."""
    frame = raw.simulated().table("flow", COLUMNS).to_pandas()
    return frame[frame["scheme"] == scheme]


def _coflows_ms(flows: Any) -> list[float]:
    """Time from the first start to the last end of each run, ms; infinite if a transfer did not finish."""
    found = []
    for _, run in flows.groupby("seed"):
        ends = run["start_ns"] + run["fct_ns"].astype(float)
        span = float(ends.max() - run["start_ns"].min()) / 1e6
        found.append(math.inf if ends.isna().any() else span)
    return found


def measure(raw: RawResults) -> dict[str, Value]:
    """Times of the coflow under each scheme, their ratios, and lost packets."""
    values: dict[str, Value] = {}
    times = {}
    for scheme in SCHEMES:
        flows = _flows(raw, scheme)
        times[scheme] = _coflows_ms(flows)
        values[f"{scheme} ms"] = stats.estimate(times[scheme], "median", "runs")
        values[f"{scheme} done"] = round(100 * float(flows["fct_ns"].notna().mean()), 3)
        again = flows.groupby("seed")["retransmissions"].sum().to_numpy(dtype=float)
        values[f"{scheme} again"] = stats.estimate(again, "mean", "runs")
    for statistic in ("median", "p90", "p95"):
        values[statistic] = stats.ratio(times["cubic"], times["flowtune"], statistic, "runs", paired=True)
    return values


def draw(raw: RawResults) -> Figure:
    """Fraction of runs whose coflow has completed, by time."""
    figure, plots = figures.axes(rows=1, columns=1, width=4.6, height=2.6)
    for number, scheme in enumerate(SCHEMES):
        times = np.sort(_coflows_ms(_flows(raw, scheme)))
        share = np.arange(1, len(times) + 1) / len(times)
        plots[0].step(times, share, where="post", color=figures.COLOURS[number], label=scheme)
    plots[0].set(xlabel="completion time, ms of the spec", ylabel="share of runs", ylim=(0, 1.02))
    plots[0].legend()
    return figure
