"""The command ``subak testbed``."""

from __future__ import annotations

import json as json_module
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subak.commands.plain import Group
from subak.errors import InputError

if TYPE_CHECKING:
    from subak.testbed.by_hand import ByHand
    from subak.testbed.standing import Standing

testbed = typer.Typer(
    no_args_is_help=True, cls=Group, rich_markup_mode=None, help="Run a network as namespaces of this machine, as root."
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")]
Name = Annotated[str | None, typer.Option(help="Name of the testbed, if several are up.")]
Scheme = Annotated[
    str | None,
    typer.Option(
        help="Scheme of every connection: soze-virtual, soze, flowtune, or a scheme of the spec by its label."
    ),
]
Ecn = Annotated[str | None, typer.Option(metavar="BYTES", help="Queue length above which queues set ECN marks.")]
Weight = Annotated[float | None, typer.Option(help="Weight of the command's connections, under --scheme.")]
Relay = Annotated[bool, typer.Option("--relay", help="Relay every link, so that `subak testbed link` can change each.")]
Mtu = Annotated[
    str | None,
    typer.Option(
        metavar="BYTES", help="Size of a full packet on the wire, 576 to 9216 (default: the spec's, or 1500)."
    ),
]
Network = Annotated[str, typer.Argument(metavar="NETWORK", help="Network: a spec, a case, node-link JSON or GraphML.")]


@testbed.callback()
def _group() -> None:
    """Run a network as namespaces of this machine, as root."""


@testbed.command(epilog="Example: subak testbed up examples/testbed.toml")
def up(
    network: Network,
    name: Annotated[str | None, typer.Option(help="Name of the testbed (default: the file's name).")] = None,
    scheme: Scheme = None,
    ecn: Ecn = None,
    relay: Relay = False,
    mtu: Mtu = None,
    json: Json = False,
) -> None:
    """Create the network, which stays until `subak testbed down`."""
    from subak.testbed.standing import reserved

    name = name or (Path(network).stem if network != "-" else "testbed")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,40}", name):
        raise InputError(None, "--name", f'"{name}" is no name', "use up to 40 letters, digits, dots and dashes")
    _need_root()
    with reserved(name):
        made = _make(network, scheme, ecn, relay, mtu)
        standing = _standing(name, made)
        try:
            standing.save()
            made.stay()
        except OSError as error:
            made.down()
            what = f"{standing.path} cannot be written: {error.strerror}"
            raise InputError(None, "", what, "make /run/subak writable for root") from None
    if json:
        print(json_module.dumps({"schema": 1, **_told(standing)}))
        return
    hosts = [node for node in standing.nodes if node["host"]]
    switches = len(standing.nodes) - len(hosts)
    print(f"The testbed {name} is up: {len(hosts)} hosts, {switches} switches, {len(standing.links)} links.")
    if page := (standing.programs or {}).get("page"):
        print(f"The allocator's page: {page}")
    print(f"Try: subak testbed exec {hosts[0]['name']} -- ip route")


@testbed.command(
    "exec",
    context_settings={"allow_interspersed_args": False},
    epilog="Example: subak testbed exec h0 -- iperf3 -c h2",
)
def execute(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Node of the testbed.")],
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="Command to run there.")],
    name: Name = None,
    weight: Weight = None,
) -> None:
    """Run a command at a node, where other hosts have their names."""
    from subak.testbed.groups import join_common
    from subak.testbed.namespaces import become
    from subak.testbed.standing import one

    _need_root()
    standing = one(name)
    if weight is not None:
        raise typer.Exit(_weighted(standing, host, _plain(command), weight))
    join_common(standing.label)
    become(standing.namespace(host), {node["name"]: node["address"] for node in standing.nodes if node["address"]})
    _replace(_plain(command))


@testbed.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: subak testbed run examples/testbed.toml -- ./measure.sh",
)
def run(
    network: Network,
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="Command to run meanwhile.")],
    scheme: Scheme = None,
    ecn: Ecn = None,
    relay: Relay = False,
    mtu: Mtu = None,
) -> None:
    """Create the network, run one command outside of it, and remove it. `subak testbed exec` works meanwhile."""
    from subak.testbed.groups import groups

    with _make(network, scheme, ecn, relay, mtu) as made:
        standing = _standing(f"run-{os.getpid()}", made)
        standing.save()
        # Ctrl-C is for the command; this process ends after the command.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            environment = {**os.environ, "SUBAK_TESTBED": standing.name}
            code = subprocess.run(_plain(command), env=environment, preexec_fn=_hear_interrupts, check=False).returncode
        except OSError as error:
            raise InputError(
                None, "COMMAND", f"{_plain(command)[0]}: {error.strerror}", "name a program on the PATH"
            ) from None
        finally:
            for group in groups(standing.label):
                group.end()
            standing.path.unlink(missing_ok=True)
    raise typer.Exit(code if code >= 0 else 128 - code)


@testbed.command(epilog="Example: subak testbed status --json")
def status(json: Json = False) -> None:
    """List the testbeds that are up, with the state of their queues."""
    from subak.testbed.standing import everything

    up = [standing for standing in everything() if standing.alive]
    if json:
        print(json_module.dumps({"schema": 1, "testbeds": [_told(standing) for standing in up]}))
    elif not up:
        print("no testbed is up")
    for standing in [] if json else up:
        hosts = [f"{node['name']} {node['address']}" for node in standing.nodes if node["address"]]
        print(f"{standing.name}: {', '.join(hosts)}")
        for one in standing.ended():
            print(f"  ended: {one['name']} (process {one['pid']}), which served {_served(standing)}; {standing.again}")
        for link in _links(standing):
            print(
                f"  {link['id']}: {link['rate_bps'] / 1e6:g} Mb/s, {link['sent_bytes']} bytes sent, "
                f"{link['queued_bytes']} queued, {link['dropped_packets']} packets dropped"
                + (
                    f", {link['raised_packets']} with a raised delay, {link['marked_packets']} marked"
                    if "packets" in link
                    else ""
                )
                + (_relay_words(link["relay"]) if "relay" in link else "")
            )
    if any(standing.ended() for standing in up):
        raise typer.Exit(1)


@testbed.command(epilog="Example: subak testbed link 'h0->switch0' loss 1%")
def link(
    link: Annotated[str, typer.Argument(metavar="LINK", help="Link of the testbed, as in `subak testbed status`.")],
    change: Annotated[
        str,
        typer.Argument(metavar="CHANGE", help="down, up, delay TIME, loss PROBABILITY or reorder PROBABILITY TIME."),
    ],
    values: Annotated[list[str] | None, typer.Argument(metavar="[VALUE]...", help="Values of the change.")] = None,
    both: Annotated[bool, typer.Option("--both", help="Change the reverse link, too.")] = False,
    name: Name = None,
    json: Json = False,
) -> None:
    """Change a relayed link: one with a delay, or any link of a testbed made with --relay."""
    from subak.testbed.standing import one

    _need_root()
    changed = one(name).change(link, _change(change, values or []), both=both)
    if json:
        print(json_module.dumps({"schema": 1, "changed": changed}))
    else:
        print(f"changed: {', '.join(changed)}")


@testbed.command(epilog="Example: subak testbed down")
def down(name: Name = None) -> None:
    """Remove a testbed, or with ``--name`` what a killed one left, including all processes in it."""
    from subak.testbed.standing import one, remains

    _need_root()
    left = remains(name) if name is not None else None
    (left or one(name)).down()


@testbed.command(epilog="Example: subak testbed clean")
def clean(json: Json = False) -> None:
    """Remove all testbeds, including remains of killed ones."""
    from subak.testbed import standing

    _need_root()
    names = standing.clean()
    if json:
        print(json_module.dumps({"schema": 1, "removed": names}))
    else:
        print(f"taken down: {', '.join(names)}" if names else "nothing was left")


def _make(network: str, scheme: str | None, ecn: str | None, relay: bool, mtu: str | None) -> ByHand:
    from subak._subak import bytes_of
    from subak.testbed.by_hand import Sharing, made

    _need_root()
    try:
        ecn_bytes = bytes_of(ecn) if ecn is not None else 0
    except InputError as error:
        raise InputError(None, "--ecn", error.what, error.hint) from None
    if ecn is not None and ecn_bytes == 0:
        raise InputError(
            None, "--ecn", f'"{ecn}" is no queue length', "give 1 byte at least; without --ecn no queue marks"
        )
    return made(network, Sharing(scheme, ecn_bytes), relays=relay, mtu=mtu)


LOSS, REORDERING = 0, 1
"""Numbers of impairments at a link."""
MOST_DELAY_NS = 60_000_000_000


def _change(change: str, values: list[str]) -> dict[str, Any]:
    """A change of a link in the form of the relay."""
    from subak._subak import nanoseconds
    from subak.testbed.layout import LEAST_DELAY_NS

    def time(text: str) -> int:
        try:
            ns = nanoseconds(text)
        except InputError as error:
            raise InputError(None, change, error.what, error.hint) from None
        if ns > MOST_DELAY_NS:
            raise InputError(None, change, f'"{text}" is too long', "give 60s at most")
        if 0 < ns < LEAST_DELAY_NS:
            hint = f"give {LEAST_DELAY_NS // 1000}us at least, or 0s"
            raise InputError(None, change, f'"{text}" is shorter than the relay can keep', hint)
        return ns

    def probability(text: str) -> float:
        try:
            value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise InputError(None, change, f'"{text}" is no probability', "give one such as 0.01 or 1%")
        return value

    match change, values:
        case (("up" | "down"), []):
            return {"up": change == "up"}
        case "delay", [by]:
            return {"delay-ns": time(by)}
        case "loss", [share]:
            kind: dict[str, Any] = {"slot": LOSS, "fate": "lost", "probability": probability(share)}
        case "reorder", [share, by]:
            kind = {"slot": REORDERING, "fate": {"late": time(by)}, "probability": probability(share)}
        case _:
            what = f'"{" ".join([change, *values])}" is no change of a link'
            hint = "give down, up, delay TIME, loss PROBABILITY or reorder PROBABILITY TIME"
            raise InputError(None, "CHANGE", what, hint)
    return {"impair": {**kind, "data": True, "ack": True, "ctl": True}}


def _relay_words(state: dict[str, Any]) -> str:
    """State of a relayed link in words."""
    counts = ("lost", "late", "doubled", "cut", "overflow")
    words = [f"{state[f'{count}_packets']} {count}" for count in counts if state[f"{count}_packets"]]
    loss = [f"loss {state['loss']:g}"] if state["loss"] else []
    up = "up" if state["up"] else "down"
    return "; " + ", ".join(["relayed", up, f"delay {state['delay_ns'] / 1e6:g} ms", *loss, *words])


def _weighted(standing: Standing, host: str, command: list[str], weight: float) -> int:
    """Runs the command in its own control group with the weight; returns the command's exit status."""
    from subak.testbed.groups import new_group, weigh
    from subak.testbed.namespaces import become
    from subak.testbed.testbed import agent

    if not (standing.programs or {}).get("weights"):
        what = f"the hosts of {standing.name} share as their kernel does, which knows no weights"
        raise InputError(
            None, "--weight", what, "start it with a scheme: subak testbed up NETWORK --scheme soze-virtual"
        )
    assert standing.programs
    standing.check("--weight")
    become_here = standing.namespace(host)
    hosts = {node["name"]: node["address"] for node in standing.nodes if node["address"]}
    group = new_group(standing.label)
    try:
        weigh(agent(), standing.programs, str(group.folder), weight)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

        def enter() -> None:
            group.join()
            become(become_here, hosts)
            _hear_interrupts()

        code = subprocess.run(command, preexec_fn=enter, check=False).returncode
    except FileNotFoundError:
        what = f'there is no program "{command[0]}"'
        raise InputError(None, "COMMAND", what, "name one on the PATH") from None
    finally:
        group.leave()
    return code if code >= 0 else 128 - code


def _standing(name: str, made: ByHand) -> Standing:
    from subak.testbed.processes import started
    from subak.testbed.standing import Standing

    nodes = [
        {"name": label, "host": host, "file": file, "address": made.address(number)}
        for number, (label, host, file) in enumerate(zip(made.plan.names, made.plan.hosts, made.files, strict=True))
    ]
    links = [
        {
            "id": link.id,
            "from": link.source,
            "to": link.target,
            "device": made.devices[number],
            "rate_bps": link.rate_bps,
        }
        for number, link in enumerate(made.plan.links)
    ]
    relay = {"pid": made.relay, "links": list(made.plan.relayed)} if made.relay else None
    return Standing(name, made.pid, started(made.pid), nodes, links, made.programs, relay)


def _told(standing: Standing) -> dict[str, Any]:
    return {
        "name": standing.name,
        "pid": standing.pid,
        "nodes": standing.nodes,
        "links": _links(standing),
        "ended": standing.ended(),
    }


def _served(standing: Standing) -> str:
    """Names of the testbed's hosts, which one process of each kind serves."""
    names = [node["name"] for node in standing.nodes if node["host"]]
    return names[0] if len(names) == 1 else f"{len(names)} hosts ({names[0]} to {names[-1]})"


def _links(standing: Standing) -> list[dict[str, Any]]:
    from subak.testbed.namespaces import counts

    of_programs, relayed = _counted(standing), standing.relayed()
    return [
        {
            **link,
            **counts(standing.namespace(standing.nodes[link["from"]]["name"]), link["device"]),
            **own,
            **({"relay": relayed[number]} if number in relayed else {}),
        }
        for number, (link, own) in enumerate(zip(standing.links, of_programs, strict=True))
    ]


def _counted(standing: Standing) -> list[dict[str, int]]:
    """Counters of the kernel programs at each queue; empty dicts if the testbed has no programs."""
    from subak.testbed.testbed import agent

    nothing: list[dict[str, int]] = [{} for _ in standing.links]
    if not (standing.programs or {}).get("queues"):
        return nothing
    assert standing.programs
    command = [agent(), "counters", "--map", str(standing.programs["queues"]), "--queues", str(len(nothing))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return nothing
    names = {"packets": "packets", "raised": "raised_packets", "marked": "marked_packets"}
    return [{names[key]: queue[key] for key in names} for queue in json_module.loads(done.stdout)["queues"]]


def _plain(command: list[str]) -> list[str]:
    """The command without a leading ``--``; raises an error if nothing is left."""
    plain = command[1:] if command[0] == "--" else command
    if not plain:
        raise InputError(None, "COMMAND", "missing", "write the command after --, such as: -- ip route")
    return plain


def _need_root() -> None:
    if os.geteuid() != 0:
        raise InputError(None, "", "a testbed makes network namespaces, which only root may", "run it with sudo")


def _replace(command: list[str]) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise InputError(None, "COMMAND", f'there is no program "{command[0]}"', "name one on the PATH")
    sys.stdout.flush()
    os.execv(program, command)


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
