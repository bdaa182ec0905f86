"""Problems that are solved repeatedly after small changes; each solve reuses the previous result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from subak import _subak, inputs
from subak.api import Problem, Rows, case_of
from subak.errors import InputError


@dataclass(frozen=True)
class Repair:
    """Statistics of one call of ``Incremental.repair``."""

    flows: int
    """Number of flows whose rates were recomputed."""
    rounds: int
    """Number of rounds. A round recomputes a set of flows and adds the flows that this affects."""
    exact: bool
    """Whether the repair ended in an exact solve of all flows, because too many flows were affected."""


class Incremental(_subak.Incremental):
    """A problem in which flows are added and removed, and weights, demands and capacities change.

    ``problem``, ``flows`` and ``policy`` are as in ``subak.solve``; a network may start without flows. A flow without
    an ``id`` gets its number as name. ``solve`` computes exact rates; for utilities it starts from the last prices. For
    max-min over single paths, ``repair`` updates the last rates around the changes, to within a tolerance. ``answer``
    and ``solve`` compute the certificate from the rates and the present problem. An invalid change raises an error and
    changes nothing.
    """

    @inputs.keywords
    def __new__(
        cls,
        problem: Problem,
        *,
        flows: Sequence[Mapping[str, Any]] | Rows | None = None,
        policy: str | Mapping[str, Any] | None = None,
    ) -> Self:
        """Creates a problem that can be changed and solved again."""
        if flows is None and isinstance(problem, _subak.Network):
            flows = ()
        return super().__new__(cls, case_of(problem, flows, policy))

    @inputs.keywords
    def add(self, flows: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, symmetric: bool = False) -> None:
        """Adds one flow or several, in the form of a case; each needs a new ``id``.

        A flow with ``src`` and ``dst`` is routed by ECMP, as by ``solve``; ``symmetric`` is as in a case's ``routing``.
        """
        inputs.check_flag("symmetric", symmetric)
        given = [flows] if isinstance(flows, Mapping) else list(flows)
        for i, flow in enumerate(given):
            if isinstance(flow, Mapping) and "id" not in flow:
                raise InputError(None, f"flows[{i}].id", "the flow has no id", "give one, to call the flow by later")
        self.add_flows(inputs.to_json({"flows": given, "routing": {"symmetric": symmetric}}))

    @inputs.keywords
    def remove(self, ids: str | Iterable[str]) -> None:
        """Removes a flow, or several."""
        self.remove_flows([ids] if isinstance(ids, str) else list(ids))

    @inputs.keywords
    def set_demand(self, id: str, demand: str | float | None) -> None:
        """Changes a flow's demand: bit/s or text such as ``"5Gbps"``; ``None`` for no bound."""
        self.set_demand_json(id, _quantity(demand, "demand"))

    @inputs.keywords
    def set_capacity(self, link: str, capacity: str | float) -> None:
        """Changes the capacity of a link: bit/s or text such as ``"10Gbps"``."""
        self.set_capacity_json(link, _quantity(capacity, "capacity"))

    @inputs.keywords
    def repair(self, tolerance: float = 1e-3) -> Repair:
        """Updates the last max-min rates around the changes until each flow has a bottleneck to within ``tolerance``.

        The time is proportional to the number of affected flows; if a change affects many, ``solve`` is faster.
        ``rate_bps`` returns a flow's rate, ``answer`` all rates with their certificate. Links are never overloaded.
        Raises ``InputError`` for utilities, bandwidth functions and several paths per flow, which are not supported.
        """
        return Repair(*self.repair_within(tolerance))


def _quantity(value: str | float | None, place: str) -> bytes:
    try:
        return inputs.to_json(value)
    except InputError as error:
        raise InputError(None, place, error.what, error.hint) from None
