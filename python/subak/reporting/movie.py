"""Animation of the network of a run as one HTML file: loads of links, queue lengths, rates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subak.errors import InputError
from subak.reporting.data import Columns, Line, RunData, View
from subak.reporting.over_time import faults
from subak.reporting.picture import HEIGHT, WIDTH, layout

MOST_FRAMES = 400
"""Largest number of frames. Samples between frames are combined: the mean of loads, the maximum of queues."""


def build(folder: Path, sweep_point: str | None = None) -> str:
    """The document: the first seed of each scheme at a sweep point; by default the last sweep point."""
    run = RunData(folder, "run0")
    sweep_point = run.sweep_points[-1] if sweep_point is None else sweep_point
    if sweep_point not in run.sweep_points:
        known = "; ".join(f'"{name}"' for name in run.sweep_points)
        raise InputError(None, "sweep_point", f'there is none called "{sweep_point}"', f"choose one of: {known}")
    told = _told(run, sweep_point)
    here = files("subak.reporting")
    css, script, body = (here.joinpath(f).read_text(encoding="utf-8") for f in ("page.css", "movie.js", "movie.html"))
    data = json.dumps(told, separators=(",", ":")).replace("</", "<\\/")
    title = escape(", ".join(filter(None, (run.name, sweep_point))))
    return body.replace("{title}", title).replace("{css}", css).replace("{data}", data).replace("{script}", script)


def _told(run: RunData, sweep_point: str) -> dict[str, Any]:
    """Data for the script that draws the frames."""
    scene = run.scene(sweep_point)
    graph = run.networks[scene["network"]].get("graph") if scene and run.networks else None
    where = str(run.folder)
    links = [link for link in graph["links"] if link["from"] and link["to"]] if graph else []
    if not graph or not links:
        what = "the network is too large for a picture, or its links know no nodes"
        raise InputError(where, "", what, "take a network of up to 1000 links between nodes")
    view = View([run])
    queues = view.rows("queue", "time_ns", "link", "queued_bytes", "data_bytes")
    if not queues:
        raise InputError(where, "", "no queues were sampled", 'add queues = "100us" to [measure], and run it again')
    rates = view.rows("rate", "time_ns", "rate_bps")
    pairs = list(dict.fromkeys(tuple(sorted((link["from"], link["to"]))) for link in links))
    places = layout(graph, pairs)
    kinds = {node["id"]: node["kind"] for node in graph["nodes"]}
    schemes = [
        _scheme(line, queues[trials[0]], rates.get(trials[0]), links)
        for line in view.lines
        if (trials := view.of(sweep_point, line)) and trials[0] in queues
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "nodes": [
            {"id": name, "kind": kinds[name], "x": round(x, 1), "y": round(y, 1)} for name, (x, y) in places.items()
        ],
        "links": [{"id": link["id"], "from": link["from"], "to": link["to"]} for link in links],
        "schemes": schemes,
        "faults": [{"from": s.start, "to": s.end, "said": s.said} for s in faults(view, sweep_point)],
    }


def _scheme(line: Line, queues: Columns, rates: Columns | None, links: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    times, at = np.unique(queues["time_ns"], return_inverse=True)
    number = {link["id"]: i for i, link in enumerate(links)}
    column = np.array([number.get(str(link), -1) for link in queues["link"]])
    known = column >= 0
    load, queue = np.zeros((len(times), len(links))), np.zeros((len(times), len(links)))
    span_ns = np.diff(times, prepend=0.0)
    speed = np.array([link["bps"] for link in links])
    bits = 8e9 * np.nan_to_num(queues["data_bytes"][known])
    load[at[known], column[known]] = bits / (span_ns[at[known]] * speed[column[known]])
    queue[at[known], column[known]] = np.nan_to_num(queues["queued_bytes"][known])
    frames = np.unique(np.linspace(0, len(times), min(len(times), MOST_FRAMES) + 1).astype(int))
    count = np.diff(frames)[:, None]
    told = {
        "label": line.label,
        "times": [float(times[end - 1]) / 1e9 for end in frames[1:]],
        "load": _whole(100 * np.add.reduceat(load, frames[:-1]) / count),
        "queue": _whole(np.maximum.reduceat(queue, frames[:-1])),
    }
    if rates is not None:
        ends = np.array(told["times"]) * 1e9
        place = np.minimum(np.searchsorted(ends, rates["time_ns"]), len(ends) - 1)
        samples = np.maximum(
            np.bincount(place[np.unique(rates["time_ns"], return_index=True)[1]], minlength=len(ends)), 1
        )
        total = np.bincount(place, np.nan_to_num(rates["rate_bps"]), minlength=len(ends)) / samples
        told["rate"] = [float(f"{value:.4g}") for value in total]
        told["flows"] = [int(n) for n in np.bincount(place, minlength=len(ends)) / samples]
    return told


def _whole(values: NDArray[np.float64]) -> list[list[int]]:
    rounded: list[list[int]] = np.rint(values).astype(int).tolist()
    return rounded
