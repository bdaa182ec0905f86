"""NUMFabric's optimizer xWI over the ideal transport (exact weighted max-min in each step), on random networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 10_000
DIMINISHING = "a share of the new price that diminishes"


def draw(raw: RawResults) -> Figure:
    """Fraction of networks that stay within 1% of the optimum, by number of steps, and errors of the others."""
    figure, plots = figures.axes(columns=2, width=5.5)
    runs = raw.rows("runs")
    curves = {"": runs}
    if DIMINISHING in raw.variants:
        curves[", diminishing"] = raw.variants[DIMINISHING].rows("runs")
    for k, alpha in enumerate(dict.fromkeys(row["alpha"] for row in runs)):
        for (what, rows), dashes in zip(curves.items(), ("-", ":"), strict=False):
            mine = [row for row in rows if row["alpha"] == alpha]
            steps = sorted(row["settled_steps"] for row in mine if row["settled_steps"] is not None)
            shares = [n / len(mine) for n in range(len(steps) + 1)]
            label = f"alpha {alpha:g}{what}"
            colour = figures.COLOURS[k]
            style: dict[str, Any] = {"color": colour, "linestyle": dashes, "label": label}
            plots[0].step([1, *steps, STEPS], [*shares, shares[-1]], where="post", **style)
        off = [r for r in runs if r["alpha"] == alpha and r["off_by"]]
        if off:
            spread, off_by = [r["spread"] for r in off], [r["off_by"] for r in off]
            plots[1].scatter(spread, off_by, s=10, color=figures.COLOURS[k], label=f"alpha {alpha:g}")
    plots[0].set(xscale="log", xlabel="steps", ylabel="networks within 1% from then on", ylim=(0, 1.02))
    plots[0].legend(fontsize="small")
    plots[1].set(xscale="log", yscale="log", xlabel="largest ratio of two optimal rates at one full link")
    plots[1].set(ylabel="worst error in the last 100 steps", title="limit cycles, beta 0.5")
    if plots[1].collections:
        plots[1].legend()
    return figure
