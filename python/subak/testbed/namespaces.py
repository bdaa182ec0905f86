"""Creates a plan and a layout in the kernel: namespaces, veths, queues, addresses and routes, owned by this process.

The namespaces have no names. They exist as long as a process is in them or has them open. The kernel therefore removes
everything when the last such process ends, for any reason.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.testbed import relay
from subak.testbed.layout import Layout, Link, Plan

CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000
MS_BIND = 0x1000
MS_REC_PRIVATE = 0x44000
PERMANENT = 0x80
IFLA_IFNAME = 3
IFLA_LINKINFO = 18
IFLA_INFO_KIND = 1
IFLA_INFO_DATA = 2
VETH_INFO_PEER = 1
RTM_NEWLINK = 16
NLM_F_REQUEST_ACK_CREATE_EXCL = 0x605
GATEWAY = "169.254.0.1"
"""Gateway of every route: the node at the other end of a link has this address on each of its devices."""
MAC = "02:00:00:00:00:01"
"""MAC address of every device, so that each accepts every packet."""
BESIDE = 1000
"""Number of the first routing table for a queue."""
SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    # If no program forwards packets, a host's own packets return to its kernel from the queue.
    "net/ipv4/conf/all/accept_local": "1",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    # Header sizes equal those of the simulator.
    "net/ipv4/tcp_timestamps": "0",
    # The kernel buffers little unsent data, so that a flow stops soon after its program stops.
    "net/ipv4/tcp_notsent_lowat": "16384",
    # The kernel starts without metrics of earlier connections.
    "net/ipv4/tcp_no_metrics_save": "1",
    # Receive windows grow with the data that arrives; with the default buffer they stay at 64 KB for some RTTs.
    "net/ipv4/tcp_rmem": "4096 8388608 33554432",
    "net/ipv4/tcp_mtu_probing": "0",
    # Limits how long connections of ended programs keep their namespace and congestion control in use.
    "net/ipv4/tcp_orphan_retries": "1",
    "net/ipv4/tcp_fin_timeout": "1",
    "net/core/somaxconn": "16384",
    "net/ipv4/ip_local_port_range": "10000 65000",
}

_libc = ctypes.CDLL(None, use_errno=True)


def _fail(what: str) -> InputError:
    error = os.strerror(ctypes.get_errno())
    return InputError(
        None, "", f"{what}: {error}", "run as root, or in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )


def enter_device(link: int) -> int:
    """Number of the first device of a link's queue, unique in the testbed."""
    return 100_000 + 2 * link


def leave_device(link: int) -> int:
    """Number of the second device of a link's queue."""
    return enter_device(link) + 1


def real_device(link: int) -> int:
    """Number of the device on which a link's packets leave, if each queue is a pair of devices."""
    return 300_000 + link


def _make_pair(first: tuple[str, int], second: tuple[str, int]) -> None:
    """Creates a veth pair by name and number: pyroute2 cannot set the number of the second device."""

    def attribute(kind: int, value: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)

    def device(name: str, number: int) -> bytes:
        return struct.pack("=BxHiII", 0, 0, number, 0, 0) + attribute(IFLA_IFNAME, name.encode() + b"\0")

    veth = attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, device(*second)))
    body = device(*first) + attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, b"veth") + veth)
    head = struct.pack("=IHHII", 16 + len(body), RTM_NEWLINK, NLM_F_REQUEST_ACK_CREATE_EXCL, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as line:
        line.send(head + body)
        error = struct.unpack_from("=i", line.recv(4096), 16)[0]
    if error:
        ctypes.set_errno(-error)
        raise _fail("a pair of devices cannot be made")


def enter_namespace(namespace: int) -> None:
    """Moves this thread into the network namespace of an open file."""
    if _libc.setns(namespace, CLONE_NEWNET) != 0:
        raise _fail("the namespace cannot be entered")


class Namespaces:
    """The nodes of a plan; they exist as long as this process."""

    def __init__(self, plan: Plan) -> None:
        from pyroute2 import IPRoute

        self.plan = plan
        self.files: list[int] = []
        self._lines: list[Any] = []
        self.devices: dict[int, int] = {}
        """For each link the number of the device with its queue, in the source's namespace."""
        self.real: dict[int, int] = {}
        """The device on which packets leave: that of the queue, unless queues are pairs of devices."""
        self.relayed: list[dict[str, Any]] = []
        """The relayed links, with the files of their devices, in the order of ``plan.relayed``."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            for _ in plan.names:
                if _libc.unshare(CLONE_NEWNET) != 0:
                    raise _fail("a network namespace cannot be made")
                self.files.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
                for name, value in SETTINGS.items():
                    _set(name, value)
                if plan.marking:
                    _set("net/ipv4/tcp_ecn", "1")
                line = IPRoute()
                line.link("set", index=1, state="up")
                self._lines.append(line)
            self._connect()
        finally:
            enter_namespace(home)
            os.close(home)

    def _connect(self) -> None:
        """Creates two devices for each pair of links, with a queue at each sending end and the other end as neighbour.

        The devices are a veth, or two TAP devices between which the relay carries packets.
        """
        # The kernel's MTU excludes the Ethernet header.
        mtu = self.plan.mtu_bytes - 14
        for there, back in self.plan.pairs():
            link = self.plan.links[there]
            one, other = self._lines[link.source], self._lines[link.target]
            here, far = f"l{there}", f"r{there}"
            common = {"mtu": mtu, "gso_max_segs": 1}
            peer = {"ifname": far, "net_ns_fd": self.files[link.target], **common}
            if there in self.plan.relayed:
                self._taps(there, back)
            elif self.plan.priority:
                self._numbered(
                    link,
                    (here, real_device(there)),
                    (far, real_device(len(self.plan.links) + there if back is None else back)),
                )
            else:
                one.link("add", ifname=here, kind="veth", peer=peer, **common)
            ends = []
            for line, name in ((one, here), (other, far)):
                index = line.link_lookup(ifname=name)[0]
                line.link("set", index=index, state="up", mtu=mtu, gso_max_segs=1, address=MAC)
                ends.append(index)
            self._queue(there, ends[0])
            if back is not None:
                self._queue(back, ends[1])
        # The order of the plan, which numbers the relay's links.
        self.relayed.sort(key=lambda link: link.pop("number"))

    def _taps(self, there: int, back: int | None) -> None:
        """Creates the TAP devices of a pair of links."""
        link, files = self.plan.links[there], []
        numbers = (there, len(self.plan.links) + there if back is None else back)
        for node, name, number in zip((link.source, link.target), (f"l{there}", f"r{there}"), numbers, strict=True):
            enter_namespace(self.files[node])
            # Numbers of devices matter to programs at links only.
            files.append(relay.tap(name, real_device(number) if self.plan.priority else 0))
        for one, ends in ((there, files), (back, files[::-1])):
            if one is not None:
                of = self.plan.links[one]
                told = {"from": ends[0], "to": ends[1], "rate_bps": of.rate_bps, "delay_ns": self.plan.delay_ns(of)}
                self.relayed.append({"number": one, **told})

    def _numbered(self, link: Link, first: tuple[str, int], second: tuple[str, int]) -> None:
        """Creates a veth between two nodes, whose devices have numbers that are unique in the testbed."""
        enter_namespace(self.files[link.source])
        _make_pair(first, second)
        self._lines[link.source].link("set", index=second[1], net_ns_fd=self.files[link.target])

    def _queue(self, number: int, device: int) -> None:
        """Creates the queue of a link before ``device``, on which packets leave."""
        line = self._lines[self.plan.links[number].source]
        self.real[number] = device
        line.neigh("add", dst=GATEWAY, lladdr=MAC, ifindex=device, state=PERMANENT)
        if self.plan.telling:
            real, device = device, self._pair(line, number)
            line.neigh("add", dst=GATEWAY, lladdr=MAC, ifindex=device, state=PERMANENT)
            # If the program that forwards packets ends, the kernel routes them, so that transfers continue.
            table = BESIDE + number
            line.route("add", dst="0.0.0.0/0", oif=real, gateway=GATEWAY, flags=4, table=table)
            line.rule("add", iifname=f"p{number}", table=table, priority=BESIDE)
        self._shape(number, device)

    def _pair(self, line: Any, number: int) -> int:
        """Two connected devices in one namespace: a packet sent into the first comes out of the second."""
        enter, leave = enter_device(number), leave_device(number)
        enter_namespace(self.files[self.plan.links[number].source])
        _make_pair((f"q{number}", enter), (f"p{number}", leave))
        for index in (enter, leave):
            line.link("set", index=index, state="up", mtu=self.plan.mtu_bytes - 14, gso_max_segs=1, address=MAC)
        return enter

    def _shape(self, number: int, device: int) -> None:
        link = self.plan.links[number]
        rate = round(link.rate_bps / 8)
        # A packet, plus the bytes of 100 us, by which timers may be late.
        burst = self.plan.mtu_bytes + round(link.rate_bps / 8 * 100e-6)
        limit = max(link.buffer_bytes, self.plan.mtu_bytes)
        line = self._lines[link.source]
        line.tc("add", "tbf", device, "1:", rate=rate, burst=burst, limit=limit)
        if self.plan.priority:
            # The queue length of the device is the limit of packets in each band.
            line.link("set", index=device, txqlen=max(2, round(limit / self.plan.mtu_bytes)))
            line.tc("add", "pfifo_fast", device, "2:", parent="1:1")
        self.devices[number] = device

    def lay(self, layout: Layout) -> None:
        """Sets addresses and routes of nodes by ``layout``."""
        for node, host_address in layout.addresses():
            self._lines[node].addr("add", index=1, address=host_address, prefixlen=32)
        for node, target, link in layout.routes():
            how = {"oif": self.devices[link], "gateway": GATEWAY, "flags": 4}
            self._lines[node].route("add", dst=f"{target}/32", **how)


def _set(name: str, value: str) -> None:
    path = Path("/proc/sys") / name
    try:
        path.write_text(value)
    except FileNotFoundError:
        return
    except OSError as error:
        what = f"{path} cannot be set: {error.strerror}"
        raise InputError(None, "", what, "run as root where /proc/sys is writable") from None


def become(namespace: str, hosts: dict[str, str]) -> None:
    """Moves this process to a node, with name resolution for ``hosts``."""
    file = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    enter_namespace(file)
    os.close(file)
    # A mount that only this process and its children see; the kernel removes it with the last of them.
    if _libc.unshare(CLONE_NEWNS) != 0 or _libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None) != 0:
        raise _fail("a mount namespace cannot be made")
    known = Path("/etc/hosts").read_text() if Path("/etc/hosts").exists() else "127.0.0.1 localhost\n"
    lines = "".join(f"{address} {name}\n" for name, address in hosts.items())
    folder = b"/run"
    if _libc.mount(b"tmpfs", folder, b"tmpfs", 0, None) == 0 and Path("/etc/hosts").exists():
        Path("/run/hosts").write_text(known + lines)
        _libc.mount(b"/run/hosts", b"/etc/hosts", None, MS_BIND, None)


def counts(namespace: str, device: int) -> dict[str, int]:
    """Counters and queue length of a device's queue."""
    from pyroute2 import IPRoute

    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    file = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter_namespace(file)
        with IPRoute() as line:
            for queue in line.get_qdiscs(device):
                told = queue.get_attr("TCA_STATS2")
                basic, queued = told.get_attr("TCA_STATS_BASIC"), told.get_attr("TCA_STATS_QUEUE")
                return {
                    "sent_bytes": basic["bytes"],
                    "queued_bytes": queued["backlog"],
                    "dropped_packets": queued["drops"],
                }
    finally:
        enter_namespace(home)
        os.close(home)
        os.close(file)
    return {"sent_bytes": 0, "queued_bytes": 0, "dropped_packets": 0}
