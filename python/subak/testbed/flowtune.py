"""Flowtune on a testbed: the allocator daemon, and one agent for all hosts.

Their messages use the machine's loopback device, not the testbed's links.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

from subak import _subak
from subak._subak import nanoseconds
from subak.errors import InputError
from subak.testbed import processes
from subak.testbed.layout import Layout, Plan
from subak.testbed.testbed import agent

SCHEME = "flowtune"
LEAST_INTERVAL_NS = 100_000
LEAST_LEASE_NS = 50_000_000
PATIENCE_S = 10


def configuration(params: dict[str, Any], scale: float) -> dict[str, Any]:
    """The daemon's configuration from a scheme's parameters. Its times are those of the spec divided by ``scale``."""

    def ns(name: str, least: int) -> str:
        value = params.get(name, _default(name))
        spec_ns = nanoseconds(value) if isinstance(value, str) else float(value) * 1e9
        return f"{max(round(spec_ns / scale), least)}ns"

    interval, lease = ns("interval", LEAST_INTERVAL_NS), ns("lease", LEAST_LEASE_NS)
    told: dict[str, Any] = {key: params[key] for key in ("alpha", "threshold", "reserve") if key in params}
    law = "accelerated" if params.get("accelerated", True) else "ned"
    return {"interval": interval, "lease": lease, "law": law, **told}


def _default(name: str) -> Any:
    scheme = next(one for one in _subak.schemes() if one["name"] == SCHEME)
    return next(param["default"] for param in scheme["params"] if param["name"] == name)


def allocator() -> str:
    """Path of the program ``subak-allocator``."""
    beside = Path(sys.executable).with_name("subak-allocator")
    found = str(beside) if beside.is_file() else shutil.which("subak-allocator")
    if found is None:
        hint = "build it: `make setup` in Subak's folder, or cargo install --path crates/allocator"
        raise InputError(None, "", "subak-allocator is not beside subak, nor on the PATH", hint)
    return found


@dataclass(frozen=True)
class Ended:
    """A daemon that ended before it was told to."""

    at_ns: int
    """Time at which this was noticed, ns of the monotonic clock."""
    what: str
    """The daemon, its hosts, how it ended, and the path of its log, which stays."""
    status: int
    """Exit status; of a killed process the signal's number, negative."""


class Hosted(Protocol):
    """The part of a testbed that the daemons need."""

    @property
    def plan(self) -> Plan:
        """The network."""

    def namespace(self, node: int) -> str:
        """Path of a node's network namespace."""


class Flowtune:
    """The allocator and the agent of a running testbed. They end with this process."""

    def __init__(
        self,
        testbed: Hosted,
        layout: Layout,
        configured: dict[str, Any],
        name: str,
        weights: tuple[str, ...] = ("--weights=free",),
    ) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        """Processes of the allocator and of the agent."""
        self.logs: dict[int, TextIO] = {}
        """Standard error of each of these processes, by process id: a daemon may have removed the file."""
        self.ended: list[Ended] = []
        """Daemons that ended before they were told to, as far as :meth:`watch` has seen."""
        self._noticed: set[int] = set()
        processes.remove_folders()
        self._folder = processes.new_folder()
        self.control = Path(self._folder.name) / "socket"
        """Path of the allocator's control socket."""
        self.report: dict[str, Any] = {}
        """The agent's counters, after it has ended."""
        try:
            self._start(testbed, layout, configured, name, weights)
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Ends the agent and the allocator."""
        for running in reversed(self.processes):
            try:
                # The daemon ends when its standard input is closed.
                said, _ = running.communicate(timeout=PATIENCE_S)
                self.report = json.loads(said) if said else self.report
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
        for log in self.logs.values():
            log.close()
        self._folder.cleanup()

    def watch(self) -> None:
        """Looks for daemons that have ended, and says so on standard error, once for each."""
        for running in self.processes:
            if running.poll() is None or running.pid in self._noticed:
                continue
            self._noticed.add(running.pid)
            log = self.logs[running.pid]
            name = Path(log.name).name.partition(".")[0]
            status = running.returncode
            how = f"was killed ({signal.Signals(-status).name})" if status < 0 else f"ended with {status}"
            # The folder of the logs goes with this process, or went with the daemon.
            number, kept = tempfile.mkstemp(prefix=f"{name}-", suffix=".log")
            with open(number, "w", encoding="utf-8") as file:
                file.write(_read(log) or f"{name} wrote nothing\n")
            what = f"{name} (process {running.pid}) of {self._hosts} {how}; its log is {kept}"
            self.ended.append(Ended(time.monotonic_ns(), what, status))
            print(f"subak: {what}", file=sys.stderr)

    def _start(
        self, testbed: Hosted, layout: Layout, configured: dict[str, Any], name: str, weights: tuple[str, ...]
    ) -> None:
        folder, plan = Path(self._folder.name), testbed.plan
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        addresses: dict[str, list[str]] = {}
        for node, address in layout.addresses():
            addresses.setdefault(plan.names[node], []).append(address)
        (folder / "network.json").write_text(json.dumps(_network(plan)))
        routes: dict[str, dict[str, str]] = {}
        for node, address, link in layout.routes():
            routes.setdefault(address, {})[plan.names[node]] = plan.links[link].id
        (folder / "routes.json").write_text(json.dumps(routes))
        lines = ['listen = "127.0.0.1:0"', 'network = "network.json"', 'control = "socket"']
        lines += ['paths = "routed"', 'routes = "routes.json"', 'page = {listen = "127.0.0.1:0"}']
        lines += [f"{name} = {json.dumps(value)}" for name, value in configured.items()]
        lines += ["[hosts]", *(f"{json.dumps(host)} = {json.dumps(known)}" for host, known in addresses.items())]
        lines += ["[[tenant]]", 'name = "all"', 'key = "key"', f"hosts = {json.dumps(list(addresses))}"]
        (folder / "allocator.toml").write_text("\n".join(lines) + "\n")
        told = self._run([allocator(), "serve", "--attached", "--scratch", str(folder / "allocator.toml")])
        self.listen: str = told["listen"]
        """Address and UDP port of the allocator."""
        self.page: str = f"http://{told['page']}/"
        """Address (URL) of the allocator's live page."""
        number = {host: node for node, host in enumerate(plan.names)}
        names = [host for host, is_host in zip(plan.names, plan.hosts, strict=True) if is_host]
        self._hosts = names[0] if len(names) == 1 else f"{len(names)} hosts ({names[0]} to {names[-1]})"
        hosts = [f"--host={known[0]}@{testbed.namespace(number[host])}" for host, known in addresses.items()]
        lease = str(configured["lease"])
        command = [agent(), "flowtune", "--attached", "--sockets-here", "--key", str(key), "--allocator", self.listen]
        self._agent = [*command, "--lease", lease, "--name", name, *weights, *hosts]
        self.start_agent()

    def start_agent(self) -> subprocess.Popen[str]:
        """Starts the agent, or starts it again after it has ended."""
        self.weights: dict[str, int] = self._run(self._agent)["weights"]
        """Ids of the BPF maps that store weights."""
        return self.processes[-1]

    def _run(self, command: list[str]) -> dict[str, Any]:
        """Starts a daemon; returns the JSON line that it prints when ready."""
        pipe = subprocess.PIPE
        # A session of its own, so that signals of the terminal do not end the daemon before its testbed.
        path = Path(self._folder.name) / f"{Path(command[0]).name}.{len(self.logs)}.log"
        log = path.open("a+", encoding="utf-8", errors="replace")
        running = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, start_new_session=True)
        self.processes.append(running)
        self.logs[running.pid] = log
        assert running.stdout
        if answer := running.stdout.readline():
            told: dict[str, Any] = json.loads(answer)
            return told
        running.communicate(timeout=PATIENCE_S)
        said = _read(log).strip().splitlines()
        what = said[-1] if said else f"{command[0]} ended with {running.returncode}"
        what = what.removeprefix("subak-agent: ").removeprefix("subak-allocator: ")
        raise InputError(None, "", what, "run `subak doctor`, which says what this machine lacks")


def _read(log: TextIO) -> str:
    log.seek(0)
    return log.read()


def _network(plan: Plan) -> dict[str, Any]:
    """The network as node-link JSON.

    Links are in the spec's order, so that the allocator gives them the spec's names.
    """
    nodes = [
        {"id": name, "kind": "host" if is_host else "switch"}
        for name, is_host in zip(plan.names, plan.hosts, strict=True)
    ]
    links = [
        {
            "source": plan.names[link.source],
            "target": plan.names[link.target],
            "capacity": link.rate_bps,
            "delay": f"{link.delay_ns}ns",
        }
        for link in plan.links
    ]
    return {"directed": True, "multigraph": True, "nodes": nodes, "links": links}
