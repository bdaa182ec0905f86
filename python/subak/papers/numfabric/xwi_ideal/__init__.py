"""NUMFabric's optimizer xWI over the ideal transport (exact weighted max-min in each step), on random networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 10_000
DIMINISHING = "a share of the new price that diminishes"


ALPHAS = (0.5, 1.0, 2.0, 4.0)
END = 100
"""Number of last steps in which rates must stay within the tolerance."""
SETTLED = 1000
"""Number of steps within 1% after which a run with diminishing average counts as converged."""
COLUMNS = ["alpha", "network", "settled_steps", "touched_steps", "exact_steps", "off_by", "period", "spread"]


@dataclass(frozen=True)
class _Law:
    """Parameters of the price update, and of the networks."""

    beta: float
    eta: float
    diminishing: bool
    equal: bool


@dataclass
class _Ran:
    """Result of a run: steps are ``None`` for what never came."""

    settled: int | None = None
    """First step from which the largest error stays within 1% to the end."""
    touched: int | None = None
    """First step with the largest error within 1%."""
    exact: int | None = None
    """First step with the largest error within a millionth."""
    off_by: float | None = None
    """For a run that does not converge: largest relative error in the last ``END`` steps."""
    period: int | None = None
    """For a run that does not converge: period of the cycle, steps."""
    spread: float = 1.0
    """Largest ratio of the optimal rates of two flows on one saturated link."""


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Runs xWI on random networks of 20 to 200 links of 10 to 100 Gb/s, with 50 to 500 flows over 1 to 6 links.

    ``beta`` and ``eta`` of the price update; ``diminishing``: 1 if the weight of the new price diminishes; ``equal``: 1
    if all links have 10 Gb/s.
    """
    given = Settings(settings, "beta", "eta", "diminishing", "equal")
    law = _Law(
        given.number("beta", 0.5, 0, 0.999),
        given.number("eta", 5, 0, 1e3),
        given.number("diminishing", 0, 0, 1) > 0,
        given.number("equal", 0, 0, 1) > 0,
    )
    runs = max(runs, 1)
    jobs = [(alpha, seed + k) for alpha in ALPHAS for k in range(runs)]
    ran = computed.Jobs(len(jobs), progress).each(jobs, lambda job: _run(*job, law))
    values: dict[str, Any] = {}
    for k, alpha in enumerate(ALPHAS):
        _tell(values, alpha, ran[k * runs : (k + 1) * runs])
    rows = [
        [*job, one.settled, one.touched, one.exact, one.off_by, one.period, one.spread]
        for job, one in zip(jobs, ran, strict=True)
    ]
    notes = [f"Limit cycles at alpha {alpha:g}: {_unsettled(jobs, ran, alpha)}." for alpha in (2.0, 4.0)]
    return {
        "setup": {"networks": runs},
        "tables": {"runs": {"columns": COLUMNS, "rows": rows}},
        "values": values,
        "notes": notes,
    }


def draw_network(seed: int, equal: bool) -> tuple[subak.Network, list[list[int]]]:
    """A random network, of 10 Gb/s everywhere if ``equal``, and the paths of its flows, by link."""
    stream = subak.Stream(seed, "xwi networks")
    links, flows = 20 + stream.below(181), 50 + stream.below(451)
    mixed = [(10e9, 25e9, 40e9, 100e9)[stream.below(4)] for _ in range(links)]
    network = subak.Network.from_links(
        [{"id": f"l{k}", "capacity": 10e9 if equal else capacity} for k, capacity in enumerate(mixed)]
    )
    paths = []
    for _ in range(flows):
        path: list[int] = []
        hops = 1 + stream.below(6)
        while len(path) < hops:
            link = stream.below(links)
            if link not in path:
                path.append(link)
        paths.append(path)
    return network, paths


def worst(got: Any, want: Any) -> float:
    """Largest relative error of a rate."""
    return float(np.max(np.abs(got / want - 1.0)))


def _run(alpha: float, seed: int, law: _Law) -> _Ran:
    network, paths = draw_network(seed, law.equal)
    lengths, flat = [len(path) for path in paths], np.array([link for path in paths for link in path])
    flows, policy = subak.Rows(np.cumsum([0, *lengths]), flat), {"kind": "alpha-fair", "alpha": alpha}
    answer = subak.solve(network, flows=flows, policy=policy, tolerance=1e-10)
    want, prices = answer.flows.to_numpy()["rate_bps"], answer.links.to_numpy()["price"]
    after = 100.0 if law.diminishing else math.inf
    xwi = subak.Xwi(network, flows=flows, policy=policy, beta=law.beta, eta=law.eta, diminish_after=after)
    ran = _Ran(spread=spread(flat, np.repeat(want, lengths), prices))
    recent: list[Any] = []
    off_by = 0.0
    while xwi.iterations < STEPS and ran.exact is None:
        if law.diminishing and ran.settled is not None and xwi.iterations >= ran.settled + SETTLED:
            break
        xwi.step()
        rates, step = xwi.rates, xwi.iterations
        error = worst(rates, want)
        if error <= 0.01:
            ran.touched = ran.touched or step
            ran.settled = ran.settled or step
        else:
            ran.settled = None
        ran.exact = step if error <= 1e-6 else None
        if step + END > STEPS:
            off_by = max(off_by, error)
            recent.append(rates)
    if off_by > 0.01:
        ran.settled, ran.off_by = None, off_by
        *before, now = recent
        ran.period = next((k for k, rates in enumerate(reversed(before), 1) if worst(rates, now) < 1e-9), None)
    return ran


def spread(links: Any, rates_bps: Any, prices: Any) -> float:
    """Largest ratio of two optimal rates on one link with a positive price."""
    least, most = np.full(len(prices), math.inf), np.zeros(len(prices))
    np.minimum.at(least, links, rates_bps)
    np.maximum.at(most, links, rates_bps)
    return float(np.max((most / least)[prices > 0], initial=1.0))


def _tell(values: dict[str, Any], alpha: float, ran: list[_Ran]) -> None:
    """The fraction of networks with this ``alpha`` that converged to within 1%, and the number of steps."""
    settled = [one.settled for one in ran]
    hits = {
        "in 500": sum(s is not None and s <= 500 for s in settled),
        "for good": sum(s is not None for s in settled),
        "once": sum(one.touched is not None for one in ran),
        "exact": sum(one.exact is not None for one in ran),
    }
    for what, count in hits.items():
        values[f"{what} {alpha:g}"] = computed.share("networks", count, len(ran))
    steps = [math.inf if s is None else s for s in settled]
    values[f"steps {alpha:g}"] = computed.sample("median", "networks", steps)
    for what, wanted in (("spread settled", True), ("spread not settled", False)):
        spreads = [one.spread for one in ran if (one.settled is not None) == wanted]
        values[f"{what} {alpha:g}"] = computed.sample("median", "networks", spreads)


def _unsettled(jobs: list[tuple[float, int]], ran: list[_Ran], alpha: float) -> str:
    """The networks with this ``alpha`` that did not converge, the first of them, and their errors."""
    pairs = zip(jobs, ran, strict=True)
    cycles = [(job[1], one) for job, one in pairs if job[0] == alpha and one.settled is None]
    named = [
        f"{network} (off by {100 * (one.off_by or math.nan):.0f}%{f', period {one.period}' if one.period else ''})"
        for network, one in cycles[:10]
    ]
    more = "; the others stand in raw.json" if len(cycles) > len(named) else ""
    return f"{len(cycles)} networks never settle: {', '.join(named)}{more}"


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
