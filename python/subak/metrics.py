"""Metrics of a comparison, with order, units and number format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from subak import units

Scale = Callable[[float], tuple[float, str]]
"""For a value: the divisor that scales it, and the unit of the result."""


@dataclass(frozen=True)
class Metric:
    """A metric of a run's summary: key, title, meaning, and number format."""

    name: str
    title: str
    about: str
    scale: Scale

    bounded: str | None = None
    """The metric that counts unfinished flows or jobs; if it is not 0, this metric is a lower bound."""

    def text(self, stat: Mapping[str, Any] | None, *, at_least: bool = False) -> str:
        """The mean and half its confidence interval, in the same unit; a dash without a value. Counts have no interval.

        ``at_least`` marks a lower bound.
        """
        if stat is None:
            return "-"
        factor, unit = self.scale(stat["mean"])
        bound = "≥ " * at_least
        if stat["ci95"] is None or self.scale is _count:
            return f"{bound}{units.figure(stat['mean'] / factor)}{unit}"
        mean, half = units.with_interval(stat["mean"] / factor, stat["ci95"] / factor)
        return f"{bound}{mean}{unit} ± {half}{unit}"

    def in_row(self, row: Mapping[str, Any]) -> str:
        """The metric's text for a row of a summary."""
        unfinished = row["metrics"].get(self.bounded)
        at_least = unfinished is not None and unfinished["mean"] > 0
        return self.text(row["metrics"].get(self.name), at_least=at_least)


def _ratio(value: float) -> tuple[float, str]:
    return 1.0, ""


def _count(value: float) -> tuple[float, str]:
    return (1.0, "") if value < 1e6 else (1e6, " M")


def _share(value: float) -> tuple[float, str]:
    return 0.01, "%"


def _nanoseconds(value: float) -> tuple[float, str]:
    return next(((f, f" {u}") for f, u in ((1e9, "s"), (1e6, "ms"), (1e3, "us")) if value >= f), (1.0, " ns"))


def _bytes(value: float) -> tuple[float, str]:
    factor, prefix = units.prefix_of(value)
    return factor, f" {prefix}B"


COMPARED = (
    Metric("jobs", "Jobs", "jobs that count: those that started after the warm-up", _count),
    Metric("jobs_completed", "Jobs completed", "jobs of these that completed before the run ended", _count),
    Metric(
        "job_time_mean_ns",
        "Mean job time",
        "from a job's start to the end of its last flow and task, mean",
        _nanoseconds,
        "jobs_unfinished",
    ),
    Metric("job_time_p99_ns", "p99 job time", "the same, 99th percentile", _nanoseconds, "jobs_unfinished"),
    Metric(
        "job_slowdown_mean",
        "Mean job slowdown",
        "a job's time over that of its critical path at line rate, mean",
        _ratio,
        "jobs_unfinished",
    ),
    Metric("flows", "Flows", "flows that count: those that started after the warm-up", _count),
    Metric("completed", "Completed", "flows of these that completed before the run ended", _count),
    Metric("unfinished", "Unfinished", "flows of these that did not; slowdowns count them as far as they came", _count),
    Metric("slowdown_mean", "Mean slowdown", "FCT over that of the flow alone, mean", _ratio, "unfinished"),
    Metric("slowdown_p50", "Median slowdown", "the same, median", _ratio, "unfinished"),
    Metric("slowdown_p99", "p99 slowdown", "the same, 99th percentile", _ratio, "unfinished"),
    Metric("utilization", "Utilization", "data over capacity, over the links into the hosts together", _share),
    Metric("wait_mean_ns", "Mean wait", "queueing delay of a data packet over its path, mean", _nanoseconds),
    Metric("wait_p99_ns", "p99 wait", "the same, 99th percentile", _nanoseconds),
    Metric("queue_p99_bytes", "p99 queue", "queue length at a link when sampled, 99th percentile", _bytes),
    Metric("dropped_packets", "Drops", "packets dropped at full queues between warm-up and duration", _count),
    Metric("flows_ctl_lost", "Lost messages", "flows that lost control messages, over the whole run", _count),
    Metric("pauses", "Pauses", "times that priority flow control paused a link between warm-up and duration", _count),
    Metric("retransmissions", "Resent", "retransmitted data packets between warm-up and duration", _count),
    Metric("converged_share", "Settled", "changes of the flows after which the rates settled", _share),
    Metric("near_at_end_share", "Near at the end", "changes at whose end enough rates were near their optimum", _share),
    Metric(
        "end_error_p95", "Error at the end", "distance from the optimum at the end of a change, 95th percentile", _share
    ),
    Metric("convergence_p50_ns", "Median to settle", "time from a change until rates settled, median", _nanoseconds),
    Metric("convergence_p95_ns", "p95 to settle", "the same, 95th percentile", _nanoseconds),
)


JOBS = tuple(m for m in COMPARED if m.name in ("job_time_mean_ns", "job_slowdown_mean"))
"""Metrics that a table of jobs has as columns."""

CLASSES = (
    *(m for m in COMPARED if m.name in ("flows", "completed", "slowdown_mean", "slowdown_p99")),
    Metric("fct_mean_ns", "Mean FCT", "flow completion time, mean", _nanoseconds, "unfinished"),
    Metric("fct_p99_ns", "p99 FCT", "the same, 99th percentile", _nanoseconds, "unfinished"),
)
"""Metrics that a table of classes of flows has as columns."""

CONVERGED = tuple(m for m in COMPARED if m.name.startswith(("converge", "near_at_end", "end_error")))


def classes_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the classes of flows in the ``rows`` of a comparison."""
    return list(dict.fromkeys(one["class"] for row in rows for one in row.get("classes", ())))


def of_class(row: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The row of a comparison for the flows of the class ``name`` alone."""
    found = next((one for one in row.get("classes", ()) if one["class"] == name), None)
    if found is None:
        return None
    return {**row, "scheme": found.get("scheme", row["scheme"]), "metrics": found["metrics"], "sizes": found["sizes"]}


def compared(rows: Sequence[Mapping[str, Any]]) -> list[Metric]:
    """The metrics that occur in the ``rows`` of a comparison; counts of problems only if one is not 0."""

    def some(name: str) -> bool:
        return any(row["metrics"].get(name, {"mean": 0})["mean"] > 0 for row in rows)

    there = [m for m in COMPARED if any(m.name in row["metrics"] for row in rows)]
    return [m for m in there if m.name not in ("unfinished", "pauses", "flows_ctl_lost") or some(m.name)]


def warning_text(warning: Mapping[str, Any]) -> str:
    """Text of a warning, preceded by the scheme and sweep point that it concerns."""
    about = _concerned(warning)
    return f"{about}: {warning['text']}" if about else str(warning["text"])


MOST_CONCERNED = 12
MOST_ALIKE = 2
"""Number of warnings of one kind up to which each is shown separately."""


def warning_texts(warnings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The warnings of a run as text.

    Many of one kind are combined, with a list of the schemes and sweep points concerned. Those of one scheme and
    sweep point say different things, and are never combined.
    """
    kinds: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    earlier: Counter[tuple[str, str]] = Counter()
    for text, warning in {warning_text(warning): warning for warning in warnings}.items():
        kind, concerned_by = str(warning["kind"]), _concerned(warning)
        kinds.setdefault((kind, earlier[kind, concerned_by]), {})[text] = warning
        earlier[kind, concerned_by] += 1
    told = []
    for alike in kinds.values():
        if len(alike) <= MOST_ALIKE:
            told += list(alike)
            continue
        first = next(iter(alike.values()))
        concerned = dict.fromkeys(filter(None, map(_concerned, alike.values())))
        listed = ", ".join(list(concerned)[:MOST_CONCERNED])
        rest = f", and {len(concerned) - MOST_CONCERNED} more" if len(concerned) > MOST_CONCERNED else ""
        told.append(f"{warning_text(first)} ({len(alike)} warnings are like this: {listed}{rest})")
    return told


def _concerned(warning: Mapping[str, Any]) -> str:
    axes = warning.get("axes") or {}
    return " ".join(filter(None, (warning.get("scheme"), sweep_point_of(axes, list(axes)))))


def sweep_point_of(axes: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The values of the axes ``keys`` as text: ``load 0.6, leaves 4``, or the whole key if several end alike."""
    short = [key.split(".")[-1] for key in keys]
    said = [key if short.count(last) > 1 else last for key, last in zip(keys, short, strict=True)]
    return ", ".join(f"{name} {_said(axes.get(key))}" for name, key in zip(said, keys, strict=True))


def _said(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        others = [f"{key} {_said(one)}" for key, one in value.items() if key != "kind"]
        return " ".join([value["kind"], *others])
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)


def shown_labels(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Display names of scheme labels: an ideal scheme gets its policy, as in ``ideal (max-min)``."""
    policy = manifest.get("spec", {}).get("policy", {"kind": "max-min"})
    kind, alpha = policy.get("kind", "max-min"), policy.get("alpha")
    if isinstance(kind, list) or isinstance(alpha, list):
        said = "of each policy"
    else:
        said = kind if alpha is None else f"{kind} {alpha:g}" if isinstance(alpha, int | float) else f"{kind} {alpha}"
    return {
        one["label"]: f"{one['label']} ({said})"
        for one in manifest.get("schemes", [])
        if one["name"] == "ideal" and one["label"] == "ideal" and not one.get("policy")
    }
