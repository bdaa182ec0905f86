"""Runs trials of specs on real hosts: a request from the simulator's core becomes a testbed and a schedule of flows."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.testbed import control, flowtune
from subak.testbed.layout import Layout, Link, Plan
from subak.testbed.schemes import on_hosts
from subak.testbed.testbed import Testbed

_numbers = itertools.count()
MOST_HOSTS = 64
LATE_NS = 5_000_000
"""Largest delay of a scheduled action, ns, without a warning. Longer delays show an overloaded machine."""


def carry(errand: str, goes_on: Callable[[float], bool]) -> str:
    """Runs the trial that the simulator's core requests (``crates/lab``). Request and recording are JSON."""
    asked = json.loads(errand)
    how = on_hosts().get(asked["scheme"])
    own, controlled, granted = how == "programs", how == "control", how == "allocator"
    underneath = control.UNDERNEATH if controlled else asked["scheme"]
    congestion = f"subak{os.getpid():x}_{next(_numbers)}" if own or granted else _congestion(underneath)
    plan = _plan(asked, telling=own, priority=controlled)
    if controlled:
        control.check(asked, plan)
    layout = Layout(plan)
    try:
        ways = [(layout.towards(flow["back"]), layout.towards(flow["forward"])) for flow in asked["flows"]]
    except ValueError as error:
        raise InputError(None, "workload", str(error), "take fewer flows, or a network with fewer paths") from None
    with Testbed(plan, layout) as testbed:
        if own:
            testbed.serve(_order(asked, congestion, testbed))
        schedule = _schedule(asked, congestion, plan, ways, testbed)
        if controlled:
            testbed.serve(control.order(asked, testbed))
            control.tell(schedule, asked, plan)
        with ExitStack() as daemons:
            granting = None
            if granted:
                configured = flowtune.configuration(asked["params"], asked["scale"])
                granting = daemons.enter_context(flowtune.Flowtune(testbed, layout, configured, congestion))

            def still(share: float) -> bool:
                if granting:
                    granting.watch()
                return goes_on(share)

            recording = testbed.carry(schedule, still, asked["faults"])
            recording["ended"] = [
                {"time_ns": max(one.at_ns - testbed.begun_ns, 0), "what": one.what, "status": one.status}
                for one in (granting.ended if granting else [])
            ]
    if recording["latest_ns"] > LATE_NS:
        late = f"something was done {recording['latest_ns'] / 1e6:.1f} ms late"
        print(
            f"subak: {late}: this machine has too much to do; lower [testbed] scale, or close what runs beside",
            file=sys.stderr,
        )
    return json.dumps(recording)


def _order(asked: dict[str, Any], name: str, testbed: Testbed) -> dict[str, Any]:
    """Configuration of the kernel programs at hosts and queues."""
    told = {key: asked[key] for key in ("scheme", "params", "scale", "rtt_ns")}
    return {"schema": 1, "name": name, **told, **testbed.places()}


def _plan(asked: dict[str, Any], *, telling: bool, priority: bool) -> Plan:
    names = tuple(node["name"] for node in asked["nodes"])
    hosts = tuple(node["host"] for node in asked["nodes"])
    if sum(hosts) > MOST_HOSTS:
        what = f"the network has {sum(hosts)} hosts, and a testbed on one machine carries {MOST_HOSTS}"
        raise InputError(None, "network", what, "take fewer hosts, or simulate it: leave --backend away")
    links = [
        Link(link["id"], link["from"], link["to"], link["rate_bps"], link["buffer_bytes"], link["delay_ns"])
        for link in asked["links"]
    ]
    plan = Plan(names, hosts, tuple(links), asked["mtu_bytes"], telling, priority=priority, delays=asked["delays"])
    return plan.with_relays((fault["link"] for fault in asked["faults"]), asked["seed"])


def _schedule(
    asked: dict[str, Any], congestion: str, plan: Plan, ways: list[tuple[str, str]], testbed: Testbed
) -> dict[str, Any]:
    hosts = [node for node, is_host in enumerate(plan.hosts) if is_host]
    number = {node: place for place, node in enumerate(hosts)}
    flows = []
    for flow, (source, target) in zip(asked["flows"], ways, strict=True):
        ends = {
            "src": number[plan.links[flow["forward"][0]].source],
            "dst": number[plan.links[flow["forward"][-1]].target],
            "from": source,
            "to": target,
        }
        flows.append(ends | {key: flow[key] for key in ("start_ns", "stop_ns", "size_bytes", "weight", "weights")})
    ports = [
        {"netns": testbed.namespace(link.source), "device": testbed.devices[number]}
        for number, link in enumerate(plan.links)
    ]
    return {
        "schema": 1,
        "congestion": congestion,
        "weighted": plan.telling or asked["scheme"] == flowtune.SCHEME,
        "hosts": [{"name": plan.names[node], "netns": testbed.namespace(node)} for node in hosts],
        "ports": ports,
        "flows": flows,
        **{key: asked[key] for key in ("until_ns", "look_ns", "flows_every_ns", "links_every_ns")},
    }


def _congestion(scheme: str) -> str:
    """The kernel's name of a scheme's congestion control."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if scheme not in available:
        what = f"this kernel has no congestion control {scheme}; it has {', '.join(available)}"
        raise InputError(None, "scheme", what, f"try `modprobe tcp_{scheme}`, or take another")
    return scheme
