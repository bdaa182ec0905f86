"""A running testbed: its nodes and the programs in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from subak.errors import InputError
from subak.testbed import holder, processes, relay
from subak.testbed.layout import Layout, Plan
from subak.testbed.namespaces import enter_device, leave_device

MOST_NODES = 512


class Testbed:
    """A running testbed, whose namespaces a child process holds.

    Leaving the ``with`` block removes them, as does the end of this process.
    """

    def __init__(self, plan: Plan, layout: Layout) -> None:
        check(plan)
        self.plan = plan
        self.layout = layout
        command = [sys.executable, "-m", "subak.testbed.holder"]
        # A session of its own, so that signals of the terminal do not end the process.
        self._holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._holder.stdin
        assert self._holder.stdout
        how = {"agent": agent()} if plan.relayed else {}
        self._holder.stdin.write(json.dumps(holder.order(plan, layout) | how) + "\n")
        self._holder.stdin.flush()
        answer = self._holder.stdout.readline()
        told: dict[str, Any] = json.loads(answer) if answer else {}
        if "error" in told:
            self.down()
            raise InputError(None, **told["error"])
        if not told:
            self.down()
            raise InputError(None, "", "the namespaces could not be made", "run `subak doctor`")
        self.pid: int = told["pid"]
        self.files: list[int] = told["files"]
        self.devices: dict[int, int] = {int(link): device for link, device in told["devices"].items()}
        self.real: dict[int, int] = {int(link): device for link, device in told["real"].items()}
        self.relay: int = told["relay"]
        """Process id of the relay; 0 if no link needs one."""
        self._server: subprocess.Popen[str] | None = None
        self.begun_ns = 0
        """Time at which the traffic program began, ns of the monotonic clock; 0 before."""
        self.programs: dict[str, Any] | None = None
        """Identifiers of the maps of the programs of hosts and queues, if there are any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def stay(self) -> None:
        """Makes the testbed continue after this process ends."""
        assert self._holder.stdin
        self._holder.stdin.write(holder.STAY)
        self._holder.stdin.flush()

    def down(self) -> None:
        """Removes the testbed; processes in its nodes must have ended."""
        if server := getattr(self, "_server", None):
            server.kill()
            server.communicate()
        for pipe in (self._holder.stdin, self._holder.stdout):
            if pipe:
                pipe.close()
        self._holder.kill()
        self._holder.wait()

    def namespace(self, node: int) -> str:
        """Path of a node's network namespace, valid while the testbed runs."""
        return f"/proc/{self.pid}/fd/{self.files[node]}"

    def places(self, ecn_bytes: int = 0) -> dict[str, Any]:
        """Hosts and queues in the form that the programs of hosts and queues read."""
        plan = self.plan
        rates: dict[int, float] = {}
        for link in plan.links:
            if plan.hosts[link.source]:
                rates[link.source] = max(rates.get(link.source, 0.0), link.rate_bps)
        queues = [
            {
                "netns": self.namespace(link.source),
                "enter": enter_device(number),
                "leave": leave_device(number),
                "out": self.real[number],
                "at_host": plan.hosts[link.source],
                "rate_bps": link.rate_bps,
                "ecn_bytes": ecn_bytes,
            }
            for number, link in enumerate(plan.links)
        ]
        hosts = [{"netns": self.namespace(node), "rate_bps": rate_bps} for node, rate_bps in rates.items()]
        return {"packet_bytes": plan.mtu_bytes, "hosts": hosts, "queues": queues}

    def serve(self, order: dict[str, Any], *, stays: bool = False) -> None:
        """Starts the programs of hosts and queues, which run until the testbed is removed.

        With ``stays`` they continue after this process, as the testbed does.
        """
        if stays:
            order = order | {"with": self.pid}
        server = subprocess.Popen(
            [agent(), "hosts"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._server = server
        assert server.stdin
        assert server.stdout
        try:
            server.stdin.write(json.dumps(order) + "\n")
            server.stdin.flush()
        except BrokenPipeError:
            pass  # The program reports the reason on standard error.
        if answer := server.stdout.readline():
            running = [processes.known("subak-agent hosts", server.pid)]
            self.programs = {**json.loads(answer), "pid": server.pid, "processes": running}
            return
        said = server.communicate()[1].strip().splitlines()
        what = said[-1] if said else f"subak-agent ended with {server.returncode}"
        raise InputError(
            None, "", what.removeprefix("subak-agent: "), "run `subak doctor`, which says what this machine lacks"
        )

    def carry(
        self,
        schedule: dict[str, Any],
        goes_on: Callable[[float], bool] | None = None,
        faults: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Runs the traffic program on ``schedule`` and returns the measured data.

        ``goes_on`` gets the fraction done. ``faults`` are changes of links at times of the schedule.
        """
        from subak.testbed.program import run

        def still(share: float) -> bool:
            for part, process in (("holder", self._holder), ("programs", self._server)):
                if process and process.poll() is not None:
                    part = "relay" if process.returncode == relay.ENDED else part
                    what = f"the testbed's {part} ended in the middle of the run, with {process.returncode}"
                    raise InputError(None, "", what, "run the trial again: the same command resumes")
            return goes_on is None or goes_on(share)

        def begun(begun_ns: int) -> None:
            self.begun_ns = begun_ns
            self.change([change | {"at_ns": begun_ns + change["at_ns"]} for change in faults or []])

        told = run([agent(), "traffic"], json.dumps(schedule), still, begun)
        recording: dict[str, Any] = json.loads(told)
        still(1.0)
        if self.relay:
            recording["latest_ns"] = max(recording["latest_ns"], self.change([])["latest_ns"])
        return recording

    def change(self, changes: list[dict[str, Any]]) -> dict[str, Any]:
        """Changes relayed links, named by their numbers in the plan; returns the state of all relayed links."""
        if not self.relay:
            return {"latest_ns": 0, "links": []}
        places = {link: place for place, link in enumerate(self.plan.relayed)}
        return relay.tell(self.relay, [change | {"link": places[change["link"]]} for change in changes])


def check(plan: Plan) -> None:
    """Raises ``InputError`` for a plan that this machine cannot run."""
    if os.geteuid() != 0:
        raise InputError(None, "", "a testbed makes network namespaces, which only root may", "run it with sudo")
    if len(plan.names) > MOST_NODES:
        what = f"the network has {len(plan.names)} nodes, and {MOST_NODES} namespaces are the most here"
        raise InputError(None, "network", what, "take a smaller network, or simulate it: leave --backend away")


def agent() -> str:
    """Path of the program ``subak-agent``."""
    beside = Path(sys.executable).with_name("subak-agent")
    found = str(beside) if beside.is_file() else shutil.which("subak-agent")
    if found is None:
        hint = "build it: `make setup` in Subak's folder, or cargo install --path crates/agent"
        raise InputError(None, "", "subak-agent is not beside subak, nor on the PATH", hint)
    return found
