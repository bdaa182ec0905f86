"""Time from a flowlet's start until its pacing rate is in the kernel: on a testbed, as root.

    sudo .venv/bin/python benches/flowlet_start.py [INTERVAL [SENDERS]]

For ten seconds, senders make transfers of 60 KB with pauses between them. A time begins at the kernel's event of the
start and ends when the kernel has the rate, by one clock. The benchmark fails if the median reaches 1 ms or the 99th
percentile 5 ms. Nothing else should run on the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from subak.testbed import by_hand, flowtune

HOSTS = 9
RECEIVE = """
import socket, threading
door = socket.create_server(("", 5201))
print("open", flush=True)
def read(line):
    while line.recv(1 << 16):
        pass
while True:
    threading.Thread(target=read, args=door.accept()[:1], daemon=True).start()
"""
SEND = """
import random, socket, sys, time
random.seed(int(sys.argv[2]))
line, until = socket.create_connection((sys.argv[1], 5201)), time.monotonic() + 10
while time.monotonic() < until:
    line.sendall(bytes(60000))
    time.sleep(random.uniform(0.02, 0.08))
"""


def main() -> None:
    """Runs the benchmark and prints the times."""
    interval = sys.argv[1] if len(sys.argv) > 1 else "200us"
    senders = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    nodes = [{"id": "hub", "kind": "switch"}] + [{"id": f"h{k}", "kind": "host"} for k in range(HOSTS)]
    links = [{"source": f"h{k}", "target": "hub", "capacity": 100_000_000} for k in range(HOSTS)]
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "network.json"
        network.write_text(json.dumps({"nodes": nodes, "links": links}))
        with by_hand.made(str(network)) as up:
            configured = flowtune.configuration({"lease": "200ms", "interval": interval}, 1)
            with flowtune.Flowtune(up, up.layout, configured, f"ft{os.getpid():x}") as daemons:
                node = {name: number for number, name in enumerate(up.plan.names)}

                def python(host: str, *program: str) -> subprocess.Popen[str]:
                    command = ["nsenter", f"--net={up.namespace(node[host])}", "python3", "-c", *program]
                    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

                last = f"h{HOSTS - 1}"
                receiver = python(last, RECEIVE)
                assert receiver.stdout
                receiver.stdout.readline()
                running = [python(f"h{k}", SEND, str(up.address(node[last])), str(k)) for k in range(senders)]
                for sender in running:
                    sender.wait()
                receiver.kill()
                receiver.wait()
    report = daemons.report
    half, most = (report[f"first_rate_{q}_ns"] / 1e6 for q in ("p50", "p99"))
    count = report["first_rates"]
    print(f"{count} flowlets of {senders} senders, an iteration each {interval}: p50 {half:.2f} ms, p99 {most:.2f} ms")
    if half >= 1 or most >= 5:
        sys.exit("that is longer than 1 and 5 ms")


if __name__ == "__main__":
    main()
