"""The command ``subak allocator``: queries and controls a running ``subak-allocator`` through its control socket."""

from __future__ import annotations

import json as json_module
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from subak.commands.plain import Group
from subak.errors import InputError

allocator = typer.Typer(
    no_args_is_help=True, cls=Group, rich_markup_mode=None, help="Query and control a running subak-allocator."
)

SOCKET = Path("/run/subak/allocator.sock")
PATIENCE_S = 10

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")]
At = Annotated[
    Path, typer.Option("--socket", help="Control socket of the daemon, the key `control` of its configuration.")
]


@allocator.callback()
def _group() -> None:
    """Query and control a running subak-allocator."""


def ask(at: Path, question: dict[str, Any]) -> Any:
    """Sends a request to the daemon and returns its reply; a refusal raises ``InputError``."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(PATIENCE_S)
            line.connect(str(at))
            line.sendall(json_module.dumps(question).encode() + b"\n")
            answer = json_module.loads(line.makefile().readline() or "{}")
    except (OSError, ValueError) as error:
        what = f"no allocator answers there: {getattr(error, 'strerror', None) or error}"
        raise InputError(
            str(at), "", what, 'start one, or set --socket to the key "control" of its configuration'
        ) from None
    if "ok" not in answer:
        what = str(answer.get("error", "the allocator hung up"))
        raise InputError(
            str(at), str(question["ask"]), what, "ask `subak allocator links` or `peers` for what there is"
        )
    return answer["ok"]


def _show(told: Any, *, json: bool) -> None:
    """Prints a table of rows, or of names and values."""
    from subak import show

    if json:
        print(json_module.dumps({"schema": 1, "rows": told} if isinstance(told, list) else {"schema": 1, **told}))
        return
    rows = told if isinstance(told, list) else [{"what": key, "value": value} for key, value in told.items()]
    if not rows:
        print("There are none.")
        return
    table = show.table(None, *(_heading(key) for key in rows[0]))
    for row in rows:
        table.add_row(*(_cell(key, value) for key, value in row.items()))
    show.console().print(table)


def _heading(key: str) -> str:
    """A column heading: the key without its unit, which the cells show."""
    bare = next((key.removesuffix(unit) for unit in ("_bps", "_ns", "_s") if key.endswith(unit)), key)
    return bare.replace("_", " ").capitalize()


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key.endswith("_bps"):
        return f"{value / 1e6:,.2f} Mb/s"
    if key.endswith("_ns"):
        return f"{value / 1000:,.0f} us"
    if key.endswith("_s"):
        return f"{value:,.1f} s"
    return f"{value:,}" if isinstance(value, int) else str(value)


@allocator.command(epilog="Example: subak allocator status")
def status(at: At = SOCKET, json: Json = False) -> None:
    """Show the allocator's state and load."""
    _show(ask(at, {"ask": "status"}), json=json)


@allocator.command(epilog="Example: subak allocator peers")
def peers(at: At = SOCKET, json: Json = False) -> None:
    """List the hosts: which have joined, their flowlets and RTTs."""
    _show(ask(at, {"ask": "peers"}), json=json)


@allocator.command(epilog="Example: subak allocator flows --host h3")
def flows(
    host: Annotated[str | None, typer.Option(help="Sender or receiver of the flowlets (default: all hosts).")] = None,
    at: At = SOCKET,
    json: Json = False,
) -> None:
    """List flowlets with their weights and rates."""
    _show(ask(at, {"ask": "flows"} | ({"host": host} if host else {})), json=json)


@allocator.command(epilog="Example: subak allocator links")
def links(at: At = SOCKET, json: Json = False) -> None:
    """List links with their capacity, allocated rates and other traffic."""
    _show(ask(at, {"ask": "links"}), json=json)


@allocator.command(epilog="Example: subak allocator counters")
def counters(at: At = SOCKET, json: Json = False) -> None:
    """Show counters of accepted, sent and refused messages since the start."""
    _show(ask(at, {"ask": "counters"}), json=json)


@allocator.command(epilog="Example: subak allocator link leaf0->spine1 down")
def link(
    name: Annotated[str, typer.Argument(help="Link in one direction, as in `links`.")],
    capacity: Annotated[str, typer.Argument(help="down, up, or a capacity such as 10Gbps.")],
    at: At = SOCKET,
    json: Json = False,
) -> None:
    """Set a link down or up, or change its capacity. Flowlets are routed around links that are down."""
    _show(ask(at, {"ask": "link", "link": name, "capacity": capacity}), json=json)


@allocator.command(epilog="Example: subak allocator quota web 8")
def quota(
    tenant: Annotated[str, typer.Argument(help="Tenant, by its name in the configuration.")],
    weight: Annotated[float, typer.Argument(help="Limit of the total weight of its flowlets.")],
    at: At = SOCKET,
    json: Json = False,
) -> None:
    """Limit a tenant's weight until the next reload of the configuration."""
    _show(ask(at, {"ask": "quota", "tenant": tenant, "weight": weight}), json=json)


@allocator.command(epilog="Example: subak allocator drain")
def drain(at: At = SOCKET, json: Json = False) -> None:
    """Stop serving: leases expire, or the standby serves."""
    _show(ask(at, {"ask": "drain"}), json=json)


@allocator.command(epilog="Example: subak allocator serve")
def serve(at: At = SOCKET, json: Json = False) -> None:
    """Serve again after a drain. A standby serves once the heartbeats of the other allocator stop."""
    _show(ask(at, {"ask": "serve"}), json=json)
