"""NUMFabric's optimizer xWI over Swift, whose links have a few FIFOs in place of start-time fair queueing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from subak.papers.perc_open import waits
from subak.repro import Measured, RawResults, Value, figures, settle, stats

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

STFQ = "stfq"
DISCIPLINES = {"weighted": "fixed weights, WFQ", "drr": "fixed weights, DRR", "sp-pifo": "SP-PIFO", "afq": "AFQ"}
QUEUES = (2, 4, 8, 16, 32)
"""Numbers of FIFOs of a link; some disciplines run with fewer of these."""
ENOUGH = 8
"""FIFOs with which AFQ is expected to follow STFQ."""
HALF, MOST = 0, 1
"""Indices of the convergence criteria: for half of the flows, and for 95% of them."""


def _times(raw: RawResults, scheme: str, criterion: int) -> list[float]:
    return [1e6 * t for t in settle.times(raw.simulated(), scheme, criterion, after_ns=1)]


def _errors(raw: RawResults, scheme: str) -> list[float]:
    """For each change: error of the median flow at the last sample, percent."""
    rows = raw.simulated().table("convergence").to_pylist()
    mine = [r for r in rows if r["time_ns"] > 0 and (r["scheme"], r["criterion"]) == (scheme, HALF)]
    return [100 * float(r["end_error"]) for r in mine]


MEASURES: dict[str, Callable[[RawResults, str], Measured]] = {
    "half_settled": lambda raw, scheme: settle.settled(_times(raw, scheme, HALF)),
    "half_p50": lambda raw, scheme: settle.at(_times(raw, scheme, HALF), 0.5),
    "most_settled": lambda raw, scheme: settle.settled(_times(raw, scheme, MOST)),
    "most_p50": lambda raw, scheme: settle.at(_times(raw, scheme, MOST), 0.5),
    "error": lambda raw, scheme: stats.estimate(_errors(raw, scheme), "median", "changes"),
    "wait": lambda raw, scheme: stats.estimate(waits.p99_us(raw.simulated(), scheme), "mean", "runs"),
}
"""By name: a measure of a scheme."""


def _ran(raw: RawResults) -> set[str]:
    return set(raw.simulated().table("convergence", ["scheme"]).to_pandas()["scheme"])


def measure(raw: RawResults) -> dict[str, Value]:
    """Convergence times, errors and waits of xWI, by discipline and number of queues."""
    ran = _ran(raw)
    found: dict[str, Value] = {}
    for name, of in MEASURES.items():
        if STFQ in ran:
            found[f"{STFQ} {name}"] = of(raw, STFQ)
        for discipline in DISCIPLINES:
            values = [of(raw, f"{discipline} {n}") for n in QUEUES if f"{discipline} {n}" in ran]
            if values:
                found[f"{discipline} {name}"] = values
    enough = [f"afq {n}" for n in QUEUES if n >= ENOUGH and f"afq {n}" in ran]
    if enough:
        found["missed"] = sum(math.isinf(t) for scheme in enough for t in _times(raw, scheme, MOST))
    return found


def draw(raw: RawResults) -> Figure:
    """Share of changes that settle, time, error and wait by the number of queues."""
    figure, plots = figures.axes(rows=2, columns=2)
    shown = {
        "most_settled": "changes that settle, %",
        "half_p50": "us until half of the flows are near",
        "error": "error of the median flow, %",
        "wait": "p99 queueing delay, us",
    }
    ran = _ran(raw)
    for plot, (name, label) in zip(plots, shown.items(), strict=True):
        of = MEASURES[name]
        plot.axhline(of(raw, STFQ).value, color="black", linestyle=":", label="STFQ")
        for discipline, title in DISCIPLINES.items():
            queues = [n for n in QUEUES if f"{discipline} {n}" in ran]
            values = [of(raw, f"{discipline} {n}").value for n in queues]
            plot.plot(queues, [v if np.isfinite(v) else np.nan for v in values], marker="o", label=title)
        plot.set_xscale("log", base=2)
        plot.set(xlabel="queues of a link", ylabel=label, xticks=QUEUES, xticklabels=[str(n) for n in QUEUES])
        plot.set_ylim(0, None)
        plot.legend(fontsize=8)
    return figure
