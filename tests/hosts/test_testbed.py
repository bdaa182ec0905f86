"""Real TCP between namespaces of this machine: layouts, runs, Soze in the kernel, and complete removal."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import subak
from attempts import Attempts
from subak.testbed.layout import Layout, Link, Plan, everywhere, unreached
from subak.testbed.testbed import agent

root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")
COMMAND = Path(sys.executable).with_name("subak")


def _network(random_: random.Random) -> Plan:
    """Hosts at switches that are connected at random, some pairs twice."""
    switches, hosts = random_.randint(1, 6), random_.randint(2, 8)
    names = [f"s{k}" for k in range(switches)] + [f"h{k}" for k in range(hosts)]
    pairs = [(k, random_.randrange(k)) for k in range(1, switches)]
    pairs += [(random_.randrange(switches), random_.randrange(switches)) for _ in range(6)]
    pairs += [(switches + k, random_.randrange(switches)) for k in range(hosts)]
    links = [
        Link(f"{names[a]}->{names[b]} {number}", a, b, 1e8, 150_000)
        for number, (one, other) in enumerate(pairs)
        if one != other
        for a, b in ((one, other), (other, one))
    ]
    return Plan(tuple(names), tuple(k >= switches for k in range(len(names))), tuple(links))


def _walk(plan: Plan, random_: random.Random) -> list[int]:
    """A path of links from a host to another that visits no node twice."""
    hosts = [node for node, is_host in enumerate(plan.hosts) if is_host]
    while True:
        node, target = random_.sample(hosts, 2)
        path: list[int] = []
        seen = {node}
        while node != target:
            onward = [n for n, link in enumerate(plan.links) if link.source == node and link.target not in seen]
            onward = [n for n in onward if not plan.hosts[plan.links[n].target] or plan.links[n].target == target]
            if not onward:
                break
            path.append(random_.choice(onward))
            node = plan.links[path[-1]].target
            seen.add(node)
        if node == target:
            return path


@pytest.mark.parametrize("seed", range(30))
def test_packets_take_the_paths_of_their_flows(seed: int) -> None:
    random_ = random.Random(seed)
    plan = _network(random_)
    layout = Layout(plan)
    paths = [_walk(plan, random_) for _ in range(40)]
    addresses = [layout.towards(path) for path in paths]
    routes = {(node, to): link for node, to, link in layout.routes()}
    owners = {host_address: node for node, host_address in layout.addresses()}
    for path, to in zip(paths, addresses, strict=True):
        node, taken = plan.links[path[0]].source, []
        while node != owners[to]:
            taken.append(routes[node, to])
            node = plan.links[taken[-1]].target
        assert taken == path
    assert len(set(owners)) == len(owners)


@pytest.mark.parametrize("seed", range(10))
def test_by_hand_every_host_reaches_every_other(seed: int) -> None:
    plan = _network(random.Random(seed))
    assert not list(unreached(everywhere(plan)))
    alone = Plan((*plan.names, "far"), (*plan.hosts, True), plan.links)
    assert len(list(unreached(everywhere(alone)))) == 2 * sum(plan.hosts)


def _spec(**more: Any) -> dict[str, Any]:
    flows = [{"src": "h0", "dst": "h2", "weight": 3}, {"src": "h1", "dst": "h3"}]
    spec: dict[str, Any] = {
        "schema": 1,
        "network": {"kind": "dumbbell", "pairs": 2, "host_rate": "200Mbps", "bottleneck_rate": "20Mbps"},
        "workload": {"kind": "steps", "flows": flows},
        "measure": {"rates": "100ms", "queues": "100ms"},
        "run": {"duration": "4s", "warmup": "1s"},
        "scheme": [{"name": "reno"}],
    }
    return spec | more


def _rates(results: subak.Results, scheme: str) -> list[float]:
    """Mean rate of each flow after the warm-up, bit/s on the wire."""
    rows = [r for r in results.table("rate").to_pylist() if r["scheme"] == scheme and r["time_ns"] > 10**9]
    flows = sorted({r["flow"] for r in rows})
    return [sum(rates) / len(rates) for rates in ([r["rate_bps"] for r in rows if r["flow"] == f] for f in flows)]


def programs_left() -> dict[str, Any]:
    """Subak's programs in the kernel, and its running processes."""
    told = json.loads(subprocess.run([agent(), "doctor", "--present"], capture_output=True, check=True).stdout)
    return dict(told.get("present", {}))


@root
def test_a_kernels_own_controls_fill_a_link(tmp_path: Path) -> None:
    spec = _spec(scheme=[{"name": "reno"}, {"name": "cubic", "params": {"queue": "fifo"}}])
    spec["workload"]["flows"][0].pop("weight")
    results = subak.run(spec, tmp_path / "out", backend="testbed")
    assert results.complete, results.failed
    for scheme in ("reno", "cubic"):
        assert 15e6 < sum(_rates(results, scheme)) < 20.5e6
    links = {(r["scheme"], r["link"]): r for r in results.table("link").to_pylist()}
    busy = links["reno", "switch0->switch1"]
    assert busy["utilization"] > 0.75
    assert busy["peak_queued_bytes"] > 10_000
    assert links["reno", "switch1->switch0"]["data_bytes"] == 0


@root
def test_flows_with_sizes_complete_and_stand_beside_the_simulators(tmp_path: Path) -> None:
    spec = _spec(
        network={"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "10Gbps"},
        workload={"kind": "poisson", "sizes": "web-search", "load": 0.3},
        measure={"fct": True},
        run={"duration": "20ms", "seeds": 1},
        testbed={"scale": 0.002},
    )
    hosts = subak.run(spec, tmp_path / "hosts", backend="testbed")
    simulated = subak.run(spec, tmp_path / "simulated")
    assert hosts.complete, hosts.failed
    rows = [r.table("flow").to_pylist() for r in (hosts, simulated)]
    starts = [[(r["src"], r["dst"], r["size_bytes"], r["start_ns"]) for r in of] for of in rows]
    assert starts[0] == starts[1]
    done = [r for r in rows[0] if r["fct_ns"] is not None]
    assert len(done) == len(rows[0])
    # A shaper that was idle sends its first packet at once, so that short flows gain a packet's time at each hop.
    assert all(r["slowdown"] > 0.5 for r in done)
    assert sum(r["slowdown"] for r in done) / len(done) > 0.9
    page = subak.report(hosts, simulated, output=tmp_path / "report.html").read_text()
    assert "reno" in page
    assert not subak.diff(hosts, simulated).identical


@root
@pytest.mark.parametrize("scheme", ["soze", "soze-virtual"])
def test_soze_in_the_kernel_shares_by_weight(scheme: str, tmp_path: Path) -> None:
    _needs_programs()
    own = {"p": "16ms", "k": "2ms", "m": 0.78, "alpha_rate": "20Mbps", "beta_rate": "1.25Mbps", "filter": "2ms"}
    params = {"soze": own | {"signal": "backlog", "start_weights": 4}, "soze-virtual": {"start_weights": 8}}[scheme]
    spec = _spec(scheme=[{"name": scheme, "params": params}])
    tries = Attempts(4)
    for attempt in tries:
        results = subak.run(spec, tmp_path / f"{attempt}", backend="testbed")
        assert results.complete, results.failed
        heavy, light = _rates(results, scheme)
        if 0.85 * 3 < heavy / light < 1.15 * 3 and heavy + light > 0.9 * 20e6:
            return
    tries.fail(f"{heavy / 1e6:.2f} and {light / 1e6:.2f} Mb/s")


@root
def test_a_new_weight_moves_a_share(tmp_path: Path) -> None:
    _needs_programs()
    spec = _spec(scheme=[{"name": "soze-virtual", "params": {"start_weights": 8}}])
    spec["workload"]["flows"][0]["weights"] = [["2.5s", 1]]
    spec["run"] = {"duration": "5s", "warmup": "1s"}
    results = subak.run(spec, tmp_path / "out", backend="testbed")
    rows = [r for r in results.table("rate").to_pylist() if r["time_ns"] > 10**9]

    def ratio(from_s: float, until_s: float) -> float:
        span = [r for r in rows if from_s * 1e9 < r["time_ns"] <= until_s * 1e9]
        heavy, light = (sum(r["rate_bps"] for r in span if r["flow"] == f) for f in (0, 1))
        return float(heavy / light)

    assert ratio(1.2, 2.5) > 2
    assert ratio(3.7, 5.0) < 1.5


def _needs_programs() -> None:
    told = json.loads(subprocess.run([agent(), "doctor"], capture_output=True, check=True, timeout=60).stdout)
    missing = [need for need in told["needs"] if need["found"] is None]
    if missing:
        pytest.skip(f"{missing[0]['name']}: {missing[0]['hint']}")


@root
def test_what_is_killed_leaves_nothing(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(_spec(scheme=[{"name": "soze-virtual"}], run={"duration": "20s"})))
    random_ = random.Random(7)
    for turn in range(int(os.environ.get("SUBAK_KILLS", "6"))):
        command = [COMMAND, "run", spec, "--backend", "testbed", "--out", tmp_path / f"{turn}"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(random_.uniform(0.3, 3.0))
        family = processes_of(run.pid)
        victim = run.pid if turn % 2 == 0 or not family else random_.choice(family)
        os.kill(victim, signal.SIGKILL)
        if victim != run.pid:
            # Whichever process is killed, the run reports it and ends.
            assert run.wait(30) == 1
        run.wait(30)
        wait_for_ends(family)
    until = time.monotonic() + 30
    while any(programs_left().values()) and time.monotonic() < until:
        time.sleep(0.5)
    assert not any(programs_left().values()), programs_left()


def processes_of(pid: int) -> list[int]:
    """Child processes of a process."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in children for child in path.read_text().split()]


def wait_for_ends(pids: list[int]) -> None:
    """Waits until the processes have ended."""
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        assert time.monotonic() < until, "a process outlives the run that started it"
        time.sleep(0.05)


@root
def test_by_hand(tmp_path: Path) -> None:
    network = tmp_path / f"by-hand-{os.getpid()}.json"
    network.write_text(json.dumps({"network": _spec()["network"]}))
    name = network.stem

    def testbed(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([COMMAND, "testbed", *command], capture_output=True, text=True, timeout=60, check=False)

    try:
        assert testbed("up", str(network)).returncode == 0
        again = testbed("up", str(network))
        assert again.returncode == 2
        assert "is up already" in again.stderr
        there = testbed("exec", "--name", name, "h0", "--", "cat", "/proc/net/route")
        assert there.returncode == 0, there.stderr
        assert "q0" in there.stdout or "l0" in there.stdout
        known = testbed("exec", "--name", name, "h0", "--", "cat", "/etc/hosts")
        assert "10.0.32.1 h2" in known.stdout
        up = json.loads(testbed("status", "--json").stdout)["testbeds"]
        assert name in [one["name"] for one in up]
        nobody = testbed("exec", "--name", name, "nobody", "--", "true")
        assert nobody.returncode == 2
        assert 'no node "nobody"' in nobody.stderr
    finally:
        assert testbed("down", "--name", name).returncode == 0
    assert name not in [one["name"] for one in json.loads(testbed("status", "--json").stdout)["testbeds"]]
    within = testbed(
        "run", str(network), "--", "sh", "-c", f'{COMMAND} testbed exec --name "$SUBAK_TESTBED" h1 -- id && exit 3'
    )
    assert within.returncode == 3, within.stderr


DAEMONS = """
for k in 1 2; do sleep 600 & echo $! >> "$0"; done
(setsid sh -c 'echo $$ >> "$0"; exec sleep 600' "$0" &)
"""
"""A command that leaves processes behind: one in its session, and one that has left the session."""


@root
@pytest.mark.parametrize("how", ["down", "clean", "killed", "killed, down", "killed, up", "inside"])
def test_what_commands_leave_running_ends_with_the_testbed(tmp_path: Path, how: str) -> None:
    network, pids, other = tmp_path / "left.json", tmp_path / "pids", tmp_path / "other"
    network.write_text(json.dumps({"network": _spec()["network"]}))

    def testbed(*command: str, run: str = "run") -> subprocess.CompletedProcess[str]:
        quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        env = os.environ | {"SUBAK_RUN": str(tmp_path / run)}
        return subprocess.run([COMMAND, "testbed", *command], text=True, timeout=60, check=False, env=env, **quiet)

    def running(file: Path) -> list[int]:
        told = [int(pid) for pid in file.read_text().split()]
        return [pid for pid in told if Path(f"/proc/{pid}/exe").exists()]

    # A testbed of the same name with another state folder keeps its processes.
    for run, file in (("run", pids), ("else", other)):
        assert testbed("up", str(network), run=run).returncode == 0
        done = testbed("exec", "h0", "--", "sh", "-c", f"({DAEMONS}) > /dev/null 2>&1", str(file), run=run)
        assert done.returncode == 0, done.stdout
        until = time.monotonic() + 10
        while len(running(file)) < 3:
            assert time.monotonic() < until
            time.sleep(0.05)
    try:
        if how.startswith("killed"):
            standing = json.loads((tmp_path / "run" / "left.json").read_text())
            os.kill(standing["pid"], signal.SIGKILL)
        ends = {
            "down": ("down",),
            "killed, down": ("down", "--name", "left"),
            "killed, up": ("up", str(network)),
            "inside": ("exec", "h1", "--", str(COMMAND), "testbed", "down"),
        }
        done = testbed(*ends.get(how, ("clean",)))
        assert done.returncode == 0, done.stdout
        assert running(pids) == []
        assert len(running(other)) == 3
    finally:
        testbed("clean")
        testbed("clean", run="else")
    assert running(other) == []


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"scheme": [{"name": "numfabric"}]}, "does not run on hosts", "dctcp, reno, cubic"),
    ({"scheme": [{"name": "cubic"}]}, "queues of a testbed are drop-tail", "fifo"),
    ({"scheme": [{"name": "reno", "params": {"initial_window": 3}}]}, "does not have 3", "write 10"),
    (
        {"scheme": [{"name": "cubic", "params": {"queue": "fifo", "hystart": False}}]},
        "does not have false",
        "write true",
    ),
    (
        {"scheme": [{"name": "reno", "params": {"rto_min": "200ms"}}], "testbed": {"scale": 0.01}},
        'scheme[0].params.rto_min: the kernel\'s reno does not have "200ms"',
        'write "2000000ns"',
    ),
    ({"packets": {"mtu": 500}}, "packets.mtu: packets of 500 bytes do not fit", "576 to 9216"),
    ({"testbed": {"scale": 0}}, "testbed.scale: 0 is out of range", "give a number"),
    ({"testbed": {"speed": 1}}, "speed", "scale"),
    ({"fault": [{"kind": "restart", "node": "h0", "at": "1s"}]}, "restarts no machines", "simulate it"),
    ({"measure": {"paces": "1ms"}}, "no paces", "measure fct"),
]


@pytest.mark.parametrize(("change", "what", "hint"), WRONG)
def test_what_hosts_cannot_do_is_refused(change: dict[str, Any], what: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(subak.InputError) as refused:
        subak.run(_spec(**change), tmp_path / "out", backend="testbed")
    assert what in str(refused.value)
    assert hint in str(refused.value)


@root
def test_a_control_that_the_kernel_does_not_have_is_named(tmp_path: Path) -> None:
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if "dctcp" in known:
        pytest.skip("this kernel has all of them")
    results = subak.run(_spec(scheme=[{"name": "dctcp"}]), tmp_path / "out", backend="testbed")
    assert "no congestion control dctcp" in results.failed[0]


def test_the_traffic_program_refuses_what_is_no_schedule() -> None:
    for text in ("", "{", "[]", '{"schema": 2}', '{"schema": 1, "congestion": "cubic", "hosts": [], "flows": [{}]}'):
        done = subprocess.run([agent(), "traffic"], input=text, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("subak-agent: the schedule:"), done.stderr
    for text in ("", "[]", '{"schema": 1, "queue": []}'):
        done = subprocess.run([agent(), "hosts"], input=text, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2, done
