"""Figure 17 of Soze: rates of six flows over two switches while one flow's weight grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.papers.soze import series
from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP_NS, LAST_NS = 10_000_000, 5_000_000
RTT_NS = 30_000
"""RTT in the paper, with queueing, ns: section 5.3.4 has "0.3 milliseconds, which is around 10 RTTs"."""
AVERAGE_NS = 160_000
"""Averaging time of rates, ns: ten base RTTs."""
SHARES = {"soze": 1.0, "soze-virtual": 0.98, "wrr": 1.0}
"""Fraction of a link that each scheme allocates."""


def _exact_gbps(weight: float) -> np.ndarray:
    """Weighted max-min rates of flows 1 to 6, Gb/s."""
    through = min(100 / 5, 100 / (weight + 3))
    return np.array([100 - 3 * through, *[through] * 3, *[(100 - 3 * through) / 2] * 2])


def _steps(times: np.ndarray) -> int:
    return max(1, round(float(times[-1]) / STEP_NS))


def _off(raw: RawResults, scheme: str, seed: int) -> tuple[float, float, float]:
    """Largest error of a flow's rate over all steps, sum of rates over the exact sum, and flow 1's last rate."""
    times, rates = series.rates_gbps(raw, scheme, "rate_bps", seed)
    worst, used, last = 0.0, [], 0.0
    for step in range(_steps(times)):
        end = (step + 1) * STEP_NS
        mean = rates[(times > end - LAST_NS) & (times <= end)].mean(axis=0)
        exact = _exact_gbps(step + 1)
        worst = max(worst, float(np.abs(mean / (SHARES[scheme] * exact) - 1).max()))
        used.append(mean.sum() / exact.sum())
        last = float(mean[0])
    return 100 * worst, 100 * float(np.mean(used)), last


def _settled_rtts(raw: RawResults, scheme: str, seed: int) -> list[float | None]:
    """RTTs from each change until the following averages are near the final rate; ``None`` without convergence."""
    times, rates = series.rates_gbps(raw, scheme, "assigned_bps", seed)
    every = times[1] - times[0]
    over = max(1, round(AVERAGE_NS / every))
    found: list[float | None] = []
    for step in range(_steps(times)):
        begin, end = step * STEP_NS, min((step + 1) * STEP_NS, times[-1])
        # The sample at the end of a step belongs to the next weight.
        mine = rates[(times > begin) & (times < end)]
        sums = np.cumsum(np.vstack([np.zeros(mine.shape[1]), mine]), axis=0)
        means = (sums[over:] - sums[:-over]) / over
        off = np.abs(means / (SHARES[scheme] * _exact_gbps(step + 1)) - 1).max(axis=1) > 0.03
        last = np.flatnonzero(off)
        if len(off) == 0 or off[-1]:
            found.append(None)
        else:
            found.append(float((0 if len(last) == 0 else last[-1] + 1) * every / RTT_NS))
    return found


def measure(raw: RawResults) -> dict[str, Value]:
    """Errors, utilization and convergence times in RTTs, over runs whose flows start a few microseconds apart."""
    return series.over_runs(raw, lambda seed: _measure(raw, seed))


def _measure(raw: RawResults, seed: int) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for scheme in SHARES:
        off, used, last = _off(raw, scheme, seed)
        values[f"{scheme} off"], values[f"{scheme} used"] = round(off, 2), round(used, 2)
        values[f"{scheme} flow 1"] = round(last, 2)
        rtts = _settled_rtts(raw, scheme, seed)
        values[f"{scheme} rtts"] = ", ".join("never" if r is None else f"{r:.0f}" for r in rtts)
        later = [500.0 if r is None else r for r in rtts[1:]]
        values[f"{scheme} most rtts"] = round(max(later)) if later else 0
    return values


def draw(raw: RawResults) -> Figure:
    """Received rates, averaged over 0.2 ms, and the exact ones."""
    figure, plots = figures.axes(columns=3, width=4)
    names = ["flow 1", "flows 2 to 4", "flows 5 and 6"]
    for plot, scheme in zip(plots, SHARES, strict=True):
        times, rates = series.rates_gbps(raw, scheme, "rate_bps")
        bins = 10
        count = len(times) // bins * bins
        smooth = rates[:count].reshape(-1, bins, 6).mean(axis=1)
        at = times[:count].reshape(-1, bins).mean(axis=1) / 1e6
        for flow in range(6):
            kind = 0 if flow == 0 else 1 if flow < 4 else 2
            label = names[kind] if flow in (0, 1, 4) else None
            plot.plot(at, smooth[:, flow], color=figures.COLOURS[kind], linestyle="-", linewidth=0.8, label=label)
        for step in range(_steps(times)):
            for kind, flow in enumerate((0, 1, 4)):
                exact = _exact_gbps(step + 1)[flow] * SHARES[scheme]
                plot.hlines(exact, 10 * step, 10 * step + 10, color=figures.COLOURS[kind], linestyle=":", linewidth=1.2)
        plot.set(title=scheme, xlabel="ms", ylim=(0, 80))
    plots[0].set_ylabel("Gb/s; dotted: exact")
    plots[0].legend(fontsize="small")
    return figure
