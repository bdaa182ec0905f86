"""Pictures of precedence graphs of links (``subak.structure``): SVG, with light and dark theme, without scripts.

An iteration of WF^k removes links, which form a column. Lines show the kinds of precedence by colour and dash.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from subak import units

MOST_LINKS, MOST_EDGES, MOST_COLUMNS, MOST_ROWS = 120, 400, 24, 30
"""Limits above which lines are too dense to follow; a larger graph is shown as counts of links."""

KINDS = {
    "direct": ("they share a flow", ""),
    "indirect": ("through a link that shares a flow with both", "9 4"),
    "second-direct": ("a neighbour's neighbour", "3 3"),
    "second-indirect": ("through a neighbour's neighbour", "1 4"),
}
ROW, GAP, HEIGHT, CHARACTER = 54.0, 120.0, 38.0, 7.2
STYLE = """
svg { color-scheme: light dark; --page: #ffffff; --ink: #1c2733; --quiet: #55636f; --rule: #d5dbe1; --panel: #f5f7f9;
  --c0: #0b6cb3; --c1: #c24a00; --c2: #007a58; --c3: #a8488a; }
@media (prefers-color-scheme: dark) { svg { --page: #12171c; --ink: #e6ebf0; --quiet: #a3b0bc; --rule: #36424d;
  --panel: #1b2229; --c0: #5db2f2; --c1: #ff9350; --c2: #3fcf9e; --c3: #f09acb; } }
text { font: 12px system-ui, "Segoe UI", Roboto, sans-serif; fill: var(--quiet); }
text.name { fill: var(--ink); font-weight: 600; } text.title { fill: var(--ink); font-size: 14px; font-weight: 600; }
.page { fill: var(--page); } .column { fill: var(--panel); }
.link { fill: var(--page); stroke: var(--quiet); } .link.longest { stroke: var(--ink); stroke-width: 2.4; }
text.via { font-size: 11px; paint-order: stroke; stroke: var(--page); stroke-width: 4px; }
.edge { fill: none; stroke-width: 2; } .edge.direct { stroke-width: 2.4; } .head { stroke: none; }
.direct { stroke: var(--c0); } .indirect { stroke: var(--c1); } .second-direct { stroke: var(--c2); }
.second-indirect { stroke: var(--c3); } .head.direct { fill: var(--c0); } .head.indirect { fill: var(--c1); }
.head.second-direct { fill: var(--c2); } .head.second-indirect { fill: var(--c3); }
.bar { fill: var(--c0); } .axis { stroke: var(--quiet); }
"""


Edges = dict[tuple[str, str], dict[str, list[str]]]
"""Edges by (precedent, link): their ``kinds``, and in ``via`` the medium links of indirect precedence."""


class Drawn(Protocol):
    """Data that a picture needs; ``subak.Structure`` has this form."""

    @property
    def k(self) -> str:
        """Degree k of WF^k, such as ``2``."""

    @property
    def depth(self) -> int:
        """Number of iterations of WF^k."""

    @property
    def partition(self) -> list[list[str]]:
        """The links that each iteration of WF^k removes."""

    @property
    def longest_chain(self) -> list[str]:
        """A longest path of the precedence graph."""

    @property
    def edge_count(self) -> int:
        """Number of rows in the table of precedence; an edge has one for each of its kinds and medium links."""

    def bottlenecks(self) -> list[dict[str, Any]]:
        """Rows of the table of links: one for each bottleneck."""

    def edges(self) -> Edges:
        """Edges of the precedence graph."""


def picture(found: Drawn) -> str:
    """Picture of the precedence graph ``found``; if too large, of the number of links removed per iteration."""
    counts = [len(part) for part in found.partition]
    few = sum(counts) <= MOST_LINKS and len(counts) <= MOST_COLUMNS and max(counts, default=0) <= MOST_ROWS
    if few and found.edge_count <= 4 * MOST_EDGES:
        edges = found.edges()
        if len(edges) <= MOST_EDGES:
            return _graph(found, edges)
    return _counts(found, counts)


def _title(found: Drawn) -> str:
    bottlenecks = sum(len(part) for part in found.partition)
    k = {"1": "¹", "2": "²"}.get(found.k, "^∞")
    return (
        f"WF{k}: {_many(bottlenecks, 'bottleneck')} in {_many(found.depth, 'iteration')}, "
        f"longest chain {_many(len(found.longest_chain), 'link')}"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _svg(width: float, height: float, title: str, body: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f'<style>{STYLE}</style><rect class="page" width="{width:g}" height="{height:g}"/>'
        f'<text class="title" x="20" y="28">{escape(title)}</text>{"".join(body)}</svg>\n'
    )


@dataclass(frozen=True)
class _Box:
    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        return self.y + HEIGHT / 2


def _graph(found: Drawn, edges: Edges) -> str:
    links = {row["id"]: row for row in found.bottlenecks()}
    says = {name: (_short(name), _said(row, found.k)) for name, row in links.items()}
    width = max((CHARACTER * max(map(len, said)) + 24 for said in says.values()), default=60.0)
    columns = _order(found.partition, edges)
    tallest = max(map(len, columns), default=0)
    boxes: dict[str, _Box] = {}
    body: list[str] = []
    for n, column in enumerate(columns):
        x = 20 + n * (width + GAP)
        top = 80 + (tallest - len(column)) * ROW / 2
        body.append(
            f'<rect class="column" x="{x - 8:g}" y="44" width="{width + 16:g}" height="{tallest * ROW + 30:g}"/>'
        )
        body.append(f'<text x="{x + width / 2:g}" y="62" text-anchor="middle">iteration {n + 1}</text>')
        boxes |= {name: _Box(x, top + i * ROW, width) for i, name in enumerate(column)}
    for (precedent, link), edge in edges.items():
        body += _edge(precedent, link, edge, boxes)
    longest = set(found.longest_chain)
    body += [_link(name, box, says[name], name in longest) for name, box in boxes.items()]
    kinds = [kind for kind in KINDS if any(kind in edge["kinds"] for edge in edges.values())]
    bottom = tallest * ROW + 98
    body += [_key(kind, bottom + 22 * i) for i, kind in enumerate(kinds)]
    if len(longest) > 1:
        body.append(f'<text x="20" y="{bottom + 22 * len(kinds):g}">Bold frames: a longest chain.</text>')
    whole = max(40 + len(columns) * (width + GAP) - GAP, 480.0)
    return _svg(whole, bottom + 22 * len(kinds) + 16, _title(found), body)


def _order(partition: list[list[str]], edges: Edges) -> list[list[str]]:
    """Orders each column's links near their precedents, to reduce crossings."""
    place: dict[str, float] = {}
    before: dict[str, list[str]] = {}
    for precedent, link in edges:
        before.setdefault(link, []).append(precedent)
    columns = []
    for part in partition:
        near = {name: [place[p] for p in before.get(name, ()) if p in place] for name in part}
        column = sorted(part, key=lambda name: sum(near[name]) / len(near[name]) if near[name] else 0.0)
        place |= {name: i - (len(column) - 1) / 2 for i, name in enumerate(column)}
        columns.append(column)
    return columns


def _short(name: str) -> str:
    return name if len(name) <= 26 else f"{name[:12]}…{name[-12:]}"


def _said(row: dict[str, Any], k: str) -> str:
    rate = units.rate(row["level_bps"])
    frozen = row["freeze_iteration"]
    return rate if k == "1" or frozen == row["removed_in"] else f"{rate} since {frozen}"


def _link(name: str, box: _Box, said: tuple[str, str], longest: bool) -> str:
    x = box.x + box.width / 2
    kind = "link longest" if longest else "link"
    return (
        f'<g><title>{escape(name)}</title><rect class="{kind}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" '
        f'height="{HEIGHT:g}" rx="5"/><text class="name" x="{x:g}" y="{box.y + 16:g}" text-anchor="middle">'
        f'{escape(said[0])}</text><text x="{x:g}" y="{box.y + 31:g}" text-anchor="middle">{escape(said[1])}</text></g>'
    )


def _edge(precedent: str, link: str, edge: dict[str, list[str]], boxes: dict[str, _Box]) -> list[str]:
    a, b = boxes[precedent], boxes[link]
    begin, end, kinds = a.x + a.width, b.x, edge["kinds"]
    lines = []
    for i, kind in enumerate(kinds):
        shift = 7 * (i - (len(kinds) - 1) / 2)
        start, stop, middle = a.middle + shift, b.middle + shift, (begin + end) / 2
        via = f" via {', '.join(edge['via'])}" if "indirect" in kind else ""
        lines.append(
            f"<g><title>{escape(f'{precedent} precedes {link}: {kind}{via}')}</title>"
            f'<path class="edge {kind}" d="M{begin:g},{start:g} C{middle:g},{start:g} {middle:g},{stop:g} '
            f'{end - 7:g},{stop:g}"{_dash(kind)}/><path class="head {kind}" d="M{end:g},{stop:g} l-9,-4.5 v9 z"/></g>'
        )
        if via and CHARACTER * len(via) < GAP:
            at = f'x="{middle:g}" y="{(start + stop) / 2 + 4:g}"'
            lines.append(f'<text class="via" {at} text-anchor="middle">{escape(via.strip())}</text>')
    return lines


def _key(kind: str, y: float) -> str:
    return (
        f'<path class="edge {kind}" d="M20,{y - 4:g} h36"{_dash(kind)}/><path class="head {kind}" '
        f'd="M64,{y - 4:g} l-9,-4.5 v9 z"/><text x="74" y="{y:g}">{kind}: {KINDS[kind][0]}</text>'
    )


def _dash(kind: str) -> str:
    return f' stroke-dasharray="{KINDS[kind][1]}"' if KINDS[kind][1] else ""


def _counts(found: Drawn, counts: list[int]) -> str:
    """Bars with the number of links that each iteration removes; with many iterations, several per bar."""
    left, top, width, height = 64.0, 64.0, 640.0, 220.0
    each = math.ceil(len(counts) / 80)
    bars = [sum(counts[i : i + each]) for i in range(0, len(counts), each)]
    most, step = max(bars), width / len(bars)
    body = []
    for i, count in enumerate(bars):
        tall = height * count / most
        first, last = i * each + 1, min((i + 1) * each, len(counts))
        when = f"iteration {first}" if first == last else f"iterations {first} to {last}"
        body.append(
            f'<rect class="bar" x="{left + i * step + 0.1 * step:.2f}" y="{top + height - tall:.2f}" '
            f'width="{0.8 * step:.2f}" height="{tall:.2f}"><title>{when}: {_many(count, "link")}</title></rect>'
        )
    bottom = top + height
    body.append(f'<line class="axis" x1="{left:g}" y1="{bottom:g}" x2="{left + width:g}" y2="{bottom:g}"/>')
    body += [
        f'<text x="{left - 8:g}" y="{bottom - share * height + 4:g}" text-anchor="end">{share * most:.0f}</text>'
        for share in (0, 1)
    ]
    body.append(f'<text x="{left + step / 2:g}" y="{bottom + 18:g}" text-anchor="middle">1</text>')
    body.append(f'<text x="{left + width:g}" y="{bottom + 18:g}" text-anchor="end">{len(counts)}</text>')
    said = "links removed, by iteration" if each == 1 else f"links removed, by iteration, {each} a bar"
    body.append(f'<text x="{left + width / 2:g}" y="{bottom + 18:g}" text-anchor="middle">{said}</text>')
    note = f"Too many to draw one by one: the precedence graph has {found.edge_count} edges (see the table)."
    body.append(f'<text x="20" y="{bottom + 46:g}">{note}</text>')
    return _svg(left + width + 24, bottom + 62, _title(found), body)
