"""Figure 4.7: the rates of two flows under s-PERC, DCTCP and TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.papers.perc import settle
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGE_NS = 200_000_000
SCHEMES = ("reno", "dctcp", "s-perc")


def measure(raw: RawResults) -> dict[str, Value]:
    """Milliseconds after the second flow's start."""
    ms = {s: settle.times(raw.simulated(), s, after_ns=CHANGE_NS)[0] * 1e3 for s in SCHEMES}
    return {"s_perc": ms["s-perc"], "dctcp": ms["dctcp"], "reno": ms["reno"], "dctcp_over": ms["dctcp"] / ms["s-perc"]}


def draw(raw: RawResults) -> Figure:
    """Rates received, a plot a scheme, and when they had settled."""
    figure, plots = figures.axes(rows=3, height=2.2, width=6)
    frame = raw.simulated().table("rate").to_pandas()
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        for flow in ("first", "second"):
            of = frame[(frame["scheme"] == scheme) & (frame["flow_id"] == flow)]
            plot.plot(of["time_ns"] / 1e6, of["rate_bps"] / 1e9, linestyle="-", linewidth=1, label=flow)
        settled_ms = settle.times(raw.simulated(), scheme, after_ns=CHANGE_NS)[0] * 1e3
        for at in (CHANGE_NS / 1e6, CHANGE_NS / 1e6 + settled_ms):
            plot.axvline(at, color="black", linestyle="--", linewidth=1)
        plot.set(title=scheme, ylabel="Gb/s", xlim=(150, 800), ylim=(0, 10))
    plots[0].legend()
    plots[2].set_xlabel("ms")
    return figure
