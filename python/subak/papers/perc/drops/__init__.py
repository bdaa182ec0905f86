"""Section 4.3.3 of the PERC thesis: s-PERC* after control packets were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(raw: RawResults) -> Figure:
    """Rounds from the last lost packet to convergence, and their bound."""
    figure, (plot,) = figures.axes(width=5.6)
    rows = raw.rows("drops")
    at = range(len(rows))
    plot.plot(at, [row["rounds_after_median"] for row in rows], marker="o", linestyle="none", label="median run")
    plot.plot(at, [row["rounds_after_max"] for row in rows], marker="^", linestyle="none", label="worst run")
    for k, row in enumerate(rows):
        where: dict[str, Any] = {"textcoords": "offset points", "xytext": (8, -3), "fontsize": 8}
        plot.annotate(f"{row['share_of_bound_max']:.2f} of 6 W2", (k, row["rounds_after_max"]), **where)
    plot.set_xticks(list(at), [f"{row['drop']:g}\n{row['losses_min']:g}-{row['losses_max']:g} lost" for row in rows])
    plot.set(
        xlabel="probability of a loss at each link", ylabel="rounds from the last loss until exact", ylim=(0, None)
    )
    plot.set_xlim(-0.4, len(rows) - 0.3)
    plot.margins(y=0.15)
    plot.set_ylim(bottom=0)
    plot.legend()
    return figure
