"""Configuration of schemes with control packets (s-PERC): settings of links and of sources."""

from __future__ import annotations

from typing import Any

from subak.errors import InputError
from subak.testbed.layout import Plan
from subak.testbed.testbed import Testbed

UNDERNEATH = "cubic"
"""The kernel's congestion control of connections that a scheme paces: it detects and retransmits losses."""
MOST_HOPS = 8


def check(asked: dict[str, Any], plan: Plan) -> None:
    """Raises ``InputError`` for options that control packets do not support on hosts."""
    hops = max((len(flow["forward"]) for flow in asked["flows"]), default=0)
    if hops > MOST_HOPS:
        what = f"a flow crosses {hops} links, and control packets hold {MOST_HOPS}"
        raise InputError(None, "network", what, "take shorter paths, or simulate it: leave --backend away")
    twins = plan.twins()
    if asked["params"].get("reverse", True) and any(
        flow["back"] != [twins.get(link) for link in reversed(flow["forward"])] for flow in asked["flows"]
    ):
        what = "a flow's reverse path has other links, and links update control packets on the reverse path"
        raise InputError(None, "params.reverse", what, "write params.reverse = false, or make paths symmetric")


def order(asked: dict[str, Any], testbed: Testbed) -> dict[str, Any]:
    """Configuration of the programs that update control packets at links."""
    plan, twins = testbed.plan, testbed.plan.twins()
    return {
        "schema": 1,
        **{key: asked[key] for key in ("scheme", "params", "scale", "rtt_ns")},
        "packet_bytes": asked["mtu_bytes"],
        "control": {
            "hops": max((len(flow["forward"]) for flow in asked["flows"]), default=1),
            "loss": asked["control_loss"],
            "seed": asked["seed"],
        },
        "queues": [
            {
                "netns": testbed.namespace(link.source),
                **dict.fromkeys(("enter", "leave", "out"), testbed.real[number]),
                "rate_bps": link.rate_bps,
                "twin": twins.get(number),
            }
            for number, link in enumerate(plan.links)
        ],
    }


def tell(schedule: dict[str, Any], asked: dict[str, Any], plan: Plan) -> None:
    """Adds the sources' parameters to a schedule."""
    schedule["control"] = {
        **{key: asked[key] for key in ("scheme", "params", "scale", "rtt_ns", "mtu_bytes", "header_bytes")},
        "most_bps": max(link.rate_bps for link in plan.links),
    }
    for flow, scheduled in zip(asked["flows"], schedule["flows"], strict=True):
        rates = [plan.links[link].rate_bps for link in flow["forward"]]
        scheduled["path"] = {
            "hops": len(rates),
            "line_rate_bps": rates[0],
            "min_capacity_bps": min(rates),
            "rtt_ns": asked["rtt_ns"],
        }
