"""Figure 8 of NUMFabric: throughput and fairness of a permutation by the number of subflows, pooled and not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.repro import Measured, RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_BPS = 10e9
Rates = dict[tuple[str, bool, int], list[np.ndarray]]
"""By scheme, whether subflows are separate flows, and number of subflows: rates of the senders by seed, in line
rates."""


def _rates(raw: RawResults) -> Rates:
    frame = raw.simulated().table("rate").to_pandas()
    frame = frame[frame["time_ns"] > frame["time_ns"].max() / 2]
    found: Rates = {}
    for key, rows in frame.groupby(["scheme", "workload.apart", "workload.subflows", "seed"], sort=True):
        scheme, apart, subflows = str(key[0]), str(key[1]) == "true", int(key[2])
        rates = rows.groupby("flow")["rate_bps"].mean().sort_index().to_numpy(dtype=float) / LINE_BPS
        # Subflows as separate flows have consecutive numbers.
        each = rates.reshape(-1, subflows).sum(axis=1) if apart else rates
        found.setdefault((scheme, apart, subflows), []).append(each)
    return found


def _jain(rates: np.ndarray) -> float:
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))


def _over_seeds(values: list[float]) -> Measured:
    return stats.estimate(values, "mean", "permutations")


def measure(raw: RawResults) -> dict[str, Value]:
    """Throughput at one and at eight subflows, and at eight: lowest rates over the mean, and Jain's index."""
    rates = _rates(raw)

    def throughput(scheme: str, apart: bool, subflows: int) -> Measured:
        return _over_seeds([float(r.mean()) for r in rates[scheme, apart, subflows]])

    def worst(apart: bool, rank: float = 0) -> list[float]:
        return [float(np.quantile(r, rank) / r.mean()) for r in rates["numfabric", apart, 8]]

    def jain(apart: bool) -> Measured:
        return _over_seeds([_jain(r) for r in rates["numfabric", apart, 8]])

    return {
        "throughput_8": throughput("numfabric", False, 8),
        "throughput_8_exact": throughput("ideal", False, 8),
        "throughput_1": throughput("numfabric", False, 1),
        "throughput_8_apart": throughput("numfabric", True, 8),
        "worst_8": _over_seeds(worst(False)),
        "worst_8_apart": _over_seeds(worst(True)),
        "tenth_8": _over_seeds(worst(False, 0.1)),
        "tenth_8_apart": _over_seeds(worst(True, 0.1)),
        "jain_8": jain(False),
        "jain_8_apart": jain(True),
        # All variants run the same permutations, so that they are compared in pairs.
        "fairer": _over_seeds([a - b for a, b in zip(worst(False), worst(True), strict=True)]),
    }


def draw(raw: RawResults) -> Figure:
    """Throughput by number of subflows, and the rates at eight subflows by rank; both over all seeds."""
    rates = _rates(raw)
    figure, [total, ranks] = figures.axes(columns=2)
    for apart, label in ((False, "pooled"), (True, "not pooled")):
        for scheme, dash in (("numfabric", "-o"), ("ideal", ":")):
            of = sorted((n, np.concatenate(r).mean()) for (s, a, n), r in rates.items() if (s, a) == (scheme, apart))
            colour, name = figures.COLOURS[apart], label if scheme == "numfabric" else f"{label}, exact"
            total.plot([n for n, _ in of], [t for _, t in of], dash, color=colour, label=name)
        ordered = np.sort(np.concatenate(rates["numfabric", apart, 8]))
        ranks.plot(np.linspace(0, 100, len(ordered)), ordered, color=figures.COLOURS[apart], label=label)
    total.set(xlabel="subflows", ylabel="throughput over the hosts' links", ylim=(0, 1.05))
    ranks.set(xlabel="rank of flow, percent", ylabel="throughput of the flow, line rates", ylim=(0, 1.05))
    for plot in (total, ranks):
        plot.legend(loc="lower right")
    return figure
