"""Flowtune on real hosts: the allocator daemon and the agent, with the allocator core of the simulator."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import subak
from browser import browser
from PIL import Image
from subak.commands.allocator import ask
from subak.repro import stats
from subak.testbed import by_hand, flowtune
from test_testbed import processes_of, programs_left, wait_for_ends

COMMAND = Path(sys.executable).with_name("subak")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")


def _spec(flows: list[dict[str, Any]], hosts: int, **more: Any) -> dict[str, Any]:
    """A spec of flows over a star of 100 Mb/s."""
    return {
        "schema": 1,
        "name": "flowtune on hosts",
        "network": {"kind": "star", "hosts": hosts, "rate": "10Gbps", "buffer": "150KB"},
        "workload": {"kind": "steps", "flows": flows},
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "measure": {"rates": "1ms"},
        "run": {"duration": "30ms", "warmup": "10ms"},
        "testbed": {"scale": 0.01},
        "scheme": [{"name": "flowtune"}],
        **more,
    }


def _rates(results: subak.Results, from_ns: float) -> list[float]:
    """Rates of the flows after convergence, by number: medians, since a busy machine delays some samples."""
    rates: dict[int, list[float]] = {}
    for row in results.table("rate").to_pylist():
        if row["time_ns"] > from_ns:
            rates.setdefault(row["flow"], []).append(row["rate_bps"])
    return [statistics.median(of) for _, of in sorted(rates.items())]


def test_eight_to_one(tmp_path: Path) -> None:
    flows = [{"src": f"h{k}", "dst": "h8"} for k in range(8)]
    rates = _rates(subak.run(_spec(flows, 9), tmp_path / "out", backend="testbed"), 10e6)
    jain = sum(rates) ** 2 / len(rates) / sum(rate**2 for rate in rates)
    assert jain >= 0.98
    # An eighth of what the allocator allocates of 10 Gb/s.
    share = 10e9 * (1 - 0.01 - 0.03) / 8
    assert all(abs(rate / share - 1) < 0.05 for rate in rates), rates
    assert sum(rates) > 0.9 * 10e9


def test_weights_one_two_four(tmp_path: Path) -> None:
    flows = [{"src": f"h{k}", "dst": "h3", "weight": 2**k} for k in range(3)]
    rates = _rates(subak.run(_spec(flows, 4), tmp_path / "out", backend="testbed"), 10e6)
    share = 10e9 * (1 - 0.01 - 0.03) / 7
    assert all(abs(rate / (share * 2**k) - 1) < 0.1 for k, rate in enumerate(rates)), rates


def test_a_coflow_is_done_earlier_than_under_cubic(tmp_path: Path) -> None:
    """Figure 7 of Flowtune in small: eight senders with 25 transfers each, ten runs of both schemes."""
    spec = _spec([], 9, workload={"kind": "incast", "senders": 200, "size": "60KB", "interval": "500ns"})
    spec |= {"run": {"duration": "100ms", "seeds": 10}, "measure": {"fct": True}}
    spec["scheme"] = [{"name": "flowtune"}, {"name": "cubic", "params": {"queue": "fifo"}}]
    results = subak.run(spec, tmp_path / "out", backend="testbed")
    ends: dict[tuple[str, int], float] = {}
    for row in results.table("flow").to_pylist():
        assert row["fct_ns"] is not None
        key = row["scheme"], row["seed"]
        ends[key] = max(ends.get(key, 0), row["start_ns"] + row["fct_ns"])
    times = {
        name: [end for (scheme, _), end in sorted(ends.items()) if scheme == name] for name in ("cubic", "flowtune")
    }
    ratio = stats.ratio(times["cubic"], times["flowtune"], "median", "runs", paired=True)
    assert ratio.count == 10
    assert ratio.low is not None
    assert ratio.low > 1, ratio


def test_what_the_daemon_does_not_have_is_refused(tmp_path: Path) -> None:
    spec = _spec([{"src": "h0", "dst": "h1"}], 2, scheme=[{"name": "flowtune", "params": {"gamma": 0.2}}])
    with pytest.raises(subak.InputError, match="the allocator's daemon does not have it"):
        subak.run(spec, tmp_path / "out", backend="testbed")


SEND = """
import socket, sys, time
line = socket.create_connection((sys.argv[1], 5201))
if most := int(sys.argv[3]):
    line.setsockopt(socket.SOL_SOCKET, 47, most)
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    line.send(bytes(1 << 14))
line.shutdown(socket.SHUT_WR)
print(line.recv(64).decode())
"""
RECEIVE = """
import socket, threading
door = socket.create_server(("", 5201))
print("open", flush=True)
def read(line):
    total = 0
    while part := line.recv(1 << 16):
        total += len(part)
    line.sendall(str(total).encode())
while True:
    threading.Thread(target=read, args=door.accept()[:1], daemon=True).start()
"""


@contextmanager
def star(tmp_path: Path, count: int, rate_bps: int, weights: tuple[str, ...] = ("--weights=free",)) -> Iterator[Any]:
    """A testbed of hosts at one switch, under Flowtune, and a function that sends from a host to the last one."""
    network = tmp_path / "network.json"
    nodes = [{"id": "hub", "kind": "switch"}] + [{"id": f"h{k}", "kind": "host"} for k in range(count)]
    links = [{"source": f"h{k}", "target": "hub", "capacity": rate_bps} for k in range(count)]
    network.write_text(json.dumps({"nodes": nodes, "links": links}))
    with by_hand.made(str(network)) as up:
        configured = flowtune.configuration({"lease": "200ms", "interval": "200us"}, 1)
        with flowtune.Flowtune(up, up.layout, configured, f"ft{os.getpid():x}", weights) as daemons:
            running: list[subprocess.Popen[str]] = []

            def run(host: str, program: str, *arguments: str) -> subprocess.Popen[str]:
                place = f"--net={up.namespace(up.plan.names.index(host))}"
                command = ["nsenter", place, "python3", "-c", program, *arguments]
                running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
                return running[-1]

            last = f"h{count - 1}"
            receiver = run(last, RECEIVE)
            assert receiver.stdout
            assert receiver.stdout.readline() == "open\n"
            to = str(up.address(up.plan.names.index(last)))
            try:
                yield daemons, run, to
            finally:
                for one in running:
                    one.kill()
                    one.wait()


@pytest.fixture
def hosts(tmp_path: Path) -> Any:
    """A testbed of three hosts, and a function that sends to the last of them."""
    with star(tmp_path, 3, 100_000_000) as (daemons, run, to):
        daemons.run, daemons.receiver = run, to
        yield daemons, lambda host, seconds, most=0: run(host, SEND, to, str(seconds), str(most))


def _told(daemons: flowtune.Flowtune, *words: str) -> Any:
    """JSON output of ``subak allocator``."""
    command = [COMMAND, "allocator", *words, "--socket", daemons.control, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_until(there: Callable[[], bool], what: Callable[[], Any]) -> None:
    """Waits until a condition is true; the time depends on the load of the machine."""
    until = time.monotonic() + 20
    while not there():
        assert time.monotonic() < until, what()
        time.sleep(0.02)


def test_connections_of_any_program_are_scheduled(hosts: Any) -> None:
    daemons, send = hosts
    senders = [send(f"h{k}", 3) for k in (0, 1)]
    flows = partial(ask, daemons.control, {"ask": "flows"})
    wait_until(lambda: len(flows()) == 2 and all(abs(flow["rate_bps"] / 48e6 - 1) < 0.05 for flow in flows()), flows)
    assert {(flow["from"], flow["to"]) for flow in flows()} == {("h0", "h2"), ("h1", "h2")}
    totals = [int(sender.communicate(timeout=30)[0]) * 8 / 3 for sender in senders]
    # Half of 96 Mb/s on the wire each, as payload; one flow may have started a little earlier.
    assert all(abs(total / 46e6 - 1) < 0.2 for total in totals), totals
    wait_until(lambda: flows() == [], flows)
    assert _told(daemons, "flows")["rows"] == []
    daemons.end()
    assert daemons.report["flowlets"] >= 2
    assert daemons.report["first_rate_p50_ns"] > 0


def test_an_operator_asks_and_tells(hosts: Any) -> None:
    daemons, send = hosts
    assert _told(daemons, "status")["serving"]
    assert _told(daemons, "counters")["forged"] == 0
    last = next(link["link"] for link in _told(daemons, "links")["rows"] if link["to"] == "h2")

    def promised() -> Any:
        return next(link for link in asked({"ask": "links"}) if link["link"] == last)["promised_bps"]

    # Requests to the control socket itself need no time for startup.
    asked = partial(ask, daemons.control)
    assert [peer["joined"] for peer in asked({"ask": "peers"})] == [True] * 3
    sender = send("h0", 3)
    wait_until(lambda: promised() > 0.9 * 96e6, promised)
    asked({"ask": "link", "link": last, "capacity": "50Mbps"})
    flows = partial(asked, {"ask": "flows", "host": "h0"})
    wait_until(lambda: abs(flows()[0]["rate_bps"] / 48.5e6 - 1) < 0.03, flows)
    assert not asked({"ask": "drain"})["serving"]
    # The cap of half the link ends with the lease.
    assert int(sender.communicate(timeout=30)[0]) * 8 > 0.5 * 93e6 + 0.7 * 2 * 93e6
    assert not _told(daemons, "drain")["serving"]
    assert _told(daemons, "link", last, "up")["down"] == 0
    shown = subprocess.run([COMMAND, "allocator", "peers", "--socket", daemons.control], capture_output=True, text=True)
    assert "h2" in shown.stdout or "There are none" in shown.stdout
    nobody = subprocess.run([COMMAND, "allocator", "status", "--socket", "/nowhere"], capture_output=True, text=True)
    assert nobody.returncode == 2
    assert "no allocator answers there" in nobody.stderr


def test_a_programs_own_bound_holds(hosts: Any) -> None:
    _, send = hosts
    free, bound = send("h0", 2), send("h1", 2, 1_000_000)
    total = int(bound.communicate(timeout=30)[0]) * 8 / 2
    assert 0.8 * 8e6 < total < 1.1 * 8e6, total
    # A granted rate is not a pacing limit that the program has set.
    assert int(free.communicate(timeout=30)[0]) * 8 / 2 > 0.8 * 46e6


def _agent(*options: str) -> subprocess.Popen[str]:
    """An agent in a namespace of its own, with only the loopback device."""
    agent = [Path(sys.executable).with_name("subak-agent"), "flowtune", "--allocator", "127.0.0.1:9", "--attached"]
    place = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*place, *agent, *options], text=True, **pipes)


def test_an_agent_says_what_is_wrong(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    name = f"fo{os.getpid():x}"
    here = ["--host", "127.0.0.1", "--key", str(key), "--name", name]
    short, zeros, shared = tmp_path / "short", tmp_path / "zeros", tmp_path / "shared"
    for path, text, mode in ((short, "ab", 0o600), (zeros, "0" * 64, 0o600), (shared, "ab" * 32, 0o644)):
        path.write_text(text)
        path.chmod(mode)
    refusals = {
        "10ms at least": [*here, "--lease", "1ms"],
        "; give an address that this host has": ["--host", "10.1.2.3", "--key", str(key), "--name", f"{name}x"],
        "; give 10.0.0.1 or 10.0.0.1@": ["--host", "nonsense", "--key", str(key)],
        "; give /run/netns/NAME": ["--host", "127.0.0.1@/nowhere", "--key", str(key), "--name", f"{name}x"],
        "; give numbers, such as 10.0.0.9:4712": [*here, "--allocator", "nonsense"],
        "; `subak-allocator key --output FILE`": ["--host", "127.0.0.1", "--key", str(tmp_path / "none")],
        "--weight: /nowhere: No such file or directory (os error 2); name a folder": [*here, "--weight", "/nowhere=3"],
        'has no "="; see --help': [*here, "--weight", "/nowhere"],
        "; give a number, such as 3": [*here, "--weight", "/nowhere=x"],
        "64 hexadecimal digits": ["--host", "127.0.0.1", "--key", str(short)],
        "anybody can guess": ["--host", "127.0.0.1", "--key", str(zeros)],
        "mode 644": ["--host", "127.0.0.1", "--key", str(shared)],
        "mode 666": ["--host", "127.0.0.1", "--key", "/dev/zero"],
        "it is a folder; `subak-allocator key": ["--host", "127.0.0.1", "--key", str(tmp_path)],
        "--host: 0.0.0.0 is the address of no host; give": ["--host", "0.0.0.0", "--key", str(key)],
        "--host: 127.0.0.1 is given twice; name": [*here, "--host", "127.0.0.1"],
        "--allocator: nobody has 0.0.0.0:5; give": [*here, "--allocator", "0.0.0.0:5"],
        "--allocator: nobody has 127.0.0.1:0; give": [*here, "--allocator", "127.0.0.1:0"],
        "--allocator: 127.0.0.1:9 is given twice; name": [*here, "--allocator", "127.0.0.1:9"],
        "--device: there is no device nosuch0; `ip link`": [*here, "--device", "nosuch0"],
    }
    for words, options in refusals.items():
        _, said = _agent(*options).communicate(timeout=30)
        assert words in said
    agent = _agent(*here)
    assert agent.stdout
    assert agent.stderr
    assert json.loads(agent.stdout.readline())["ready"]
    _, said = _agent(*here).communicate(timeout=30)
    assert "another agent has this name" in said
    assert "no allocator answers at 127.0.0.1:9" in agent.stderr.readline()
    agent.communicate(timeout=30)
    assert agent.returncode == 0


def test_what_the_kernel_does_not_have_is_refused(tmp_path: Path) -> None:
    agent = Path(sys.executable).with_name("subak-agent")
    for words, command in {
        "nosuch: No such file or directory": ["soze", "--rate", "1Gbps", "--fallback", "nosuch"],
        "is no control group; name a folder": ["weigh", "--map", "1", str(tmp_path), "3"],
        "/nowhere: No such file or directory (os error 2); name a folder": ["weigh", "--map", "1", "/nowhere", "3"],
        "--map: no map has the number 4294967295; give": ["weigh", "--map", "4294967295", "10.0.0.0/8", "3"],
        "has the number 4294967295; give": ["counters", "--map", "4294967295", "--queues", "1"],
        "from 0.001 to 1000000": ["weigh", "--map", "1", "10.0.0.0/8", "1e9"],
    }.items():
        ended = subprocess.run([agent, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert ended.returncode == 2
        assert words in ended.stderr


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
def test_the_live_page(hosts: Any, tmp_path: Path) -> None:
    daemons, send = hosts
    # Senders run until the test ends, since the browser's time varies.
    for k in (0, 1):
        send(f"h{k}", 300)
    flows = partial(ask, daemons.control, {"ask": "flows"})
    wait_until(lambda: len(flows()) == 2, flows)
    picture = tmp_path / "page.png"
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,700"]
    command = [str(browser()), *quiet, f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=6000"]
    wanted = (b"serves; 2 flows", b'<td class="">h0</td>', b"3 of 3 have joined")
    # On busy cores the browser's virtual time may end before the page has its first response.
    for _ in range(5):
        done = subprocess.run([*command, "--dump-dom", daemons.page], check=True, capture_output=True, timeout=120)
        subprocess.run(
            [*command, f"--screenshot={picture}", daemons.page], check=True, capture_output=True, timeout=120
        )
        if all(words in done.stdout for words in wanted):
            break
    for words in wanted:
        assert words in done.stdout, done.stdout.decode()
    if kept := os.environ.get("SUBAK_SCREENSHOTS"):
        shutil.copy(picture, Path(kept) / "live-page.png")
    # Full links are red, idle ones are not.
    with Image.open(picture) as shown:
        colours = set(shown.convert("RGB").get_flattened_data())
    assert {(0xC8, 0x37, 0x2D), (0x9F, 0xB8, 0xC8)} <= colours


@pytest.mark.parametrize("who", ["allocator", "agent", "both"])
def test_what_is_killed_caps_nobody_beyond_a_lease(hosts: Any, who: str) -> None:
    daemons, send = hosts
    first, second = send("h0", 5), send("h1", 1.5)
    flows = partial(ask, daemons.control, {"ask": "flows"})
    wait_until(lambda: len(flows()) == 2, flows)
    for running, name in zip(daemons.processes, ("allocator", "agent"), strict=True):
        if who in (name, "both"):
            os.kill(running.pid, signal.SIGKILL)
    assert int(second.communicate(timeout=30)[0]) > 0
    total = int(first.communicate(timeout=30)[0]) * 8
    # Half of the link while the other sends, then all of it, 395 Mb; with a remaining cap it would be 5 x 46 Mb.
    assert total > 1.3 * 5 * 46e6, total / 1e6


TICK = """
import socket, sys, time
line = socket.create_connection((sys.argv[1], 5201))
line.setsockopt(socket.SOL_TCP, 0x5a01, int(float(sys.argv[3]) * 65536).to_bytes(4, sys.byteorder))
until = time.monotonic() + float(sys.argv[2])
said = 0
while (now := time.monotonic()) < until:
    line.send(bytes(1 << 14))
    if now < said + 0.05:
        continue
    said = now
    with open("/proc/self/net/dev") as file:
        sent = max(int(row.split(":")[1].split()[8]) for row in file if ":" in row)
    print(now, sent, flush=True)
"""


def rates_of(printed: str, window_s: float) -> list[float]:
    """Rates of a host's device in successive windows, bit/s; lines have a time and the bytes sent."""
    rates, begun = [], None
    for line in printed.splitlines():
        at, sent = (float(word) for word in line.split())
        begun = begun or (at, sent)
        if at - begun[0] >= window_s:
            rates.append((sent - begun[1]) * 8 / (at - begun[0]))
            begun = at, sent
    return rates


def test_an_agent_that_comes_back_takes_over_what_runs(hosts: Any) -> None:
    """An agent is killed and restarted: connections keep rates, weights and shares, and nothing of the old agent
    remains."""
    daemons, send = hosts
    alone = programs_left()
    first = daemons.run("h0", TICK, daemons.receiver, "12", "3")
    flows = partial(ask, daemons.control, {"ask": "flows", "host": "h0"})
    wait_until(lambda: [flow["weight"] for flow in flows()] == [3], flows)
    agent = daemons.processes[1]
    for _ in range(2):
        os.kill(agent.pid, signal.SIGKILL)
        agent.wait()
        agent = daemons.start_agent()
        send("h1", 8)
        wait_until(lambda: flows() and flows()[0]["rate_bps"] > 0, flows)
        assert flows()[0]["weight"] == pytest.approx(3)
    # The old agent's kernel programs end with the last connection that uses them.
    wait_until(lambda: programs_left() == alone, programs_left)
    printed = first.communicate(timeout=60)[0]
    # At least 3 of 5 parts of 96 Mb/s, and never less than half of that for two seconds.
    rates = rates_of(printed, 2)
    assert len(rates) >= 4
    assert min(rates) > 0.5 * 0.6 * 96e6, rates


def test_connections_older_than_the_agent_are_taken_over(hosts: Any) -> None:
    """Without an agent, connections are not paced by Subak; the pacing limit that a program sets for itself is kept."""
    daemons, send = hosts
    agent = daemons.processes[1]
    os.kill(agent.pid, signal.SIGKILL)
    agent.wait()
    senders = [send("h0", 6), send("h1", 6, 1_000_000)]
    time.sleep(0.5)
    daemons.start_agent()
    flows = partial(ask, daemons.control, {"ask": "flows"})
    wait_until(lambda: len([flow for flow in flows() if flow["rate_bps"] > 0]) == 2, flows)
    totals = [int(sender.communicate(timeout=30)[0]) * 8 / 6 for sender in senders]
    assert totals[1] < 1.1 * 8e6, totals


def test_kills_leave_nothing(tmp_path: Path) -> None:
    """The run, its testbed, its traffic program or its daemons are killed at random times, ``SUBAK_KILLS`` times."""
    flows = [{"src": f"h{k}", "dst": "h3"} for k in range(3)]
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(_spec(flows, 4, run={"duration": "100ms"})))
    draws = random.Random(11)
    for turn in range(int(os.environ.get("SUBAK_KILLS", "6"))):
        command = [COMMAND, "run", spec, "--backend", "testbed", "--out", tmp_path / f"{turn}"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(draws.uniform(0.5, 3.0))
        family = processes_of(run.pid)
        victims = [run.pid] if turn % 3 == 0 or not family else draws.sample(family, min(len(family), 1 + turn % 2))
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        if run.pid not in victims:
            # Flows continue without allocator or agent; without testbed or traffic program the run ends with an error.
            time.sleep(0.5)
            os.kill(run.pid, signal.SIGKILL)
        run.wait(30)
        wait_for_ends(family)
    until = time.monotonic() + 30
    while any(programs_left().values()) and time.monotonic() < until:
        time.sleep(0.5)
    assert not any(programs_left().values()), programs_left()


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("subak-agent", signal.SIGKILL),
        ("subak-allocator", signal.SIGKILL),
        # Upon this signal the allocator removes the folder with its log.
        ("subak-allocator", signal.SIGTERM),
    ],
)
def test_a_run_names_the_daemon_that_was_killed(
    tmp_path: Path, name: str, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    flows = [{"src": f"h{k}", "dst": "h2"} for k in range(2)]
    spec = _spec(flows, 3, run={"duration": "40ms", "warmup": "1ms"})
    killed: list[int] = []

    def kill() -> None:
        wait_until(lambda: any("traffic" in command for command in _commands().values()), _commands)
        time.sleep(1)
        killed.extend(pid for pid, command in _commands().items() if f"/{name} " in command)
        os.kill(killed[0], number)

    killer = threading.Thread(target=kill)
    killer.start()
    results = subak.run(spec, tmp_path / "out", backend="testbed")
    killer.join()
    said = [warning for warning in results.warnings if warning["kind"] == "daemon-ended"]
    assert len(said) == 1
    assert said[0]["trials"] == [0]
    how = "was killed (SIGKILL)" if number == signal.SIGKILL else "ended with 0"
    start = f"{name} (process {killed[0]}) of 3 hosts (h0 to h2) {how}; its log is "
    assert said[0]["text"].startswith(start)
    assert f"subak: {start}" in capfd.readouterr().err
    log = Path(said[0]["text"].removeprefix(start).partition(", at ")[0])
    assert log.read_text().strip()
    log.unlink()
    at_ms = float(said[0]["text"].partition(", at ")[2].partition(" ms")[0])
    # The run of 40 ms takes 4 s on the hosts.
    assert 0 < at_ms <= 40
    assert len(_rates(results, 0)) == 2


def _commands() -> dict[int, str]:
    """Commands of this process' children, by process id."""
    found = {}
    for pid in processes_of(os.getpid()):
        # A process may end at any time.
        with suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return found
