"""NUMFabric's optimizer xWI over three transports: soze-virtual, Swift (as in NUMFabric) and s-PERC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, settle, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = {"xwi-soze": "over Soze", "numfabric": "over Swift", "xwi-s-perc": "over s-PERC"}
CRITERION = {"xwi-soze": 2, "numfabric": 0, "xwi-s-perc": 2}
"""Index of the convergence criterion for half of the flows; the next index is for 95% of them."""


def _ran(raw: RawResults) -> list[str]:
    return [scheme for scheme in SCHEMES if not raw.plan.schemes or scheme in raw.plan.schemes]


def _times(raw: RawResults, scheme: str, more: int = 0) -> list[float]:
    return [1e6 * t for t in settle.times(raw.simulated(), scheme, CRITERION[scheme] + more, after_ns=1)]


def _errors(raw: RawResults, scheme: str) -> list[float]:
    """For each change: error of the median flow at the last sample, percent."""
    rows = raw.simulated().table("convergence").to_pylist()
    mine = [r for r in rows if r["time_ns"] > 0 and (r["scheme"], r["criterion"]) == (scheme, CRITERION[scheme])]
    return [100 * float(r["end_error"]) for r in mine]


def _queues(raw: RawResults, scheme: str) -> list[float]:
    """Queue length at each sample of each link, KB, without idle links."""
    rows = raw.simulated().table("queue", ["scheme", "queued_bytes"]).to_pandas()
    return [float(b) / 1e3 for b in rows[rows["scheme"] == scheme]["queued_bytes"]]


def measure(raw: RawResults) -> dict[str, Value]:
    """Convergence times, errors and queue lengths of xWI over each transport."""
    found: dict[str, Value] = {}
    for scheme in _ran(raw):
        half, most = _times(raw, scheme), _times(raw, scheme, 1)
        found |= {
            f"{scheme} half_settled": settle.settled(half),
            f"{scheme} most_settled": settle.settled(most),
            f"{scheme} half_p50": settle.at(half, 0.5),
            f"{scheme} most_p50": settle.at(most, 0.5),
            f"{scheme} error": stats.estimate(_errors(raw, scheme), "median", "changes"),
            f"{scheme} queue": stats.quantile(_queues(raw, scheme), 0.99),
        }
    for other in ("numfabric", "xwi-s-perc"):
        if {"xwi-soze", other} <= set(_ran(raw)):
            found[f"ratio {other}"] = settle.ratio(_times(raw, "xwi-soze", 1), _times(raw, other, 1))
    return found


def draw(raw: RawResults) -> Figure:
    """Convergence times of half of the flows, and of 95% of them."""
    figure, plots = figures.axes(columns=2, width=4.8)
    for plot, more, share in ((plots[0], 0, "half"), (plots[1], 1, "95%")):
        curves = {SCHEMES[s]: _times(raw, s, more) for s in _ran(raw)}
        settle.draw(plot, curves, f"us until {share} of the flows are within 10%")
    return figure
