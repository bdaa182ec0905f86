"""Figure 3.5 of the PERC thesis: rounds to convergence on random setups, and the setup on which n-PERC took longest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from subak.papers.perc import setups
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, largest, quantile, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


P = (3, 5, 8, 10, 20, 40, 50, 80)
COLUMNS = ["weights", "P", "setups", "rounds_median", "rounds_max", "rounds_a_level_max"]
NOTES = [
    "n-PERC's worst depends on how many setups are drawn and on the order of their packets: the thesis saw 60 rounds "
    "in thousands of setups.",
    "A round is one constant no shorter than the longest round trip. Converged is the last update that differs from "
    "max-min by more than a relative 1e-9, counted from one round after flows and links' timers are stable. Ties count "
    "as equal within 1e-9.",
]


@dataclass(frozen=True)
class _Job:
    """One setup under one scheme."""

    scheme: str
    size: int
    hops: int
    mixed: bool
    heaviest: int
    forward_only: bool
    seed: int

    def take(self) -> setups.Outcome:
        drawn = setups.draw(self.size, self.size, self.hops, self.seed, mixed=self.mixed, heaviest=self.heaviest)
        params = {"reverse": False} if self.forward_only else {}
        return setups.run(drawn, self.scheme, setups.Plan(self.seed, params=params))


def _jobs(count: int, large: int, seed: int) -> list[_Job]:
    """Setups that alternate P, equal and mixed capacities, updates in both directions or forward only, and weights."""
    jobs = []
    for k in range(count):
        turn = k // len(P)
        # Large setups alternate P too, so that few of them have the longest paths: these cost a hundred times the
        # others.
        size, hops = large if k % 24 == 23 else 100, P[(k + k // 24) % len(P)]
        heaviest = (1, 1, 16, 1000)[turn // 2 % 4]
        jobs.append(_Job("s-perc", size, hops, turn % 2 == 1, heaviest, turn % 3 == 0, seed + k))
    return jobs


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Random setups under s-PERC and Fair, and under n-PERC and s-PERC.

    ``large``: number of links and of flows in the large setups; ``n_perc``: number of setups under n-PERC; ``every``:
    the plot shows one in this many updates.
    """
    given, count = Settings(settings, "large", "n_perc", "every"), max(runs, 1)
    large = given.count("large", 1000, 1000)
    slow = given.count("n_perc", min(max(-(-count // 8), 4), 300), 100_000)
    every = given.count("every", 4, 1000)
    jobs = _jobs(count, large, seed)
    fair = [replace(job, scheme="fair") for job in jobs[::4]]
    seeds = [seed + k for k in range(slow)]
    all_of = computed.Jobs(len(jobs) + len(fair) + len(seeds), progress)
    values: dict[str, Any] = {}
    tables = {"s-perc": _told(values, jobs, all_of.each(jobs, _Job.take))}
    tables["fair"] = _told(values, fair, all_of.each(fair, _Job.take))
    tables["n-perc"], series = _n_perc(values, seeds, all_of, every)
    setup = {"links_and_flows": f"J = K = 100; every 24th setup J = K = {large}", "hops": P}
    return {
        "setup": setup | {"round": "the longest round trip"},
        "tables": tables,
        "series": series,
        "values": values,
        "notes": NOTES,
    }


def _told(values: dict[str, Any], jobs: list[_Job], taken: list[setups.Outcome]) -> dict[str, Any]:
    scheme, rows = jobs[0].scheme, []
    # The bound is 6 rounds for each level of s-PERC, 4 for each of Fair's.
    a_level = {"s-perc": 6, "fair": 4}[scheme]
    for kind, weighted in (("unweighted", False), ("weighted", True)):
        chosen = [(job, one) for job, one in zip(jobs, taken, strict=True) if (job.heaviest > 1) == weighted]
        within = sum(one.converged and one.rounds <= one.bound for _, one in chosen)
        values[f"{scheme}_{kind}_within"] = share("setups", within, len(chosen))
        values[f"{scheme}_{kind}_share_of_bound"] = largest(one.rounds / one.bound for _, one in chosen)
        for hops in P:
            mine = [one for job, one in chosen if job.hops == hops]
            if mine:
                rounds = [one.rounds for one in mine]
                worst = largest(one.rounds / max(round(one.bound / a_level), 1) for one in mine)
                rows.append([kind, hops, len(mine), quantile(rounds, 0.5), largest(rounds), worst])
    return {"columns": COLUMNS, "rows": rows}


def _slow(seed: int) -> setups.Setup:
    return setups.draw(100, 100, 80, seed)


def _n_perc(
    values: dict[str, Any], seeds: list[int], jobs: computed.Jobs, every: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """n-PERC and s-PERC on the same setups with P = 80 and staggered starts."""

    def both(seed: int) -> tuple[setups.Outcome, setups.Outcome]:
        setup, plan = _slow(seed), setups.Plan(seed, stagger=2.0)
        return setups.run(setup, "n-perc", plan), setups.run(setup, "s-perc", plan)

    pairs = jobs.each(seeds, both)
    naive, stateless = ([pair[k].rounds for pair in pairs] for k in (0, 1))
    far = sum(a > 3 * b for a, b in zip(naive, stateless, strict=True))
    values |= {
        "n_perc_over_3_times": share("setups", far, len(pairs)),
        "n_perc_median": computed.sample("median", "setups", naive),
        "n_perc_max": largest(naive),
        "s_perc_max": largest(stateless),
        "worst_over_worst": largest(naive) / largest(stateless),
        "n_perc_not_in_600": sum(not pair[0].converged for pair in pairs),
    }
    rows = [
        [seed, slow.converged, slow.rounds, fast.rounds, round(fast.bound / 6)]
        for seed, (slow, fast) in zip(seeds, pairs, strict=True)
    ]
    columns = ["seed", "n_perc_converged", "n_perc_rounds", "s_perc_rounds", "w2"]
    worst = max(range(len(pairs)), key=lambda k: (naive[k], k))
    series = {f"worst setup under {scheme}": _picture(seeds[worst], scheme, every) for scheme in ("n-perc", "s-perc")}
    return {"columns": columns, "rows": rows}, series


def _picture(seed: int, scheme: str, every: int) -> dict[str, Any]:
    """At each bottleneck: fair-share rates (C - SumE) / NumB and MaxE over time, Gb/s; -1 where NumB is 0."""
    setup = _slow(seed)
    outcome = setups.run(setup, scheme, setups.Plan(seed, stagger=2.0, record=["updates"]))
    links = []
    for link, row in enumerate(setup.structure(2).links):
        if row["removed_in"] is None:
            continue
        points = []
        for update in [one for one in outcome.updates if one["link"] == link][::every]:
            num_b, sum_e, max_e = (update.get(name) or 0.0 for name in ("NumB", "SumE", "MaxE"))
            rate = (row["capacity_bps"] - sum_e) / num_b / 1e9 if num_b > 0 else -1.0
            points.append([outcome.at(float(update["time_ns"])), rate, max_e / 1e9])
        told = {"link": link, "level": row["removed_in"], "ideal_gbps": row["level_bps"] / 1e9}
        links.append(told | {"columns": ["round", "fair_share_gbps", "MaxE_gbps"], "points": points})
    return {"seed": seed, "rounds": outcome.rounds, "links": links}


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
