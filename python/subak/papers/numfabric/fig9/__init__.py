"""Figure 9 of NUMFabric: rates of two flows with figure 2's bandwidth functions, by the capacity of their link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rates = dict[str, dict[float, list[tuple[float, float]]]]
"""By scheme and capacity, Gb/s: the rates of the two flows at each start of flow 2, Gb/s."""


def expected(capacity: float) -> tuple[float, float]:
    """Rates by figure 2, Gb/s: flow 1 alone up to 10 Gb/s, then 2 of 3 bits to flow 2 until it has 10 Gb/s."""
    second = min(max(capacity - 10, 0) * 2 / 3, 10)
    return capacity - second, second


def _rates(raw: RawResults) -> Rates:
    frame = raw.simulated().table("rate").to_pandas()
    frame = frame[frame["time_ns"] == frame["time_ns"].max()]
    found: Rates = {}
    for (scheme, told, _), rows in frame.groupby(["scheme", "network.bottleneck_rate", "workload.flows"], sort=False):
        one, two = (float(rows[rows["flow_id"] == flow]["rate_bps"].iloc[0]) / 1e9 for flow in ("1", "2"))
        of_scheme = found.setdefault(str(scheme), {})
        of_scheme.setdefault(float(str(told).removesuffix("Gbps")), []).append((one, two))
    return found


def _distances(of: dict[float, list[tuple[float, float]]]) -> list[float]:
    """For each start, the largest distance of a rate from the expected one over all capacities, Gb/s."""

    def distance(capacity: float, pair: tuple[float, float]) -> float:
        return max(abs(got - want) for got, want in zip(pair, expected(capacity), strict=True))

    by_capacity = [[distance(capacity, pair) for pair in pairs] for capacity, pairs in of.items()]
    return [max(of_start) for of_start in zip(*by_capacity, strict=True)]


def measure(raw: RawResults) -> dict[str, Value]:
    """Largest deviations from the expected rates, and the rates at the two capacities that the paper names."""
    rates = _rates(raw)
    named = {
        f"at_{c:g}": [stats.estimate([pair[k] for pair in pairs], "mean", "random starts") for k in (0, 1)]
        for c, pairs in rates["numfabric"].items()
        if c in (10, 25)
    }
    # The fluid model rounds to whole bytes.
    exact = round(max(_distances(rates["ideal"])), 4)
    return {
        "worst": stats.estimate(_distances(rates["numfabric"]), "mean", "random starts"),
        "expected": exact,
        **named,
    }


def draw(raw: RawResults) -> Figure:
    """Rates by capacity: expected as lines, NUMFabric's as marks."""
    rates = _rates(raw)["numfabric"]
    figure, [plot] = figures.axes(width=5.2)
    ends = sorted({*rates, 10.0, 25.0})
    for k, (marker, name) in enumerate((("o", "flow 1"), ("s", "flow 2"))):
        plot.plot(ends, [expected(c)[k] for c in ends], "-", color=figures.COLOURS[k], label=f"{name}, expected")
        got = [sum(pair[k] for pair in pairs) / len(pairs) for pairs in rates.values()]
        plot.plot(list(rates), got, marker, color=figures.COLOURS[k], label=f"{name}, NUMFabric")
    plot.set(xlabel="capacity of the link, Gb/s", ylabel="throughput, Gb/s", ylim=(0, None))
    plot.legend(loc="upper left")
    return figure
