"""Figure 2.12: the rates of four flows over a chain of three bottlenecks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGE_NS = 5_000_000
IDEAL_GBPS = {"A": 35, "B": 25, "C": 5, "D": 5}


def measure(raw: RawResults) -> dict[str, Value]:
    """The time that each scheme takes after D has come."""
    held = raw.simulated()
    us = {(s, c): settle.times(held, s, c, after_ns=CHANGE_NS)[0] * 1e6 for s in ("fair", "rcp") for c in (0, 1)}
    fair, rcp = us["fair", 0], us["rcp", 0]
    return {"fair": fair, "rcp": rcp, "rcp_20": us["rcp", 1], "ratio": rcp / fair}


def draw(raw: RawResults) -> Figure:
    """Rates as assigned, from just before D comes."""
    figure, plots = figures.axes(columns=2)
    frame = raw.simulated().table("rate").to_pandas()
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
