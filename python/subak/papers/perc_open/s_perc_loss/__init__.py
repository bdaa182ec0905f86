"""s-PERC* after lost control packets, near its bound: rounds to exact rates by loss probability and by levels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from subak.papers.perc import setups
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, largest, quantile, rounded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure


SIZES = ((8, 16, 5), (10, 10, 6), (12, 30, 8), (16, 20, 8), (20, 40, 20), (30, 60, 15), (100, 100, 5), (100, 400, 8))
"""Links, flows, and links per flow. The small ones have few levels, where the bound is tight."""
PROBABILITIES = {"0.0001": 1e-4, "0.001": 1e-3, "0.01": 1e-2, "0.1": 1e-1}
RTO_ROUNDS = 2.0
STABLE_ROUNDS = 3.0
"""Rounds after a loss in which the flow starts again and its packet comes to every link: RTO_ctrl and one more."""
LEVELS = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4 to 6": (4, 6), "7 and more": (7, 10**9)}
COLUMNS = ["drop", "levels", "runs", "losses_median", "within", "eighth"]
COLUMNS += ["rounds_p50", "rounds_p95", "rounds_max", "share_p50", "share_p95", "share_max"]
OVER = ["drop", "links", "flows", "hops", "seed", "levels", "losses", "restart", "update", "rounds", "bound"]
NOTES = [
    "Runs without a loss do not count. At a probability of 0.0001 these are many of the small networks.",
    "Rates count as exact once no control packet has another one, at a link or on its way back to the source.",
]


class _Run:
    """One run: rounds from the last loss to the last rate that is not exact, and their bound of 6 W2."""

    def __init__(self, size: tuple[int, int, int], setup: setups.Setup, plan: setups.Plan) -> None:
        outcome = setups.run(setup, "s-perc-star", plan)
        self.size, self.drop, self.seed = size, plan.drop, plan.seed
        self.losses, self.rounds, self.bound = outcome.drops, outcome.after_drop, outcome.bound
        self.converged = outcome.converged
        self.levels = rounded(outcome.bound / 6)
        self.restart, self.update = 0.0, self.rounds
        if self.rounds > self.bound:
            self.restart, self.update = _traced(setups.run(setup, "s-perc-star", replace(plan, record=("updates",))))

    def within(self, rounds: float) -> bool:
        return self.converged and self.rounds <= rounds

    @property
    def share(self) -> float:
        return self.rounds / self.bound

    @property
    def row(self) -> list[Any]:
        head = [self.drop, *self.size, self.seed, self.levels, self.losses]
        return [*head, self.restart, self.update, self.rounds, self.bound]


def _traced(outcome: setups.Outcome) -> tuple[float, float]:
    """Rounds from the last loss to the last restart of a flow, and to the last update at a link that is not exact.

    A flow that had no update for a round starts again.
    """
    lost_ns = outcome.messages.last_drop_ns or 0
    exact = [float(row["exact_bps"]) for row in outcome.messages.flows.to_arrow().to_pylist()]
    restart_ns = wrong_ns = lost_ns
    before: dict[int, int] = {}
    for update in outcome.updates:
        flow, now_ns = update["flow"], update["time_ns"]
        if now_ns - before.get(flow, now_ns) > outcome.round_ns:
            restart_ns = max(restart_ns, now_ns)
        before[flow] = now_ns
        if abs(update["a"] - exact[flow]) > 1e-9 * exact[flow]:
            wrong_ns = max(wrong_ns, now_ns)
    return (restart_ns - lost_ns) / outcome.round_ns, (wrong_ns - lost_ns) / outcome.round_ns


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """A random network for each run, with each probability of a loss.

    ``rounds``: rounds in which packets are lost; ``rto``: RTO_ctrl in rounds; ``reverse``: 1 if links update packets in
    both directions.
    """
    given = Settings(settings, "rounds", "rto", "reverse")
    rounds, rto = given.number("rounds", 40, 1, 1e5), given.number("rto", RTO_ROUNDS, 0.1, 100)
    reverse = given.number("reverse", 0, 0, 1) > 0
    jobs = [(SIZES[k % len(SIZES)], drop, seed + k) for k in range(max(runs, 1)) for drop in PROBABILITIES.values()]

    def one(job: tuple[tuple[int, int, int], float, int]) -> _Run:
        size, drop, of = job
        drawn = setups.draw(*size, of)
        params = {"reverse": reverse, "rto": rto * drawn.rtt_ns * 1e-9}
        plan = setups.Plan(of, drop=drop, drop_rounds=rounds, params=params)
        return _Run(size, drawn, plan)

    taken = [one for one in computed.Jobs(len(jobs), progress).each(jobs, one) if one.losses]
    values: dict[str, Any] = {}
    rows = []
    for name, drop in PROBABILITIES.items():
        mine = [one for one in taken if one.drop == drop]
        values |= {f"{key}_{name}": value for key, value in _shares(mine).items()}
        values |= {f"share_p99_{name}": computed.sample("p99", "runs", [one.share for one in mine])}
        values |= {f"share_max_{name}": largest(one.share for one in mine)}
        rows += [_row(drop, levels, [one for one in mine if _at(levels, one)]) for levels in LEVELS]
    for levels in LEVELS:
        mine = [one for one in taken if _at(levels, one)]
        values |= {f"{key}_levels {levels}": value for key, value in _networks(mine).items()}
        values |= {f"rounds_max_levels {levels}": largest(one.rounds for one in mine)}
    over = sorted((one for one in taken if not one.within(one.bound)), key=lambda one: -one.share)
    values["over_rounds_max"] = largest(one.rounds - one.bound for one in over)
    values["over_levels_max"] = largest(one.levels for one in over)
    return {
        "setup": {"sizes": [list(size) for size in SIZES], "rto_rounds": rto, "lossy_rounds": rounds},
        "tables": {
            "levels": {"columns": COLUMNS, "rows": [row for row in rows if row[2]]},
            "over": {"columns": OVER, "rows": [one.row for one in over]},
        },
        "series": {f"share {levels}": _ecdf([one.share for one in taken if _at(levels, one)]) for levels in LEVELS},
        "values": values,
        "notes": NOTES,
    }


def _at(levels: str, one: _Run) -> bool:
    low, high = LEVELS[levels]
    return low <= one.levels <= high


def _shares(mine: list[_Run]) -> dict[str, Any]:
    """Shares of the runs that are exact at the end, within 6 W2 rounds of the last loss, and within some more."""
    return {
        "exact": computed.share("runs", sum(one.converged for one in mine), len(mine)),
        "within": computed.share("runs", sum(one.within(one.bound) for one in mine), len(mine)),
        "eighth": computed.share("runs", sum(one.within(1.125 * one.bound) for one in mine), len(mine)),
        "update": computed.share("runs", sum(one.converged and one.update <= one.bound for one in mine), len(mine)),
        "stable": computed.share("runs", sum(one.within(one.bound + STABLE_ROUNDS) for one in mine), len(mine)),
    }


def _networks(mine: list[_Run]) -> dict[str, Any]:
    """The same by network: with every probability."""
    networks: dict[int, list[_Run]] = {}
    for one in mine:
        networks.setdefault(one.seed, []).append(one)
    every = [all(one.within(one.bound) for one in some) for some in networks.values()]
    eighth = [all(one.within(1.125 * one.bound) for one in some) for some in networks.values()]
    return {
        "within": computed.share("networks", sum(every), len(every)),
        "eighth": computed.share("networks", sum(eighth), len(eighth)),
    }


def _row(drop: float, levels: str, mine: list[_Run]) -> list[Any]:
    def quantiles(data: Iterable[float]) -> list[float]:
        ordered = sorted(data)
        return [quantile(ordered, q) for q in (0.5, 0.95, 1.0)]

    within = sum(one.within(one.bound) for one in mine)
    eighth = sum(one.within(1.125 * one.bound) for one in mine)
    losses = quantile((float(one.losses) for one in mine), 0.5)
    rounds, shares = quantiles(one.rounds for one in mine), quantiles(one.share for one in mine)
    return [drop, levels, len(mine), losses, within, eighth, *rounds, *shares]


def _ecdf(data: list[float]) -> dict[str, Any]:
    """The quantiles of the data at each half percent."""
    ordered = sorted(data)
    points = [[quantile(ordered, k / 200), k / 200] for k in range(201)] if ordered else []
    return {"columns": ["share_of_bound", "runs"], "points": points}


def draw(raw: RawResults) -> Figure:
    """Rounds from the last loss as a share of 6 W2, by levels; and the slowest run of each probability."""
    figure, plots = figures.axes(columns=2, width=5)
    for levels in LEVELS:
        points = raw.report["series"][f"share {levels}"]["points"]
        if points:
            plots[0].plot([x for x, _ in points], [y for _, y in points], label=f"W2 = {levels}")
    plots[0].axvline(1, color="black", linewidth=0.8)
    plots[0].axvline(1.125, color="black", linewidth=0.8, linestyle=":")
    plots[0].set(xlabel="rounds from the last loss / 6 W2", ylabel="runs", xlim=(0, 1.7), ylim=(0, 1))
    plots[0].legend(fontsize=8, loc="lower right")
    rows = raw.rows("levels")
    for levels in LEVELS:
        mine = [row for row in rows if row["levels"] == levels]
        plots[1].plot([row["drop"] for row in mine], [row["rounds_max"] for row in mine], marker="o", label=levels)
    plots[1].set_xscale("log")
    plots[1].set(xlabel="probability of a loss at each link", ylabel="rounds from the last loss, slowest run")
    plots[1].set_ylim(bottom=0)
    plots[1].legend(fontsize=8, title="W2", title_fontsize=8)
    return figure
