"""NUMFabric's optimizer xWI over two transports: Swift, as in NUMFabric, and s-PERC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = {"numfabric": "over Swift", "xwi-s-perc": "over s-PERC"}
CRITERION = {"numfabric": 0, "xwi-s-perc": 1}


def _times(raw: RawResults, scheme: str) -> list[float]:
    return [1e6 * t for t in settle.times(raw.simulated(), scheme, CRITERION[scheme], after_ns=1)]


def _queues(raw: RawResults, scheme: str) -> list[float]:
    """Queue length at each sample of each link, KB, without idle links."""
    rows = raw.simulated().table("queue", ["scheme", "queued_bytes"]).to_pandas()
    return [float(b) / 1e3 for b in rows[rows["scheme"] == scheme]["queued_bytes"]]


def _utilization(raw: RawResults, scheme: str) -> list[float]:
    """Utilization of each run, percent."""
    rows = raw.simulated().table("summary", ["scheme", "utilization"]).to_pandas()
    return [100 * float(u) for u in rows[rows["scheme"] == scheme]["utilization"]]


def measure(raw: RawResults) -> dict[str, Value]:
    """Convergence times, utilization and queue lengths of xWI over each transport."""
    found: dict[str, Value] = {}
    for scheme in SCHEMES:
        times = _times(raw, scheme)
        found |= {
            f"{scheme}_p50": settle.at(times, 0.5),
            f"{scheme}_p95": settle.at(times, 0.95),
            f"{scheme}_settled": settle.settled(times),
            f"{scheme}_utilization": stats.estimate(_utilization(raw, scheme), "mean", "runs"),
            f"{scheme}_queue": stats.quantile(_queues(raw, scheme), 0.99),
        }
    found["ratio"] = settle.ratio(_times(raw, "xwi-s-perc"), _times(raw, "numfabric"))
    return found


def draw(raw: RawResults) -> Figure:
    """Distributions of convergence times and of queue lengths, and mean utilization, of both transports."""
    figure, plots = figures.axes(columns=3, width=4.2)
    settle.draw(plots[0], {SCHEMES[s]: _times(raw, s) for s in SCHEMES}, "us until 95% of the flows are within 10%")
    used = [stats.estimate(_utilization(raw, s), "mean", "runs").value for s in SCHEMES]
    bars = plots[1].bar(list(SCHEMES.values()), used, color=figures.COLOURS[: len(used)], width=0.5)
    plots[1].bar_label(bars, fmt="%.1f%%")
    plots[1].set(ylabel="data over the links into hosts, %", ylim=(0, 100))
    for scheme, label in SCHEMES.items():
        figures.cdf(plots[2], _queues(raw, scheme), label)
    plots[2].set(xlabel="KB waiting at a link", ylabel="share of looks", xscale="symlog", ylim=(0.5, 1.005))
    plots[2].legend(loc="upper left")
    return figure
