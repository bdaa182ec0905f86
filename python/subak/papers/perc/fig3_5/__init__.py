"""Figure 3.5 of the PERC thesis: rounds to convergence on random setups, and the setup on which n-PERC took longest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """Rounds of n-PERC and s-PERC on the same setups, and the links' fair shares in the slowest setup over time."""
    figure, plots = figures.axes(columns=3, width=4.9)
    rows = raw.rows("n-perc")
    for scheme, column in (("n-PERC", "n_perc_rounds"), ("s-PERC", "s_perc_rounds")):
        figures.cdf(plots[0], [row[column] for row in rows], scheme)
    figures.cdf(plots[0], [6 * row["w2"] for row in rows], "bound of s-PERC, 6 W2")
    plots[0].set(title=f"{len(rows)} setups of 100 links, P = 80", xlabel="rounds until exact")
    plots[0].legend(loc="lower right")
    for plot, scheme in zip(plots[1:], ("n-perc", "s-perc"), strict=True):
        held = raw.report["series"][f"worst setup under {scheme}"]
        _series(plot, held)
        title = f"{scheme}, seed {held['seed']}: exact after {held['rounds']:.1f} rounds"
        plot.set(title=title, xlabel="rounds", ylabel="Gb/s")
    return figure


def _series(plot: Axes, held: dict[str, Any]) -> None:
    links = held["links"][: len(figures.COLOURS)]
    top = max(link["ideal_gbps"] for link in links)
    for colour, link in zip(figures.COLOURS, links, strict=False):
        rounds, shares, max_e = zip(*link["points"], strict=True)
        # A link without bottlenecked flows has no fair share: the thesis draws -1, this figure a gap.
        known = [share if share >= 0 else math.nan for share in shares]
        plot.plot(rounds, known, color=colour, linestyle="-", linewidth=1, label=f"link {link['link']}")
        if any(max_e):
            plot.plot(rounds, max_e, color=colour, linestyle="none", marker="x", markersize=3, alpha=0.6)
        plot.axhline(link["ideal_gbps"], color=colour, linestyle=":", linewidth=1.2)
    plot.set_ylim(0, 5 * top)
    plot.legend(title="fair share (gap: NumB = 0); x MaxE; dotted: exact", fontsize="small", ncols=3, frameon=True)
