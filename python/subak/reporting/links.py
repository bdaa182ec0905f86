"""Links of a run: utilization under each scheme as a picture and a table, and the busiest links over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from subak import units
from subak.reporting.charts import Block, Chart, Series
from subak.reporting.data import RunData, View
from subak.reporting.over_time import faults, over_time, thinned
from subak.reporting.picture import HEAT, draw
from subak.reporting.sections import block
from subak.reporting.svg import block as drawn_block

MOST_HOT = 4
MOST_LISTED = 1000
Busy = dict[str, dict[str, tuple[float, float]]]
"""By link and scheme: utilization, and longest queue in bytes; means over seeds."""


def links(run: RunData) -> str:
    """The report's section on links: a picture for each scheme, the busiest links over time, and a table."""
    view = View([run])
    sweep_point = run.sweep_points[-1] if run.sweep_points else ""
    busy = _busy(view, sweep_point)
    if not busy:
        return '<p class="quiet">No link was measured.</p>'
    where = f" at {sweep_point}" if sweep_point else ""
    said = f"Data over capacity between warm-up and duration{where}, the mean over seeds. Each link is coloured by the "
    said += "busier of its directions."
    hottest = sorted(busy, key=lambda link: -max(share for share, _ in busy[link].values()))
    return (
        f'<p class="quiet">{escape(said)}</p>{_pictures(run, view, sweep_point, busy)}{_table(view, busy, hottest)}'
        f"{drawn_block(hot(view, sweep_point, hottest[:MOST_HOT]), folded=False)}"
    )


def _busy(view: View, sweep_point: str) -> Busy:
    rows = view.rows("link", "link", "utilization", "peak_queued_bytes")
    busy: Busy = {}
    for line in view.lines:
        trials = [rows[c] for c in view.of(sweep_point, line) if c in rows]
        for trial in trials:
            for link, share, peak in zip(trial["link"], trial["utilization"], trial["peak_queued_bytes"], strict=True):
                mine = busy.setdefault(str(link), {})
                before = mine.get(line.label, (0.0, 0.0))
                mine[line.label] = (before[0] + float(share) / len(trials), before[1] + float(peak) / len(trials))
    return busy


def _pictures(run: RunData, view: View, sweep_point: str, busy: Busy) -> str:
    scene = run.scene(sweep_point)
    graph = run.networks[scene["network"]].get("graph") if scene and run.networks else None
    if not graph:
        return ""
    figures = ""
    for line in view.lines:
        heat = {link: shares[line.label][0] for link, shares in busy.items() if line.label in shares}
        picture = draw(graph, heat)
        if picture and heat:
            name = escape(line.label)
            figures += f'<figure class="series" data-name="{name}"><figcaption>{name}</figcaption>{picture}</figure>'
    steps = "".join(f'<i class="h{step}"></i>' for step in range(HEAT))
    key = f'<p class="heat">0%{steps}100%</p>'
    return f'{key}<div class="charts">{figures}</div>' if figures else ""


def _table(view: View, busy: Busy, ranked: Sequence[str]) -> str:
    labels = [line.label for line in view.lines if any(line.label in shares for shares in busy.values())]
    head = "".join(f"<th>{escape(label)}</th>" for label in labels)
    body = []
    for link in ranked[:MOST_LISTED]:
        cells = "".join(_cell(label, busy[link].get(label)) for label in labels)
        body.append(f'<tr><td class="name">{escape(link)}</td>{cells}</tr>')
    more = f"<p>... and {len(ranked) - MOST_LISTED} more links</p>" if len(ranked) > MOST_LISTED else ""
    rows = f'<thead><tr><th class="name">Link</th>{head}</tr></thead><tbody>{"".join(body)}</tbody>'
    top = f'<div class="scroll"><table class="cards">{rows}</table></div>{more}'
    return f"<details><summary>All links, the busiest first: utilization and longest queue</summary>{top}</details>"


def _cell(label: str, found: tuple[float, float] | None) -> str:
    if found is None:
        return f'<td data-label="{escape(label)}">-</td>'
    share, peak = found
    queue = f"<small>{units.size(peak)}</small>" if peak > 0 else ""
    return f'<td data-label="{escape(label)}">{100 * share:.1f}%{queue}</td>'


def hot(view: View, sweep_point: str, hottest: Sequence[str]) -> Block:
    """Utilization of the links ``hottest`` over time."""
    rows = view.rows("queue", "time_ns", "link", "data_bytes")
    scene = view.runs[0].scene(sweep_point)
    networks = view.runs[0].networks
    graph = networks[scene["network"]].get("graph") if scene and networks else None
    if not rows or not graph:
        return Block('Load over time is drawn where queues are sampled: queues = "100us" in [measure].')
    speeds = {link["id"]: link["bps"] for link in graph["links"]}
    charts: list[Chart] = []
    for link in hottest:
        series = []
        for line in view.lines:
            trials = view.of(sweep_point, line)
            if not trials or trials[0] not in rows:
                continue
            trial = rows[trials[0]]
            mine = trial["link"] == link
            time, sent = trial["time_ns"][mine] / 1e9, trial["data_bytes"][mine]
            if len(time) < 2:
                continue
            load = sent * 8 / (np.diff(time, prepend=0.0) * speeds.get(link, np.nan))
            series.append(Series(line.label, line.slot, *thinned(time, load)))
        if series:
            charts.append(over_time(link, series, "load, of capacity", faults(view, sweep_point)))
    said = f"The {len(charts)} busiest links over time, the first seed."
    return block(view, said, {sweep_point: charts}) if charts else Block("")
