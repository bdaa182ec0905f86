"""Figure 4.7 of the PERC thesis: rates of two flows under s-PERC, DCTCP and TCP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("reno", "dctcp", "s-perc")
KEYS = {"s_perc": "s-perc", "dctcp": "dctcp", "reno": "reno"}
LAG_MS = -math.log(0.2)
"""Time, ms, in which a filter of 1 ms comes within 20% of a step. Results have convergence times without it."""


def _ms(raw: RawResults, scheme: str) -> dict[str, float]:
    """By interval between the starts: time, ms, from the second start until both filtered rates have converged."""
    rows = raw.simulated().table("convergence").to_pylist()
    mine = [r for r in rows if r["scheme"] == scheme and r["flows"] == 2]
    return {r["workload.interval"]: r["convergence_ns"] * 1e-6 + LAG_MS if r["converged"] else math.inf for r in mine}


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean convergence times over the times between the starts, which are resampled, and ratios at the same times."""
    ms = {s: list(_ms(raw, s).values()) for s in SCHEMES}
    found: dict[str, Value] = {key: stats.estimate(ms[s], "mean", "starts") for key, s in KEYS.items()}
    found["dctcp_over"] = stats.ratio(ms["dctcp"], ms["s-perc"], "mean", "starts", paired=True)
    less = {s: [of - LAG_MS for of in ms[s]] for s in ("dctcp", "s-perc")}
    found["dctcp_over_less_lag"] = stats.ratio(less["dctcp"], less["s-perc"], "mean", "starts", paired=True)
    found["reno_over_dctcp"] = stats.ratio(ms["reno"], ms["dctcp"], "mean", "starts", paired=True)
    return found


def draw(raw: RawResults) -> Figure:
    """Received rates in the run in which TCP takes longest to converge, one plot per scheme, and their convergence."""
    figure, plots = figures.axes(rows=3, height=2.2, width=6)
    frame = raw.simulated().table("rate").to_pandas()
    times = _ms(raw, "reno")
    chosen = max(times, key=lambda interval: times[interval])
    frame = frame[frame["workload.interval"] == chosen]
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        for flow, label in enumerate(("first", "second")):
            of = frame[(frame["scheme"] == scheme) & (frame["flow"] == flow)]
            plot.plot(of["time_ns"] / 1e6, of["rate_bps"] / 1e9, linestyle="-", linewidth=1, label=label)
        plot.axvline(_ms(raw, scheme)[chosen], color="black", linestyle="--", linewidth=1)
        plot.set(title=scheme, ylabel="Gb/s", xlim=(0, 400), ylim=(0, 10.5))
    plots[0].legend()
    plots[2].set_xlabel(f"ms; the second flow starts {chosen} after the first")
    return figure
