"""When xWI converges: the averaging weight beta against the gain of the links' price updates, on random networks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.papers.numfabric import xwi_ideal
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHAS = (1.0, 2.0, 4.0)
LOOPS = (2.0, 8.0, 32.0)
"""Values of 1 - beta times the median gain. Those with a beta below 0 are left out."""
STEPS = 2500
"""Steps with beta 0.9 and less. A larger beta has more, by the smaller share of the new price."""
SETTLED = 500
"""Steps within 1% after which a run counts as converged, likewise."""
EXACT = 1e-6
"""Largest error with which it counts as converged at once."""
FULL = 1e-9
"""Price, relative to the largest one, above which a link counts as full."""
COLUMNS = ["alpha", "network", "median_gain", "largest_gain", "spread", "loop", "beta", "settled_steps", "off_by"]


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Runs xWI on a random network of numfabric-xwi-ideal a run, with a beta for each value of ``LOOPS``.

    Alphas take turns: each network has one.
    """
    Settings(settings)
    jobs = [(ALPHAS[k % len(ALPHAS)], seed + k) for k in range(max(runs, 1))]
    found = computed.Jobs(len(jobs), progress).each(jobs, lambda job: _run(*job))
    rows = [row for rows in found for row in rows]
    values: dict[str, Any] = {}
    for loop in LOOPS:
        mine = [row for row in rows if row[COLUMNS.index("loop")] == loop]
        _tell(values, f"loop {loop:g}", mine)
        for alpha in ALPHAS:
            _tell(values, f"loop {loop:g} alpha {alpha:g}", [row for row in mine if row[0] == alpha])
    for alpha in ALPHAS:
        gains = {row[1]: row[2:4] for row in rows if row[0] == alpha}
        for what, column in (("median", 0), ("largest", 1)):
            values[f"{what} gain {alpha:g}"] = computed.sample(
                "median", "networks", [g[column] for g in gains.values()]
            )
    return {"setup": {"networks": runs}, "tables": {"runs": {"columns": COLUMNS, "rows": rows}}, "values": values}


def _tell(values: dict[str, Any], name: str, rows: list[list[Any]]) -> None:
    settled = [row[COLUMNS.index("settled_steps")] for row in rows]
    values[name] = computed.share("runs", sum(s is not None for s in settled), len(settled))
    values[f"steps {name}"] = computed.sample("median", "runs", [math.inf if s is None else s for s in settled])


def _run(alpha: float, seed: int) -> list[list[Any]]:
    """A row for each beta."""
    network, paths = xwi_ideal.draw_network(seed, equal=False)
    lengths, flat = [len(path) for path in paths], np.array([link for path in paths for link in path])
    flows, policy = subak.Rows(np.cumsum([0, *lengths]), flat), {"kind": "alpha-fair", "alpha": alpha}
    answer = subak.solve(network, flows=flows, policy=policy, tolerance=1e-10)
    want, prices = answer.flows.to_numpy()["rate_bps"], np.asarray(answer.links.to_numpy()["price"])
    gain = gains(flat, lengths, want, prices)
    spread = xwi_ideal.spread(flat, np.repeat(want, lengths), prices)
    rows = []
    for loop in LOOPS:
        beta = 1 - loop / float(np.median(gain))
        if beta >= 0:
            xwi = subak.Xwi(network, flows=flows, policy=policy, beta=beta)
            settled, off_by = _settle(xwi, want, max(1.0, 0.1 / (1 - beta)))
            rows.append([alpha, seed, float(np.median(gain)), float(gain.max()), spread, loop, beta, settled, off_by])
    return rows


def _settle(xwi: subak.Xwi, want: Any, slower: float) -> tuple[int | None, float]:
    """First step from which all rates are within 1% of ``want`` for good, or ``None``; and the last worst error."""
    settled, error = None, math.inf
    while xwi.iterations < slower * STEPS:
        xwi.step()
        error = xwi_ideal.worst(xwi.rates, want)
        settled = None if error > 0.01 else settled or xwi.iterations
        if error <= EXACT or (settled is not None and xwi.iterations >= settled + slower * SETTLED):
            break
    return settled, error


def gains(links: Any, lengths: list[int], rates_bps: Any, prices: Any) -> np.ndarray:
    """For each full link, the change of its excess demand by one step of beta 0, over that excess, at the optimum.

    ``links``: those of the flows' paths, one path after the other, of ``lengths`` links each. All links are taken to
    have the same excess, and of the flows' residuals each link to take the one with the largest price of a path.
    """
    flow = np.repeat(np.arange(len(lengths)), lengths)
    path_price = np.zeros(len(lengths))
    np.add.at(path_price, flow, prices[links])
    full = prices > FULL * prices.max()
    largest = np.zeros(len(prices))
    np.maximum.at(largest, links, (path_price / lengths)[flow])
    largest[~full] = 0
    moved = np.zeros(len(lengths))
    np.add.at(moved, flow, largest[links])
    load, change = np.zeros(len(prices)), np.zeros(len(prices))
    np.add.at(load, links, rates_bps[flow])
    np.add.at(change, links, (rates_bps * moved / path_price)[flow])
    return np.asarray((change / np.where(load > 0, load, 1))[full])


def draw(raw: RawResults) -> Figure:
    """Share of runs that converge, by the loop's gain with the median and with the largest gain of a link."""
    figure, [by_median, by_largest] = figures.axes(columns=2, width=5.5)
    rows = raw.rows("runs")
    for alpha, colour in zip(ALPHAS, figures.COLOURS, strict=False):
        mine = [row for row in rows if row["alpha"] == alpha]
        loops = [loop for loop in LOOPS if any(row["loop"] == loop for row in mine)]
        shares = [np.mean([r["settled_steps"] is not None for r in mine if r["loop"] == loop]) for loop in loops]
        by_median.plot(loops, shares, "-o", color=colour, label=f"alpha {alpha:g}")
        for settled, marker in ((True, "."), (False, "x")):
            of = [r for r in mine if (r["settled_steps"] is not None) == settled]
            x = [(1 - r["beta"]) * r["largest_gain"] for r in of]
            label = f"alpha {alpha:g}, {'converges' if settled else 'does not'}"
            by_largest.scatter(x, [r["loop"] for r in of], s=14, marker=marker, color=colour, alpha=0.5, label=label)
    by_median.axvline(2, color="grey", linestyle=":", label="2")
    by_median.set(xscale="log", xlabel="(1 - beta) times the median gain", ylabel="share of networks that converge")
    by_median.set(ylim=(0, 1.03))
    by_largest.set(xscale="log", yscale="log", xlabel="(1 - beta) times the largest gain")
    by_largest.set(ylabel="(1 - beta) times the median gain")
    by_median.set_xticks(LOOPS, [f"{loop:g}" for loop in LOOPS])
    by_largest.set_yticks(LOOPS, [f"{loop:g}" for loop in LOOPS])
    by_median.minorticks_off()
    by_largest.minorticks_off()
    for plot in (by_median, by_largest):
        plot.legend(fontsize="small")
    return figure
