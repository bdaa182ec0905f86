"""Time series that several of the experiments on Soze use: rates of senders, and queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import stats

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from subak.repro import RawResults, Value


def over_runs(raw: RawResults, one: Callable[[int], dict[str, float | str]]) -> dict[str, Value]:
    """Statistics of a run, by its seed, over all runs: the mean with its interval; for text, the first run's."""
    told = [one(raw.plan.seed + k) for k in range(raw.plan.runs)]
    first = told[0]
    return {
        key: value if isinstance(value, str) else stats.estimate([float(t[key]) for t in told], "mean", "runs")
        for key, value in first.items()
    }


def rates_gbps(raw: RawResults, scheme: str, column: str, seed: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Times, ns, and rates, Gb/s, one column per flow; NaN while the flow does not run.

    ``column`` is a rate of the results, bit/s.
    """
    frame = raw.simulated("").table("rate", ["scheme", "seed", "flow", "time_ns", column]).to_pandas()
    mine = frame[(frame["scheme"] == scheme) & (frame["seed"] == (raw.plan.seed if seed is None else seed))].pivot(
        index="time_ns", columns="flow", values=column
    )
    return mine.index.to_numpy(dtype=float), mine.to_numpy(dtype=float) / 1e9


def queue_us(
    raw: RawResults, scheme: str, link: str, rate_gbps: float, seed: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Times, ns, and queueing delay before a link, us."""
    frame = raw.simulated("").table("queue", ["scheme", "seed", "link", "time_ns", "queued_bytes"]).to_pandas()
    mine = frame[(frame["scheme"] == scheme) & (frame["link"] == link)]
    mine = mine[mine["seed"] == (raw.plan.seed if seed is None else seed)]
    return mine["time_ns"].to_numpy(dtype=float), mine["queued_bytes"].to_numpy(dtype=float) * 8 / rate_gbps / 1e3
