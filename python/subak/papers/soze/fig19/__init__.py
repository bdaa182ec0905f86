"""Figure 19 of Soze: convergence times by network size and by number of flows, and the time of water-filling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """Convergence times at packet level and of the fluid model, and computing times of water-filling."""
    figure, plots = figures.axes(columns=2, width=4.8)
    rows = raw.rows("scale")
    for plot, by, label in ((plots[0], "ports", "hosts"), (plots[1], "flows", "flows")):
        kinds = [("size" if by == "ports" else "flows", "fluid", "settled_ms", "10,000 flows, fluid")]
        if by == "ports":
            kinds += [("few", "packets", "settled_ms", "10 flows a host, packets")]
            kinds += [("few", "fluid", "settled_ms", "10 flows a host, fluid")]
        else:
            kinds = [
                ("flows", "fluid", "settled_ms", "1024 hosts, fluid"),
                ("flows", "packets", "settled_ms", "1024 hosts, packets"),
                ("flows", "packets, soze", "settled_ms", "1024 hosts, packets, soze"),
            ]
        kinds += [(kinds[0][0], "fluid", "solve_ms", "water-filling, one core")]
        for k, (group, backend, column, name) in enumerate(kinds):
            mine = [r for r in rows if (r["by"], r["backend"]) == (group, backend) and r[column] is not None]
            levels = sorted({r[by] for r in mine})
            values = [min(r[column] for r in mine if r[by] == level) for level in levels]
            at = [level**3 // 4 for level in levels] if by == "ports" else levels
            colour = figures.COLOURS[3 if column == "solve_ms" else k]
            plot.plot(at, values, marker="o", color=colour, label=name)
        plot.set(xlabel=label, xscale="log", yscale="log")
        plot.legend(fontsize="small")
    plots[0].set_ylabel("ms")
    return figure
