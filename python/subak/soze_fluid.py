"""Soze on virtual queues as a fluid, run step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from subak import _subak, inputs
from subak.api import Rows, _indices, _values, rows_of
from subak.errors import InputError
from subak.ned import _array, _column, _count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class SozeFluid(_subak.SozeFluid):
    """The recurrence of ``soze-virtual``: rates of senders, and virtual and real queues of links, without packets.

    A step is a quarter of the largest base RTT. It sums the rates at each link, updates the queues, and then each rate
    by the largest signal of its path one base RTT before. The scheme has its standard parameters, with 2% of each link
    left free. All flows start at time 0. ``iterations`` is the number of steps, ``step_ns`` their length, and
    ``peak_ns`` the largest real queueing delay so far.

    :param network: A ``Network``.
    :param paths: A path for each flow, as in ``Ned.add``, or ``Rows``. All begin at links of one capacity.
    :param rtt_ns: The base RTT of each flow, ns.
    :param weight: The weight of each flow, 1 by default.
    """

    @inputs.keywords
    def __new__(
        cls,
        network: _subak.Network,
        paths: Rows | Iterable[Sequence[str] | Sequence[int] | NDArray[Any]],
        rtt_ns: ArrayLike,
        weight: ArrayLike | None = None,
    ) -> Self:
        """The flows before the first step."""
        import numpy as np

        rows = paths if isinstance(paths, Rows) else Rows(*rows_of(network, paths), weight)
        ptr, links = _indices("link_ptr", rows.link_ptr), _indices("links", rows.links)
        weights = _column("weight", 1.0 if rows.weight is None else rows.weight, len(ptr) - 1)
        rtts = np.asarray(rtt_ns)
        if rtts.dtype.kind not in "iu" or (rtts.size and rtts.min() < 1):
            raise InputError(None, "rtt_ns", f"they are {rtts.dtype}", "give whole numbers of nanoseconds above 0")
        rtts = np.ascontiguousarray(np.full(len(ptr) - 1, rtts) if rtts.ndim == 0 else rtts, dtype=np.uint64)
        return super().__new__(cls, network, (ptr, links, weights, rtts))

    @inputs.keywords
    def step(self, n: int = 1) -> None:
        """Runs ``n`` steps. Other Python threads run meanwhile."""
        self.steps(_count(n))

    @property
    def rates(self) -> NDArray[np.float64]:
        """The rate of each flow, bit/s."""
        return _array(self.rates_table())

    @inputs.keywords
    def near(self, rates_bps: ArrayLike, within: float) -> float:
        """The fraction of the flows whose rate is within a relative tolerance of these rates."""
        return self.share_near(_values("rates_bps", rates_bps), within)

    def __repr__(self) -> str:
        """The numbers of flows and steps."""
        return f"<subak.SozeFluid: {len(self)} flows, {self.iterations} iterations>"
