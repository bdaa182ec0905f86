"""Soze on real hosts: weighted shares over one and two links, a bottleneck that moves, and a flow that starts later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = {"soze": 1.0, "soze-virtual": 0.98}
"""Fraction of a link that each scheme allocates."""
OFF = 0.15
USED = 0.9
MS = 1_000_000
GOALS_MBPS: dict[str, list[list[float]]] = {
    "one": [[75, 25]],
    "two": [[25, 75, 75]],
    "moves": [[30, 70, 30], [100 / 6, 500 / 6, 60 - 100 / 6]],
}
"""Weighted max-min rates of each phase of a spec, Mb/s."""
LINKS_MBPS: dict[str, list[tuple[list[int], float]]] = {
    "one": [([0, 1], 100)],
    "two": [([0, 1], 100), ([0, 2], 100)],
    "moves": [([0, 1], 100)],
}
"""Links that are saturated in every phase: flows over the link, and its rate, Mb/s."""
JOINS_NS, BAND, OVER = 2000 * MS, 0.15, 5


def _runs(raw: RawResults, spec: str, scheme: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each run its times, ns, and rates received, Mb/s, one column per flow."""
    frame = raw.simulated(spec).table("rate", ["scheme", "seed", "flow", "time_ns", "rate_bps"]).to_pandas()
    mine = frame[frame["scheme"] == scheme]
    found = []
    for _, run in mine.groupby("seed"):
        rates = run.pivot(index="time_ns", columns="flow", values="rate_bps")
        found.append((rates.index.to_numpy(dtype=float), rates.to_numpy(dtype=float) / 1e6))
    return found


def _phases(times: np.ndarray, rates: np.ndarray, count: int) -> list[np.ndarray]:
    """Mean rates in the second half of each phase."""
    length = times[-1] / count
    means = []
    for phase in range(count):
        late = (times > (phase + 0.5) * length) & (times <= (phase + 1) * length)
        means.append(rates[late].mean(axis=0))
    return means


def _holds(spec: str, scheme: str, phases: list[np.ndarray]) -> bool:
    """Whether every rate is near its goal, and the saturated links are utilized."""
    share = SHARES[scheme]
    near = all(
        np.abs(mean / (share * np.array(goal)) - 1).max() <= OFF
        for mean, goal in zip(phases, GOALS_MBPS[spec], strict=True)
    )
    used = all(mean[flows].sum() >= USED * rate for mean in phases for flows, rate in LINKS_MBPS[spec])
    return bool(near and used)


def _settled_ms(times: np.ndarray, rates: np.ndarray) -> float:
    """Time from the new flow's start until both averaged rates are near their final values, ms."""
    after = times > JOINS_NS
    at, mine = times[after], np.nan_to_num(rates[after])
    smooth = np.array([np.convolve(column, np.ones(OVER) / OVER, mode="valid") for column in mine.T]).T
    at = at[OVER - 1 :]
    final = mine[len(mine) // 2 :].mean(axis=0)
    off = np.abs(smooth / final - 1).max(axis=1) > BAND
    last = np.flatnonzero(off)
    if len(last) == 0:
        return float((at[0] - JOINS_NS) / MS)
    return float((at[min(last[-1] + 1, len(at) - 1)] - JOINS_NS) / MS)


def measure(raw: RawResults) -> dict[str, Value]:
    """Runs that meet the goals (percent), ratios of rates, utilization, and convergence time after a new flow."""
    values: dict[str, Value] = {}
    for scheme in SHARES:
        for spec, goals in GOALS_MBPS.items():
            runs = [_phases(times, rates, len(goals)) for times, rates in _runs(raw, spec, scheme)]
            holds = [_holds(spec, scheme, phases) for phases in runs]
            values[f"{spec} {scheme} runs"] = round(100 * sum(holds) / len(holds), 1)
            for phase in range(len(goals)):
                means = np.array([phases[phase] for phases in runs])
                shown = ", ".join(f"{rate:.1f}" for rate in means.mean(axis=0))
                values[f"{spec} {scheme} rates {phase + 1}"] = shown
            worst = [
                100 * max(np.abs(m / (SHARES[scheme] * np.array(g)) - 1).max() for m, g in zip(p, goals, strict=True))
                for p in runs
            ]
            values[f"{spec} {scheme} off"] = stats.estimate(worst, "mean", "runs")
            if spec == "one":
                ratios = [float(phases[0][0] / phases[0][1]) for phases in runs]
                values[f"one {scheme} twice"] = round(100 * float(np.mean([r > 2 for r in ratios])), 1)
                values[f"one {scheme} ratio"] = stats.estimate(ratios, "mean", "runs")
        settled = [_settled_ms(times, rates) for times, rates in _runs(raw, "joins", scheme)]
        values[f"joins {scheme} ms"] = stats.estimate(settled, "mean", "runs")
    return values


def draw(raw: RawResults) -> Figure:
    """Received rates of the first run, and the weighted max-min rates."""
    figure, plots = figures.axes(rows=2, columns=4, width=3.4, height=2.4)
    for row, scheme in enumerate(SHARES):
        for column, spec in enumerate((*GOALS_MBPS, "joins")):
            plot = plots[4 * row + column]
            times, rates = _runs(raw, spec, scheme)[0]
            for flow in range(rates.shape[1]):
                colour = figures.COLOURS[flow]
                plot.plot(times / 1e9, rates[:, flow], color=colour, linestyle="-", linewidth=0.7)
                goals = GOALS_MBPS.get(spec, [[100, 0], [25, 75]])
                for phase, goal in enumerate(goals):
                    length = times[-1] / 1e9 / len(goals)
                    level = goal[flow] * SHARES[scheme]
                    plot.hlines(level, phase * length, (phase + 1) * length, color=colour, linestyle=":", linewidth=1.2)
            plot.set(title=f"{scheme}: {spec}", ylim=(0, 105))
            if row == 1:
                plot.set_xlabel("s")
    plots[0].set_ylabel("Mb/s; dotted: exact")
    plots[4].set_ylabel("Mb/s; dotted: exact")
    return figure
