"""Figure 7: mean normalized completion times of NUMFabric and pFabric by load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("numfabric", "pfabric", "capped")
"""The last is NUMFabric with weights of 1.5 line rates at most."""


def _flows(raw: RawResults) -> Any:
    columns = ["kind", "scheme", "load", "size_bytes", "slowdown", "measured"]
    frame = raw.simulated().table("flow", columns).to_pandas()
    return frame[frame["measured"]]


def _means(flows: Any) -> dict[str, dict[float, float]]:
    """By scheme and load: the mean over its flows of their completion time over that alone."""
    means = flows.groupby(["scheme", "load"])["slowdown"].mean()
    return {s: {float(load): float(v) for load, v in means[s].items()} for s in SCHEMES}


def _ratios(flows: Any, scheme: str = "numfabric") -> list[float]:
    means = _means(flows)
    return [means[scheme][load] / means["pfabric"][load] for load in means["pfabric"]]


def measure(raw: RawResults) -> dict[str, Value]:
    """NUMFabric over pFabric at each load, over all flows and by size."""
    flows = _flows(raw)
    ratios = _ratios(flows)
    return {
        "worst": max(ratios),
        "ratios": ratios,
        "capped_ratios": _ratios(flows, "capped"),
        "short": _ratios(flows[flows["size_bytes"] <= 100_000]),
        "long": _ratios(flows[flows["size_bytes"] > 1_000_000]),
        "complete": 100 * float(flows["slowdown"].notna().mean()),
        **{scheme: list(of.values()) for scheme, of in _means(flows).items()},
    }


def draw(raw: RawResults) -> Figure:
    """Means by load, over all flows and over those up to 100 KB and above 1 MB."""
    flows = _flows(raw)
    size = flows["size_bytes"]
    parts = {"all flows": size > 0, "up to 100 KB": size <= 100_000, "above 1 MB": size > 1_000_000}
    figure, plots = figures.axes(columns=3, width=3.6)
    for plot, (name, chosen) in zip(plots, parts.items(), strict=True):
        for scheme, means in _means(flows[chosen]).items():
            plot.plot(list(means), list(means.values()), marker="o", label=scheme)
        plot.set(title=name, xlabel="load", ylabel="mean normalized completion time", ylim=(0, None))
    plots[0].legend(loc="upper left")
    return figure
