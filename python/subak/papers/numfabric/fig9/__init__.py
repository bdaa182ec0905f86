"""Figure 9 of NUMFabric: rates of two flows with figure 2's bandwidth functions, by the capacity of their link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rates = dict[str, dict[float, tuple[float, float]]]
"""By scheme and capacity, Gb/s: the rates of the two flows, Gb/s."""


def expected(capacity: float) -> tuple[float, float]:
    """Rates by figure 2, Gb/s: flow 1 alone up to 10 Gb/s, then 2 of 3 bits to flow 2 until it has 10 Gb/s."""
    second = min(max(capacity - 10, 0) * 2 / 3, 10)
    return capacity - second, second


def _rates(raw: RawResults) -> Rates:
    frame = raw.simulated().table("rate").to_pandas()
    frame = frame[frame["time_ns"] == frame["time_ns"].max()]
    found: Rates = {}
    for (scheme, told), rows in frame.groupby(["scheme", "network.bottleneck_rate"], sort=False):
        one, two = (float(rows[rows["flow_id"] == flow]["rate_bps"].iloc[0]) / 1e9 for flow in ("1", "2"))
        found.setdefault(str(scheme), {})[float(str(told).removesuffix("Gbps"))] = (one, two)
    return found


def _distance(of: dict[float, tuple[float, float]]) -> float:
    return max(abs(got - want) for c, pair in of.items() for got, want in zip(pair, expected(c), strict=True))


def measure(raw: RawResults) -> dict[str, Value]:
    """Largest deviations from the expected rates, and the rates at the two capacities that the paper names."""
    rates = _rates(raw)
    named = {f"at_{c:g}": list(pair) for c, pair in rates["numfabric"].items()}
    # The fluid model rounds to whole bytes.
    return {"worst": _distance(rates["numfabric"]), "expected": round(_distance(rates["ideal"]), 4), **named}


def draw(raw: RawResults) -> Figure:
    """Rates by capacity: expected as lines, NUMFabric's as marks."""
    rates = _rates(raw)["numfabric"]
    figure, [plot] = figures.axes(width=5.2)
    ends = sorted({*rates, 10.0, 25.0})
    for k, (marker, name) in enumerate((("o", "flow 1"), ("s", "flow 2"))):
        plot.plot(ends, [expected(c)[k] for c in ends], "-", color=figures.COLOURS[k], label=f"{name}, expected")
        got = [pair[k] for pair in rates.values()]
        plot.plot(list(rates), got, marker, color=figures.COLOURS[k], label=f"{name}, NUMFabric")
    plot.set(xlabel="capacity of the link, Gb/s", ylabel="throughput, Gb/s", ylim=(0, None))
    plot.legend(loc="upper left")
    return figure
