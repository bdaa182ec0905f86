"""A testbed of a network file, without a spec. A shortest path connects every pair of hosts."""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from subak import inputs
from subak._subak import Network, bytes_of, nanoseconds
from subak.errors import InputError, InputWarning
from subak.testbed import flowtune, granting
from subak.testbed.layout import LEAST_DELAY_NS, Link, Plan, address, everywhere, longest_rtt_ns, unreached
from subak.testbed.schemes import on_hosts
from subak.testbed.testbed import Testbed

BUFFER_BYTES = 150_000
"""Default size of a queue, bytes: a hundred packets of 1500 bytes."""
LEAST_MTU, MOST_MTU = 576, 9216
"""Bounds of a full packet on the wire, bytes."""


class ByHand(Testbed):
    """A testbed without a spec, for ``subak testbed``."""

    def address(self, node: int) -> str | None:
        """The address of a host; switches have none."""
        return address(node, 0) if self.plan.hosts[node] else None


@dataclass(frozen=True)
class Sharing:
    """Telemetry of queues, and congestion control of hosts."""

    scheme: str | None = None
    """Scheme (Soze, a variant, or Flowtune) of every connection; ``None``: the kernel's congestion control."""
    ecn_bytes: int = 0
    """ECN threshold: queue length above which packets are marked, bytes; 0: no marks."""

    def __bool__(self) -> bool:
        return self.scheme is not None or self.ecn_bytes > 0


def made(network: str, sharing: Sharing | None = None, *, relays: bool = False, mtu: str | None = None) -> ByHand:
    """The testbed of a network file, a spec or a case. With ``relays`` each link can be changed later.

    ``mtu``: size of a full packet on the wire; by default the spec's.
    """
    sharing = sharing or Sharing()
    document, own, scale = _document(network)
    scheme, params = _scheme(network, sharing, own)
    granted = scheme == flowtune.SCHEME
    telling = sharing.ecn_bytes > 0 or (scheme is not None and not granted)
    plan = replace(_plan(network, document, scale), telling=telling, marking=sharing.ecn_bytes > 0)
    plan = replace(plan, mtu_bytes=_mtu_bytes(network, own, mtu))
    _warn_of_short_delays(plan)
    plan = plan.with_relays(range(len(plan.links)) if relays else ())
    configured = flowtune.configuration(params, scale) if granted else None
    layout = everywhere(plan)
    for first, second in unreached(layout):
        names = plan.names
        what = f"{names[first]} does not reach {names[second]}"
        raise InputError(network, "network", what, "connect them, by links both ways")
    order = _order(None if granted else scheme, params, own, scale, longest_rtt_ns(layout)) if telling else None
    up = ByHand(plan, layout)
    try:
        if order:
            up.serve({**order, **up.places(sharing.ecn_bytes)}, stays=True)
        if configured:
            started = granting.start(up, layout, configured, f"flowtune{os.getpid():x}")
            before = up.programs or {}
            started["processes"] += before.get("processes", [])
            up.programs = {**before, **started}
    except BaseException:
        up.down()
        raise
    return up


def _warn_of_short_delays(plan: Plan) -> None:
    short = [link for link in plan.links if plan.delays and 0 < link.delay_ns < LEAST_DELAY_NS]
    if short:
        example = f"{short[0].id} {short[0].delay_ns / 1000:g}us"
        what = f"network: hosts add no delays below {LEAST_DELAY_NS // 1000}us: {len(short)} links, such as {example}"
        warnings.warn(what, InputWarning, stacklevel=3)


def _mtu_bytes(network: str, spec: dict[str, Any], mtu: str | None) -> int:
    """Bytes of a full packet on the wire: those of the option, else of the spec."""
    packets = spec.get("packets", {})
    given = packets.get("mtu", 1500) if mtu is None and isinstance(packets, dict) else mtu
    file, place = (None, "--mtu") if mtu is not None else (network, "packets.mtu")
    try:
        size = bytes_of(str(given))
    except InputError as error:
        raise InputError(file, place, error.what, error.hint) from None
    if not LEAST_MTU <= size <= MOST_MTU:
        hint = f"give {LEAST_MTU} to {MOST_MTU} bytes, Ethernet header included"
        raise InputError(file, place, f"packets of {size} bytes do not fit", hint)
    return size


def _scheme(network: str, sharing: Sharing, spec: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Name and parameters of the scheme. The parameters are those in the spec, if there is one."""
    if sharing.scheme is None:
        return None, {}
    schemes = spec.get("scheme", [])
    given = schemes if isinstance(schemes, list) else []
    own = [one for one in given if isinstance(one, dict) and sharing.scheme in (one.get("label"), one.get("name"))]
    scheme = str(own[0].get("name")) if own else sharing.scheme
    known = [name for name, how in on_hosts().items() if how in ("programs", "allocator")]
    if scheme not in known:
        hint = f"take {' or '.join(known)}, or leave it away: connections then have the kernel's own control"
        raise InputError(network if own else None, "--scheme", f'hosts have no scheme "{sharing.scheme}"', hint)
    return scheme, own[0].get("params", {}) if own else {}


def _order(
    scheme: str | None, params: dict[str, Any], spec: dict[str, Any], scale: float, links_rtt_ns: int
) -> dict[str, Any]:
    """Configuration of the programs of hosts and queues."""
    if scheme is None:
        return {"schema": 1}
    section = spec.get("testbed", {})
    rtt_ns = nanoseconds(str(section.get("rtt", "1ms"))) if isinstance(section, dict) else 1_000_000
    told = {"scheme": scheme, "params": params, "scale": scale, "rtt_ns": rtt_ns + links_rtt_ns}
    return {"schema": 1, **told, "name": f"soze{os.getpid():x}", "all": True}


def _plan(network: str, document: dict[str, Any], scale: float) -> Plan:
    import pyarrow as pa

    read = Network(inputs.to_json(document), inputs.folder_of(network) if network != "-" else ".")
    number = {name: place for place, name in enumerate(read.nodes)}
    hosts = set(read.hosts)
    links = []
    for row in pa.table(read.links).to_pylist():
        if row["capacity_bps"] == 0:
            continue
        if row["from"] is None or row["to"] is None:
            what = f'link "{row["id"]}" does not say where it leads'
            raise InputError(network, "network.links", what, "give every link from and to")
        rate_bps, buffer_bytes = row["capacity_bps"] * scale, row["buffer_bytes"] or BUFFER_BYTES
        delay_ns = round(row["delay_ns"] / scale)
        links.append(Link(row["id"], number[row["from"]], number[row["to"]], rate_bps, buffer_bytes, delay_ns))
    if len(hosts) < 2:
        raise InputError(network, "network", f"it has {len(hosts)} hosts", "a testbed needs two at least")
    # A generator's default delay is less than a hop takes.
    delays = "kind" not in document or any("delay" in key for key in document)
    return Plan(tuple(read.nodes), tuple(name in hosts for name in read.nodes), tuple(links), delays=delays)


def _document(network: str) -> tuple[dict[str, Any], dict[str, Any], float]:
    """The network as the core reads it, the spec (if the file is one), and the spec's scale."""
    if Path(network).suffix.lower() == ".graphml":
        return {"file": Path(network).name}, {}, 1.0
    data, name = inputs.read(network)
    is_json = inputs.format_of(name, data) == "json"
    try:
        held = json.loads(data) if is_json else tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(name, "", f"it cannot be read: {error}", "write it as JSON or TOML") from None
    if not isinstance(held, dict):
        raise InputError(name, "", "it is no network", "give a spec, a case, or node-link JSON")
    if "network" not in held:
        return held, {}, 1.0
    section = held.get("testbed", {})
    scale = section.get("scale", 1.0) if isinstance(section, dict) else None
    if not isinstance(scale, int | float) or not 1e-6 <= scale <= 1e3:
        raise InputError(name, "testbed.scale", f"it is {scale}", "give a number from 0.000001 to 1000")
    network_of = held["network"]
    if isinstance(network_of, dict):
        # Only simulations schedule packets at hosts' links: hosts have the kernel's own.
        network_of = {key: value for key, value in network_of.items() if key != "nic"}
    return network_of, held, float(scale)
