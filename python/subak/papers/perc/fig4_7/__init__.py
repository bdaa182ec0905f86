"""Figure 4.7 of the PERC thesis: rates of two flows under s-PERC, DCTCP and TCP."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING

from subak.inputs import time_ns
from subak.papers.perc import two_flows
from subak.papers.perc.two_flows import SCHEMES
from subak.repro import RawResults, Value, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = {"s_perc": "s-perc", "dctcp": "dctcp", "reno": "reno"}


def _lag_ms(raw: RawResults) -> float:
    """Time, ms, in which the run's filter comes within 20% of a step. Results have convergence times without it."""
    spec = tomllib.loads((raw.simulated().folder / "spec.toml").read_text())
    criterion = spec["measure"]["convergence"]
    return -1e-6 * time_ns("filter", criterion["filter"]) * math.log(criterion["within"])


def _ms(raw: RawResults, scheme: str) -> dict[str, float]:
    """By interval between the starts: time, ms, from the second start until both filtered rates have converged."""
    rows, lag_ms = raw.simulated().table("convergence").to_pylist(), _lag_ms(raw)
    mine = [r for r in rows if r["scheme"] == scheme and r["flows"] == 2]
    return {r["workload.interval"]: r["convergence_ns"] * 1e-6 + lag_ms if r["converged"] else math.inf for r in mine}


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean convergence times over the times between the starts, which are resampled, and ratios at the same times."""
    ms = {s: list(_ms(raw, s).values()) for s in SCHEMES}
    found: dict[str, Value] = {key: stats.estimate(ms[s], "mean", "starts") for key, s in KEYS.items()}
    found["dctcp_over"] = stats.ratio(ms["dctcp"], ms["s-perc"], "mean", "starts", paired=True)
    less = {s: [of - _lag_ms(raw) for of in ms[s]] for s in ("dctcp", "s-perc")}
    found["dctcp_over_less_lag"] = stats.ratio(less["dctcp"], less["s-perc"], "mean", "starts", paired=True)
    found["reno_over_dctcp"] = stats.ratio(ms["reno"], ms["dctcp"], "mean", "starts", paired=True)
    return found


def draw(raw: RawResults) -> Figure:
    """Received rates in the run in which TCP takes longest to converge, one plot per scheme, and their convergence."""
    times = {scheme: _ms(raw, scheme) for scheme in SCHEMES}
    figure = two_flows.draw(raw, times["reno"], {scheme: scheme for scheme in SCHEMES}, 400)
    for plot, scheme in zip(figure.axes, SCHEMES, strict=True):
        plot.axvline(times[scheme][two_flows.longest(times["reno"])], color="black", linestyle="--", linewidth=1)
    return figure
