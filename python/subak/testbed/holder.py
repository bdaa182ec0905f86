"""The process that holds a testbed: it creates the namespaces, reports them, and keeps them until the process ends.

The process reads one JSON line from standard input and writes one to standard output. It ends when its standard input
closes, which happens when the parent ends for any reason. After the line ``stay`` it continues without standard input.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from subak.errors import InputError
from subak.testbed import relay
from subak.testbed.layout import Layout, Link, Plan
from subak.testbed.namespaces import Namespaces

STAY = "stay\n"


def order(plan: Plan, layout: Layout) -> dict[str, Any]:
    """The JSON line that the process reads: nodes, links, addresses, routes and relays."""
    return {
        "names": plan.names,
        "hosts": plan.hosts,
        "links": [vars(link) for link in plan.links],
        "mtu_bytes": plan.mtu_bytes,
        "telling": plan.telling,
        "marking": plan.marking,
        "priority": plan.priority,
        "delays": plan.delays,
        "relayed": plan.relayed,
        "seed": plan.seed,
        "trees": [[node, [list(tree.items()) for tree in trees]] for node, trees in layout.trees.items()],
    }


def read(told: dict[str, Any]) -> tuple[Plan, dict[int, list[dict[int, int]]]]:
    """The plan, and the trees of routes, of a line that ``order`` made."""
    links = tuple(Link(**link) for link in told["links"])
    how = (told["mtu_bytes"], told["telling"], told["marking"], told["priority"])
    relays = (told["delays"], tuple(told["relayed"]), told["seed"])
    plan = Plan(tuple(told["names"]), tuple(told["hosts"]), links, *how, *relays)
    return plan, {node: [dict(tree) for tree in held] for node, held in told["trees"]}


def main() -> None:
    """Creates the namespaces that the first line requests, and keeps them."""
    # Ctrl-C is for the parent; the holder ends with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = json.loads(sys.stdin.readline())
    plan, trees = read(told)
    carrying = 0
    try:
        namespaces = Namespaces(plan)
        namespaces.lay(Layout(plan, trees))
        if namespaces.relayed:
            running = relay.start(told["agent"], namespaces.relayed, plan.seed)
            carrying = running.pid

            def end(*_: object) -> None:
                if running.poll() is not None:
                    os._exit(relay.ENDED)

            # Without relay the links are dead, so that the testbed ends with it.
            signal.signal(signal.SIGCHLD, end)
            end()
    except InputError as error:
        answer = {"error": {"place": error.place, "what": error.what, "hint": error.hint}}
        print(json.dumps(answer), flush=True)
        sys.exit(2)
    print(
        json.dumps(
            {
                "pid": os.getpid(),
                "files": namespaces.files,
                "devices": namespaces.devices,
                "real": namespaces.real,
                "relay": carrying,
            }
        ),
        flush=True,
    )
    while line := sys.stdin.readline():
        if line == STAY:
            close_streams()
            while True:
                signal.pause()


def close_streams() -> None:
    """Closes standard input, output and error, so that readers do not wait for more."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


if __name__ == "__main__":
    main()
