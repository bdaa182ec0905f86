"""Figure 8 of Soze: two jobs over one bottleneck, under equal weights and under weights with a constant sum per job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.repro import RawResults, Value, figures
from subak.repro.jobs import rates, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("even", "constant-sum")
JOBS = {"job1": ("f1", "f2"), "job2": ("f3", "f4")}


def _together(raw: RawResults, spec: str, policy: str, scheme: str = "ideal") -> tuple[np.ndarray, np.ndarray]:
    """Times, s, and the rate of each job, Gb/s, one column each."""
    of = rates(raw, spec, policy, scheme)
    at = max((times for times, _ in of.values()), key=len)
    both = np.zeros((len(at), len(JOBS)))
    for column, (job, flows) in enumerate(JOBS.items()):
        for flow in flows:
            times, gbps = of[f"{job}/{flow}"]
            both[: len(times), column] += gbps
    return at, both


def _off_percent(raw: RawResults, spec: str, scheme: str) -> float:
    """Largest deviation of a job's rate from 5 Gb/s while both run, percent."""
    at, both = _together(raw, spec, "constant-sum", scheme)
    end = min(seconds(raw, spec, job, "constant-sum", scheme) for job in JOBS)
    return float(np.abs(both[at < end] / 5 - 1).max()) * 100


def _small_off_percent(raw: RawResults) -> float:
    """Largest deviation of a job's fraction of the link from one half, in packets, over 10 samples, percent."""
    at, both = _together(raw, "packets", "constant-sum", "soze-virtual")
    end = min(seconds(raw, "packets", job, "constant-sum", "soze-virtual") for job in JOBS)
    mine = both[(at > 0.01) & (at < end)]
    mine = mine[: len(mine) // 10 * 10].reshape(-1, 10, 2).mean(axis=1)
    return float(np.abs(mine[:, 0] / mine.sum(axis=1) / 0.5 - 1).max()) * 100


def measure(raw: RawResults) -> dict[str, Value]:
    """Times until the jobs complete, and deviations of their rates. Nothing in these runs is random."""
    even, constant = (seconds(raw, "fluid", "job2", policy) for policy in POLICIES)
    times = [seconds(raw, "full", "job2", policy, "soze") for policy in POLICIES]
    full: dict[str, Value] = {
        "even": round(times[0], 2),
        "constant": round(times[1], 2),
        "gain": round(times[0] - times[1], 2),
        "share": round(_off_percent(raw, "full", "soze"), 3),
    }
    small = [seconds(raw, "packets", "job2", policy, "soze-virtual") for policy in POLICIES]
    return full | {
        "ideal even": round(even, 2),
        "ideal constant": round(constant, 2),
        "ideal share": round(_off_percent(raw, "fluid", "ideal"), 3),
        "packets share": round(_small_off_percent(raw), 3),
        "packets gain": round(small[1] / small[0], 4),
    }


def draw(raw: RawResults) -> Figure:
    """Rates of the flows under equal weights and with constant sums, and rates of the jobs."""
    figure, plots = figures.axes(columns=3, width=3.6)
    spec, scheme = "full", "soze"
    for plot, policy in zip(plots, POLICIES, strict=False):
        for name, (at, gbps) in rates(raw, spec, policy, scheme).items():
            plot.plot(at, gbps, label=name.split("/")[1])
        plot.set(title=policy, xlabel="s", xlim=(0, 90), ylim=(0, 10.5))
    plots[0].set_ylabel("Gb/s")
    plots[0].legend()
    at, both = _together(raw, spec, "constant-sum", scheme)
    for column, job in enumerate(JOBS):
        plots[2].plot(at, both[:, column], label=job)
    plots[2].set(title="sums under constant-sum", xlabel="s", xlim=(0, 90), ylim=(0, 10.5))
    plots[2].legend()
    return figure
