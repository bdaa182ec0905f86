"""Figure 1 of the extended abstract of PERC: RTTs until two flows share a link."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("reno", "dctcp", "s-perc")
LINKS_OF_A_RTT = 4
"""Links that a packet and its ACK cross."""


def _rtts(raw: RawResults, scheme: str) -> dict[str, float]:
    """By interval between the starts: time from the second flow's start to convergence, in base RTTs."""
    spec = tomllib.loads((raw.folder / "run/spec.toml").read_text())
    rtt_ns = LINKS_OF_A_RTT * 1000 * int(spec["network"]["link_delay"].removesuffix("us"))
    rows = raw.simulated().table("convergence").to_pylist()
    mine = [r for r in rows if r["scheme"] == scheme and r["flows"] == 2]
    return {r["workload.interval"]: r["convergence_ns"] / rtt_ns if r["converged"] else math.inf for r in mine}


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean convergence times in RTTs over the distances between the starts, which are resampled, and their ratios."""
    rtts = {s: list(_rtts(raw, s).values()) for s in SCHEMES}
    found: dict[str, Value] = {s.replace("-", "_"): stats.estimate(of, "mean", "starts") for s, of in rtts.items()}
    found["dctcp_over"] = stats.ratio(rtts["dctcp"], rtts["s-perc"], "mean", "starts", paired=True)
    found["reno_over_dctcp"] = stats.ratio(rtts["reno"], rtts["dctcp"], "mean", "starts", paired=True)
    return found


def draw(raw: RawResults) -> Figure:
    """Received rates in the run in which TCP takes longest to converge, one plot per scheme, and their convergence."""
    figure, plots = figures.axes(rows=3, height=2.2, width=6)
    frame = raw.simulated().table("rate").to_pandas()
    times = _rtts(raw, "reno")
    chosen = max(times, key=lambda interval: times[interval])
    frame = frame[frame["workload.interval"] == chosen]
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        for flow, label in enumerate(("first", "second")):
            of = frame[(frame["scheme"] == scheme) & (frame["flow"] == flow)]
            plot.plot(of["time_ns"] / 1e6, of["rate_bps"] / 1e9, linestyle="-", linewidth=1, label=label)
        plot.set(
            title=f"{scheme}: {_rtts(raw, scheme)[chosen]:.3g} RTTs", ylabel="Gb/s", xlim=(0, 1000), ylim=(0, 10.5)
        )
    plots[0].legend()
    plots[2].set_xlabel(f"ms; the second flow starts {chosen} after the first")
    return figure
