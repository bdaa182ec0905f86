"""Weights of programs with and without support of Soze: by control group, by destination and by socket."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import subak
from conftest import ROOT
from subak.testbed.processes import started
from subak.testbed.standing import Standing, everything
from subak.testbed.testbed import agent

COMMAND = Path(sys.executable).with_name("subak")
PORT = 5201
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces want root")

RECEIVE = f"""
import socket, sys, time, threading
door = socket.create_server(("", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
print("open", flush=True)
def read(connection):
    first, total, seconds = time.monotonic(), 0, float(sys.argv[1])
    while part := connection.recv(1 << 16):
        # What comes before the rates have settled does not count.
        if seconds == 0 or time.monotonic() - first > seconds:
            total += len(part)
    connection.sendall(str(total).encode())
    connection.close()
while True:
    threading.Thread(target=read, args=door.accept()[:1], daemon=True).start()
"""
SEND = f"""
import socket, sys, time
from subak.sockets import set_weight
to, seconds, size, weight = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
line = socket.create_connection((to, {PORT}))
if weight:
    set_weight(line, weight)
until, left = time.monotonic() + seconds, size or 1 << 60
while left > 0 and time.monotonic() < until:
    left -= line.send(bytes(min(left, 1 << 14)))
line.shutdown(socket.SHUT_WR)
print(line.recv(64).decode())
"""
NETWORK = {
    "network": {"kind": "dumbbell", "pairs": 2, "host_rate": "200Mbps", "bottleneck_rate": "40Mbps"},
    "testbed": {"rtt": "2ms"},
}


def _testbed(*command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "testbed", *command], capture_output=True, text=True, timeout=60, check=False, **more
    )


def _at(host: str, *command: str, weight: float | None = None) -> subprocess.Popen[str]:
    more = () if weight is None else ("--weight", str(weight))
    words = [str(COMMAND), "testbed", "exec", *more, host, "--", *command]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


Up = Callable[..., Standing]


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    """A function that creates testbeds with a state folder of their own, and receivers at h2 and h3."""
    monkeypatch.setenv("SUBAK_RUN", str(tmp_path / "run"))
    monkeypatch.setattr("subak.testbed.standing.FOLDER", tmp_path / "run")
    receivers = []

    def make(*options: str, warmup_s: float = 1.0) -> Standing:
        network = tmp_path / "net.json"
        network.write_text(json.dumps(NETWORK))
        made = _testbed("up", str(network), *options)
        if made.returncode and "subak doctor" in made.stderr:
            pytest.skip(made.stderr)
        assert made.returncode == 0, made.stderr
        for host in ("h2", "h3"):
            receiver = _at(host, sys.executable, "-c", RECEIVE, str(warmup_s))
            assert receiver.stdout
            assert receiver.stdout.readline() == "open\n"
            receivers.append(receiver)
        return everything()[0]

    yield make
    for receiver in receivers:
        receiver.kill()
        receiver.communicate()
    assert _testbed("clean").returncode == 0


def _send(host: str, to: str, seconds: float, *, size: int = 0, own: float = 0, weight: float | None = None) -> Any:
    return _at(host, sys.executable, "-c", SEND, to, str(seconds), str(size), str(own), weight=weight)


def _bytes(*senders: subprocess.Popen[str]) -> list[int]:
    said = [sender.communicate(timeout=60)[0] for sender in senders]
    assert all(sender.returncode == 0 for sender in senders)
    return [int(text) for text in said]


def _shares(heavy: int, light: int, seconds: float) -> None:
    assert 2.2 < heavy / light < 3.8, (heavy, light)
    assert (heavy + light) * 8 > 0.75 * 40e6 * seconds


def test_a_command_has_the_weight_of_its_group(up: Up) -> None:
    standing = up("--scheme", "soze-virtual")
    _shares(*_bytes(_send("h0", "h2", 4, weight=3), _send("h1", "h3", 4)), seconds=3)
    told = {link["id"]: link for link in json.loads(_testbed("status", "--json").stdout)["testbeds"][0]["links"]}
    assert told["switch0->switch1"]["raised_packets"] > 1000
    assert told["switch0->switch1"]["marked_packets"] == 0
    assert _testbed("down").returncode == 0
    assert not standing.alive


def test_flowtune_has_the_connections_of_every_program(up: Up) -> None:
    standing = up("--scheme", "flowtune")
    _shares(*_bytes(_send("h0", "h2", 4, weight=3), _send("h1", "h3", 4)), seconds=3)
    assert standing.programs
    holder = standing.programs["pid"]
    with urllib.request.urlopen(standing.programs["page"], timeout=10) as page:
        assert page.status == 200
    assert _testbed("down").returncode == 0
    assert not standing.alive
    assert started(holder) == 0


def test_flowtunes_daemons_end_with_the_testbed_that_is_killed(up: Up) -> None:
    standing = up("--scheme", "flowtune")
    assert standing.programs
    children = Path(f"/proc/{standing.programs['pid']}/task/{standing.programs['pid']}/children").read_text().split()
    assert len(children) == 2
    os.kill(standing.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("scheme", ["flowtune", "soze-virtual"])
def test_killed_daemons_are_named(up: Up, scheme: str) -> None:
    """``status`` and ``exec --weight`` name them; ``down`` removes what they left."""
    standing = up("--scheme", scheme)
    assert json.loads(_testbed("status", "--json").stdout)["testbeds"][0]["ended"] == []
    assert standing.programs
    daemons = {one["name"]: one["pid"] for one in standing.programs["processes"]}
    flowtunes = ["subak-allocator serve", "subak-agent flowtune"]
    assert list(daemons) == (flowtunes if scheme == "flowtune" else ["subak-agent hosts"])
    holder = standing.programs["pid"]
    folders = list(Path(tempfile.gettempdir()).glob(f"subak-flowtune-{holder}-*"))
    assert len(folders) == (scheme == "flowtune")
    for pid in (holder, *daemons.values()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while any(started(pid) for pid in daemons.values()) and time.monotonic() < until:
        time.sleep(0.05)
    said = _testbed("status")
    assert said.returncode == 1
    told = _testbed("status", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["testbeds"][0]["ended"] == [{"name": n, "pid": p} for n, p in daemons.items()]
    refused = _testbed("exec", "--weight", "3", "h0", "--", "true")
    assert refused.returncode == 2
    for name, pid in daemons.items():
        assert f"{name} (process {pid}), which served 4 hosts (h0 to h3); start it again" in said.stdout
        assert f"{name} (process {pid})" in refused.stderr
    assert "subak testbed down --name net" in refused.stderr
    assert _testbed("exec", "h0", "--", "true").returncode == 0
    assert _testbed("down").returncode == 0
    assert not [folder for folder in folders if folder.exists()]


def test_of_two_testbeds_of_one_name_one_is_refused(up: Up, tmp_path: Path) -> None:
    network = tmp_path / "net.json"
    network.write_text(json.dumps(NETWORK))
    command = [COMMAND, "testbed", "up", str(network)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate(timeout=60)[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 2], said
    assert "subak testbed down --name net" in "".join(said)
    assert len(everything()) == 1
    # The name is free again, also after a command that was killed while it had it.
    assert _testbed("down").returncode == 0
    assert not list((tmp_path / "run").iterdir())
    (tmp_path / "run" / "net.lock").touch()
    up()
    assert _testbed("clean").returncode == 0
    (tmp_path / "run" / "net.lock").touch()
    assert _testbed("clean").returncode == 0
    assert not list((tmp_path / "run").iterdir())


def test_a_program_asks_for_its_weight(up: Up) -> None:
    up("--scheme", "soze-virtual")
    _shares(*_bytes(_send("h0", "h2", 4, own=1.5), _send("h1", "h3", 4, own=0.5)), seconds=3)


def test_a_destination_has_a_weight(up: Up) -> None:
    standing = up("--scheme", "soze-virtual")
    assert standing.programs
    maps = standing.programs["weights"]
    command = [agent(), "weigh", "--map", str(maps["destinations"]), f"{standing.node('h2')['address']}/20", "3"]
    subprocess.run(command, check=True, timeout=20)
    _shares(*_bytes(_send("h0", "h2", 4), _send("h1", "h3", 4)), seconds=3)
    wrong = subprocess.run([*command[:-1], "-1"], capture_output=True, text=True, timeout=20, check=False)
    assert wrong.returncode == 2


def test_two_testbeds_do_not_meet(up: Up, tmp_path: Path) -> None:
    up("--scheme", "soze-virtual")
    other = os.environ | {"SUBAK_RUN": str(tmp_path / "other")}
    assert _testbed("up", str(tmp_path / "net.json"), "--scheme", "soze-virtual", env=other).returncode == 0
    try:
        _shares(*_bytes(_send("h0", "h2", 4, weight=3), _send("h1", "h3", 4)), seconds=3)
    finally:
        assert _testbed("clean", env=other).returncode == 0


def test_a_transfer_outlives_the_programs(up: Up) -> None:
    standing = up("--scheme", "soze-virtual", warmup_s=0)
    assert standing.programs
    size = 10_000_000
    sender = _send("h0", "h2", 30, size=size)
    time.sleep(1)
    os.kill(standing.programs["pid"], signal.SIGKILL)
    assert _bytes(sender) == [size]
    assert "raised_packets" not in _testbed("status", "--json").stdout


def test_a_host_whose_network_tells_nothing_has_the_kernels_control(up: Up) -> None:
    up()
    daemons = []
    for host in ("h0", "h2"):
        command = [agent(), "soze", "--rate", "200Mbps", "--name", f"try_{host}", "--all", "--weight", "10.0.0.0/8=0.5"]
        daemon = _at(host, *command)
        assert daemon.stdout
        assert json.loads(daemon.stdout.readline())["ready"]
        daemons.append(daemon)
    try:
        assert _bytes(_send("h0", "h2", 4))[0] * 8 > 0.75 * 40e6 * 3
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.communicate()
    for wrong, what in (
        ("--rate=fast", "--rate"),
        ("--weight=10.0.0.0=x", "--weight"),
        ("--set=k", "--set"),
        ("--weights=within", "give free or fixed"),
        ("--least-weight=2000", "--most-weight"),
    ):
        said = subprocess.run(
            [agent(), "soze", "--rate", "1Gbps", wrong], capture_output=True, text=True, timeout=20, check=False
        )
        assert said.returncode == 2
        assert what in said.stderr


ASK = """
import errno, socket, sys
from subak.sockets import set_weight
line = socket.socket()
for weight in map(float, sys.argv[1:]):
    try:
        set_weight(line, weight)
        print("ok")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), ["EPERM", "EPERM", "EPERM"]),
        (("--weights=free", "--least-weight=0.5", "--most-weight=4"), ["ERANGE", "ok", "ERANGE"]),
    ],
)
def test_the_operator_says_which_weights_programs_may_have(up: Up, options: tuple[str, ...], said: list[str]) -> None:
    up()
    daemon = _at("h0", agent(), "soze", "--rate", "200Mbps", "--name", "try_ask", *options)
    assert daemon.stdout
    try:
        assert json.loads(daemon.stdout.readline())["ready"]
        asking = _at("h0", sys.executable, "-c", ASK, "0.1", "3", "5")
        assert asking.communicate(timeout=60)[0].split() == said
    finally:
        daemon.kill()
        daemon.communicate()


def test_queues_mark(up: Up) -> None:
    up("--ecn", "15KB")
    _bytes(_send("h0", "h2", 1), _send("h1", "h3", 1))
    told = {link["id"]: link for link in json.loads(_testbed("status", "--json").stdout)["testbeds"][0]["links"]}
    assert told["switch0->switch1"]["marked_packets"] > 0
    assert told["switch1->switch0"]["marked_packets"] == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--scheme", "s-perc-xl"), 'hosts have no scheme "s-perc-xl"'),
        (("--ecn", "much"), "--ecn"),
        (("--ecn", "0"), '--ecn: "0" is no queue length; give 1 byte at least'),
        (("--ecn", ""), "--ecn"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, options: tuple[str, ...], what: str) -> None:
    network = tmp_path / "net.json"
    network.write_text(json.dumps(NETWORK))
    made = _testbed("up", str(network), *options)
    assert made.returncode == 2
    assert what in made.stderr


def test_without_a_scheme_there_are_no_weights(up: Up) -> None:
    up()
    refused = _testbed("exec", "--weight", "3", "h0", "--", "true")
    assert refused.returncode == 2
    assert "--scheme soze-virtual" in refused.stderr


def test_the_library_in_c_and_that_in_python_agree(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler, "a C compiler is among what the README asks for"
    source = tmp_path / "try.c"
    source.write_text(
        textwrap.dedent("""
            #include "subak.h"
            #include <stdio.h>
            int main(void)
            {
                int line = socket(AF_INET, SOCK_STREAM, 0);
                double weights[] = { 0, -1, 0.0 / 0.0, 1e9, 3 };
                for (int i = 0; i < 5; i++) {
                    errno = 0;
                    int done = subak_set_weight(line, weights[i]);
                    printf("%d %s\\n", done, errno == EINVAL ? "EINVAL" : errno == ENOPROTOOPT ? "ENOPROTOOPT" : "0");
                }
            }
        """)
    )
    program = tmp_path / "try"
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True, timeout=60)
    said = subprocess.run([program], capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()
    assert said[:4] == ["-1 EINVAL"] * 4
    # If another test's kernel programs are loaded, they accept the socket option.
    assert said[4] in ("-1 ENOPROTOOPT", "0 0")
    with socket.socket() as line:
        for weight in (0, -1, float("nan"), 1e9):
            with pytest.raises(ValueError, match="weight"):
                subak.set_weight(line, weight)
        # If another test's kernel programs are loaded, they accept the socket option.
        with contextlib.suppress(OSError):
            subak.set_weight(line, 3)
