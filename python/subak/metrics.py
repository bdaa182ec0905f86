"""The metrics of a comparison, in the order and the units in which people read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from subak import units


@dataclass(frozen=True)
class Metric:
    """A metric of a run's summary: its name there, its title, the meaning, and how its values are written."""

    name: str
    title: str
    about: str
    write: Callable[[float], str]

    def text(self, stat: Mapping[str, Any] | None) -> str:
        """The mean with half its interval; a dash where nothing was measured."""
        if stat is None:
            return "-"
        mean = self.write(stat["mean"])
        return mean if stat["ci95"] is None or self.write is _count else f"{mean} ± {self.write(stat['ci95'])}"


def _ratio(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _count(value: float) -> str:
    return f"{value:.0f}" if value < 1e6 else units.size(value).removesuffix("B")


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _nanoseconds(value: float) -> str:
    return units.seconds(float(f"{value:.3g}") / 1e9)


def _bytes(value: float) -> str:
    return units.size(float(f"{value:.3g}"))


COMPARED = (
    Metric("flows", "Flows", "flows that count: those that started after the warm-up", _count),
    Metric("completed", "Completed", "flows of these that completed before the run ended", _count),
    Metric("slowdown_mean", "Mean slowdown", "completion time over that of the same flow alone, mean", _ratio),
    Metric("slowdown_p50", "Median slowdown", "the same, median", _ratio),
    Metric("slowdown_p99", "p99 slowdown", "the same, 99th percentile", _ratio),
    Metric("utilization", "Utilization", "data over capacity, over the links into the hosts together", _share),
    Metric("wait_mean_ns", "Mean wait", "time a data packet waited in queues over its path, mean", _nanoseconds),
    Metric("wait_p99_ns", "p99 wait", "the same, 99th percentile", _nanoseconds),
    Metric("queue_p99_bytes", "p99 queue", "bytes waiting at a link when sampled, 99th percentile", _bytes),
    Metric("dropped_packets", "Drops", "packets dropped for want of room", _count),
    Metric("retransmissions", "Sent again", "data packets sent again", _count),
    Metric("converged_share", "Settled", "changes of the flows after which the rates settled", _share),
    Metric("convergence_p50_ns", "Median to settle", "time from a change until rates settled, median", _nanoseconds),
    Metric("convergence_p95_ns", "p95 to settle", "the same, 95th percentile", _nanoseconds),
)


def setting_of(axes: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The values of the axes ``keys`` in words: ``load 0.6, leaves 4``."""
    return ", ".join(f"{key.split('.')[-1]} {_said(axes.get(key))}" for key in keys)


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
