"""Figure 6 of Flowtune: eight senders to one receiver on real hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("flowtune", "cubic")
SENDERS = 8
STEP_NS = 5_000_000
LINK_GBPS = 10.0
SHARE = 1 - 0.01 - 0.02
"""Fraction of the link that Flowtune allocates: 1 without the update threshold and the reserve."""


def _runs(raw: RawResults, scheme: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each run its times, ns, and rates received, Gb/s, one column per sender."""
    frame = raw.simulated().table("rate", ["scheme", "seed", "flow", "time_ns", "rate_bps"]).to_pandas()
    mine = frame[frame["scheme"] == scheme]
    found = []
    for _, run in mine.groupby("seed"):
        rates = run.pivot(index="time_ns", columns="flow", values="rate_bps")
        found.append((rates.index.to_numpy(dtype=float), np.nan_to_num(rates.to_numpy(dtype=float)) / 1e9))
    return found


def _phases(times: np.ndarray, rates: np.ndarray) -> list[np.ndarray]:
    """Mean rates in the second half of each phase, of the active senders."""
    means = []
    for phase in range(2 * SENDERS - 1):
        late = (times > (phase + 0.5) * STEP_NS) & (times <= (phase + 1) * STEP_NS)
        senders = [k for k in range(SENDERS) if k <= phase < k + SENDERS]
        means.append(rates[late].mean(axis=0)[senders])
    return means


def _jain(rates: np.ndarray) -> float:
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())) if rates.any() else 0.0


def measure(raw: RawResults) -> dict[str, Value]:
    """Jain's index of the senders' rates, their distances from the fair share, and utilization of the link."""
    values: dict[str, Value] = {}
    least: dict[str, list[float]] = {}
    for scheme in SCHEMES:
        runs = [_phases(times, rates) for times, rates in _runs(raw, scheme)]
        share = SHARE if scheme == "flowtune" else 1.0
        # A single sender is always fair.
        least[scheme] = [min(_jain(mean) for mean in run if len(mean) > 1) for run in runs]
        worst = [max(float(np.abs(m * len(m) / (share * LINK_GBPS) - 1).max()) for m in run) for run in runs]
        used = [min(float(mean.sum()) for mean in run) / LINK_GBPS for run in runs]
        values[f"{scheme} jain"] = stats.estimate(least[scheme], "mean", "runs")
        values[f"{scheme} off"] = stats.estimate([100 * off for off in worst], "mean", "runs")
        values[f"{scheme} used"] = stats.estimate([100 * share for share in used], "percent", "runs")
    unfair = {scheme: [1 - index for index in indices] for scheme, indices in least.items()}
    values["unfair"] = stats.ratio(unfair["cubic"], unfair["flowtune"], "mean", "runs", paired=True)
    return values


def draw(raw: RawResults) -> Figure:
    """Received rates of the senders in the first run, one plot per scheme."""
    figure, plots = figures.axes(rows=1, columns=2, width=4.6, height=2.6)
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        times, rates = _runs(raw, scheme)[0]
        for sender in range(SENDERS):
            plot.plot(
                times / 1e6, rates[:, sender], color=figures.COLOURS[sender % len(figures.COLOURS)], linewidth=0.7
            )
        plot.set(title=scheme, xlabel="ms", ylim=(0, LINK_GBPS * 1.05))
    plots[0].set_ylabel("Gb/s")
    return figure
