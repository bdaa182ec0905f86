"""Flowtune's optimizer NED and its baselines, run step by step over flows that start and end."""

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
    """An iterative optimizer: prices of links, and the resulting rates of flows.

    ``method`` is ``ned``, or ``accelerated``, ``gradient``, ``fgm``, ``newton-like`` or ``newton``. ``gamma`` is its
    step size (default: by method). ``precision`` is ``double``, ``single``, or ``approximate``: single with approximate
    reciprocals, the paper's -RT variants. ``policy`` is alpha-fair with a positive ``alpha``, ``fct``, ``srpt`` or
    ``edf``. All prices start at 1, in units of the links' mean capacity and the first flow's weight.

    Flows are numbered, and element ``n`` of an array belongs to flow ``n``. Numbers of removed flows are reused. Arrays
    are read-only and not copied; an array does not change after it is returned. ``normalizer`` is applied to ``rates``:
    ``flow`` (F-NORM), ``uniform`` (U-NORM) or ``none``; it may be set at any time.

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
        """Creates an optimizer without flows, for the present links of the network."""
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
        """Adds flows, all of them or none, and returns their numbers.

        Each path is a list of links, by id or by index in ``network.links``; for very many flows use ``Rows``, which
        has its own ``weight`` and ``demand_bps``. Numbers are assigned in order, except for thousands of flows: these
        are numbered by their position in the network, which makes steps faster. The other arguments are one number for
        all flows, or one per flow. ``size_bytes`` is for ``fct`` and ``srpt``, ``deadline_s`` for ``edf``.
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
        """Removes the flow or flows with these numbers: all of them, or none."""
        import numpy as np

        self.remove_flows(_indices("numbers", np.atleast_1d(np.asarray(numbers))))

    @inputs.keywords
    def set_capacity(self, link: str, capacity: str | float) -> None:
        """Changes a link's capacity: bit/s or text such as ``"10Gbps"``. With 0 the link has failed."""
        self.set_capacity_json(link, inputs.to_json(capacity))

    @inputs.keywords
    def step(self, n: int = 1) -> None:
        """Runs ``n`` iterations: rates from prices, then prices from rates. Other Python threads run meanwhile."""
        if n < 0:
            raise InputError(None, "n", f"it is {n}", "give a number of iterations, 0 or more")
        self.steps(n)

    @property
    def rates(self) -> NDArray[Any]:
        """The normalized rate of each flow, bit/s; 0 for an unused number.

        These are the rates of the last step. After a change of flows, weights or capacities they are recomputed at the
        present prices, so that new flows have rates immediately.
        """
        return _array(self.rates_table(self.normalizer))

    @property
    def prices(self) -> NDArray[np.float64]:
        """The price of each link, in utility per bit/s; infinite for a failed link."""
        return _array(self.prices_table())

    @prices.setter
    def prices(self, prices: ArrayLike) -> None:
        self.set_prices(_values("prices", prices))

    @property
    def loads(self) -> NDArray[np.float64]:
        """The load of each link before normalization, bit/s."""
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
    """The table's only column as an array, without copying."""
    import pyarrow as pa

    chunks = pa.table(table).column(0).chunks
    array: NDArray[Any] = chunks[0].to_numpy(zero_copy_only=True)
    return array
