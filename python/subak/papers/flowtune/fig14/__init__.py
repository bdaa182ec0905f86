"""Figure 14 of Flowtune: bytes dropped in the network."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from subak.papers.flowtune import simulated as sim
from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

SCHEMES = ("flowtune", *sim.RIVALS)
MEASURED_NS = 40e6
"""Time between warm-up and end at paper scale, ns."""


def _runs(raw: RawResults) -> list[Any]:
    """For each run, by scheme and load: bytes that servers transmitted, and bytes that the network dropped.

    What a server drops before its own link was never transmitted, and counts only with the setting ``drops = "all"``.
    """
    found = []
    for frame in sim.runs_of(raw, "link", ["link", "data_bytes", "dropped_bytes"]):
        of_server = frame["link"].str.match(r"h\d+->")
        frame["sent"] = frame["data_bytes"].where(of_server, 0)
        if raw.plan.settings.get("drops") != "all":
            frame["dropped_bytes"] = frame["dropped_bytes"].where(~of_server, 0)
        found.append(frame.groupby(["scheme", "load"])[["sent", "dropped_bytes"]].sum().sort_index())
    return found


def _share(runs: Sequence[Any], scheme: str, load: float) -> float:
    """Dropped bytes as a percentage of the bytes sent."""
    rows = [run.loc[(scheme, load)] for run in runs]
    return 100 * float(sum(r["dropped_bytes"] for r in rows) / sum(r["sent"] for r in rows))


def _loads(runs: Sequence[Any]) -> list[float]:
    return sorted(set(runs[0].index.get_level_values("load")))


def _worst(runs: Sequence[Any], scheme: str) -> float:
    return max(_share(runs, scheme, load) for load in _loads(runs))


def _of_pfabric(runs: Sequence[Any], scheme: str) -> float:
    """Bytes that the network drops at the highest load, over those under pFabric, percent."""
    load = _loads(runs)[-1]
    return 100 * _share(runs, scheme, load) / _share(runs, "pfabric", load)


def _most_beyond(runs: Sequence[Any]) -> float:
    """Largest excess of Flowtune's drops over sfqCoDel's, percentage points, over runs and loads."""
    pairs = [([run], load) for run in runs for load in _loads(runs)]
    return max(_share(run, "flowtune", load) - _share(run, "sfqcodel", load) for run, load in pairs)


def measure(raw: RawResults) -> dict[str, Value]:
    """Dropped bytes as a percentage of those sent: at the load where it is largest, and at each load."""
    runs = _runs(raw)
    found: dict[str, Value] = {}
    if "sfqcodel" in runs[0].index.get_level_values("scheme"):
        found["least"] = stats.over_runs(runs, _most_beyond, signed=True)
    for scheme in ("flowtune", "dctcp", "xcp"):
        if {scheme, "pfabric"} <= set(runs[0].index.get_level_values("scheme")):
            found[f"{scheme} of pfabric"] = stats.over_runs(runs, partial(_of_pfabric, scheme=scheme), signed=True)
    for scheme in [s for s in SCHEMES if s in runs[0].index.get_level_values("scheme")]:
        found[scheme] = stats.over_runs(runs, partial(_worst, scheme=scheme))
        found[f"{scheme} all"] = [_share(runs, scheme, load) for load in _loads(runs)]
    return found


def draw(raw: RawResults) -> Figure:
    """Traffic dropped in the network by load, Gb/s, one line per scheme."""
    runs = _runs(raw)
    figure, (plot,) = figures.axes(width=5.5)
    for scheme in SCHEMES:
        dropped = [sum(run.loc[(scheme, load)]["dropped_bytes"] for run in runs) / len(runs) for load in _loads(runs)]
        gbps = [bytes_ * 8 / MEASURED_NS for bytes_ in dropped]
        plot.plot(_loads(runs), gbps, marker="o", label=scheme, color=sim.COLORS[scheme])
    plot.set(xlabel="load", ylabel="dropped, Gb/s")
    plot.set_yscale("symlog", linthresh=0.1)
    plot.set_ylim(bottom=0)
    plot.legend()
    return figure
