"""Structure of a max-min allocation: tables, graph and picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak import _subak, precedence
from subak.errors import InputError

if TYPE_CHECKING:
    import networkx as nx


class Structure(_subak.Structure):
    """The order in which WF^k finds the bottlenecks of a max-min problem, and their precedence graph.

    WF^k removes a link, with its flows, once its rate is the smallest among its neighbours up to degree ``k``
    (PERC thesis, algorithm 7). ``depth`` is the number of iterations, ``partition`` the links removed in each, and
    ``longest_chain`` a longest path of the precedence graph. ``links``, ``flows``, ``shares`` and ``precedence`` are
    Arrow tables, which polars, pandas and pyarrow read.
    """

    def to_networkx(self) -> nx.DiGraph[str]:
        """Precedence graph: edges from each bottleneck to those that it precedes (PERC thesis, definition 3.4.20).

        Nodes have ``capacity_bps``, ``removed_in``, ``freeze_iteration`` and ``level_bps``. Edges have ``kind``, the
        most direct kind; ``kinds``, all of them; and ``via``, the medium links through which indirect precedence runs.
        """
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph(k=self.k)
        for row in self.bottlenecks():
            graph.add_node(row.pop("id"), **row)
        for (precedent, link), edge in self.edges().items():
            graph.add_edge(precedent, link, kind=edge["kinds"][0], **edge)
        return graph

    def to_svg(self) -> str:
        """The precedence graph as SVG, with one column per iteration.

        With more than about a hundred links it shows the number of links that each iteration removes.
        """
        return precedence.picture(self)

    def save_svg(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file."""
        try:
            Path(path).write_text(self.to_svg(), encoding="utf-8")
        except OSError as error:
            raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "name another file") from None

    def to_dict(self) -> dict[str, Any]:
        """The structure as ``subak solve --structure K --json`` prints it."""
        links = self.bottlenecks()
        for row in links:
            row["level"] = row.pop("level_bps")
            row["capacity"] = row.pop("capacity_bps")
        return {
            "k": self.k,
            "depth": self.depth,
            "partition": self.partition,
            "longest_chain": self.longest_chain,
            "links": links,
            "precedence": _rows(self.precedence),
        }

    @property
    def edge_count(self) -> int:
        """Number of rows of ``precedence``: an edge has one row for each of its kinds and medium links."""
        return self.precedence.num_rows

    def bottlenecks(self) -> list[dict[str, Any]]:
        """The rows of ``links`` that are bottlenecks."""
        return [row for row in _rows(self.links) if row["removed_in"] is not None]

    def edges(self, to: Sequence[str] | None = None) -> precedence.Edges:
        """Edges of the precedence graph, or only those that end at the links ``to``.

        Each has its ``kinds``, the most direct one first, and ``via``.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = pa.table(self.precedence)
        if to is not None:
            table = table.filter(pc.is_in(table["link"], pa.array(to, pa.string())))
        found: precedence.Edges = {}
        for row in table.to_pylist():
            edge = found.setdefault((row["precedent"], row["link"]), {"kinds": [], "via": []})
            if row["kind"] not in edge["kinds"]:
                edge["kinds"].append(row["kind"])
            if row["via"] is not None:
                edge["via"].append(row["via"])
        return found


def _rows(table: _subak.Table) -> list[dict[str, Any]]:
    import pyarrow as pa

    rows: list[dict[str, Any]] = pa.table(table).to_pylist()
    return rows
