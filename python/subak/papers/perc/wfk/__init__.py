"""Figures 2.4 and 3.6 to 3.8 of the PERC thesis: iterations and precedence graphs of WF1, WF2, water-filling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import subak
from subak.repro import RawResults, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALGORITHMS = ("WF1", "WF2", "WF-infinity")
DEGREES = dict(zip(ALGORITHMS, ("1", "2", "inf"), strict=True))
FIGURES: dict[str, tuple[str, list[int], dict[str, list[int]]]] = {
    "2.4": (
        "figures 2.4, 3.6 and 3.7",
        [10, 15, 3],
        {"green": [3, 2], "purple": [1], "blue": [1, 2], "orange": [2]},
    ),
    "3.8a": (
        "figure 3.8a",
        [10, 10, 6, 1],
        {"orange": [4, 3], "green": [3, 2], "blue": [2, 1], "purple": [1]},
    ),
    "3.8b": (
        "figure 3.8b",
        [10, 18, 6, 1],
        {"orange": [4, 3], "green": [3, 2], "blue": [1, 2], "purple": [1], "brown": [2]},
    ),
}
"""By prefix of the results: name, capacity of each link in Gb/s, and flows over links, which count from 1. The figures
show no numbers: capacities and paths are chosen to give the rates in the text."""
NOTE = (
    "Partitions are those of the text where it names them; the others follow from Algorithm 7 by hand. Links are "
    "numbered as in the figures."
)

# Line styles as in the thesis, except that direct edges are thick instead of double.
KINDS: dict[str, dict[str, Any]] = {
    "direct": {"linestyle": "-", "linewidth": 2.6, "color": figures.COLOURS[0]},
    "indirect": {"linestyle": "-", "linewidth": 1.1, "color": figures.COLOURS[1]},
    "second-direct": {"linestyle": "--", "linewidth": 1.4, "color": figures.COLOURS[2]},
    "second-indirect": {"linestyle": ":", "linewidth": 1.6, "color": figures.COLOURS[3]},
}


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """The structure of each network under each algorithm."""
    Settings(settings)
    values: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for key, (name, capacities, paths) in FIGURES.items():
        rows, edges = _measure(key, capacities, paths, values)
        tables[name] = {"columns": ["algorithm", "iteration", "link_rates_gbps", "frozen"], "rows": rows}
        columns = ["algorithm", "precedent", "kind", "link", "via"]
        tables[f"precedence, {name}"] = {"columns": columns, "rows": edges}
    return {"values": values, "tables": tables, "notes": [NOTE]}


def _measure(
    key: str, capacities: list[int], paths: dict[str, list[int]], values: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    links = range(1, len(capacities) + 1)
    network = subak.Network.from_links(
        [{"id": str(n), "capacity": gbps * 1e9} for n, gbps in enumerate(capacities, start=1)]
    )
    flows = [{"id": name, "path": [str(n) for n in path]} for name, path in paths.items()]
    rows, edges, depths = [], [], []
    for name, k in DEGREES.items():
        found = subak.structure(network, k, flows=flows)
        partition = [[int(n) for n in part] for part in found.partition]
        precedence = [
            (int(e["precedent"]), e["kind"], int(e["link"]), None if e["via"] is None else int(e["via"]))
            for e in found.precedence
        ]
        values[f"{key} {name} partition"] = partition
        values[f"{key} {name} rates"] = [flow["rate_bps"] / 1e9 for flow in found.flows]
        values[f"{key} {name} precedence"] = sorted(
            f"{one} before {link} ({kind}{f' via {via}' if via else ''})" for one, kind, link, via in precedence
        )
        shares = {(row["iteration"], int(row["link"])): row["share_bps"] / 1e9 for row in found.shares}
        for n, part in enumerate(partition, start=1):
            rates = [shares.get((n, link)) for link in links]
            for link, rate in zip(links, rates, strict=True):
                if rate is not None:
                    values[f"{key} {name} link {link} in iteration {n}"] = rate
            rows.append([name, n, rates, part])
        edges += [[name, *edge] for edge in precedence]
        depths.append(len(found.longest_chain))
        if name == "WF2":
            known = found.links.to_arrow().to_pylist()
            for link, row in zip(links, known, strict=True):
                values[f"{key} {name} freeze of link {link}"] = row["freeze_iteration"]
            removed = [row["removed_in"] for row in known]
            values[f"{key} {name} bottlenecks"] = [_first_removed(path, removed) for path in paths.values()]
    values[f"{key} chains"] = depths
    return rows, edges


def _first_removed(path: list[int], removed: list[int | None]) -> list[int]:
    """The links of a path that are removed first."""
    at = {n: removed[n - 1] for n in path}
    first = min(iteration for iteration in at.values() if iteration is not None)
    return sorted(n for n, iteration in at.items() if iteration == first)


def draw(raw: RawResults) -> Figure:
    """Two rows of plots per network, one column per algorithm: the links' rates, and the precedence graph.

    A disk marks the iteration in which a link is removed.
    """
    tables = [name for name in raw.report["tables"] if not name.startswith("precedence")]
    figure, plots = figures.axes(rows=2 * len(tables), columns=len(ALGORITHMS), width=3.6, height=2.4)
    for k, name in enumerate(tables):
        for column, algorithm in enumerate(ALGORITHMS):
            rows = [row for row in raw.rows(name) if row["algorithm"] == algorithm]
            edges = [row for row in raw.rows(f"precedence, {name}") if row["algorithm"] == algorithm]
            plot, graph = plots[6 * k + column], plots[6 * k + 3 + column]
            _rates(plot, rows)
            plot.set_title(f"{name}: {algorithm}", fontsize="small")
            _graph(graph, rows, edges)
            graph.set_title(f"precedence in {algorithm}", fontsize="small")
        plots[6 * k].legend(fontsize="small")
    _key(plots[4])
    return figure


def _rates(plot: Axes, rows: list[dict[str, Any]]) -> None:
    for link in range(len(rows[0]["link_rates_gbps"])):
        # Links with equal rates overlap: later ones are drawn smaller.
        like: dict[str, Any] = {"color": figures.COLOURS[link], "linewidth": 4 - link, "label": f"link {link + 1}"}
        shown = [(row["iteration"], row["link_rates_gbps"][link]) for row in rows]
        shown = [(n, rate) for n, rate in shown if rate is not None]
        plot.plot(*zip(*shown, strict=True), linestyle="-", **like)
        removed = [shown[-1]] if any(link + 1 in row["frozen"] for row in rows) else []
        for n, rate in removed:
            plot.scatter(n, rate, s=30 * (4 - link), color=like["color"], zorder=3)
    plot.set(xlabel="iteration", ylabel="rate (Gb/s)")
    plot.set_xticks([row["iteration"] for row in rows])


def _graph(plot: Axes, rows: list[dict[str, Any]], edges: list[dict[str, Any]]) -> None:
    place = {
        link: (float(row["iteration"]), (len(row["frozen"]) - 1) / 2 - i)
        for row in rows
        for i, link in enumerate(row["frozen"])
    }
    for i, edge in enumerate(edges):
        (x, y), (to_x, to_y) = place[edge["precedent"]], place[edge["link"]]
        like = {"arrowstyle": "-|>", "shrinkA": 13, "shrinkB": 13, "mutation_scale": 12, **KINDS[edge["kind"]]}
        # Two edges between the same links are drawn apart.
        pair = [
            k
            for k, other in enumerate(edges)
            if (other["precedent"], other["link"]) == (edge["precedent"], edge["link"])
        ]
        like["connectionstyle"] = f"arc3,rad={0.3 * pair.index(i)}"
        plot.annotate("", xy=(to_x, to_y), xytext=(x, y), arrowprops=like)
        if edge["via"]:
            at = (x + 0.5 * (to_x - x), y + 0.5 * (to_y - y) - 0.3 * pair.index(i))
            box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            plot.annotate(f"via {edge['via']}", at, fontsize="x-small", ha="center", va="center", bbox=box, zorder=2)
    for link, at in place.items():
        plot.scatter(*at, s=380, color="white", edgecolor="black", zorder=3)
        plot.annotate(str(link), at, ha="center", va="center", zorder=4)
    plot.set(xlabel="removed in iteration", xlim=(0.6, 3.4), ylim=(-1.5, 1.5), yticks=[])
    plot.set_xticks([row["iteration"] for row in rows])
    plot.grid(visible=False)
    plot.spines["left"].set_visible(False)


def _key(plot: Axes) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], label=kind, **like) for kind, like in KINDS.items()]
    plot.legend(handles=lines, fontsize="x-small", loc="lower center", ncols=2)
