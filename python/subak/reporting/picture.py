"""The network of a run as text and as a small picture."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from subak import units
from subak.reporting.data import RunData

WIDTH, HEIGHT = 460.0, 230.0
MARGIN = 16.0
MOST_NODES = 400
HEAT = 8
"""Number of colours for loads from 0 to 100%."""
Places = dict[str, tuple[float, float]]


def network(run: RunData) -> str:
    """Each network of the run as text and picture, with its faults."""
    about = run.networks
    if not about:
        return ""
    blocks = []
    for i, one in enumerate(about):
        sweep_points = [run.sweep_point(s["axes"]) for s in run.manifest.get("sweep_points", []) if s["network"] == i]
        whose = (
            f"{sweep_points[0]} and {len(sweep_points) - 1} more: " if len(about) > 1 and len(sweep_points) > 1 else ""
        )
        whose = f"{sweep_points[0]}: " if len(about) > 1 and len(sweep_points) == 1 else whose
        blocks.append(f"<p>{escape(whose + in_words(one))}</p>{draw(one.get('graph'))}")
    said = dict.fromkeys(_when(f, s["duration_ns"]) for s in run.manifest.get("sweep_points", []) for f in s["faults"])
    listed = "".join(f"<li>{escape(text)}</li>" for text in list(said)[:8])
    rest = f"<li>and {len(said) - 8} more</li>" if len(said) > 8 else ""
    faults = f"<p>What goes wrong:</p><ul>{listed}{rest}</ul>" if said else ""
    return "".join(blocks[:4]) + faults


def _when(fault: Mapping[str, Any], duration_ns: int) -> str:
    start, until = fault["from_ns"], fault["until_ns"]
    since = f" from {units.seconds(start / 1e9)}" if start > 0 else ""
    to = f" to {units.seconds(until / 1e9)}" if until is not None and until < duration_ns else ""
    return f"{fault['text']}{since}{to}"


def in_words(about: Mapping[str, Any]) -> str:
    """The network as text, such as: 144 hosts, 13 switches; 360 directed links: 288 of 10 Gb/s; delay 1 us each."""
    speeds = [f"{c['links']} of {units.rate(c['bps'])}" for c in about["capacities"]]
    speeds = [*speeds[:4], f"{len(speeds) - 4} other speeds"] if len(speeds) > 5 else speeds
    least, most = (units.seconds((v or 0) / 1e9) for v in about["delays_ns"])
    delay = f"{least} each" if least == most else f"{least} to {most}"
    switches = f", {about['switches']} switches" if about["switches"] else ""
    return f"{about['hosts']} hosts{switches}; {about['links']} directed links: {', '.join(speeds)}; delay {delay}."


def draw(graph: Mapping[str, Any] | None, heat: Mapping[str, float] | None = None) -> str:
    """The graph as SVG: layers above the hosts, or a spring layout if every node is a host. Empty if too large.

    ``heat`` is the load of each link, 0 to 1: a wire has the colour of its busier direction, and a tooltip with both
    loads.
    """
    if not graph or not graph["links"] or len(graph["nodes"]) > MOST_NODES:
        return ""
    nodes = [node["id"] for node in graph["nodes"]]
    hosts = {node["id"] for node in graph["nodes"] if node["kind"] == "host"}
    pairs = list(dict.fromkeys(tuple(sorted((k["from"], k["to"]))) for k in graph["links"] if k["from"] and k["to"]))
    if not pairs:
        return ""
    places = layout(graph, pairs)
    hot: dict[tuple[str, ...], dict[str, float]] = {}
    for link in graph["links"]:
        if heat and link["id"] in heat and link["from"] and link["to"]:
            hot.setdefault(tuple(sorted((link["from"], link["to"]))), {})[link["id"]] = heat[link["id"]]
    lines = "".join(_wire(places[a], places[b], hot.get((a, b))) for a, b in pairs)
    dots = "".join(_node(name, places[name], name in hosts, len(nodes)) for name in nodes)
    return (
        f'<svg class="net" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="The network">{lines}{dots}</svg>'
    )


def layout(graph: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> Places:
    """Position of each node in the picture."""
    nodes = [node["id"] for node in graph["nodes"]]
    hosts = {node["id"] for node in graph["nodes"] if node["kind"] == "host"}
    return _layers(nodes, hosts, pairs) if len(hosts) < len(nodes) else _springs(nodes, pairs)


def _wire(a: tuple[float, float], b: tuple[float, float], shares: Mapping[str, float] | None) -> str:
    ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
    if not shares:
        return f'<line class="wire" {ends}/>'
    said = escape("; ".join(f"{link} {100 * share:.0f}%" for link, share in shares.items()))
    step = min(int(max(shares.values()) * HEAT), HEAT - 1)
    return f'<line class="wire hot h{step}" {ends}><title>{said}</title></line>'


def _node(name: str, place: tuple[float, float], host: bool, count: int) -> str:
    x, y = place
    size = 4.5 if count <= 60 else 2.2
    shape = (
        f'<circle class="host" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"/>'
        if host
        else f'<rect class="switch" x="{x - size - 1:.1f}" y="{y - size:.1f}" width="{2 * size + 2:g}" '
        f'height="{2 * size:g}"/>'
    )
    anchor = "end" if x > WIDTH / 2 else "start"
    tip = f'<text class="tip" x="{x + (-8 if x > WIDTH / 2 else 8):.1f}" y="{y - 6:.1f}" text-anchor="{anchor}">'
    return f'<g class="pt">{shape}{tip}{escape(name)}</text></g>'


def _layers(nodes: Sequence[str], hosts: set[str], pairs: Sequence[tuple[str, str]]) -> Places:
    """Layers: hosts at the bottom, and each switch at its distance from the nearest host."""
    near: dict[str, list[str]] = {name: [] for name in nodes}
    for a, b in pairs:
        near[a].append(b)
        near[b].append(a)
    depth = dict.fromkeys(hosts, 0)
    waiting = deque(hosts)
    while waiting:
        name = waiting.popleft()
        for other in near[name]:
            if other not in depth:
                depth[other] = depth[name] + 1
                waiting.append(other)
    most = max(depth.values()) or 1
    places: Places = {}
    for layer in range(most + 1):
        here = [name for name in nodes if depth.get(name, most) == layer]
        for i, name in enumerate(here):
            x = MARGIN + (WIDTH - 2 * MARGIN) * (i + 0.5) / len(here)
            places[name] = (x, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * layer / most)
    return places


def _springs(nodes: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Places:
    """Fruchterman and Reingold's spring layout. It starts from fixed positions, so that the result is deterministic."""
    count = len(nodes)
    number = {name: i for i, name in enumerate(nodes)}
    turn = np.arange(count) * 2.399963  # golden angle
    at = np.sqrt((np.arange(count) + 0.5) / count)[:, None] * np.stack([np.cos(turn), np.sin(turn)], 1)
    ends = np.array([[number[a], number[b]] for a, b in pairs])
    ideal = np.sqrt(4.0 / count)
    for step in range(200):
        apart = at[:, None] - at[None]
        far = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-3)
        force = (apart * (ideal**2 / far**2)[..., None]).sum(1)
        along = at[ends[:, 0]] - at[ends[:, 1]]
        pull = along * (np.hypot(along[:, 0], along[:, 1]) / ideal)[:, None]
        np.add.at(force, ends[:, 0], -pull)
        np.add.at(force, ends[:, 1], pull)
        strength = np.maximum(np.hypot(force[:, 0], force[:, 1]), 1e-9)
        at += force / strength[:, None] * np.minimum(strength, 0.2 * (1 - step / 200))[:, None]
    low, high = at.min(0), at.max(0)
    unit = (at - low) / np.maximum(high - low, 1e-9)
    return {
        name: (MARGIN + (WIDTH - 2 * MARGIN) * unit[i, 0], MARGIN + (HEIGHT - 2 * MARGIN) * unit[i, 1])
        for name, i in number.items()
    }
