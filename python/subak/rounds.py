"""Control messages of a scheme that the caller advances step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from subak import _subak, inputs
from subak.api import Rows, _indices, _values, rows_of
from subak.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Rounds(_subak.Rounds):
    """Control messages of one scheme over the links of a network, which stop between two steps.

    There are no data packets and no queues. Messages take the links' delays and a small random jitter, links update
    them, and sources are assigned rates. Between steps flows can be added, stopped and given other weights, and rates
    can be read. Exact rates are the max-min rates of all flows that were added and not stopped. The same calls give the
    same results, to the byte. A step releases the interpreter, and Ctrl-C interrupts it: the messages then stand at an
    earlier time and can go on.

    Times are nanoseconds as whole numbers, or text with a unit. The results count time in ns; a program divides by the
    length of a round.

    :param network: A ``Network``. Its links need no ends, but a path must take some time.
    :param scheme: A scheme that runs on control messages alone, such as ``"s-perc"``.
    :param round: Length of a round: at least the longest round trip of a flow.
    :param params: Parameters of the scheme.
    :param seed: Seed of jitter, losses and the phases of the links' timers.
    :param jitter: Largest additional delay of a message on a link.
    :param drop: Probability that a message is lost on a link.
    :param drop_until: Time from which on no message is lost; none by default.
    :param tolerance: Relative difference from the exact rate up to which a rate counts as exact.
    :param record: What is recorded for ``take_rates`` and ``take_updates``: ``"rates"``, ``"updates"`` or both.

    ``now_ns`` is the present time, ``updates`` the number of messages that links updated, ``drops`` that of lost ones,
    ``last_drop_ns`` the time of the last loss. ``last_wrong_ns`` is the time of the last update that told a running
    flow another rate than its exact one: rates are exact once it stays. ``bound_rounds`` is the number of rounds that
    theory allows.
    """

    @inputs.keywords
    def __new__(
        cls,
        network: _subak.Network,
        scheme: str = "s-perc",
        *,
        round: int | str,
        params: Mapping[str, Any] | None = None,
        seed: int = 1,
        jitter: int | str = "10ns",
        drop: float = 0.0,
        drop_until: int | str | None = None,
        tolerance: float = 1e-9,
        record: Iterable[str] = (),
    ) -> Self:
        """Messages without flows, at time 0."""
        if not isinstance(scheme, str):
            raise InputError(None, "scheme", f"it is {scheme!r}", 'give a name, such as "s-perc"')
        if not 0 <= drop <= 0.9:
            raise InputError(None, "drop", f"it is {drop}", "give a probability from 0 to 0.9")
        if not 1e-12 <= tolerance <= 1:
            raise InputError(None, "tolerance", f"it is {tolerance}", "give a value from 1e-12 to 1")
        kept = {record} if isinstance(record, str) else set(record)
        if unknown := sorted(kept - {"rates", "updates"}):
            raise InputError(None, "record", f"there is no {unknown[0]!r}", 'give "rates", "updates" or both')
        if inputs.time_ns("round", round) == 0:
            raise InputError(None, "round", "it is 0", "give the longest round trip of a flow")
        until_ns = (1 << 64) - 1 if drop_until is None else inputs.time_ns("drop_until", drop_until)
        times = (inputs.time_ns("round", round), inputs.time_ns("jitter", jitter), until_ns)
        keys = inputs.to_json(dict(params or {}))
        recorded = ("updates" in kept, "rates" in kept)
        made = super().__new__(cls, network, scheme, keys, seed, times, drop, tolerance, recorded)
        made._network = network
        return made

    _network: _subak.Network

    def add(self, path: Sequence[str] | Sequence[int], weight: float = 1.0, start: int | str | None = None) -> int:
        """Adds a flow over a path, a list of links by id or by number, and returns its number.

        It starts now unless ``start`` is given.
        """
        return self.add_all([path], weight, start)[0]

    @inputs.keywords
    def add_all(
        self,
        paths: Rows | Iterable[Sequence[str] | Sequence[int] | NDArray[Any]],
        weight: ArrayLike | None = None,
        start: Any = None,
    ) -> range:
        """Adds flows, all of them or none, and returns their numbers.

        ``weight`` and ``start`` are one for all flows, or one per flow.
        """
        import numpy as np

        if isinstance(paths, Rows):
            for name, given in (("weight", weight), ("demand_bps", paths.demand_bps)):
                if given is not None:
                    raise InputError(None, name, "it is given beside Rows", "leave it away: Rows have weights")
            weight, ptr, links = paths.weight, _indices("link_ptr", paths.link_ptr), _indices("links", paths.links)
        else:
            ptr, links = rows_of(self._network, paths)
        count = max(len(ptr) - 1, 0)
        weight = 1.0 if weight is None else weight
        weights = _values("weight", np.full(count, weight) if np.ndim(weight) == 0 else weight)
        if start is None or isinstance(start, (int, str)):
            starts = [self.now_ns if start is None else inputs.time_ns("start", start)] * count
        else:
            starts = [inputs.time_ns("start", one.item() if isinstance(one, np.generic) else one) for one in start]
        first = self.add_flows((ptr, links, weights, np.array(starts, dtype=np.uint64)))
        return range(first, first + count)

    @inputs.keywords
    def run(self, until: int | str) -> None:
        """Advances to the time ``until``."""
        self.advance(inputs.time_ns("until", until))

    def set_weight(self, flow: int, weight: float) -> None:
        """Changes the weight of a flow. Its source tells the links with its next message."""
        self.change_weight(inputs.flow_number(flow), weight)

    def stop(self, flow: int) -> None:
        """Stops a flow: its source tells the links that it leaves."""
        self.stop_flow(inputs.flow_number(flow))

    @property
    def flows(self) -> _subak.Table:
        """A row for each flow: its weight, the rate that its source has, the exact one, and its updates."""
        return self.flows_table()

    def take_rates(self) -> _subak.Table:
        """A row for each rate that was assigned to a source since the last call, if rates are recorded."""
        return super().take_rates()

    def take_updates(self) -> _subak.Table:
        """A row for each update of a message at a link since the last call, if updates are recorded.

        The columns after ``link`` (its number in ``network.links``) are the values that the scheme names, such as
        ``e``, ``b`` and ``a`` of the PERC thesis, as numbers: ``state`` is 1 for B and 0 for E.
        """
        return super().take_updates()

    def __repr__(self) -> str:
        """The present time and the number of flows."""
        return f"<subak.Rounds: {len(self)} flows, at {self.now_ns} ns>"
