"""The evaluation in the abstract of the PERC thesis: rounds of Fair and of s-PERC over random routing matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """Histogram of the rounds of s-PERC over those of Fair, and quantiles by path length."""
    figure, plots = figures.axes(columns=2, width=5)
    bins = [(low, count) for low, count in raw.report["series"]["ratio"]["points"]]
    used = [low for low, count in bins if count]
    plots[0].bar([low for low, _ in bins], [count for _, count in bins], width=0.1, align="edge", edgecolor="white")
    plots[0].axvspan(1.1, 1.4, color=figures.COLOURS[1], alpha=0.15, label="published")
    plots[0].set(xlabel="rounds of s-PERC / rounds of Fair", ylabel="setups", xlim=(min(used) - 0.1, max(used) + 0.2))
    plots[0].legend()
    rows = raw.rows("rounds")
    at = range(len(rows))
    quantiles = [row["ratio_p5_p50_p95_max"] for row in rows]
    for k, (name, marker) in enumerate((("p5", "v"), ("median", "o"), ("p95", "^"), ("largest", "x"))):
        plots[1].plot(at, [q[k] for q in quantiles], marker=marker, label=name)
    plots[1].axhline(1, color="grey", linewidth=0.8, linestyle="-")
    plots[1].set_xticks(list(at), [str(row["P"]) for row in rows])
    plots[1].set(xlabel="links a flow, P", ylabel="rounds of s-PERC / rounds of Fair")
    plots[1].legend()
    return figure
