"""The worked examples in chapters 2 and 3 of the PERC thesis: updates of two flows at three links."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import subak
from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT_GBPS = {"fB": 18, "fW": 12}
LINKS_GBPS = {"l20": 20, "l30": 30, "l12": 12}
PATHS = {"fB": ["l20", "l30"], "fW": ["l30", "l12"]}
B20, B30, W30, W12 = ("fB", "l20"), ("fB", "l30"), ("fW", "l30"), ("fW", "l12")
Order = list[list[tuple[str, str]]]
THREE_ROUNDS: Order = [[B20, B30, W30, W12], [W30, W12, B20, B30], [W30, W12, B30, B20]]
"""Order of the updates in figures 3.2 and 3.4, by round: flow and link."""
COLUMNS = ["round", "flow", "link", "e_gbps", "b_gbps", "a_gbps", "state", "ignore"]
COLUMNS += ["SumE_gbps", "NumB", "MaxE_gbps", "MaxE'_gbps"]


def replay(scheme: str, order: Order, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every update in ``order``: e, b and a of the thesis in Gb/s, then the values that ``more`` names."""
    network = subak.Network.from_links([{"id": name, "capacity": gbps * 1e9} for name, gbps in LINKS_GBPS.items()])
    flows = [{"id": name, "path": path} for name, path in PATHS.items()]
    steps = list(chain.from_iterable([*map(list, of_round), "round"] for of_round in order))
    updates = subak.converge(network, scheme, flows=flows, order=steps)["trace"]
    rounds = chain.from_iterable([k] * len(of_round) for k, of_round in enumerate(order, start=1))
    values, rows = {}, []
    for n, (k, update) in enumerate(zip(rounds, updates, strict=True), start=1):
        e, b, a, sum_e, max_e, max_e2 = (_gbps(update, name) for name in ("e", "b", "a", "SumE", "MaxE", "MaxE'"))
        # An unlimited rate e is shown as "inf".
        values[f"update {n}"] = ["inf" if e is None else e, b, a, *(update.get(name) for name in more)]
        told = [update.get(name) for name in ("state", "ignore")]
        rows.append([k, update["flow"], update["link"], e, b, a, *told, sum_e, update.get("NumB"), max_e, max_e2])
    return {
        "setup": {"links_gbps": LINKS_GBPS, "flows": PATHS, "scheme": scheme},
        "tables": {"updates": {"columns": COLUMNS, "rows": rows}},
        "values": values,
        "notes": ["f_W and f_G are the same flow. MaxE is shown after the update."],
    }


def _gbps(update: dict[str, Any], name: str) -> float | None:
    rate = update.get(name)
    return None if rate is None else rate / 1e9


def draw(raw: RawResults) -> Figure:
    """Rate that each update allocates, and the exact rates."""
    figure, (plot,) = figures.axes(width=6.2)
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    updates = list(enumerate(raw.rows("updates"), start=1))
    for colour, (flow, exact) in zip(figures.COLOURS, EXACT_GBPS.items(), strict=False):
        mine = [(n, row["a_gbps"], row["link"]) for n, row in updates if row["flow"] == flow]
        plot.plot([n for n, _, _ in mine], [a for _, a, _ in mine], color=colour, linestyle="-", marker="o", label=flow)
        plot.axhline(exact, color=colour, linewidth=0.9, linestyle=":")
        for n, a, link in mine:
            plot.annotate(link, (n, a), textcoords="offset points", xytext=(0, 6), ha="center", fontsize=8, bbox=white)
    plot.set(title=raw.report["setup"]["scheme"], xlabel="update", ylabel="allocation a (Gb/s)", ylim=(8, 22.5))
    plot.set_xticks([n for n, _ in updates])
    plot.legend(title="dotted: exact", loc="lower right")
    return figure
