"""Queueing delays of data packets over their paths, run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from subak.results import Results


def p99_us(results: Results, scheme: str, axes: Mapping[str, object] | None = None) -> list[float]:
    """The 99th percentile of the delay in each run, us: the upper edge of its bin."""
    rows = results.table("wait").to_pandas()
    for column, value in {"scheme": scheme, **(axes or {})}.items():
        rows = rows[rows[column] == value]
    found = []
    for _, run in rows.sort_values("wait_ns").groupby("seed", sort=True):
        before = run["packets"].cumsum()
        found.append(float(run["wait_ns"][before >= 0.99 * before.iloc[-1]].iloc[0]) / 1e3)
    return found
