"""HTML page of a placement, readable offline: verdict, map, stages, tables, graph and solvers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from subak.pipeline import graph_svg, map_svg, show
from subak.pipeline.fitting import Answer


def page(found: Answer, others: Sequence[Answer] = (), why: Sequence[str] = ()) -> str:
    """The HTML document of a placement; ``why`` are sentences that explain an obstacle."""
    title = f"{found.program.name} on {found.switch.name}"
    css = files("subak.reporting").joinpath("page.css").read_text(encoding="utf-8")
    parts = [("Verdict", _verdict(found, why))]
    if found.placement and not _named_wrong(found):
        parts.append(("Stages and blocks", _map(found)))
    parts.append(("Solvers", _table(show.MEASURES, show.measures([found, *others]))))
    if found.placement and not _named_wrong(found):
        parts.append(("Each stage", _table(*show.stage_rows(found))))
        parts.append(("Each table", _table(show.TABLES, show.table_rows(found))))
    graph = f"<p>{escape(show.chain(found.program, found.switch))}</p>"
    parts.append(("Dependencies", graph + _picture(graph_svg.draw(found.program, found.switch))))
    parts.append(("What was placed", _about(found)))
    body = "".join(f"<section><h2>{name}</h2>{inner}</section>" for name, inner in parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - Subak</title><style>{css}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def _named_wrong(found: Answer) -> bool:
    return any("there is no" in wrong for wrong in found.wrong)


def _verdict(found: Answer, why: Sequence[str]) -> str:
    said = f"<p>{escape(show.verdict(found))}</p>"
    said += "".join(f'<p class="warn">{escape(wrong)}</p>' for wrong in found.wrong)
    if found.why:
        given_up = "" if found.status == "infeasible" else f"{escape(found.solver)} gave up: "
        said += f"<p>{given_up}{escape(found.why)}.</p>"
    said += "".join(f"<p>{escape(line)}</p>" for line in (show.afterwards(found), *found.program.notes) if line)
    items = [line[2:] for line in why if line.startswith("- ")]
    lead = [line for line in why if not line.startswith("- ")]
    said += "".join(f"<p>{escape(line)}</p>" for line in lead)
    return said + (f"<ul>{''.join(f'<li>{escape(i)}</li>' for i in items)}</ul>" if items else "")


def _picture(svg: str) -> str:
    return f'<div class="scroll">{svg}</div>'


def _map(found: Answer) -> str:
    """The map of stages and blocks; pointing at a table highlights its predecessors and successors."""
    assert found.placement
    ties: dict[str, list[str]] = {}
    for d in found.program.dependencies:
        ties.setdefault(d.before, []).append(d.after)
        ties.setdefault(d.after, []).append(d.before)
    told = json.dumps(ties).replace("<", "\\u003c")
    svg = map_svg.draw(found.program, found.switch, found.placement)
    return f'<div class="scroll" id="map">{svg}</div><script>const ties = {told};{_HOVER}</script>'


_HOVER = """
const boxes = document.querySelectorAll("#map rect[data-table]");
for (const box of boxes) {
  const near = new Set([box.dataset.table, ...(ties[box.dataset.table] || [])]);
  box.addEventListener("mouseenter", () => {
    for (const other of boxes) other.style.opacity = near.has(other.dataset.table) ? 1 : 0.15;
  });
  box.addEventListener("mouseleave", () => { for (const other of boxes) other.style.opacity = 1; });
}
"""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(f"<th{' class=name' if not i else ''}>{escape(h)}</th>" for i, h in enumerate(head))
    body = "".join(
        "<tr>" + "".join(f"<td{' class=name' if not i else ''}>{escape(c)}</td>" for i, c in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _about(found: Answer) -> str:
    import subak

    counts = ", ".join(f"{n} {kind}" for kind, n in found.program.counts().items() if n)
    facts = {
        "Program": f"{found.program.name}: {len(found.program.tables)} tables; {counts or 'no'} dependencies",
        "Switch": f"{found.switch.name}: {len(found.switch.stages)} stages",
        "Version": f"subak {subak.__version__}",
    }
    facts |= {"Source of the program": found.program.source} if found.program.source else {}
    facts |= {"Source of the switch": found.switch.source} if found.switch.source else {}
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in facts.items())}</dl>"
