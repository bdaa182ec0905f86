"""Slowdown by flow size, in bins with equal numbers of flows, as in HPCC's plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class SizeBin(NamedTuple):
    """A bin of flows that are adjacent in order of size."""

    largest_bytes: int
    """Size of the largest flow in the bin, bytes."""
    share: float
    """Fraction of all flows in this bin and the bins before."""
    flows: int
    slowdown: float
    """Requested percentile of the slowdowns in the bin."""


def by_size(sizes_bytes: Any, slowdowns: Any, percentile: float = 95.0, bins: int = 10) -> list[SizeBin]:
    """The ``percentile`` of ``slowdowns`` in each of ``bins`` equal parts of the flows, ordered by their sizes.

    ``sizes_bytes`` and ``slowdowns`` have one entry for each flow. Flows of equal size keep their order, and empty bins
    are omitted.
    """
    import numpy as np

    sizes, values = np.asarray(sizes_bytes, dtype=float), np.asarray(slowdowns, dtype=float)
    order = np.argsort(sizes, kind="stable")
    found = []
    for k, part in enumerate(np.array_split(order, bins)):
        if len(part):
            value = float(np.percentile(values[part], percentile))
            found.append(SizeBin(int(sizes[part[-1]]), (k + 1) / bins, len(part), value))
    return found


def labels(bins: Sequence[SizeBin]) -> list[str]:
    """Size of the largest flow of each bin as short text, for axis labels."""
    return [_short(one.largest_bytes) for one in bins]


def _short(count: int) -> str:
    for factor, unit in ((1_000_000, "MB"), (1000, "KB")):
        # So that 999,999 bytes, rounded to three digits, are 1 MB.
        if count >= 0.9995 * factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"
