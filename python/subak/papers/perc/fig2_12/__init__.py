"""Figure 2.12 of the PERC thesis: rates of four flows over a chain of three bottlenecks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGE_NS = 5_000_000
IDEAL_GBPS = {"A": 35, "B": 25, "C": 5, "D": 5}


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean convergence time of each scheme after flow D starts; the start times of D are resampled."""
    held = raw.simulated()
    us = {
        (s, c): [1e6 * t for t in settle.times(held, s, c, after_ns=CHANGE_NS)] for s in ("fair", "rcp") for c in (0, 1)
    }
    found: dict[str, Value] = {
        "fair": stats.estimate(us["fair", 0], "mean", "random starts"),
        "rcp": stats.estimate(us["rcp", 0], "mean", "random starts"),
        "rcp_20": stats.estimate(us["rcp", 1], "mean", "random starts"),
    }
    return found | {"ratio": stats.ratio(us["rcp", 0], us["fair", 0], "mean", "random starts", paired=True)}


def draw(raw: RawResults) -> Figure:
    """Rates that the schemes assign, from just before the first start of flow D."""
    figure, plots = figures.axes(columns=2)
    frame = raw.simulated().table("rate").to_pandas()
    frame = frame[frame["workload.flows"] == frame["workload.flows"].iloc[0]]
    for plot, scheme in zip(plots, ("fair", "rcp"), strict=True):
        mine = frame[frame["scheme"] == scheme]
        for k, (flow, ideal) in enumerate(IDEAL_GBPS.items()):
            of = mine[mine["flow_id"] == flow]
            since_us = (of["time_ns"].astype(float) - CHANGE_NS) / 1e3
            plot.plot(since_us, of["assigned_bps"] / 1e9, color=figures.COLOURS[k], linestyle="-", label=flow)
            plot.axhline(ideal, color=figures.COLOURS[k], linestyle=":", linewidth=1)
        plot.set(title=scheme, xlabel="us after D has come", ylabel="Gb/s", xlim=(-100, 1500), ylim=(0, None))
    plots[0].legend()
    return figure
