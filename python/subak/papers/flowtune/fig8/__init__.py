"""Figure 8 of Flowtune: rates of five senders to one receiver that start and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("flowtune", "dctcp", "pfabric", "sfqcodel", "sfqcodel-rtt", "xcp")
SENDERS = 5
PHASE_US = 10_000
BIN_US = 100
CAPACITY_BPS = 10e9
WITHIN = 0.1
"""Relative tolerance of a rate around the fair share."""


def _active(phase: int) -> list[int]:
    """Numbers of the senders that are active between change ``phase`` and the next."""
    return list(range(max(0, phase - SENDERS + 1), min(SENDERS, phase + 1)))


def _rates(raw: RawResults) -> dict[str, list[Any]]:
    """By scheme, for each run: rates, bit/s, by sender and bin of 100 us; 0 if nothing was received."""
    frame = raw.simulated().table("rate", ["scheme", "seed", "time_ns", "flow", "rate_bps"]).to_pandas()
    found: dict[str, list[Any]] = {}
    bins = int(frame["time_ns"].max() // (BIN_US * 1000)) + 1
    for (scheme, _), run in frame.groupby(["scheme", "seed"]):
        rates = np.zeros((SENDERS, bins))
        # A sample describes the bin of 100 us before its time.
        rates[run["flow"].to_numpy(), run["time_ns"].to_numpy() // (BIN_US * 1000) - 1] = run["rate_bps"].to_numpy()
        found.setdefault(scheme, []).append(rates)
    return found


def _phase(rates: Any, phase: int) -> Any:
    """Rates of all active senders over the fair share, from a change until the next."""
    bins, active = PHASE_US // BIN_US, _active(phase)
    return rates[active, phase * bins : (phase + 1) * bins] * len(active) / CAPACITY_BPS


def _settle_us(shares: Any) -> float:
    """Time from a change until all rates stay within the tolerance, us; infinite if they never do."""
    off = np.flatnonzero((np.abs(shares - 1) > WITHIN).any(axis=0))
    if not len(off):
        return 0.0
    after = (int(off[-1]) + 1) * BIN_US
    return float(after) if after < PHASE_US else np.inf


def _first_us(shares: Any) -> float:
    """Time from a change until all rates are within the tolerance for the first time, us."""
    near = np.flatnonzero((np.abs(shares - 1) <= WITHIN).all(axis=0))
    return float(near[0] * BIN_US) if len(near) else np.inf


def measure(raw: RawResults) -> dict[str, Value]:
    """Times from each change to fair rates, variation of rates in between, and utilization of the link."""
    found: dict[str, Value] = {}
    by_scheme = _rates(raw)
    times = {}
    for scheme in [s for s in SCHEMES if s in by_scheme]:
        phases = [_phase(rates, phase) for rates in by_scheme[scheme] for phase in range(2 * SENDERS - 1)]
        several = [shares for shares in phases if len(shares) > 1]
        times[scheme] = [_settle_us(shares) for shares in phases]
        found[f"{scheme} settled"] = stats.estimate(times[scheme], "median", "changes")
        found[f"{scheme} first"] = stats.estimate([_first_us(shares) for shares in phases], "median", "changes")
        late = [shares[:, shares.shape[1] // 2 :] for shares in several]
        found[f"{scheme} uneven"] = float(np.mean([(shares.std(axis=1) / shares.mean()).mean() for shares in late]))
        found[f"{scheme} least"] = float(np.mean([shares.mean(axis=1).min() for shares in several]))
        found[f"{scheme} used"] = 100 * float(np.mean([shares.mean() for shares in phases]))
    found["flowtune worst"] = max(times["flowtune"])
    found["flowtune within"] = stats.share(
        sum(t <= BIN_US for t in times["flowtune"]), len(times["flowtune"]), "changes"
    )
    for rival in ("dctcp", "xcp"):
        if rival in times:
            found[f"{rival} factor"] = stats.ratio(times[rival], times["flowtune"], "median", "changes", paired=True)
    return found


def draw(raw: RawResults) -> Figure:
    """Rates of the first run, one plot per scheme."""
    figure, plots = figures.axes(rows=2, columns=3, width=3.6, height=2.4)
    by_scheme = _rates(raw)
    for plot, scheme in zip(plots, SCHEMES, strict=True):
        rates = by_scheme[scheme][0] / 1e9
        for sender in range(SENDERS):
            plot.plot(np.arange(rates.shape[1]) * BIN_US / 1000, rates[sender], "-", linewidth=0.7)
        plot.set(title=scheme, xlabel="time, ms", ylabel="rate, Gb/s", ylim=(0, 10.5))
    return figure
