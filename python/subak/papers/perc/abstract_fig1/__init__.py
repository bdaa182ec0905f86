"""Figure 1 of the extended abstract of PERC: RTTs until two flows share a link."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING

from subak.papers.perc import two_flows
from subak.papers.perc.two_flows import SCHEMES
from subak.repro import RawResults, Value, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """Received rates in the run in which TCP takes longest to converge, one plot per scheme, with their RTTs."""
    rtts = {scheme: _rtts(raw, scheme) for scheme in SCHEMES}
    chosen = two_flows.longest(rtts["reno"])
    titles = {scheme: f"{scheme}: {rtts[scheme][chosen]:.3g} RTTs" for scheme in SCHEMES}
    return two_flows.draw(raw, rtts["reno"], titles, 1000)
