"""The table dependency graph as a picture, with the critical path in bold (PERC thesis, figures 6.4 and 6.12a)."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from subak.pipeline import colours, graph
from subak.pipeline.ordering import order
from subak.pipeline.program import EXACT, Dependency, Program
from subak.pipeline.switch import Switch

ROW, COLUMN, BOX = 40.0, 34.0, 24.0
DASHES = {"match": "", "action": "", "successor": "5 3", "reverse-match": "2 3"}


def critical_path(program: Program, switch: Switch) -> graph.Path:
    """The chain whose dependencies need the most cycles, or the most stages if none needs cycles."""
    cycles = {kind: delay.cycles for kind, delay in switch.delays.items()}
    weigh = cycles if any(cycles.values()) else {kind: int(d.separate) for kind, d in switch.delays.items()}
    return graph.longest(program, lambda d: weigh[d.kind])


def draw(program: Program, switch: Switch) -> str:
    """The graph as SVG, with tables in columns by depth."""
    path = critical_path(program, switch)
    columns = _columns(program)
    widths = [max(8 + 6.6 * len(name) for name in column) for column in columns]
    lefts = [12 + sum(widths[:i]) + COLUMN * i for i in range(len(columns))]
    most = max(len(column) for column in columns)
    place: dict[str, tuple[float, float, float]] = {}
    for left, width, column in zip(lefts, widths, columns, strict=True):
        for k, name in enumerate(column):
            place[name] = (left, 40 + ROW * (k + (most - len(column)) / 2), width)
    critical = set(pairwise(path.tables))
    edges = sorted(program.dependencies, key=lambda d: (d.before, d.after) in critical)
    parts = [_edge(d, place, (d.before, d.after) in critical) for d in edges]
    for table in program.tables:
        parts.append(_node(table.name, table.kind, place[table.name], table.name in path.tables))
    height = 40 + ROW * most + 30
    width = max(lefts[-1] + widths[-1] + 12, 560.0)
    parts.append(_legend(height - 16))
    title = f"{program.name}: what waits for what; bold: the critical path"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" font-size="11" role="img" aria-label="{escape(title)}">'
        f'<defs>{_heads()}</defs><rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
        f'<text x="12" y="20" font-size="13" font-weight="bold" fill="#111">{escape(title)}</text>'
        f"{''.join(parts)}</svg>\n"
    )


def _columns(program: Program) -> list[list[str]]:
    """Tables by the length of the longest chain to them; each column is ordered by predecessors."""
    names = [t.name for t in program.tables]
    line, _ = order(names, [(d.before, d.after) for d in program.dependencies])
    depth = dict.fromkeys(names, 0)
    for name in line:
        for d in program.dependencies:
            if d.after == name:
                depth[name] = max(depth[name], depth[d.before] + 1)
    columns: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in names:
        columns[depth[name]].append(name)
    place = {name: float(k) for k, name in enumerate(columns[0])}
    for column in columns[1:]:
        centre = {}
        for name in column:
            before = [place[d.before] for d in program.dependencies if d.after == name]
            centre[name] = sum(before) / len(before)
        column.sort(key=lambda name: centre[name])
        place |= {name: float(k) for k, name in enumerate(column)}
    return columns


def _edge(d: Dependency, place: dict[str, tuple[float, float, float]], critical: bool) -> str:
    x1, y1, w1 = place[d.before]
    x2, y2, _ = place[d.after]
    a, b = x1 + w1, x2 - 6
    y1, y2 = y1 + BOX / 2, y2 + BOX / 2
    bend = max((b - a) / 2, 20)
    width = 2.8 if critical else 1.1
    dash = f' stroke-dasharray="{DASHES[d.kind]}"' if DASHES[d.kind] else ""
    return (
        f'<path d="M{a:g},{y1:g} C{a + bend:g},{y1:g} {b - bend:g},{y2:g} {b:g},{y2:g}" fill="none" '
        f'stroke="{colours.KINDS[d.kind]}" stroke-width="{width}"{dash} marker-end="url(#{d.kind})">'
        f"<title>{escape(str(d))}</title></path>"
    )


def _node(name: str, kind: str, at: tuple[float, float, float], critical: bool) -> str:
    x, y, width = at
    dash = "" if kind == EXACT else ' stroke-dasharray="4 2"'
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX:g}" rx="3" fill="#fbfbfb" stroke="#222" '
        f'stroke-width="{2.4 if critical else 1}"{dash}/>'
        f'<text x="{x + width / 2:g}" y="{y + BOX / 2 + 4:g}" text-anchor="middle" fill="#111">{escape(name)}</text>'
    )


def _heads() -> str:
    return "".join(
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        f'markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
        for kind, colour in colours.KINDS.items()
    )


def _legend(y: float) -> str:
    parts = []
    x = 12.0
    for kind, colour in colours.KINDS.items():
        dash = f' stroke-dasharray="{DASHES[kind]}"' if DASHES[kind] else ""
        parts.append(f'<path d="M{x:g},{y:g} h26" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{x + 32:g}" y="{y + 4:g}" fill="#222">{kind}</text>')
        x += 50 + 6.6 * len(kind)
    parts.append(f'<text x="{x:g}" y="{y + 4:g}" fill="#222">dashed box: not an exact match</text>')
    return "".join(parts)
