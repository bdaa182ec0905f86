"""The evaluation in the abstract of the PERC thesis: rounds of Fair and of s-PERC over random routing matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subak.papers.perc import setups
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, largest, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure


P = (3, 5, 10, 20, 40)
COLUMNS = ["P", "setups", "fair_rounds_max", "s_perc_rounds_max", "ratio_p5_p50_p95_max", "bound_over_rounds_min"]
NOTE = (
    "Rounds are counted from one round after the last start. The largest ratios are of setups that Fair had all but "
    "finished by then."
)


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Both schemes on each random setup. ``mixed``: 1 for capacities of 1 to 100 Gb/s instead of 10 Gb/s."""
    mixed = Settings(settings, "mixed").number("mixed", 0, 0, 1) > 0
    jobs = [(P[k % len(P)], seed + k) for k in range(max(runs, 1))]

    def both(job: tuple[int, int]) -> tuple[setups.Outcome, setups.Outcome]:
        hops, of = job
        setup, plan = setups.draw(100, 100, hops, of, mixed=mixed), setups.Plan(of)
        return setups.run(setup, "fair", plan), setups.run(setup, "s-perc", plan)

    taken = computed.Jobs(len(jobs), progress).each(jobs, both)
    ratios = [stateless.rounds / fair.rounds for fair, stateless in taken]
    under = [stateless.bound / stateless.rounds for _, stateless in taken]
    rows = []
    for hops in P:
        mine = [k for k, job in enumerate(jobs) if job[0] == hops]
        quantiles = [quantile((ratios[k] for k in mine), q) for q in (0.05, 0.5, 0.95, 1.0)]
        most = [largest(taken[k][scheme].rounds for k in mine) for scheme in (0, 1)]
        rows.append([hops, len(mine), *most, quantiles, min((under[k] for k in mine), default=None)])
    lows = [0.5 + 0.1 * k for k in range(30)]
    values: dict[str, Any] = {key: computed.sample(key, "setups", ratios) for key in ("median", "p5", "p95", "p99")}
    values |= {
        "max": largest(ratios),
        "under_bound": min(under),
        "twice_under": computed.share("setups", sum(one >= 2 for one in under), len(taken)),
        "exact": computed.share("setups", sum(a.converged and b.converged for a, b in taken), len(taken)),
    }
    points = [[low, sum(low <= one < low + 0.1 for one in ratios)] for low in lows]
    told = "1 to 100 Gb/s" if mixed else "10 Gb/s"
    return {
        "setup": {"links_and_flows": f"J = K = 100, {told}, 10 us a link"},
        "tables": {"rounds": {"columns": COLUMNS, "rows": rows}},
        "series": {"ratio": {"columns": ["from", "setups"], "points": points}},
        "values": values,
        "notes": [NOTE],
    }


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
