"""Flowtune's optimizer NED and its baselines, one step at a time, over flows that come and go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from subak import _subak, inputs
from subak.api import Rows, _indices, _values
from subak.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Method = Literal["ned", "accelerated", "gradient", "fgm", "newton-like", "newton"]
Precision = Literal["single", "double", "approximate"]
Normalizer = Literal["flow", "uniform", "none"]
ALPHA_FAIR = {"kind": "alpha-fair", "alpha": 1}


class Ned(_subak.Ned):
    """An optimizer in the middle of its way: prices of links, and the rates that flows take at them.

    ``method`` is ``ned``, or ``accelerated``, ``gradient``, ``fgm``, ``newton-like`` or ``newton``. ``gamma`` is its
    step; none for the default. ``precision`` is ``double``, ``single``, or ``approximate``: single with quick
    reciprocals, the paper's -RT variants. ``policy`` is alpha-fair with a positive ``alpha``, ``fct``, ``srpt`` or
    ``edf``. All prices start at 1, in a scale of the links' mean capacity and the first flow's weight.

    A flow has a number, and arrays hold the value of flow ``n`` in place ``n``. A number that is free is given anew.
    Arrays are read-only and are not copied: one that you keep stays as it is. ``normalizer`` is what ``rates`` are put
    through: ``flow`` (F-NORM), ``uniform`` (U-NORM) or ``none``; it may be set at any time.

    Perry et al., "Flowtune: Flowlet Control for Datacenter Networks", NSDI 2017, sections 2 and 3, appendix B.
    """

    normalizer: Normalizer

    @inputs.keywords
    def __new__(
        cls,
        network: _subak.Network,
        *,
        method: Method = "ned",
        policy: str | Mapping[str, Any] = ALPHA_FAIR,
        gamma: float | None = None,
        precision: Precision = "double",
        normalizer: Normalizer = "flow",
    ) -> Self:
        """Starts without flows, on the links as they are now."""
        wanted = {"kind": policy} if isinstance(policy, str) else policy
        if wanted.get("kind") == "alpha-fair":
            wanted = ALPHA_FAIR | dict(wanted)
        made = super().__new__(cls, network, inputs.to_json(wanted), method, gamma, precision)
        made._network = network
        made.normalizer = normalizer
        return made

    _network: _subak.Network

    @inputs.keywords
    def add(
        self,
        paths: Rows | Iterable[Sequence[str] | Sequence[int] | NDArray[Any]],
        weight: ArrayLike | None = None,
        *,
        demand_bps: ArrayLike | None = None,
        size_bytes: ArrayLike | None = None,
        deadline_s: ArrayLike | None = None,
    ) -> NDArray[np.uint32]:
        """Adds flows, all or none, and returns their numbers.

        Each path is a list of links, by id or by their place in ``network.links``; ``Rows`` takes very many, with its
        own ``weight`` and ``demand_bps``. Numbers are given in order, but not where they are thousands: flows near each
        other in the network get numbers near each other, which makes steps faster. The other arguments are one number
        for all flows, or one a flow. ``size_bytes`` is for ``fct`` and ``srpt``, ``deadline_s`` for ``edf``.
        """
        if isinstance(paths, Rows):
            for name, twice in (("weight", weight), ("demand_bps", demand_bps)):
                if twice is not None:
                    raise InputError(None, name, "it is given beside Rows, which have their own", "put it into Rows")
            weight, demand_bps = paths.weight, paths.demand_bps
            ptr, links = _indices("link_ptr", paths.link_ptr), _indices("links", paths.links)
        else:
            ptr, links = self._rows(paths)
        count = max(len(ptr) - 1, 0)
        given = {"weight": weight, "demand_bps": demand_bps, "size_bytes": size_bytes, "deadline_s": deadline_s}
        columns = (_column(name, values, count) for name, values in given.items())
        return _array(self.add_flows((ptr, links, *columns)))

    @inputs.keywords
    def remove(self, numbers: ArrayLike) -> None:
        """Removes the flow, or the flows, of these numbers: all or none."""
        import numpy as np

        self.remove_flows(_indices("numbers", np.atleast_1d(np.asarray(numbers))))

    @inputs.keywords
    def set_capacity(self, link: str, capacity: str | float) -> None:
        """Changes a link's capacity: bit/s or text such as ``"10Gbps"``. With 0 the link has failed."""
        self.set_capacity_json(link, inputs.to_json(capacity))

    @inputs.keywords
    def step(self, n: int = 1) -> None:
        """Makes ``n`` iterations: rates from prices, then prices from rates. Other threads run meanwhile."""
        if n < 0:
            raise InputError(None, "n", f"it is {n}", "give a number of iterations, 0 or more")
        self.steps(n)

    @property
    def rates(self) -> NDArray[Any]:
        """The rate of each flow, bit/s, normalized; 0 where a number has no flow.

        They are those of the last step. After a change of flows, weights or capacities they are those of the present
        prices, so flows that have just come have rates at once.
        """
        return _array(self.rates_table(self.normalizer))

    @property
    def prices(self) -> NDArray[np.float64]:
        """The price of each link, in units of the utility per bit/s; infinite for a failed link."""
        return _array(self.prices_table())

    @prices.setter
    def prices(self, prices: ArrayLike) -> None:
        self.set_prices(_values("prices", prices))

    @property
    def loads(self) -> NDArray[np.float64]:
        """The load of each link before normalizing, bit/s."""
        return _array(self.loads_table())

    def _rows(self, paths: Iterable[Sequence[str] | Sequence[int] | NDArray[Any]]) -> tuple[Any, Any]:
        import numpy as np

        listed = [list(path) for path in paths]
        flat: list[Any] = [link for path in listed for link in path]
        if any(isinstance(link, str) for link in flat):
            if not all(isinstance(link, str) for link in flat):
                raise InputError(None, "paths", "ids and numbers of links are mixed", "give one of the two")
            flat = self._network.link_numbers(flat)
        ptr = np.cumsum([0, *map(len, listed)])
        return _indices("link_ptr", ptr), _indices("links", flat)


def _column(name: str, values: ArrayLike | None, count: int) -> Any:
    import numpy as np

    if values is not None and np.ndim(values) == 0:
        values = np.full(count, values)
    return _values(name, values)


def _array(table: _subak.Table) -> NDArray[Any]:
    """The table's only column, as it lies in memory."""
    import pyarrow as pa

    chunks = pa.table(table).column(0).chunks
    array: NDArray[Any] = chunks[0].to_numpy(zero_copy_only=True)
    return array
