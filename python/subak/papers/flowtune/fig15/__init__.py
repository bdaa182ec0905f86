"""Figure 15 of Flowtune: proportional-fairness score of flows, relative to that under Flowtune."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from subak.papers.flowtune import simulated as sim
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

Run = dict[tuple[str, float], Any]
"""By baseline and load: by how much each flow's score (log2 of its rate) is higher under Flowtune."""


def _runs(raw: RawResults) -> list[Run]:
    """Differences of scores, by run. The flows of a run are the same under all schemes, and are compared one by one."""
    found = []
    for frame in sim.runs_of(raw, "flow", ["flow", "fct_ns", "measured"]):
        times = frame.pivot_table(index=["load", "flow"], columns="scheme", values="fct_ns", dropna=False)
        run = {}
        for rival in [s for s in sim.RIVALS if s in times.columns]:
            gains = np.log2(times[rival].astype(float) / times["flowtune"].astype(float)).dropna()
            run.update({(rival, load): of.to_numpy() for load, of in gains.groupby("load")})
        found.append(run)
    return found


def _loads(runs: Sequence[Run]) -> list[float]:
    return sorted({load for _, load in runs[0]})


def _gain(runs: Sequence[Run], rival: str, load: float) -> float:
    return float(np.concatenate([run[rival, load] for run in runs]).mean())


def _extreme(runs: Sequence[Run], rival: str, pick: Any) -> float:
    return float(pick([_gain(runs, rival, load) for load in _loads(runs)]))


def _least_gain(runs: Sequence[Run]) -> float:
    return min(_gain([run], "dctcp", load) for run in runs for load in _loads(runs))


def measure(raw: RawResults) -> dict[str, Value]:
    """Mean gain of a flow's score (log2 of its rate) under Flowtune: the smallest over loads, and each load's."""
    runs = _runs(raw)
    found: dict[str, Value] = {}
    found["dctcp every"] = stats.over_runs(runs, _least_gain, signed=True)
    for rival in [s for s in sim.RIVALS if any(r == s for r, _ in runs[0])]:
        found[rival] = stats.over_runs(runs, partial(_extreme, rival=rival, pick=min), signed=True)
        found[f"{rival} all"] = [_gain(runs, rival, load) for load in _loads(runs)]
    return found


def draw(raw: RawResults) -> Figure:
    """Mean score (log2 of a flow's rate) minus that under Flowtune, by load; one line per baseline."""
    runs = _runs(raw)
    figure, (plot,) = figures.axes(width=5.5)
    for rival in sim.RIVALS:
        gains = [-_gain(runs, rival, load) for load in _loads(runs)]
        plot.plot(_loads(runs), gains, marker="o", label=rival, color=sim.COLORS[rival])
    plot.axhline(0, color="black", linewidth=0.8)
    plot.set(xlabel="load", ylabel="score less that under Flowtune")
    plot.legend()
    return figure
