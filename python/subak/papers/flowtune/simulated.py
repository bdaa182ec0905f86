"""Common code of the simulations in section 5.3 of Flowtune: loads, bins of sizes, and rows by run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subak.repro import RawResults, stats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from subak.repro import Value

WIRE = 1.038
"""Bytes on the wire over payload, mean over the flows; the three workloads differ by less than 0.1%."""
SERVER_BPS = 10e9
PAYLOAD_BYTES = 1446
RIVALS = ("dctcp", "pfabric", "sfqcodel", "sfqcodel-rtt", "xcp")
COLORS = {scheme: f"C{k}" for k, scheme in enumerate(("flowtune", *RIVALS))}
"""Colours of schemes, the same in all figures."""
BINS = {"1": (0, 1), "1-10": (1, 10), "10-100": (10, 100), "100-1000": (100, 1000), "large": (1000, np.inf)}
"""Bins of flow sizes by name: packets, more than the first number and at most the second."""


def paper_load(load: float) -> float:
    """The load as the paper defines it (of payload), from a spec's load, which counts bytes on the wire."""
    return round(load / WIRE, 3)


def bin_of(sizes_bytes: Any) -> Any:
    """Index in ``BINS`` of each flow size."""
    packets = np.ceil(np.asarray(sizes_bytes, dtype=float) / PAYLOAD_BYTES)
    return np.searchsorted([high for _, high in BINS.values()], packets)


def runs_of(raw: RawResults, kind: str, columns: Sequence[str], name: str | None = None) -> list[Any]:
    """Rows of a kind, one frame per run; loads are as the paper defines them."""
    source = raw.simulated(name) if name else raw.simulated()
    frame = source.table(kind, ["scheme", "seed", "load", *columns]).to_pandas()
    if "measured" in columns:
        frame = frame[frame["measured"].astype(bool)]
    frame["load"] = frame["load"].map(paper_load, na_action="ignore")
    return [run for _, run in frame.groupby("seed")]


def loads_of(runs: Sequence[Any]) -> list[float]:
    """The loads that were run, as the paper defines them."""
    return sorted(float(load) for load in runs[0]["load"].unique())


def over_runs(runs: Sequence[Any], of: Callable[[Sequence[Any]], float]) -> Value:
    """A statistic over all runs, with an interval by resampling whole runs."""
    return stats.over_runs(runs, of)


def percent_complete(fct_ns: Iterable[Any]) -> float:
    """Percentage of flows that completed."""
    return 100 * float(np.isfinite(np.asarray(list(fct_ns), dtype=float)).mean())
