"""Flowtune's optimizer NED and its baselines, run step by step over flows that start and end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from subak import _subak, inputs
from subak.api import Rows, _indices, _values, rows_of
from subak.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Method = Literal["ned", "accelerated", "gradient", "fgm", "newton-like", "newton"]
Precision = Literal["single", "double", "approximate"]
Normalizer = Literal["flow", "uniform", "none"]
ALPHA_FAIR = {"kind": "alpha-fair", "alpha": 1}
MOST_THREADS = 1024


class Ned(_subak.Ned):
    """An iterative optimizer: prices of links, and the resulting rates of flows.

    ``method`` is ``ned``, or ``accelerated``, ``gradient``, ``fgm``, ``newton-like`` or ``newton``. ``gamma`` is its
    step size (default: by method). ``precision`` is ``double``, ``single``, or ``approximate``: single with approximate
    reciprocals, the paper's -RT variants. ``policy`` is alpha-fair with a positive ``alpha``, ``fct``, ``srpt`` or
    ``edf``. Before normalization no rate is above ``most_lines`` times the narrowest capacity of its path. With
    ``bounded`` a step reduces a price of ``ned`` to no less than a quarter. All prices start at 1, in units of the
    links' mean capacity and the first flow's weight. ``threads`` run a step; results are the same bits for any number.

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
        most_lines: float = 1.0,
        bounded: bool = False,
        threads: int = 1,
    ) -> Self:
        """Creates an optimizer without flows, for the present links of the network."""
        wanted = {"kind": policy} if isinstance(policy, str) else policy
        if wanted.get("kind") == "alpha-fair":
            wanted = ALPHA_FAIR | dict(wanted)
        inputs.check_flag("bounded", bounded)
        if not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
            raise InputError(None, "threads", f"it is {threads!r}", f"give a whole number from 1 to {MOST_THREADS}")
        made = super().__new__(
            cls, network, inputs.to_json(wanted), method, gamma, precision, most_lines, bounded, threads
        )
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
            ptr, links = rows_of(self._network, paths)
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
        self.steps(_count(n))

    @property
    def rates(self) -> NDArray[Any]:
        """The normalized rate of each flow, bit/s; 0 for an unused number.

        These are the rates of the last step. After a change of flows, weights or capacities they are recomputed at the
        present prices, so that new flows have rates immediately.
        """
        return _array(self.rates_table(self.normalizer))

    @inputs.keywords
    def rates_of(
        self, numbers: ArrayLike, *, normalizer: Normalizer | None = None, passes: int = 1
    ) -> NDArray[np.float64]:
        """The normalized rates of the flows with these numbers, bit/s, in double precision.

        ``normalizer`` is this optimizer's own unless given. ``passes``: F-NORM is applied so many times, so that flows
        whose links have spare capacity get higher rates; the paper applies it once.
        """
        wanted = self.normalizer if normalizer is None else normalizer
        return _array(self.rates_of_table(_indices("numbers", numbers), wanted, passes))

    @inputs.keywords
    def errors(self, rates_bps: ArrayLike, numbers: ArrayLike, n: int = 1) -> NDArray[np.float64]:
        """Runs ``n`` iterations and returns the largest relative error of a normalized rate after each of them.

        ``rates_bps`` are the rates with which the flows with these ``numbers`` are compared, such as the optimum.
        """
        want = _values("rates_bps", rates_bps)
        return _array(self.errors_table(_count(n), _indices("numbers", numbers), want, self.normalizer))

    @inputs.keywords
    def serve(
        self,
        paths: Rows | Iterable[Sequence[str] | Sequence[int] | NDArray[Any]],
        start_s: ArrayLike,
        size_bytes: ArrayLike,
        *,
        interval_s: float,
        intervals: int,
        steps: int = 1,
        passes: int = 1,
        compare_from: int = 0,
        compare_every: int = 0,
    ) -> _subak.Table:
        """Serves flows that start and end, without messages and without packets, and returns a row for each interval.

        Starts and the length of an interval are seconds. A flow is active from the first interval after its start. In
        each interval the optimizer makes ``steps`` iterations, and flows send at the rates after F-NORM, which is
        applied ``passes`` times, until the next interval. A flow ends at the first interval after its last byte. Flows
        must be in order of their starts. The optimizer must have no flows, and has none afterwards; its prices remain.

        The table has ``flows`` (active ones), ``rate_bps`` (the sum of their rates), ``overload`` (the largest relative
        one of a link by these rates), and ``excess_gbps`` (load beyond capacity without normalization, summed over
        links). Every ``compare_every`` intervals from ``compare_from`` on, ``optimum_bps`` is the sum of the optimal
        rates, certified to 1e-6, and ``uniform_bps`` that of the rates after U-NORM; they are null elsewhere.
        """
        for name, count, least in (("intervals", intervals, 0), ("steps", steps, 0), ("passes", passes, 1)):
            if count < least:
                raise InputError(None, name, f"it is {count}", f"give {least} or more")
        if not interval_s > 0:
            raise InputError(None, "interval_s", f"it is {interval_s}", "give seconds above 0")
        rows = paths if isinstance(paths, Rows) else Rows(*rows_of(self._network, paths))
        ptr, links = _indices("link_ptr", rows.link_ptr), _indices("links", rows.links)
        weight = _column("weight", 1.0 if rows.weight is None else rows.weight, len(ptr) - 1)
        flows = (ptr, links, weight, _values("start_s", start_s), _sizes(size_bytes))
        counts = (steps, passes, compare_from, compare_every)
        return self.serve_flows(flows, (interval_s, intervals), counts)

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


def _column(name: str, values: ArrayLike | None, count: int) -> Any:
    import numpy as np

    if values is not None and np.ndim(values) == 0:
        values = np.full(count, values)
    return _values(name, values)


def _sizes(size_bytes: ArrayLike) -> Any:
    import numpy as np

    given = np.asarray(size_bytes)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and given.min() < 0):
        raise InputError(None, "size_bytes", f"they are {given.dtype}", "give a whole number of bytes for each flow")
    return np.ascontiguousarray(given, dtype=np.uint64)


def _count(n: int) -> int:
    """The number of iterations ``n``, checked."""
    if n < 0:
        raise InputError(None, "n", f"it is {n}", "give a number of iterations, 0 or more")
    return n


def _array(table: _subak.Table) -> NDArray[Any]:
    """The table's only column as an array, without copying."""
    import pyarrow as pa

    chunks = pa.table(table).column(0).chunks
    array: NDArray[Any] = chunks[0].to_numpy(zero_copy_only=True)
    return array


@inputs.keywords
def ned_times(
    network: _subak.Network,
    flows: Rows | Iterable[Sequence[str] | Sequence[int] | NDArray[Any]],
    *,
    threads: int = 2,
    groups: int = 2,
    seconds: float = 0.3,
    compare: bool = False,
) -> dict[str, Any]:
    """Measures an iteration of NED on this machine: the shortest times in us, over calls for ``seconds`` each.

    ``single_us`` and ``double_us`` are those of ``Ned`` by precision, ``normalized_us`` that of single precision with
    F-NORM, and ``straight_us`` that of a scalar loop. ``blocks_us`` and ``threads_us`` are those of FlowBlocks in
    single precision on one thread and on ``threads``: racks are in ``groups``, and flows between two groups are a
    block. With ``compare``, ``same_bits`` says whether rates and prices are the same on 1 to 4 threads.

    Perry et al., "Flowtune: Flowlet Control for Datacenter Networks", NSDI 2017, section 5.1 and 5.2.
    """
    for name, value in (("threads", threads), ("groups", groups), ("seconds", seconds)):
        if not value > 0:
            raise InputError(None, name, f"it is {value}", "give a number above 0")
    rows = (flows.link_ptr, flows.links) if isinstance(flows, Rows) else rows_of(network, flows)
    pair = (_indices("link_ptr", rows[0]), _indices("links", rows[1]))
    return _subak.ned_times(network, pair, threads, groups, seconds, compare)
