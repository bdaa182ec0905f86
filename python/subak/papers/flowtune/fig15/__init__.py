"""Figure 15 of Flowtune: proportional-fairness score of a flow, relative to that under Flowtune."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from subak.papers.flowtune import simulated as sim
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from matplotlib.figure import Figure

PACKET_BYTES = 1500
FLOOR_PACKETS = 0.1
"""Bytes between two samples that a waiting flow counts as receiving, in packets: the logarithm of 0 is infinite."""
Run = dict[tuple[str, float], float]
"""By scheme and load: mean score of a flow (log2 of its rate in bit/s)."""


def _runs(raw: RawResults) -> list[Run]:
    """Mean scores, by run: over the running flows at all samples, or over flows with the setting ``completion``."""
    completion = raw.plan.settings.get("score") == "completion"
    table = _by_completion(raw) if completion else _by_sample(raw)
    # In one thread, since the order of a sum determines its rounding.
    groups = table.group_by(["seed", "load", "scheme"], use_threads=False)
    means = groups.aggregate([("score", "mean")]).sort_by("seed").to_pylist()
    runs: dict[int, Run] = {}
    for row in means:
        runs.setdefault(row["seed"], {})[row["scheme"], sim.paper_load(row["load"])] = row["score_mean"]
    return list(runs.values())


def _by_completion(raw: RawResults) -> pa.Table:
    """A score per flow: size over completion time, lowest for flows that did not complete."""
    flows = raw.simulated().table("flow", ["scheme", "seed", "load", "size_bytes", "fct_ns", "measured"])
    flows = flows.filter(pc.field("measured"))
    longest_ns = pc.max(flows["fct_ns"])
    rate_bps = pc.divide(pc.multiply(flows["size_bytes"], 8e9), pc.fill_null(flows["fct_ns"], longest_ns))
    return flows.append_column("score", pc.log2(rate_bps))


def _by_sample(raw: RawResults) -> pa.Table:
    """A score per flow and sample, from the warm-up to the last arrival of a flow."""
    results = raw.simulated()
    starts_ns = results.table("flow", ["start_ns"], measured=True)["start_ns"]
    rates = results.table("rate", ["scheme", "seed", "load", "time_ns", "rate_bps"])
    interval_ns = np.diff(np.unique(rates["time_ns"].to_numpy())).min()
    within = (pc.field("time_ns") > pc.min(starts_ns)) & (pc.field("time_ns") <= pc.max(starts_ns))
    rates = rates.filter(within)
    packets = raw.plan.settings.get("floor_packets", FLOOR_PACKETS)
    least_bps = packets * PACKET_BYTES * 8e9 / float(interval_ns)
    return rates.append_column("score", pc.log2(pc.max_element_wise(rates["rate_bps"], least_bps)))


def _loads(runs: Sequence[Run]) -> list[float]:
    return sorted({load for _, load in runs[0]})


def _rivals(runs: Sequence[Run]) -> list[str]:
    return [s for s in sim.RIVALS if any(scheme == s for scheme, _ in runs[0])]


def _gain(runs: Sequence[Run], rival: str, load: float) -> float:
    return float(np.mean([run["flowtune", load] - run[rival, load] for run in runs]))


def _extreme(runs: Sequence[Run], rival: str, pick: Any) -> float:
    return float(pick([_gain(runs, rival, load) for load in _loads(runs)]))


def _least_gain(runs: Sequence[Run]) -> float:
    return min(_gain([run], "dctcp", load) for run in runs for load in _loads(runs))


def measure(raw: RawResults) -> dict[str, Value]:
    """Gain of the mean score (log2 of a flow's rate) under Flowtune: the smallest over loads, and each load's."""
    runs = _runs(raw)
    found: dict[str, Value] = {}
    found["dctcp every"] = stats.over_runs(runs, _least_gain, signed=True)
    for rival in _rivals(runs):
        found[rival] = stats.over_runs(runs, partial(_extreme, rival=rival, pick=min), signed=True)
        found[f"{rival} all"] = [_gain(runs, rival, load) for load in _loads(runs)]
    return found


def draw(raw: RawResults) -> Figure:
    """Mean score (log2 of a flow's rate) minus that under Flowtune, by load; one line per baseline."""
    runs = _runs(raw)
    figure, (plot,) = figures.axes(width=5.5)
    for rival in _rivals(runs):
        gains = [-_gain(runs, rival, load) for load in _loads(runs)]
        plot.plot(_loads(runs), gains, marker="o", label=rival, color=sim.COLORS[rival])
    plot.axhline(0, color="black", linewidth=0.8)
    plot.set(xlabel="load", ylabel="score less that under Flowtune")
    plot.legend()
    return figure
