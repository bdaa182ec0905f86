"""Upgrade analysis: which links are worth more capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subak import _subak, inputs

if TYPE_CHECKING:
    import pyarrow as pa

    from subak._subak import Answer
    from subak.api import Flows, Problem, Rows

TWICE = 2.0
EXACT = ("max-min", "bandwidth-function")
"""Policies under which prices do not bound the gain: each bottleneck is doubled and the problem solved again."""
FINER = 1e-9
"""Relative change below which a rate counts as unchanged; links with a smaller fraction of the largest worth are
omitted."""


def upgrades(
    problem: Problem,
    *,
    flows: Flows | Rows | None = None,
    policy: str | Mapping[str, Any] | None = None,
) -> pa.Table:
    """The links ranked by the gain of twice their capacity, largest first.

    Under max-min, and under bandwidth functions, each bottleneck link is doubled and the problem solved again.
    ``gain_bps`` is the gain of the sum of rates, ``least_rate_gain_bps`` that of the smallest rate; ``flows_up`` and
    ``flows_down`` count flows that gain and lose. Under other policies ``worth`` is price times capacity: an upper
    bound on the gain of the sum of utilities. Links that are not listed are no bottlenecks.

    :param problem: As in ``solve``.
    :param flows: As in ``solve``.
    :param policy: As in ``solve``.
    """
    from subak.api import case_of

    case = case_of(problem, flows, policy)
    return rank(case, case.solve("auto"))


def rank(case: _subak.Case, answer: Answer) -> pa.Table:
    """Ranks the links of a solved case as ``upgrades`` does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    links = pa.table(answer.links).select(["id", "capacity_bps", "price"])
    if case.policy not in EXACT:
        worth = links.append_column("worth", pc.multiply(links["price"], links["capacity_bps"])).drop_columns("price")
        least = FINER * (pc.max(worth["worth"]).as_py() or 0.0)
        return worth.filter(pc.greater(worth["worth"], least)).sort_by([("worth", "descending")])
    before = pa.table(answer.flows)
    full = set(pc.list_flatten(before["bottlenecks"]).to_pylist())
    tried, rows = _subak.Incremental(case), []
    for link in links.to_pylist():
        name, capacity_bps = link["id"], link["capacity_bps"]
        if name in full:
            tried.set_capacity_json(name, inputs.to_json(TWICE * capacity_bps))
            rows.append({"id": name, "capacity_bps": capacity_bps, **_gain(before, pa.table(tried.solve().flows))})
            tried.set_capacity_json(name, inputs.to_json(capacity_bps))
    rows.sort(key=lambda row: -row["gain_bps"])
    kinds = [("id", pa.string()), ("capacity_bps", pa.float64()), ("gain_bps", pa.float64())]
    kinds += [("least_rate_gain_bps", pa.float64()), ("flows_up", pa.int64()), ("flows_down", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def _gain(before: pa.Table, after: pa.Table) -> dict[str, Any]:
    old, new = before["rate_bps"].to_numpy(), after["rate_bps"].to_numpy()
    moved = abs(new - old) > FINER * old
    return {
        "gain_bps": float(new.sum() - old.sum()),
        "least_rate_gain_bps": float(new.min() - old.min()),
        "flows_up": int((moved & (new > old)).sum()),
        "flows_down": int((moved & (new < old)).sum()),
    }
