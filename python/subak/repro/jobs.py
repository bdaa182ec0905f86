"""Common code of the experiments on applications: times of jobs, and rates of their flows.

These experiments have no random input, so all runs are equal, and only the first one is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subak.repro import RawResults

PAYLOAD = 1446 / 1500
"""Payload over bytes on the wire, for full packets."""


def seconds(raw: RawResults, spec: str, name: str, policy: str, scheme: str = "ideal", kind: str = "job") -> float:
    """Duration of a job, or of a flow if ``kind`` is ``flow`` and ``name`` is ``job/flow``, s."""
    frame = _first(raw, spec, kind, ["scheme", "flow_id", "fct_ns", "workload.policy"])
    mine = frame[(frame["scheme"] == scheme) & (frame["flow_id"] == name) & (frame["workload.policy"] == policy)]
    return float(mine["fct_ns"].iloc[0]) / 1e9


def rates(raw: RawResults, spec: str, policy: str, scheme: str = "ideal") -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each flow: times, s, and payload rates, Gb/s."""
    frame = _first(raw, spec, "rate", ["scheme", "flow_id", "time_ns", "rate_bps", "workload.policy"])
    mine = frame[(frame["scheme"] == scheme) & (frame["workload.policy"] == policy)]
    found = {}
    for name, rows in mine.groupby("flow_id"):
        found[str(name)] = (rows["time_ns"].to_numpy(dtype=float) / 1e9, PAYLOAD * rows["rate_bps"].to_numpy() / 1e9)
    return found


def weights(raw: RawResults, spec: str, policy: str, flow: str, scheme: str = "ideal") -> tuple[np.ndarray, np.ndarray]:
    """Times of weight changes, s, and the flow's weight from each time on."""
    frame = _first(raw, spec, "weight", ["scheme", "flow_id", "time_ns", "weight", "workload.policy"])
    mine = frame[frame["scheme"] == scheme]
    mine = mine[(mine["workload.policy"] == policy) & (mine["flow_id"] == flow)]
    return mine["time_ns"].to_numpy(dtype=float) / 1e9, mine["weight"].to_numpy(dtype=float)


def _first(raw: RawResults, spec: str, kind: str, columns: list[str]) -> Any:
    frame = raw.simulated(spec).table(kind, ["seed", *columns]).to_pandas()
    return frame[frame["seed"] == raw.plan.seed]
