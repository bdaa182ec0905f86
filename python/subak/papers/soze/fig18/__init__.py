"""Figures 18b to 18d of Soze: two flows, one of which gets more weight or more connections in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.soze import series
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = {"weights": ("soze", "soze-virtual"), "connections": ("soze", "soze-virtual", "hpcc")}
STEP_NS = {"weights": 2_000_000, "connections": 5_000_000}
SHARE = {"soze": 1.0, "soze-virtual": 0.98, "hpcc": 0.95}
"""Fraction of a link that each scheme allocates."""
WEIGHTS = (1.0, 1.05, 1.155, 1.386, 1.9404, 3.49272)
"""Weights of flow 0 in successive steps of the run with weights."""
RTT_NS = 4_200
"""Base RTT, ns."""
LATE = 0.5
"""Fraction at the end of a step that is evaluated: rates converge before."""


def _rates(raw: RawResults, run: str, scheme: str, column: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, ns, and rates of flow 0 (all its connections) and of flow 1, Gb/s."""
    frame = raw.simulated(run).table("rate", ["scheme", "seed", "flow", "time_ns", column]).to_pandas()
    mine = (
        frame[(frame["scheme"] == scheme) & (frame["seed"] == seed)]
        .pivot(index="time_ns", columns="flow", values=column)
        .fillna(0)
    )
    rates = mine.to_numpy(dtype=float) / 1e9
    return mine.index.to_numpy(dtype=float), np.column_stack([rates[:, :-1].sum(axis=1), rates[:, -1]])


def _aims(run: str, step: int) -> np.ndarray:
    """Target fractions of the link of the two flows."""
    weight = WEIGHTS[step] if run == "weights" else step + 1.0
    return np.array([weight, 1.0]) / (weight + 1)


def _steps(run: str, times: np.ndarray) -> int:
    return max(1, round(float(times[-1]) / STEP_NS[run]))


def _inside(run: str, times: np.ndarray, step: int, part: float) -> np.ndarray:
    """The last ``part`` of a step, without the sample at its end, which belongs to the next step."""
    begin, end = step * STEP_NS[run], min((step + 1) * STEP_NS[run], times[-1])
    return np.asarray((times > end - part * (end - begin)) & (times < end))


def _rtt_ns(raw: RawResults, run: str, scheme: str, seed: int) -> float:
    """Base RTT plus the mean queueing delay before the receiver, ns."""
    frame = raw.simulated(run).table("queue", ["scheme", "seed", "link", "queued_bytes"]).to_pandas()
    mine = frame[(frame["scheme"] == scheme) & (frame["seed"] == seed) & (frame["link"] == "switch0->h2")]
    return RTT_NS + float(mine["queued_bytes"].mean()) * 8 / 100


def _settled(raw: RawResults, run: str, scheme: str, seed: int) -> list[float | None]:
    """RTTs from each change until averages over ten base RTTs stay within 3% of the final rate to the step's end."""
    times, rates = _rates(raw, run, scheme, "assigned_bps", seed)
    rtt_ns = _rtt_ns(raw, run, scheme, seed)
    every = times[1] - times[0]
    over = max(1, round(10 * RTT_NS / every))
    found: list[float | None] = []
    for step in range(_steps(run, times)):
        mine = rates[_inside(run, times, step, 1.0)]
        sums = np.cumsum(np.vstack([np.zeros(2), mine]), axis=0)
        means = (sums[over:] - sums[:-over]) / over
        off = np.abs(means / (SHARE[scheme] * 100 * _aims(run, step)) - 1).max(axis=1) > 0.03
        last = np.flatnonzero(off)
        never = len(off) == 0 or bool(off[-1])
        found.append(None if never else float((0 if len(last) == 0 else last[-1] + 1) * every / rtt_ns))
    return found


def measure(raw: RawResults) -> dict[str, Value]:
    """Deviations from the target shares, oscillations, and RTTs, over runs with slightly shifted starts."""
    return series.over_runs(raw, lambda seed: _measure(raw, seed))


def _measure(raw: RawResults, seed: int) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for run, schemes in RUNS.items():
        for scheme in schemes:
            times, rates = _rates(raw, run, scheme, "rate_bps", seed)
            off, swing, used = [], [], []
            for step in range(_steps(run, times)):
                late = rates[_inside(run, times, step, LATE)]
                mean = late.mean(axis=0)
                off.append(float(np.abs(mean / mean.sum() / _aims(run, step) - 1).max()))
                swing.append(float((late.std(axis=0) / mean).max()))
                used.append(float(mean.sum()))
            key = f"{scheme} {run}"
            values[f"{key} off"] = round(100 * max(off), 3)
            values[f"{key} swing"] = round(100 * float(np.mean(swing)), 3)
            values[f"{key} used"] = round(float(np.mean(used)), 2)
            if scheme != "hpcc":
                rtts = _settled(raw, run, scheme, seed)
                values[f"{key} rtts"] = ", ".join("never" if r is None else f"{r:.0f}" for r in rtts)
                later = [500.0 if r is None else r for r in rtts[1:]]
                values[f"{key} mean rtts"] = round(float(np.mean(later)), 1) if later else 0
    for scheme in ("soze", "soze-virtual"):
        for what in ("off", "swing"):
            mine, other = (values[f"{one} connections {what}"] for one in (scheme, "hpcc"))
            values[f"{scheme} {what} over hpcc"] = round(float(mine) / float(other), 4)
    return values


def draw(raw: RawResults) -> Figure:
    """Received rates of the two flows, and their target shares."""
    figure, plots = figures.axes(rows=2, columns=3, width=4, height=2.6)
    for row, (run, schemes) in enumerate(RUNS.items()):
        for k, scheme in enumerate(schemes):
            plot = plots[3 * row + k]
            times, rates = _rates(raw, run, scheme, "rate_bps", raw.plan.seed)
            for flow in range(2):
                colour = figures.COLOURS[flow]
                plot.plot(times / 1e6, rates[:, flow], color=colour, linestyle="-", linewidth=0.6, label=f"flow {flow}")
                for step in range(_steps(run, times)):
                    begin, end = step * STEP_NS[run] / 1e6, (step + 1) * STEP_NS[run] / 1e6
                    aim = SHARE[scheme] * 100 * _aims(run, step)[flow]
                    plot.hlines(aim, begin, end, color=colour, linestyle=":", linewidth=1.3)
            plot.set(title=f"{scheme}, {run}", xlabel="ms", ylim=(0, 100))
    plots[5 - 3].axis("off")
    plots[0].set_ylabel("Gb/s; dotted: asked for")
    plots[3].set_ylabel("Gb/s")
    plots[0].legend(fontsize="small")
    return figure
