"""Solving from Python: cases as files or dicts, and networks with flows as dicts or as arrays."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from subak import _subak, columns, inputs, tables
from subak.errors import InputError, InputWarning
from subak.schemas import flow_keys, link_keys
from subak.tables import Frame

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike, NDArray

    from subak._subak import Answer
    from subak.structures import Structure

Problem = Mapping[str, Any] | str | os.PathLike[str] | _subak.Network
"""A problem: a case as a dict, the path of a case file, or a network whose flows are given separately."""


Flows = Sequence[Mapping[str, Any]] | Mapping[str, Any] | Frame
"""Flows: dicts, a table with one row for each flow, or a file of flows."""


class Network(_subak.Network):
    """Directed links between named nodes: from a generator, a file, or link by link.

    Capacities are numbers in bit/s or text such as ``"10Gbps"``; delays seconds or ``"1us"``; buffers bytes or
    ``"64KiB"``. ``network.hosts`` are the names of the hosts, ``network.links`` an Arrow table of the links.
    """

    @classmethod
    def generate(cls, kind: str, **keys: Any) -> Network:
        """Generates a network.

        :param kind: Kind of network, such as ``leaf-spine``.
        :param keys: Keys of a case's ``network`` of this kind.
        """
        return cls(inputs.to_json({"kind": kind, **keys}), ".")

    @classmethod
    @inputs.keywords
    def from_links(cls, links: Sequence[Mapping[str, Any]] | Frame) -> Network:
        """A network of directed links.

        :param links: Dicts, or a table with a row for each: ``id`` and ``capacity`` at least.
        """
        return cls(inputs.to_json({"links": tables.rows_of(links, "links", link_keys())}), ".")

    @classmethod
    @inputs.keywords
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        capacity: str | float | None = None,
        delay: str | float | None = None,
        range: str | None = None,
        hosts: str | Sequence[str] | None = None,
        unit: str | None = None,
    ) -> Network:
        """Reads a network file in one of the formats of the `page on networks <networks.html>`__.

        Speed attributes of the Topology Zoo are understood. A warning (``InputWarning``) gives the number of edges with
        a default.

        :param path: The file.
        :param capacity: Capacity of edges without one, bit/s or text such as ``"10Gbps"``.
        :param delay: Delay of edges without one, seconds or text such as ``"1us"``.
        :param range: End of a range of speeds to use, ``low`` or ``high``; by default a range is an error.
        :param hosts: Which nodes are hosts: ``all``, ``leaves`` (those with one neighbour), or their names.
        :param unit: Unit of the file's capacities, such as ``"Mbps"``; required for SNDlib and TEAVAR.
        """
        inputs.read(path)  # An error of the file itself names the file.
        beside = {"capacity": capacity, "delay": delay, "range": range, "hosts": hosts, "unit": unit}
        given = {"file": Path(path).name, **_given(beside)}
        return _read(cls(inputs.to_json(given), str(Path(path).parent)))

    @classmethod
    @inputs.keywords
    def from_networkx(
        cls,
        graph: nx.Graph,
        *,
        capacity: str | float | None = None,
        delay: str | float | None = None,
        range: str | None = None,
        hosts: str | Sequence[Any] | None = None,
    ) -> Network:
        """A network from a networkx graph.

        Warnings (``InputWarning``) name ignored attributes of edges, and give the number of edges with a default.

        :param graph: a graph whose edges have ``capacity``, ``delay`` and ``buffer``, or speed attributes of the
            Topology Zoo; nodes may have ``kind`` (``host`` or ``switch``). Names of nodes are converted by ``str``.
        :param capacity: Capacity of edges without one, bit/s or text such as ``"10Gbps"``.
        :param delay: Delay of edges without one, seconds or text such as ``"1us"``.
        :param range: End of a range of speeds to use, ``low`` or ``high``; by default a range is an error.
        :param hosts: Which nodes are hosts: ``all``, ``leaves`` (those with one neighbour), or a list of them.
        """
        named = hosts if hosts is None or isinstance(hosts, str) else [str(node) for node in hosts]
        beside = {"capacity": capacity, "delay": delay, "range": range, "hosts": named}
        return _read(cls(inputs.to_json(graph_of(graph) | _given(beside)), "."))

    def to_networkx(self) -> nx.MultiDiGraph:
        """A networkx graph. Its edges have ``id``, ``capacity`` (bit/s), ``delay`` (s) and ``buffer`` (bytes)."""
        import networkx as nx
        import pyarrow as pa

        graph = nx.MultiDiGraph()
        hosts = set(self.hosts)
        for node in self.nodes:
            graph.add_node(node, kind="host" if node in hosts else "switch")
        for link in pa.table(self.links).to_pylist():
            if link["from"] is None or link["to"] is None:
                what, hint = f'link "{link["id"]}" does not say where it leads', "give every link from and to"
                raise InputError(None, "links", what, hint)
            told = {"id": link["id"], "capacity": link["capacity_bps"], "delay": link["delay_ns"] / 1e9}
            if link["buffer_bytes"] is not None:
                told["buffer"] = link["buffer_bytes"]
            graph.add_edge(link["from"], link["to"], **told)
        return graph

    def _repr_html_(self) -> str:
        from subak import notebook

        return notebook.network(self)

    @inputs.keywords
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
        """Adds a directed link. Nodes that do not exist yet are added as hosts."""
        link = {"id": id, "capacity": capacity, "from": from_, "to": to, "delay": delay, "buffer": buffer}
        self.add(inputs.to_json([{key: value for key, value in link.items() if value is not None}]))


EDGE_KEYS = ("capacity", "delay", "buffer", "id", "LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits", "LinkLabel")
"""Attributes of edges whose values are read; of other attributes only the names are read, for warnings."""


def _given(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


def _read(network: Network) -> Network:
    """Issues the network's warnings about its input, and returns the network."""
    for said in network.warnings:
        warnings.warn(said, InputWarning, stacklevel=4)
    return network


def graph_of(graph: nx.Graph) -> dict[str, Any]:
    """The ``network`` of a case or a spec, from a networkx graph."""
    names = {node: str(node) for node in graph.nodes}
    if len(set(names.values())) < len(names):
        raise InputError(None, "nodes", "two nodes have one name as text", "give every node a name of its own")
    nodes = [{**_attributes(data, _telling(data)), "id": names[node]} for node, data in graph.nodes(data=True)]
    links = [
        {**_attributes(data, EDGE_KEYS), "source": names[a], "target": names[b]}
        for a, b, data in graph.edges(data=True)
    ]
    ends = {str(key) for *_, data in graph.edges(data=True) for key in data} & {"source", "target"}
    if ends:
        said = ", ".join(f'"{key}"' for key in sorted(ends))
        warnings.warn(f"attributes of edges that are not read: {said}", InputWarning, stacklevel=4)
    shape = {"directed": graph.is_directed(), "multigraph": graph.is_multigraph()}
    return {**shape, "graph": _attributes(graph.graph, ()), "nodes": nodes, "links": links}


def _telling(data: Mapping[Any, Any]) -> list[str]:
    """Attributes of a node whose values may distinguish hosts from switches: text, booleans, and ``kind``."""
    telling = [
        str(key)
        for key, value in data.items()
        if isinstance(value, str | bool) or type(value).__name__ in ("bool", "bool_")
    ]
    return ["kind", *telling]


def _attributes(data: Mapping[Any, Any], read: Sequence[str]) -> dict[str, Any]:
    """Attributes of a graph, a node or an edge by name; the value is ``None`` unless the attribute is in ``read``."""
    told = {str(key): value if key in read else None for key, value in data.items() if value is not None}
    return {key: value for key, value in told.items() if key not in ("source", "target")}


@dataclass(frozen=True)
class Rows:
    """Many flows of one path each, in compressed rows.

    Flow ``f`` crosses the links ``links[link_ptr[f]:link_ptr[f + 1]]``, numbered as in ``network.links``.
    ``network.link_numbers`` converts ids to numbers.
    """

    link_ptr: ArrayLike
    links: ArrayLike
    weight: ArrayLike | None = None
    """Weight of each flow; 1 by default."""
    demand_bps: ArrayLike | None = None
    """Demand of each flow, bit/s; infinite (the default) for no bound."""


@inputs.keywords
def solve(
    problem: Problem,
    *,
    flows: Flows | Rows | None = None,
    policy: str | Mapping[str, Any] | None = None,
    solver: str = "auto",
    iterations: int | None = None,
    gamma: float | None = None,
    tolerance: float | None = None,
    prices: ArrayLike | None = None,
) -> Answer:
    """Solves one allocation problem exactly and certifies the answer.

    Other Python threads run while the solver works.

    :param problem: A case as a dict, the path of a case file (``-``: standard input), or a network, which alone is
        combined with ``flows`` and ``policy``.
    :param flows: Dicts, or a table with a row for each flow: a frame of pandas or polars, an Arrow table, a dict of
        columns, with ``src`` and ``dst`` or a ``path``; ``Rows`` for links by number; or ``{"file": "flows.parquet"}``,
        a table of flows, or in CSV a traffic matrix.
    :param policy: Name of the policy, or a dict with its kind and keys; ``max-min`` by default. A case has its own.
    :param solver: ``auto``; ``clarabel``, an independent solver for utilities; or an iterative method: ``ned``,
        ``accelerated``, ``gradient``, ``fgm``, ``newton-like``, ``newton``, with F-NORM. Their results are certified
        too.
    :param iterations: Number of iterations of ``ned`` and its baselines; 1000 by default.
    :param gamma: Step size of these methods; each has a default.
    :param tolerance: Largest residual of the certificate with which an answer counts as optimal; 1e-8 by default.
        Iterations of the exact solvers end there.
    :param prices: A price for each link from which the exact solver of a utility starts, such as
        ``answer.links["price"]`` of a similar problem: after a small change this saves most iterations.
    :raises InputError: for an invalid problem, with the place, the problem and a hint.
    """
    start = None if prices is None else _values("prices", prices)
    return case_of(problem, flows, policy).solve(solver, iterations, gamma, tolerance, start)


@inputs.keywords
def converge(
    problem: Problem,
    scheme: str,
    *,
    flows: Flows | None = None,
    seed: int = 1,
    drop: float = 0.0,
    max_rounds: float = 600.0,
    params: Mapping[str, Any] | None = None,
    order: Any = None,
    trace: bool = False,
) -> dict[str, Any]:
    """Runs a scheme's control messages on a fixed set of flows until its rates are exact, and counts the rounds.

    The result is what ``subak converge --json`` prints: ``converged``, ``rounds``, ``bound_rounds``, ``levels``,
    ``flows`` with ``rate`` and ``ideal`` in bit/s, and ``updates``.

    :param problem: As in ``solve``.
    :param scheme: A scheme that runs on control messages alone, such as ``s-perc``.
    :param flows: As in ``solve``.
    :param seed: Seed of starts, delays and losses.
    :param drop: Probability that a message is lost at a link.
    :param max_rounds: Number of rounds after which the run ends without convergence.
    :param params: The scheme's parameters.
    :param order: A list of updates to replay.
    :param trace: Whether the result lists every update.
    """
    inputs.check_flag("trace", trace)
    options: dict[str, Any] = {"seed": seed, "drop": drop, "max_rounds": max_rounds, "trace": trace}
    options["params"] = dict(params or {})
    if order is not None:
        options["order"] = order
    if isinstance(problem, _subak.Network):
        if flows is None:
            raise TypeError("a network needs flows= beside it")
        problem = {"network": _links_of(problem), "flows": _listed(flows)}
    elif flows is not None:
        raise TypeError("flows= stands beside a network; a case brings its own")
    if isinstance(problem, Mapping):
        data, name, form = inputs.to_json(problem), None, "json"
        folder = "."
    else:
        data, name = inputs.read(problem)
        form, folder = inputs.format_of(name, data), inputs.folder_of(name)
    answer: dict[str, Any] = json.loads(_subak.converge(data, form, name, folder, scheme, inputs.to_json(options)))
    return answer


def network_of(network: _subak.Network) -> dict[str, Any]:
    """The ``network`` of a case or a spec for this network, with its hosts and switches."""
    import pyarrow as pa

    rows = pa.table(network.links).to_pylist()
    if any(row["from"] is None or row["to"] is None for row in rows):
        return {"links": _links_of(network)}
    hosts = set(network.hosts)
    nodes = [{"id": name, "kind": "host" if name in hosts else "switch"} for name in network.nodes]
    links = []
    for row in rows:
        link = {"id": row["id"], "source": row["from"], "target": row["to"]}
        link |= {"capacity": row["capacity_bps"], "delay": row["delay_ns"] / 1e9}
        links.append(link | ({} if row["buffer_bytes"] is None else {"buffer": row["buffer_bytes"]}))
    return {"directed": True, "multigraph": True, "nodes": nodes, "links": links}


def _links_of(network: _subak.Network) -> list[dict[str, Any]]:
    import pyarrow as pa

    rows = pa.table(network.links).to_pylist()
    named = ({"capacity": r["capacity_bps"], "delay": r["delay_ns"] / 1e9, **r} for r in rows)
    keys = ("id", "from", "to", "capacity", "delay")
    return [{key: row[key] for key in keys if row[key] is not None} for row in named]


@inputs.keywords
def structure(
    problem: Problem,
    k: float | str = 2,
    *,
    flows: Flows | Rows | None = None,
) -> Structure:
    """The order in which the links of a max-min problem become bottlenecks, and its precedence graph.

    Runs WF^k (PERC thesis, algorithm 7).

    :param problem: As in ``solve``; each flow takes one path and has no demand.
    :param k: 1, 2 or infinity (``math.inf`` or ``"inf"``).
    :param flows: As in ``solve``.
    """
    from subak.structures import Structure

    return Structure(case_of(problem, flows), k if isinstance(k, str) else f"{k:g}")


def case_of(
    problem: Problem,
    flows: Flows | Rows | None = None,
    policy: str | Mapping[str, Any] | None = None,
) -> _subak.Case:
    """The checked case for the arguments of ``solve``."""
    if isinstance(problem, _subak.Network):
        return _over(problem, flows, "max-min" if policy is None else policy)
    for name, given in (("flows", flows), ("policy", policy)):
        if given is not None:
            raise TypeError(f"{name}= is for a network; a case has its own")
    if isinstance(problem, Mapping):
        return _subak.Case.parse(inputs.to_json(problem), "json", None, ".")
    data, name = inputs.read(problem)
    return _subak.Case.parse(data, inputs.format_of(name, data), name, inputs.folder_of(name))


def _over(
    network: _subak.Network,
    flows: Flows | Rows | None,
    policy: str | Mapping[str, Any],
) -> _subak.Case:
    wanted = {"kind": policy} if isinstance(policy, str) else policy
    if flows is None:
        raise TypeError("a network needs flows= beside it")
    found = None if isinstance(flows, Rows) else _in_columns(flows)
    if found:
        return _subak.Case.of_columns(network, found[0], found[1], inputs.to_json(wanted))
    if not isinstance(flows, Rows):
        return _subak.Case.over(network, inputs.to_json({"flows": _listed(flows), "policy": wanted}))
    rows = (
        _indices("link_ptr", flows.link_ptr),
        _indices("links", flows.links),
        _values("weight", flows.weight),
        _values("demand_bps", flows.demand_bps),
    )
    return _subak.Case.of_rows(network, rows, inputs.to_json(wanted))


def _in_columns(flows: Flows) -> tuple[columns.Columns, str | None] | None:
    """Flows with one path each as columns, and the unit of their demands; ``None`` if they are not given as a table."""
    import pyarrow as pa

    if tables.is_frame(flows):
        table = tables.checked(cast("Frame", flows), "flows", flow_keys())
        try:
            return (columns.of_table(table), None) if columns.are_plain(table) else None
        except pa.ArrowException:
            return None  # A column of another type is read row by row.
    if isinstance(flows, Mapping) and flows.keys() <= {"file", "unit"}:
        name, unit = flows.get("file"), cast("str | None", flows.get("unit"))
        if isinstance(name, str | os.PathLike) and columns.is_name(os.fspath(name)):
            return columns.of_file(os.fspath(name)), unit
    return None


def _listed(flows: Flows) -> Any:
    """Flows in the form of a case: a list of dicts, or a file."""
    if isinstance(flows, Mapping) and "file" in flows:
        return dict(flows)
    return tables.rows_of(flows, "flows", flow_keys())


def rows_of(network: _subak.Network, paths: Iterable[Sequence[str] | Sequence[int] | NDArray[Any]]) -> tuple[Any, Any]:
    """Offsets and numbers of the links of paths, which have ids or numbers."""
    import numpy as np

    listed = [list(path) for path in paths]
    flat: list[Any] = [link for path in listed for link in path]
    if any(isinstance(link, str) for link in flat):
        if not all(isinstance(link, str) for link in flat):
            raise InputError(None, "paths", "ids and numbers of links are mixed", "give one of the two")
        flat = network.link_numbers(flat)
    ptr = np.cumsum([0, *map(len, listed)])
    return _indices("link_ptr", ptr), _indices("links", flat)


def _indices(name: str, given: ArrayLike) -> Any:
    import numpy as np

    array = np.asarray(given)
    if array.size == 0 and array.dtype.kind not in "mM":
        array = array.astype(np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(None, name, f"it is {array.dtype} in {array.ndim} dimensions", "give a list of whole numbers")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < 2**32:
        raise InputError(None, name, "a number is outside 0 to 2^32 - 1", "give places in the list of links")
    return np.ascontiguousarray(array, dtype=np.uint32)


def _values(name: str, given: ArrayLike | None) -> Any:
    import numpy as np

    try:
        kind = np.asarray([] if given is None else given).dtype.kind
        if kind in "mM":
            raise TypeError("it holds times or dates")
        array = np.ascontiguousarray([] if given is None else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(None, name, str(error), "give one number a flow") from None
    if array.ndim != 1:
        raise InputError(None, name, f"it has {array.ndim} dimensions", "give one number a flow")
    return array
