"""Figure 9 of Soze: two jobs under equal weights, and under weights that transfers reduce if they can wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.repro import RawResults, Value, figures
from subak.repro.jobs import rates, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("even", "altruistic")


def _share_percent(raw: RawResults) -> float:
    """Rate of f2 as a percentage of the sum of f2 and f3, from 5 s to 15 s."""
    of = rates(raw, "full", "altruistic", "soze")
    means = []
    for name in ("job1/f2", "job2/f3"):
        at, gbps = of[name]
        inside = gbps[(at > 5) & (at <= 15)]
        means.append(inside.mean() if inside.size else np.nan)
    return float(100 * means[0] / sum(means))


def measure(raw: RawResults) -> dict[str, Value]:
    """Times until the jobs complete. Nothing in these runs is random."""
    even, altruistic = (seconds(raw, "fluid", "job2", policy) for policy in POLICIES)
    first = [seconds(raw, "fluid", "job1", policy) for policy in POLICIES]
    small = [seconds(raw, "packets", "job2", policy, "soze-virtual") for policy in POLICIES]
    ends = {job: [seconds(raw, "full", job, policy, "soze") for policy in POLICIES] for job in ("job1", "job2")}
    full: dict[str, Value] = {
        "even": round(ends["job2"][0], 2),
        "altruistic": round(ends["job2"][1], 2),
        "optimal": round(seconds(raw, "full-optimal", "job2", "even", "soze"), 2),
        "harm": round(ends["job1"][1] / ends["job1"][0], 4),
        "share": round(_share_percent(raw), 2),
    }
    return full | {
        "ideal even": round(even, 2),
        "ideal altruistic": round(altruistic, 2),
        "ideal optimal": round(seconds(raw, "optimal", "job2", "even"), 2),
        "ideal harm": round(first[1] / first[0], 4),
        "packets": round(small[1] / small[0] / (altruistic / even), 4),
    }


def draw(raw: RawResults) -> Figure:
    """Rates of the four transfers over time, one plot per policy."""
    figure, plots = figures.axes(columns=3, width=3.6)
    whole, optimal, scheme = "full", "full-optimal", "soze"
    runs = [(whole, "even", "even"), (optimal, "even", "f2 after f3"), (whole, "altruistic", "altruistic")]
    for plot, (spec, policy, title) in zip(plots, runs, strict=True):
        for name, (at, gbps) in sorted(rates(raw, spec, policy, scheme).items()):
            plot.plot(at, gbps, label=name.split("/")[1])
        plot.set(title=title, xlabel="s", xlim=(0, 65), ylim=(0, 4.2))
    plots[0].set_ylabel("Gb/s")
    plots[0].legend()
    return figure
