"""A testbed of a network file: every host is reached from every other by a shortest path."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from subak import inputs
from subak._subak import Network
from subak.errors import InputError
from subak.testbed.layout import Link, Plan, address, everywhere, unreached
from subak.testbed.testbed import Testbed

BUFFER_BYTES = 150_000
"""Of a queue where the network says nothing: a hundred packets."""


class ByHand(Testbed):
    """A testbed without a spec."""

    def address(self, node: int) -> str | None:
        """The address of a host; switches have none."""
        return address(node, 0) if self.plan.hosts[node] else None


def made(network: str) -> ByHand:
    """The testbed of a network file, of a spec or of a case."""
    plan = _plan(network)
    layout = everywhere(plan)
    for first, second in unreached(layout):
        names = plan.names
        what = f"{names[first]} does not reach {names[second]}"
        raise InputError(network, "network", what, "connect them, by links both ways")
    return ByHand(plan, layout)


def _plan(network: str) -> Plan:
    import pyarrow as pa

    document, scale = _document(network)
    read = Network(inputs.to_json(document), inputs.folder_of(network) if network != "-" else ".")
    number = {name: place for place, name in enumerate(read.nodes)}
    hosts = set(read.hosts)
    links = []
    for row in pa.table(read.links).to_pylist():
        if row["from"] is None or row["to"] is None:
            what = f'link "{row["id"]}" does not say where it leads'
            raise InputError(network, "network.links", what, "give every link from and to")
        rate_bps, buffer_bytes = row["capacity_bps"] * scale, row["buffer_bytes"] or BUFFER_BYTES
        links.append(Link(row["id"], number[row["from"]], number[row["to"]], rate_bps, buffer_bytes))
    if len(hosts) < 2:
        raise InputError(network, "network", f"it has {len(hosts)} hosts", "a testbed needs two at least")
    return Plan(tuple(read.nodes), tuple(name in hosts for name in read.nodes), tuple(links))


def _document(network: str) -> tuple[dict[str, Any], float]:
    """The network as the core reads it, and the scale of a spec that has one."""
    if Path(network).suffix.lower() == ".graphml":
        return {"file": Path(network).name}, 1.0
    data, name = inputs.read(network)
    is_json = inputs.format_of(name, data) == "json"
    try:
        held = json.loads(data) if is_json else tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(name, "", f"it cannot be read: {error}", "write it as JSON or TOML") from None
    if not isinstance(held, dict):
        raise InputError(name, "", "it is no network", "give a spec, a case, or node-link JSON")
    if "network" not in held:
        return held, 1.0
    section = held.get("testbed", {})
    scale = section.get("scale", 1.0) if isinstance(section, dict) else None
    if not isinstance(scale, int | float) or not 1e-6 <= scale <= 1e3:
        raise InputError(name, "testbed.scale", f"it is {scale}", "give a number from 0.000001 to 1000")
    return held["network"], float(scale)
