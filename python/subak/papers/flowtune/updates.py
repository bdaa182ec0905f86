"""Traffic to and from the allocator, for figures 9 to 11 of Flowtune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subak.papers.flowtune import simulated as sim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from subak.repro import RawResults

WORKLOADS = ("hadoop", "cache", "web")
Run = dict[tuple[str, float, str], float]
"""By scheme's label, load and direction: bytes of updates over the capacity of the servers' links."""


def workloads(raw: RawResults) -> list[str]:
    """Names of the workloads that were run."""
    return [w for w in WORKLOADS if not raw.plan.specs or w in raw.plan.specs]


def runs_of(raw: RawResults, name: str | None = None, key: str | None = None) -> list[Run]:
    """One ``Run`` per seed. ``key`` names a column of the results to use instead of the load."""
    found = []
    source = raw.simulated(name) if name else raw.simulated()
    columns = ["scheme", "seed", "load", "link", "ctl_bytes", *([key] if key else [])]
    frame = source.table("link", columns).to_pandas()
    window = _window_ns(source)
    for _, run in frame.groupby("seed"):
        fractions: Run = {}
        for (scheme, by), of in run.groupby(["scheme", key or "load"]):
            servers = of["link"].str.match(r"h\d+->").sum()
            most = servers * sim.SERVER_BPS * window / 8e9
            for way, pattern in (("from", r"controller->"), ("to", r".*->controller$")):
                told = of.loc[of["link"].str.match(pattern), "ctl_bytes"].sum()
                at = float(by) if key else sim.paper_load(float(by))
                fractions[str(scheme), at, way] = float(told / most)
        found.append(fractions)
    return found


def _window_ns(source: Any) -> float:
    """Time from the warm-up's end to the end of the run, ns."""
    run = source.manifest["spec"]["run"]
    return 1e9 * (seconds(run["duration"]) - seconds(run.get("warmup", 0)))


def seconds(text: Any) -> float:
    """Converts a time of a spec to seconds."""
    if isinstance(text, (int, float)):
        return float(text)
    for unit, factor in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


def loads_of(runs: Sequence[Run]) -> list[float]:
    """Values of the load, or of the quantity that ``runs_of`` used instead, in order."""
    return sorted({load for _, load, _ in runs[0]})


def schemes_of(runs: Sequence[Run]) -> list[str]:
    """Labels of the schemes in the runs."""
    return list(dict.fromkeys(scheme for scheme, _, _ in runs[0]))


def least_way(runs: Sequence[Run]) -> float:
    """Smallest percentage of the servers' capacity that updates take, over runs, loads and directions."""
    return 100 * min(fraction for run in runs for fraction in run.values())


def percent(runs: Sequence[Run], load: float, ways: Sequence[str] = ("from", "to"), scheme: str | None = None) -> float:
    """Percentage of the servers' capacity that updates take in the directions ``ways``, mean over the runs."""
    label = scheme or schemes_of(runs)[0]
    return 100 * sum(run[label, load, way] for run in runs for way in ways) / len(runs)
