"""Figure 6 of Soze: rates of a job under equal weights, and under weights that favour its critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures
from subak.repro.jobs import rates, seconds, weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("even", "critical-path")


def measure(raw: RawResults) -> dict[str, Value]:
    """Times until the job completes. Nothing in these runs is random."""
    even, critical = (seconds(raw, "fluid", "job", policy) for policy in POLICIES)
    times = [seconds(raw, "full", "job", policy, "soze") for policy in POLICIES]
    first = [weights(raw, "full", "critical-path", f"job/{flow}", "soze")[1][0] for flow in ("f1", "f4")]
    full: dict[str, Value] = {
        "even": round(times[0], 2),
        "critical": round(times[1], 2),
        "weights": ", ".join(f"{weight:.3f}" for weight in first),
    }
    small_even, small_critical = (seconds(raw, "packets", "job", policy, "soze-virtual") for policy in POLICIES)
    return full | {
        "ideal even": round(even, 2),
        "ideal critical": round(critical, 2),
        "packets": round(small_critical / small_even / (critical / even), 4),
    }


def draw(raw: RawResults) -> Figure:
    """Rates of the four transfers under equal weights, and with the critical path first."""
    figure, plots = figures.axes(columns=2, width=4.2)
    spec, scheme = "full", "soze"
    for plot, policy in zip(plots, POLICIES, strict=True):
        for name, (at, gbps) in rates(raw, spec, policy, scheme).items():
            plot.plot(at, gbps, label=name.removeprefix("job/"))
        plot.set(title=policy, xlabel="s", xlim=(0, 120), ylim=(0, 5))
    plots[0].set_ylabel("Gb/s")
    plots[0].legend()
    return figure
