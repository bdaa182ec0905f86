"""A host of the allocator, written from the description of the wire format alone, with a BLAKE3 of its own and a
model of the rates."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent

# BLAKE3, from its specification (O'Connor, Aumasson, Neves, Wilcox-O'Hearn).
IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
MIXED = (*COLUMNS, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
START, END, PARENT, ROOT, KEYED, CONTEXT, MATERIAL = (1 << k for k in range(7))
M32 = 0xFFFFFFFF


def _compress(chain: tuple[int, ...], block: bytes, counter: int, flags: int) -> tuple[int, ...]:
    m = struct.unpack("<16I", block.ljust(64, b"\0"))
    v = [*chain, *IV[:4], counter & M32, counter >> 32, len(block), flags]
    for _ in range(7):
        for k, (a, b, c, d) in enumerate(MIXED):
            va, vb, vc, vd = v[a], v[b], v[c], v[d]
            va = (va + vb + m[2 * k]) & M32
            vd ^= va
            vd = (vd >> 16 | vd << 16) & M32
            vc = (vc + vd) & M32
            vb ^= vc
            vb = (vb >> 12 | vb << 20) & M32
            va = (va + vb + m[2 * k + 1]) & M32
            vd ^= va
            vd = (vd >> 8 | vd << 24) & M32
            vc = (vc + vd) & M32
            vb ^= vc
            vb = (vb >> 7 | vb << 25) & M32
            v[a], v[b], v[c], v[d] = va, vb, vc, vd
        m = tuple(m[k] for k in ORDER)
    return tuple(v[k] ^ v[k + 8] for k in range(8))


def _tree(key: tuple[int, ...], data: bytes, flags: int, first: int, root: int) -> tuple[int, ...]:
    if len(data) <= 1024:
        chain = key
        blocks = [data[k : k + 64] for k in range(0, len(data), 64)] or [b""]
        for k, block in enumerate(blocks):
            last = k == len(blocks) - 1
            chain = _compress(chain, block, first, flags | START * (k == 0) | (END | root) * last)
        return chain
    left = 1024
    while 2 * left < len(data):
        left *= 2
    parts = _tree(key, data[:left], flags, first, 0) + _tree(key, data[left:], flags, first + left // 1024, 0)
    return _compress(key, struct.pack("<16I", *parts), 0, flags | PARENT | root)


def blake3(data: bytes, key: tuple[int, ...] = IV, flags: int = 0) -> bytes:
    return struct.pack("<8I", *_tree(key, data, flags, 0, ROOT))


def derived(context: str, material: bytes) -> tuple[int, ...]:
    key = struct.unpack("<8I", blake3(context.encode(), IV, CONTEXT))
    return struct.unpack("<8I", blake3(material, key, MATERIAL))


def rate_of(code: int) -> float:
    return 0.0 if code == 0 else (1 + (code & 1023) / 1024) * 2.0 ** (code >> 10)


def number_of(address: str) -> int:
    return int.from_bytes(socket.inet_aton(address), "big")


class Endpoint:
    """A host: it sends its flowlets until they are acknowledged, and stores the rates that it receives."""

    def __init__(self, key: str, address: str, allocator: tuple[str, int], epoch: int | None = None):
        self.number = number_of(address)
        self.epoch = time.monotonic_ns() if epoch is None else epoch
        secret = bytes.fromhex(key) + struct.pack(">I", self.number)
        self.up = derived("subak 2026 datagram of an endpoint", secret)
        self.down = derived("subak 2026 datagram of the allocator", secret)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 0))
        self.socket.setblocking(False)
        self.allocator = allocator
        self.peer_epoch = self.sent = self.ack = self.mask = 0
        self.news: dict[int, tuple[int, int, float] | None] = {}
        self.told: dict[int, dict[int, tuple[int, int, float] | None]] = {}
        self.live: dict[int, tuple[int, int, float]] = {}
        self.rates: dict[int, float] = {}
        self.rate_at: dict[int, float] = {}
        self.next_flowlet = 1
        self.taken = self.bad = 0
        self.lost_last = 0.0
        self.last_heard = 0.0
        self.last_sent = 0.0

    def start(self, to: str, weight: float = 1.0, path: int = 0, flowlet: int | None = None) -> int:
        flowlet = self.next_flowlet if flowlet is None else flowlet
        self.next_flowlet = max(self.next_flowlet, flowlet + 1)
        self.news[flowlet] = self.live[flowlet] = (number_of(to), path, weight)
        return flowlet

    def end(self, flowlet: int) -> None:
        del self.live[flowlet]
        self.rates.pop(flowlet, None)
        self.news[flowlet] = None

    def encode(self, news: dict[int, tuple[int, int, float] | None], **other: Any) -> bytes:
        """An authenticated datagram with these starts and ends of flowlets; `other` sets invalid fields."""
        starts = [(flowlet, *what) for flowlet, what in news.items() if what]
        ends = [flowlet for flowlet, what in news.items() if what is None]
        body = b""
        if starts:
            body += struct.pack(">BH", 1, len(starts)) + b"".join(struct.pack(">IIIf", *start) for start in starts)
        if ends:
            body += struct.pack(">BH", 2, len(ends)) + struct.pack(f">{len(ends)}I", *ends)
        body = other.get("body", body)
        head = {"version": 1, "flags": 2, "length": len(body), "endpoint": self.number, "epoch": self.epoch}
        head |= {"peer_epoch": self.peer_epoch, "number": self.sent, "ack": self.ack, "mask": self.mask}
        head |= {key: value for key, value in other.items() if key in head}
        datagram = struct.pack(">BBHIQQIII", *head.values()) + body
        return datagram + blake3(datagram, other.get("up", self.up), KEYED)[:16]

    def send(self, most: int = 80) -> bytes:
        news = dict(list(self.news.items())[:most])
        for flowlet in news:
            del self.news[flowlet]
        # Numbers wrap around, and skip 0.
        self.sent = self.sent % M32 + 1
        self.told[self.sent] = news
        datagram = self.encode(news)
        self.raw(datagram)
        self.last_sent = time.monotonic()
        return datagram

    def raw(self, datagram: bytes) -> None:
        with contextlib.suppress(OSError):
            self.socket.sendto(datagram, self.allocator)

    def receive(self) -> None:
        while True:
            try:
                bytes_, _ = self.socket.recvfrom(65536)
            except OSError:
                return
            self.take(bytes_)

    def take(self, sealed: bytes) -> None:
        datagram, tag = sealed[:-16], sealed[-16:]
        if blake3(datagram, self.down, KEYED)[:16] != tag:
            self.bad += 1
            return
        version, flags, length, endpoint, epoch, peer, number, ack, mask = struct.unpack(">BBHIQQIII", datagram[:36])
        assert (version, flags & 1, endpoint, length) == (1, 1, self.number, len(datagram) - 36)
        if peer not in (0, self.epoch):
            return
        if epoch != self.peer_epoch:
            if self.peer_epoch and (epoch < self.peer_epoch or peer != self.epoch):
                return
            self.peer_epoch, self.ack, self.mask = epoch, 0, 0
            self.told.clear()
            self.news = dict(self.live)
        if not 0 < (number - self.ack) % (1 << 32) < 1 << 31:
            return
        self.mask = ((self.mask << 1 | 1) << (number - self.ack - 1)) & M32 if self.ack else 0
        self.ack = number
        self.taken += 1
        self.last_heard = time.monotonic()
        if peer == self.epoch:
            taken = {ack} | {ack - 1 - k for k in range(32) if mask >> k & 1}
            for sent in [sent for sent in self.told if sent in taken]:
                del self.told[sent]
            for sent in [sent for sent in self.told if (ack - sent) % (1 << 32) < 1 << 31]:
                for flowlet in self.told.pop(sent):
                    self.news.setdefault(flowlet, self.live.get(flowlet))
        at = 36
        while at < len(datagram):
            kind, count = struct.unpack_from(">BH", datagram, at)
            at += 3
            assert kind == 3, f"a group of kind {kind} from the allocator"
            for _ in range(count):
                flowlet, code = struct.unpack_from(">IH", datagram, at)
                at += 6
                if flowlet in self.live:
                    self.rates[flowlet] = rate_of(code)
                    self.rate_at[flowlet] = time.monotonic()

    def step(self) -> None:
        self.receive()
        now = time.monotonic()
        if self.told and now - self.last_sent > 0.05:
            for sent in list(self.told):
                for flowlet in self.told.pop(sent):
                    self.news.setdefault(flowlet, self.live.get(flowlet))
        while self.news and len(self.told) < 20:
            self.send()
        if now - self.last_sent > 0.02:
            self.send()

    def close(self) -> None:
        self.socket.close()


def run(endpoints: list[Endpoint], seconds: float, until: Callable[[], bool] | None = None) -> bool:
    """Lets the endpoints send and receive for some seconds, or until a condition is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for endpoint in endpoints:
            endpoint.step()
        if until and until():
            return True
        select.select([endpoint.socket for endpoint in endpoints][:500], [], [], 0.002)
    return until is None


def star(capacities: list[float]) -> dict[str, Any]:
    """Hosts h0, h1, ... with links to one switch, s."""
    nodes = [{"id": f"h{k}", "kind": "host"} for k in range(len(capacities))] + [{"id": "s", "kind": "switch"}]
    ends = [{"source": f"h{k}", "target": "s", "delay": "1us"} for k in range(len(capacities))]
    links = [end | {"capacity": capacity} for end, capacity in zip(ends, capacities, strict=True)]
    return {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "links": links}


class Daemon:
    """A running allocator with its own folder."""

    def __init__(self, folder: Path, network: dict[str, Any], hosts: dict[str, str | list[str]], **more: Any):
        self.folder, self.port, self.page = folder, free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_STREAM)
        folder.mkdir(parents=True, exist_ok=True)
        self.address = ("127.0.0.1", self.port)
        self.network, self.hosts = network, hosts
        self.tenants = more.pop("tenants", [{"name": "all", "hosts": list(hosts)}])
        self.keys = {tenant["name"]: os.urandom(32).hex() for tenant in self.tenants}
        self.more = more
        self.write()
        self.process: subprocess.Popen[bytes] | None = None

    def write(self, **more: Any) -> None:
        self.more |= more
        replace(self.folder / "network.json", json.dumps(self.network))
        for name, key in self.keys.items():
            replace(self.folder / name, key + "\n")
        lines = [f'listen = "127.0.0.1:{self.port}"', 'network = "network.json"', 'control = "control"']
        lines += [f'page = {{listen = "127.0.0.1:{self.page}"}}'] if "page" not in self.more else []
        lines += [f"{key} = {toml(value)}" for key, value in self.more.items()]
        lines += ["[hosts]"] + [f"{json.dumps(name)} = {toml(value)}" for name, value in self.hosts.items()]
        for tenant in self.tenants:
            keys = {"key": tenant["name"]} | tenant
            lines += ["[[tenant]]"] + [f"{key} = {toml(value)}" for key, value in keys.items()]
        replace(self.folder / "allocator.toml", "\n".join(lines) + "\n")

    def start(self) -> Daemon:
        self.log = (self.folder / "log").open("ab")
        command = [BIN / "subak-allocator", "serve", "--json", self.folder / "allocator.toml"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.ask("status")
                return self
            except (OSError, AssertionError):
                time.sleep(0.01)
        raise AssertionError(f"it did not start: {self.logged()}")

    def check(self) -> subprocess.CompletedProcess[str]:
        command = [BIN / "subak-allocator", "check", self.folder / "allocator.toml"]
        return subprocess.run(command, capture_output=True, text=True, timeout=20)

    def logged(self) -> str:
        return (self.folder / "log").read_text()

    def ask(self, what: str, **more: Any) -> Any:
        """Sends a request to the control socket, as `subak allocator` does."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(20)
            line.connect(str(self.folder / "control"))
            line.sendall(json.dumps({"ask": what} | more).encode() + b"\n")
            answer = json.loads(line.makefile().readline())
        assert "ok" in answer, answer
        return answer["ok"]

    def endpoint(self, host: str, **more: Any) -> Endpoint:
        of = next(tenant["name"] for tenant in self.tenants if host in tenant["hosts"])
        address = self.hosts[host]
        return Endpoint(self.keys[of], address if isinstance(address, str) else address[0], self.address, **more)

    def get(self, path: str, timeout: float = 5.0, headers: str = "") -> tuple[int, str]:
        with socket.create_connection(("127.0.0.1", self.page), timeout=timeout) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n".encode())
            answer = b""
            while part := connection.recv(65536):
                answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode()

    def signal(self, number: int) -> None:
        assert self.process
        self.process.send_signal(number)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        if self.process:
            self.log.close()


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def replace(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.chmod(0o600)
    new.rename(path)


def free_port(kind: int) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def fair(capacities: dict[str, float], flows: list[tuple[list[str], float]], alpha: float = 1.0) -> list[float]:
    """Optimal rates for the utility w^alpha x^(1-alpha) / (1-alpha), or w log x for alpha 1, of flows with weights.

    Solved by the dual: one link's price after the other is set so that the link is just full, or to 0.
    """
    prices = dict.fromkeys(capacities, 0.0)
    over = {link: [k for k, (path, _) in enumerate(flows) if link in path] for link in capacities}
    others = [0.0] * len(flows)

    def load(link: str, price: float) -> float:
        return sum(flows[k][1] / max(others[k] + price, 1e-100) ** (1 / alpha) for k in over[link])

    def just_full(link: str) -> float:
        if load(link, 0.0) <= capacities[link]:
            return 0.0
        high = 1.0
        while load(link, high) > capacities[link]:
            high *= 2
        while load(link, high / 2) <= capacities[link]:
            high /= 2
        low = high / 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if load(link, middle) <= capacities[link] else (middle, high)
        return high

    for _ in range(2000):
        moved = 0.0
        for link in (link for link in capacities if over[link]):
            for k in over[link]:
                others[k] = sum(prices[other] for other in flows[k][0] if other != link)
            before, prices[link] = prices[link], just_full(link)
            moved = max(moved, abs(prices[link] - before) / max(prices[link], before, 1e-300))
        if moved < 1e-9:
            break
    return [weight / sum(prices[link] for link in path) ** (1 / alpha) for path, weight in flows]


SHARE = 1 - 0.01 - 0.03
"""Fraction of each link that is allocated: 1 without the update threshold and the reserve."""

Make = Callable[..., Daemon]


def making(folder: Path) -> Iterator[Make]:
    """A function that starts daemons, by default with hosts h0, h1, ... at one switch. They end after the test."""
    daemons: list[Daemon] = []

    def made(capacities: list[float] | dict[str, Any], *, start: bool = True, **more: Any) -> Daemon:
        network = capacities if isinstance(capacities, dict) else star(capacities)
        names = [node["id"] for node in network["nodes"] if node["kind"] == "host"]
        hosts = {name: f"127.1.{len(daemons)}.{k + 1}" for k, name in enumerate(names)}
        daemon = Daemon(folder / f"d{len(daemons)}", network, hosts, **({"lease": "300ms"} | more))
        daemons.append(daemon)
        return daemon.start() if start else daemon

    yield made
    for daemon in daemons:
        daemon.stop()


def two_to_one(make: Make) -> tuple[Daemon, Endpoint, Endpoint, int, int]:
    """Two hosts that send to a third, each at half of 10 Gb/s."""
    daemon = make([10e9] * 4)
    a, b = daemon.endpoint("h0"), daemon.endpoint("h1")
    f, g = a.start(daemon.hosts["h2"]), b.start(daemon.hosts["h2"])
    told([a, b], lambda: near(a.rates.get(f), SHARE * 5e9) and near(b.rates.get(g), SHARE * 5e9))
    return daemon, a, b, f, g


def graph(hosts: str, switches: str, edges: str, rate: float = 10e9, **more: Any) -> dict[str, Any]:
    """A network in node-link form, from names of nodes and from edges such as ``a-b``."""
    kinds = [(hosts, "host"), (switches, "switch")]
    nodes = [{"id": name, "kind": kind} for names, kind in kinds for name in names.split()]
    ends = [edge.split("-") for edge in edges.split()]
    links = [{"source": a, "target": b, "capacity": rate, "delay": "1us", "key": k} for k, (a, b) in enumerate(ends)]
    return {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "links": links, **more}


def near(rate: float | None, goal: float, by: float = 0.012) -> bool:
    return rate is not None and abs(rate - goal) <= by * goal


def told(endpoints: list[Endpoint], what: Callable[[], bool], seconds: float = 15) -> None:
    """Lets the endpoints run until a condition is true; fails after `seconds`."""
    assert run(endpoints, seconds, what), [(endpoint.rates, endpoint.live) for endpoint in endpoints]


def all_told(*endpoints: Endpoint) -> Callable[[], bool]:
    return lambda: all(set(endpoint.rates) == set(endpoint.live) for endpoint in endpoints)
