"""Flowtune whose allocator fails in the middle of a run: permanently, or for 5 ms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.papers.flowtune import updates
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

FAILS = {"gone": "for good", "back": "for 5 ms"}
LEASE_NS = 2_000_000
LEEWAY_NS = 100_000
"""Time after the leases expire until every host has removed its rates, ns: message delay and messages in flight."""
Run = dict[str, Any]
"""By spec, or scheme if it is not Flowtune: slowdowns of the flows that start after the failure."""


def _down_ns(raw: RawResults) -> float:
    fault = raw.simulated("gone").manifest["spec"]["fault"][0]
    return 1e9 * updates.seconds(fault["down"])


def _runs(raw: RawResults) -> list[Run]:
    down_ns = _down_ns(raw)
    found: dict[int, Run] = {}
    for name in ("with", *FAILS):
        columns = ["scheme", "seed", "flow", "start_ns", "fct_ns", "slowdown", "measured"]
        frame = raw.simulated(name).table("flow", columns).to_pandas()
        frame = frame[frame["start_ns"] >= down_ns]
        for (seed, scheme), of in frame.groupby(["seed", "scheme"]):
            key = name if scheme == "flowtune" else scheme
            found.setdefault(seed, {})[key] = of["slowdown"].to_numpy(dtype=float, na_value=np.inf)
    return list(found.values())


def _ratio(runs: Sequence[Run], name: str, q: float, over: str = "with") -> float:
    def at(key: str) -> float:
        times = np.concatenate([run[key] for run in runs])
        return float(times.mean()) if q == 0 else stats.quantile(times, q)

    return at(name) / at(over)


def _capped(raw: RawResults) -> int:
    """Number of samples, in all runs, with a pacing rate after the leases of the failed allocator have expired."""
    frame = raw.simulated("gone").table("pace", ["scheme", "time_ns", "pace_bps"]).to_pandas()
    late = frame[(frame["scheme"] == "flowtune") & (frame["time_ns"] > _down_ns(raw) + LEASE_NS + LEEWAY_NS)]
    return int(late["pace_bps"].notna().sum())


def _received(raw: RawResults, name: str) -> Any:
    """Rate received by all flows, Gb/s: a row a sample, a column a run."""
    frame = raw.simulated(name).table("rate", ["scheme", "seed", "time_ns", "rate_bps"]).to_pandas()
    frame = frame[frame["scheme"] == "flowtune"]
    return frame.pivot_table("rate_bps", "time_ns", "seed", aggfunc="sum", fill_value=0) / 1e9


def _share(runs: Sequence[tuple[float, float]]) -> float:
    """What all flows receive without the allocator, of that with it, %."""
    without, beside = np.sum(runs, axis=0)
    return float(100 * without / beside)


def measure(raw: RawResults) -> dict[str, Value]:
    """Slowdowns of flows that start after the failure, relative to those of the run with an allocator."""
    runs = _runs(raw)
    every = np.concatenate([times for run in runs for times in run.values()])
    found: dict[str, Value] = {"complete": 100 * float(np.isfinite(every).mean()), "capped": _capped(raw)}
    for name in (*FAILS, "reno"):
        for word, q in (("mean", 0.0), ("median", 0.5), ("p99", 0.99)):
            found[f"{name} {word}"] = stats.over_runs(runs, partial(_ratio, name=name, q=q), tail=q or 0.5)
    until_ns = 1e9 * updates.seconds(raw.simulated("with").manifest["spec"]["run"]["duration"])
    rates = {name: _received(raw, name) for name in ("with", *FAILS)}
    for name in FAILS:
        late = {k: of[(of.index >= _down_ns(raw)) & (of.index <= until_ns)].mean() for k, of in rates.items()}
        found[f"{name} received"] = stats.over_runs(list(zip(late[name], late["with"], strict=True)), _share)
    return found


def draw(raw: RawResults) -> Figure:
    """Rate received by all flows over time, with and without the allocator."""
    figure, (plot,) = figures.axes(width=6)
    for name, label in {"with": "with the allocator", **FAILS}.items():
        received = _received(raw, name).mean(axis="columns")
        received = received[received.index <= 25e6]
        plot.plot(received.index / 1e6, received, label=label if name == "with" else f"it dies {label}")
    plot.axvline(_down_ns(raw) / 1e6, color="black", linewidth=0.8)
    plot.set(xlabel="time, ms", ylabel="received by all flows, Gb/s", ylim=(0, None))
    plot.legend(loc="lower left")
    return figure
