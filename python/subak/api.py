"""Solving from Python: cases as files or dicts, and networks with flows as dicts or as arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak import _subak, inputs
from subak.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from subak._subak import Answer
    from subak.structures import Structure

Problem = Mapping[str, Any] | str | os.PathLike[str] | _subak.Network
"""A case as a dict, the path of a case file, or a network, which flows stand beside."""


class Network(_subak.Network):
    """Directed links between named nodes: from a generator, a file, or link by link.

    Capacities are bit/s or text such as ``"10Gbps"``; delays seconds or ``"1us"``; buffers bytes or ``"64KiB"``.
    ``network.hosts`` are the names of the hosts, ``network.links`` an Arrow table of the links.
    """

    @classmethod
    def generate(cls, kind: str, **keys: Any) -> Network:
        """A network of a ``kind`` such as ``leaf-spine``; its keys are those of a case's ``network``."""
        return cls(inputs.to_json({"kind": kind, **keys}), ".")

    @classmethod
    def from_links(cls, links: Sequence[Mapping[str, Any]]) -> Network:
        """A network of the directed ``links``, each with ``id`` and ``capacity`` at least."""
        return cls(inputs.to_json({"links": list(links)}), ".")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Network:
        """A network from node-link JSON, as networkx writes it, or GraphML."""
        inputs.read(path)  # what is wrong with the file itself is said of the file
        return cls(inputs.to_json({"file": Path(path).name}), str(Path(path).parent))

    def add_link(
        self,
        id: str,
        capacity: str | float,
        *,
        from_: str | None = None,
        to: str | None = None,
        delay: str | float | None = None,
        buffer: str | int | None = None,
    ) -> None:
        """Adds a directed link. A node that is new with it is a host."""
        link = {"id": id, "capacity": capacity, "from": from_, "to": to, "delay": delay, "buffer": buffer}
        self.add(inputs.to_json([{key: value for key, value in link.items() if value is not None}]))


@dataclass(frozen=True)
class Rows:
    """Very many flows of one path each, in compressed rows.

    Flow ``f`` crosses the links ``links[link_ptr[f]:link_ptr[f + 1]]``, numbered as in ``network.links``
    (``network.link_numbers`` finds the numbers of ids).
    """

    link_ptr: ArrayLike
    links: ArrayLike
    weight: ArrayLike | None = None
    """One value for each flow; 1 for all where absent."""
    demand_bps: ArrayLike | None = None
    """The most each flow can use; infinite for no bound, which is also the default."""


def solve(
    problem: Problem,
    *,
    flows: Sequence[Mapping[str, Any]] | Rows | None = None,
    policy: str | Mapping[str, Any] = "max-min",
    solver: str = "auto",
) -> Answer:
    """Solves one allocation problem exactly and certifies the answer.

    ``problem`` is a case as a dict, the path of a case file (``-``: standard input), or a network; only a network takes
    ``flows`` and ``policy`` beside it. ``solver="clarabel"`` asks an independent solver for a second opinion on
    utilities. Raises ``InputError`` for a problem that cannot be used. The interpreter is free for other threads while
    the solver runs.
    """
    return case_of(problem, flows, policy).solve(solver)


def structure(
    problem: Problem,
    k: float | str = 2,
    *,
    flows: Sequence[Mapping[str, Any]] | Rows | None = None,
) -> Structure:
    """The order in which the links of a max-min problem become bottlenecks, and which have to come before which.

    Runs WF^k (PERC thesis, algorithm 7): ``k`` is 1, 2 or infinity (``math.inf`` or ``"inf"``). ``problem`` and
    ``flows`` are as in ``solve``; each flow takes one path and has no demand.
    """
    from subak.structures import Structure

    return Structure(case_of(problem, flows, "max-min"), k if isinstance(k, str) else f"{k:g}")


def case_of(
    problem: Problem,
    flows: Sequence[Mapping[str, Any]] | Rows | None = None,
    policy: str | Mapping[str, Any] = "max-min",
) -> _subak.Case:
    """The checked case of what ``solve`` takes."""
    if isinstance(problem, _subak.Network):
        return _over(problem, flows, policy)
    if flows is not None:
        raise TypeError("flows= stands beside a network; a case brings its own")
    if isinstance(problem, Mapping):
        return _subak.Case.parse(inputs.to_json(problem), "json", None, ".")
    data, name = inputs.read(problem)
    return _subak.Case.parse(data, inputs.format_of(name, data), name, inputs.folder_of(name))


def _over(
    network: _subak.Network,
    flows: Sequence[Mapping[str, Any]] | Rows | None,
    policy: str | Mapping[str, Any],
) -> _subak.Case:
    wanted = {"kind": policy} if isinstance(policy, str) else policy
    if flows is None:
        raise TypeError("a network needs flows= beside it")
    if not isinstance(flows, Rows):
        return _subak.Case.over(network, inputs.to_json({"flows": list(flows), "policy": wanted}))
    rows = (
        _indices("link_ptr", flows.link_ptr),
        _indices("links", flows.links),
        _values("weight", flows.weight),
        _values("demand_bps", flows.demand_bps),
    )
    return _subak.Case.of_rows(network, rows, inputs.to_json(wanted))


def _indices(name: str, given: ArrayLike) -> Any:
    import numpy as np

    array = np.asarray(given)
    if array.size == 0:
        array = array.astype(np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(None, name, f"it is {array.dtype} in {array.ndim} dimensions", "give a list of whole numbers")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < 2**32:
        raise InputError(None, name, "a number is outside 0 to 2^32 - 1", "give places in the list of links")
    return np.ascontiguousarray(array, dtype=np.uint32)


def _values(name: str, given: ArrayLike | None) -> Any:
    import numpy as np

    try:
        array = np.ascontiguousarray([] if given is None else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(None, name, str(error), "give one number a flow") from None
    if array.ndim != 1:
        raise InputError(None, name, f"it has {array.ndim} dimensions", "give one number a flow")
    return array
