"""Series that several of Soze's figures read: rates of the senders, and what waits before a link."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from subak.repro import RawResults


def rates_gbps(raw: RawResults, scheme: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Times, ns, and Gb/s, a column a flow; nan where it does not run. ``column`` is a rate of the results, bit/s."""
    frame = raw.simulated("").table("rate", ["scheme", "flow", "time_ns", column]).to_pandas()
    mine = frame[frame["scheme"] == scheme].pivot(index="time_ns", columns="flow", values=column)
    return mine.index.to_numpy(dtype=float), mine.to_numpy(dtype=float) / 1e9


def queue_us(raw: RawResults, scheme: str, link: str, rate_gbps: float) -> tuple[np.ndarray, np.ndarray]:
    """Times, ns, and what waits before a link, us."""
    frame = raw.simulated("").table("queue", ["scheme", "link", "time_ns", "queued_bytes"]).to_pandas()
    mine = frame[(frame["scheme"] == scheme) & (frame["link"] == link)]
    return mine["time_ns"].to_numpy(dtype=float), mine["queued_bytes"].to_numpy(dtype=float) * 8 / rate_gbps / 1e3
