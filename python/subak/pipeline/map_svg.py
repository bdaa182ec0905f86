"""Map of a placement: stages to the right, blocks upwards, coloured by table (PERC thesis, figures 6.12, 6.13)."""

from __future__ import annotations

from html import escape

from subak.pipeline import colours
from subak.pipeline.placement import MATCH_USE, Placed, Placement
from subak.pipeline.program import Dependency, Program
from subak.pipeline.switch import SHARED, Memory, Switch

LEFT, TOP, GAP = 64.0, 34.0, 30.0
HIGHEST = 250.0
LEGEND = 16.0


def draw(program: Program, switch: Switch, placement: Placement, title: str = "") -> str:
    """The map of a placement as SVG."""
    return _Map(program, switch, placement).svg(title)


class _Map:
    def __init__(self, program: Program, switch: Switch, placement: Placement) -> None:
        self.program, self.switch, self.placement = program, switch, placement
        names = [table.name for table in program.tables]
        self.colour = colours.of_tables(names)
        self.number = {name: str(i + 1) for i, name in enumerate(names)}
        widest = max(
            (s.blocks.get(m.name, 0) for s in switch.stages for m in switch.memories if m.packing == SHARED), default=0
        )
        self.column = max(26.0, 15.0 * widest, min(900.0 / len(switch.stages), 60.0))
        self.parts: list[str] = []
        self.ties = {name: _ties(program, name) for name in names}

    def svg(self, title: str) -> str:
        width = LEFT + self.column * len(self.switch.stages) + 14
        y = TOP
        for memory in self.switch.memories:
            y = self._panel(memory, y)
        y = self._legend(y + 4, width)
        shown = escape(title or f"{self.program.name} on {self.switch.name}")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {y:g}" width="{width:g}" height="{y:g}" '
            f'font-family="sans-serif" font-size="11" role="img" aria-label="{shown}">'
            f'<rect width="{width:g}" height="{y:g}" fill="#ffffff"/>'
            f'<text x="{LEFT:g}" y="20" font-size="13" font-weight="bold" fill="#111">{shown}</text>'
            f"{''.join(self.parts)}</svg>\n"
        )

    def _panel(self, memory: Memory, y: float) -> float:
        stages = [s.blocks.get(memory.name, 0) for s in self.switch.stages]
        most = max(stages)
        shared = memory.packing == SHARED
        height = 110.0 if shared else min(HIGHEST, max(2.4 * most, 7.0 * min(most, 16), 20.0))
        unit = height / (memory.depth if shared else max(most, 1))
        top = "rows" if shared else "blocks"
        most_up = memory.depth if shared else most
        for value, at in ((0, y + height), (most_up, y)):
            self.parts.append(f'<text x="{LEFT - 6:g}" y="{at + 4:g}" text-anchor="end" fill="#333">{value}</text>')
        middle = y + height / 2
        self.parts.append(
            f'<text x="16" y="{middle:g}" text-anchor="middle" fill="#111" '
            f'transform="rotate(-90 16 {middle:g})">{escape(memory.name)} {top}</text>'
        )
        for stage, there in enumerate(stages):
            x = LEFT + self.column * stage
            name = self.switch.stages[stage].name
            middle, below = x + self.column / 2, y + height + 13
            self.parts.append(f'<text x="{middle:g}" y="{below:g}" text-anchor="middle" fill="#333">{name}</text>')
            if not there:
                continue
            inside = self.column - 3
            low = y if shared else y + height - there * unit
            for part in range(there if shared else 1):
                wide = inside / there if shared else inside
                told = f"stage {name}: {there} blocks"
                self._box(x + part * wide, low, wide, y + height - low, "#f4f4f4", "#bbbbbb", told)
            rows = [r for r in self.placement.rows if (r.stage, r.memory) == (stage, memory.name)]
            if shared:
                self._shared(rows, x, y + height, inside / there, unit)
            else:
                self._stack(rows, x, y + height, inside, unit)
        return y + height + GAP

    def _stack(self, rows: list[Placed], x: float, bottom: float, width: float, unit: float) -> None:
        ordered = sorted(rows, key=lambda r: (r.use != MATCH_USE, int(self.number[r.table])))
        for row in ordered:
            height = row.blocks * unit
            bottom -= height
            fill = self.colour[row.table] if row.use == MATCH_USE else colours.ACTION
            told = f"{row.table}, {row.use}: {row.blocks} blocks, {row.entries} entries"
            self._box(x, bottom, width, height, fill, "#ffffff", told, row.table)
            if row.use == MATCH_USE and height >= 9:
                self._tag(row.table, x + width / 2, bottom + height / 2)

    def _shared(self, rows: list[Placed], x: float, bottom: float, width: float, unit: float) -> None:
        for row in rows:
            left = x + (row.first_block or 0) * width
            height = row.entries * unit
            low = bottom - ((row.first_row or 0) + row.entries) * unit
            told = f"{row.table}: {row.entries} rows from {row.first_row} over {row.blocks} blocks"
            self._box(left, low, row.blocks * width, height, self.colour[row.table], "#ffffff", told, row.table)
            if height >= 9:
                self._tag(row.table, left + row.blocks * width / 2, low + height / 2)

    def _box(
        self, x: float, y: float, width: float, height: float, fill: str, edge: str, told: str, table: str = ""
    ) -> None:
        marked = f' data-table="{escape(table)}"' if table else ""
        told = "\n".join([told, *self.ties.get(table, [])])
        self.parts.append(
            f'<rect{marked} x="{x:g}" y="{y:.2f}" width="{width:g}" height="{height:.2f}" fill="{fill}" '
            f'stroke="{edge}" stroke-width="0.6"><title>{escape(told)}</title></rect>'
        )

    def _tag(self, table: str, x: float, y: float) -> None:
        shown = f'x="{x:g}" y="{y + 3.2:.2f}" font-size="9" text-anchor="middle" fill="#111"'
        self.parts.append(f"<text {shown}>{self.number[table]}</text>")

    def _legend(self, y: float, width: float) -> float:
        longest = max(len(name) for name in self.number)
        step = 44.0 + 6.4 * longest
        columns = max(int((width - LEFT) // step), 1)
        entries = [(self.colour[name], f"{number}  {name}") for name, number in self.number.items()]
        if any(row.use != MATCH_USE for row in self.placement.rows):
            entries.append((colours.ACTION, "action data, statistics, registers"))
        for i, (fill, text) in enumerate(entries):
            x, at = LEFT + step * (i % columns), y + LEGEND * (i // columns)
            self.parts.append(
                f'<rect x="{x:g}" y="{at:g}" width="12" height="11" fill="{fill}"/>'
                f'<text x="{x + 17:g}" y="{at + 9.5:g}" fill="#222">{escape(text)}</text>'
            )
        return y + LEGEND * (-(-len(entries) // columns)) + 8


def _ties(program: Program, name: str) -> list[str]:
    """Predecessors and successors of a table, as lines of text."""
    before = [d for d in program.dependencies if d.after == name]
    after = [d for d in program.dependencies if d.before == name]
    lines = [f"waits for {d.before} ({d.kind}{_by(d)})" for d in before]
    return lines + [f"{d.after} waits for it ({d.kind}{_by(d)})" for d in after]


def _by(d: Dependency) -> str:
    return f" by {', '.join(d.fields)}" if d.fields else ""
