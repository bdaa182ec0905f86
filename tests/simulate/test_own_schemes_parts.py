"""Parts of Subak in schemes of users: telemetry, largest waits, RED, PFC, state at nodes, a central controller."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import subak
from conftest import ROOT
from own_schemes import MINE, TEMPLATES, failed, rows_of, run

# Failing trials are the subject of some of these tests.
pytestmark = pytest.mark.filterwarnings("ignore::subak.InputWarning")

POWERTCP_WHERE: dict[str, dict[str, Any]] = {
    "star": {},
    "incast": {"workload": {"kind": "incast", "senders": 15, "size": "200kB", "interval": "2us"}},
    "fat-tree": {"network": {"kind": "fat-tree", "k": 4}},
    "loss": {"fault": [{"kind": "loss", "probability": 0.01}]},
    "reroute": {
        "network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
        "routing": {"reroute": "50us"},
        "fault": [{"kind": "down", "link": "leaf0->spine0", "down": "300us", "up": "800us"}],
    },
    "restart": {"fault": [{"kind": "restart", "node": "switch0", "at": "500us"}]},
    "capacity": {"fault": [{"kind": "capacity", "link": "*->h3", "capacity": "2Gbps", "at": "1ms"}]},
    "long": {"network": {"kind": "star", "hosts": 4, "link_delay": "200us"}, "run": {"duration": "20ms"}},
}


@pytest.mark.parametrize("where", POWERTCP_WHERE)
def test_powertcp_in_python_equals_ours(where: str, tmp_path: Path) -> None:
    (tmp_path / "powertcp.py").write_text((ROOT / "examples/schemes/powertcp.py").read_text())
    mine = {"name": "mine", "python": "powertcp.py:PowerTcp"}
    results = run(tmp_path, [{"name": "powertcp"}, mine], **POWERTCP_WHERE[where])
    assert not results.failed, results.failed
    assert rows_of(results, "mine").num_rows > 100
    assert rows_of(results, "mine").equals(rows_of(results, "powertcp"))


LEAF_SPINE = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}
HPCC_WHERE: dict[str, dict[str, Any]] = {
    "star": {},
    "incast": {"workload": {"kind": "incast", "senders": 7, "size": "200KB"}},
    "loss": {"network": LEAF_SPINE, "fault": [{"kind": "loss", "probability": 0.01}]},
    "subflows": {
        "network": LEAF_SPINE,
        "workload": {"kind": "poisson", "load": 0.4, "sizes": "web-search", "subflows": 2},
    },
    "reroute": {**POWERTCP_WHERE["reroute"], "workload": {"kind": "incast", "senders": 7, "size": "500KB"}},
}


@pytest.mark.parametrize("where", HPCC_WHERE)
def test_a_second_hpcc_has_the_same_times(where: str, tmp_path: Path) -> None:
    """Paces may differ in their last digit: the model adds in another order."""
    (tmp_path / "mine.py").write_text((ROOT / "tests/models/hpcc_by_telemetry.py").read_text())
    more = {"measure": {"rates": "100us"}, **HPCC_WHERE[where]}
    results = run(tmp_path, [{"name": "hpcc"}, {"name": "mine", "python": "mine.py:Hpcc"}], **more)
    assert not results.failed, results.failed
    for kind in ("flow", "link", "queue"):
        mine, ours = (_rows(results, name, kind).drop_columns(["scheme", "trial"]) for name in ("mine", "hpcc"))
        assert mine.equals(ours), kind


@pytest.mark.parametrize(
    ("own", "ours"),
    [
        ("", {"pfc": "dynamic"}),
        ("threshold=20_000", {"pfc": "static", "pfc_threshold": 20_000}),
        (
            "threshold=20_000, resume=10_000, reserve=1000",
            {"pfc": "static", "pfc_threshold": 20_000, "pfc_resume": 10_000, "pfc_reserve": 1000},
        ),
        (
            "alpha=0.1, buffer=300_000, headroom=6000",
            {"pfc": "dynamic", "pfc_alpha": 0.1, "pfc_buffer": 300_000, "pfc_headroom": 6000},
        ),
    ],
)
def test_pfc_of_ones_own_is_that_of_dctcp(own: str, ours: dict[str, Any], tmp_path: Path) -> None:
    text = (TEMPLATES / "dctcp.py").read_text().replace('subak.Fifo(mark="k")', 'subak.Priority(mark="k")')
    (tmp_path / "mine.py").write_text(text.replace("    queue =", f"    lossless = subak.Pfc({own})\n    queue =", 1))
    more = {
        "network": {"kind": "star", "hosts": 8, "buffer": "40kB"},
        "workload": {"kind": "incast", "senders": 7, "size": "300kB"},
        "fault": [{"kind": "loss", "probability": 0.01}, {"kind": "restart", "node": "switch0", "at": "300us"}],
    }
    results = run(tmp_path, [{"name": "dctcp", "params": ours}, {"name": "mine", "python": "mine.py:Dctcp"}], **more)
    assert not results.failed, results.failed
    assert rows_of(results, "mine").equals(rows_of(results, "dctcp"))
    assert sum(results.table("link")["pauses"].to_pylist()) > 0


WAITS = """
import subak

class Waits(subak.Scheme):
    \"\"\"Notes the largest wait at one link of the path.\"\"\"
    params = {"window": (20, "packets")}
    hop = subak.LargestWait(number=3)

    def source(self, flow):
        return Sender(self.window * flow.mss_bytes)

class Sender(subak.Source):
    def __init__(self, size):
        self.size = size
    def on_start(self, io):
        io.pace(window=self.size)
    def on_ack(self, io, ack):
        io.note(wait=ack[3])

class Hop(subak.Hop):
    def on_dequeue(self, io, packet, port):
        if packet.is_data:
            packet[3] = max(packet[3], packet.waited_ns - packet[7])
            packet[7] = packet.waited_ns
"""


def test_the_largest_wait_is_what_a_hop_of_ones_own_finds(tmp_path: Path) -> None:
    (tmp_path / "built_in.py").write_text(WAITS)
    of_its_own = WAITS.replace(
        "    hop = subak.LargestWait(number=3)\n", "    def hop(self, port):\n        return Hop()\n"
    )
    (tmp_path / "own.py").write_text(of_its_own)
    both = [{"python": f"{name}.py:Waits", "label": name} for name in ("built_in", "own")]
    more = {"network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}}
    results = run(tmp_path, both, **more)
    assert not results.failed
    assert rows_of(results, "built_in").equals(rows_of(results, "own"))
    notes = results.table("note")["value"].to_numpy()
    assert notes.min() == 0
    assert notes.max() > 10_000


RED = """
import subak

class Marked(subak.Scheme):
    params = {"low": (10e3, "bytes"), "high": (110e3, "bytes"), "most": (0.5, "")}
    queue = subak.Fifo(mark=subak.Red(low="low", high="high", most="most"))

    def source(self, flow):
        return Sender()

class Sender(subak.Source):
    def on_start(self, io):
        io.pace(window=40_000)
    def on_ack(self, io, ack):
        io.note(ecn=ack.ecn)
"""
TWO_INTO_ONE = {
    "workload": {"kind": "steps", "flows": [{"src": f"h{k}", "dst": "h2", "size": "3MB"} for k in (0, 1)]},
    "network": {"kind": "star", "hosts": 3, "link_delay": "1us"},
    "run": {"duration": "8ms"},
}


def test_red_marks_with_its_probability(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RED)
    steep = {"low": 1e6, "high": 2e6}
    both = [
        {"python": "mine.py:Marked", "label": "red"},
        {"python": "mine.py:Marked", "label": "none", "params": steep},
    ]
    results = run(tmp_path, both, **TWO_INTO_ONE)
    assert not results.failed
    share = {name: np.mean(of["value"].to_numpy()) for name in ("red", "none") if (of := _notes(results, name))}
    queues = _rows(results, "red", "queue")
    into = queues.filter(pc.equal(queues["link"], "switch0->h2"))["queued_bytes"].to_numpy()
    expected = 0.5 * (np.median(into) - 10e3) / 100e3
    assert 0.2 < expected < 0.4, np.median(into)
    assert share["red"] == pytest.approx(expected, abs=0.03)
    assert share["none"] == 0


def _rows(results: subak.Results, scheme: str, kind: str) -> Any:
    table = results.table(kind)
    return table.filter(pc.equal(table["scheme"], scheme))


def _notes(results: subak.Results, scheme: str) -> Any:
    return _rows(results, scheme, "note")


FLOOD = """
import subak

class Flood(subak.Scheme):
    queue = subak.Priority()
    lossless = LOSSLESS

    def source(self, flow):
        return Sender(flow)

class Sender(subak.Source):
    def __init__(self, flow):
        self.rate = flow.line_rate_bps
    def on_start(self, io):
        io.pace(rate=self.rate, window=500_000)
"""


@pytest.mark.parametrize(
    ("lossless", "drops"), [("None", True), ("subak.Pfc()", False), ("subak.Pfc(threshold=20_000)", False)]
)
def test_a_lossless_network_does_not_drop(lossless: str, drops: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FLOOD.replace("LOSSLESS", lossless))
    more = {
        "network": {"kind": "star", "hosts": 16, "buffer": "100kB"},
        "workload": {"kind": "incast", "senders": 15, "size": "300kB"},
        "run": {"duration": "2ms"},
    }
    results = run(tmp_path, [{"python": "mine.py:Flood"}], **more)
    assert not results.failed, results.failed
    # Pauses longer than two RTTs cause tail loss probes, which are retransmissions.
    assert (results.table("flow")["drops"].to_numpy().sum() > 0) == drops


HOSTS = """
import subak

class Hosts(subak.Scheme):
    \"\"\"A host divides its link equally between its flows.\"\"\"
    def source(self, flow):
        return Sender()
    def node(self, node):
        return Host(self.capacity) if node.is_host else None
    capacity = 10e9

class Sender(subak.Source):
    def on_start(self, io):
        io.send([1], to="host")
    def on_message(self, io, message, subflow):
        io.pace(rate=message[0])
    def on_finish(self, io):
        io.send([0], to="host")

class Host(subak.Node):
    def __init__(self, capacity):
        self.capacity, self.flows = capacity, set()
    def on_flow(self, io, flow, message):
        (self.flows.add if message[0] else self.flows.discard)(flow)
        for one in sorted(self.flows):
            io.send([0.9 * self.capacity / len(self.flows)], flow=one)
"""


def test_a_host_divides_its_link(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HOSTS)
    flows = [{"src": "h0", "dst": f"h{k}", "size": "4.5MB", "start": f"{(k - 1)}ms"} for k in (1, 2, 3)]
    more = {"workload": {"kind": "steps", "flows": flows}, "run": {"duration": "20ms"}, "measure": {"paces": "100us"}}
    results = run(tmp_path, [{"python": "mine.py:Hosts"}], **more)
    assert not results.failed, results.failed
    paces = results.table("pace").to_pandas()
    said = paces.pivot_table(index="time_ns", columns="flow", values="pace_bps")
    at = {ms: [round(rate / 1e9, 3) for rate in said.loc[ms * 1_000_000 + 500_000].dropna()] for ms in (0, 1, 2)}
    assert at == {0: [9.0], 1: [4.5, 4.5], 2: [3.0, 3.0, 3.0]}
    assert said.max().max() == pytest.approx(9e9)


DROPS = (
    MINE
    + """
class Picky(subak.Node):
    def __init__(self):
        self.seen = 0
        self.held = 0
    def admits(self, io, packet, port):
        self.held += 1
        self.seen += packet.is_data
        return not (packet.is_data and self.seen % 50 == 0)
    def on_leave(self, io, packet, port):
        self.held -= 1
        assert self.held >= 0

Mine.node = lambda self, node: None if node.is_host else Picky()
"""
)


def test_a_node_drops_packets(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DROPS.replace("        self.held += 1\n", "").replace("self.held -= 1", "pass"))
    results = run(tmp_path, [{"python": "mine.py:Mine"}], run={"duration": "2ms"})
    assert not results.failed, results.failed
    flows = results.table("flow").to_pandas()
    sent = flows["size_bytes"].sum() / 1460
    assert flows["retransmissions"].sum() / sent == pytest.approx(0.02, abs=0.01)


CENTRAL = (ROOT / "examples/schemes/central.py").read_text()
FLOWS = [("h0", "h4"), ("h1", "h4"), ("h1", "h5"), ("h2", "h5"), ("h3", "h5")]


def _central(folder: Path, **more: Any) -> Any:
    (folder / "central.py").write_text(CENTRAL)
    flows = [{"src": src, "dst": dst} for src, dst in FLOWS]
    given = {
        "network": {"kind": "star", "hosts": 8},
        "workload": {"kind": "steps", "flows": flows},
        "controller": {"at": "h7"},
        "run": {"duration": "10ms"},
        "measure": {"paces": "100us"},
        **more,
    }
    results = run(folder, [{"python": "central.py:Central"}], **given)
    assert not results.failed, results.failed
    return results.table("pace").to_pandas().pivot_table(index="time_ns", columns="flow", values="pace_bps")


# Max-min at 9 of 10 Gb/s: three flows share the link to h5, two that to h4.
EXPECTED = [4.5e9, 4.5e9, 3e9, 3e9, 3e9]


@pytest.mark.parametrize(
    "fault",
    [
        [],
        [{"kind": "loss", "probability": 0.1, "kinds": ["ctl"]}],
        [{"kind": "restart", "machine": "controller", "at": "3ms"}],
    ],
    ids=["none", "loss", "restart"],
)
def test_a_controller_gives_max_min_rates(fault: list[Any], tmp_path: Path) -> None:
    paces = _central(tmp_path, fault=fault)
    assert paces.iloc[-1].to_list() == pytest.approx(EXPECTED)
    if not fault:
        settled = paces.loc[paces.index > 100_000]
        assert np.allclose(settled, EXPECTED)


def test_a_controller_hears_of_links(tmp_path: Path) -> None:
    faults = [
        {"kind": "capacity", "link": "*->h5", "capacity": "5Gbps", "at": "2ms"},
        {"kind": "down", "link": "h0->*", "down": "4ms", "up": "6ms"},
    ]
    paces = _central(tmp_path, fault=faults)
    at = {ms: paces.loc[ms * 1_000_000].to_list() for ms in (1, 3, 5, 9)}
    assert at[1] == pytest.approx(EXPECTED)
    assert at[3] == pytest.approx([4.5e9, 4.5e9, *[1.5e9] * 3])
    assert at[5][1:] == pytest.approx([7.5e9, *[1.5e9] * 3])
    assert at[9] == pytest.approx(at[3])


REFUSED = [
    (
        "queue = subak.Fifo()\n    lossless = subak.Pfc()",
        "a subak.Fifo cannot be paused; write queue = subak.Priority()",
    ),
    ("lossless = True", "lossless: it is True; give subak.Pfc(...) or None"),
    ("queue = subak.Priority()\n    lossless = subak.Pfc(alpha=-1)", "lossless.alpha: it is -1; give a number from"),
    ("hop = 3", "hop: it is 3; define hop(self, port), or give one of: subak.Telemetry(), subak.LargestWait()"),
    ("hop = subak.LargestWait(number=8)", "hop.number: it is 8; give a number from 0 to 7"),
    (
        "hop = subak.Telemetry()\n    queue = subak.Rank()",
        "hop: subak.Rank reads packet[0], and packets with telemetry",
    ),
    ("hop = subak.Telemetry()\n    def sink(self, flow): pass", "hop: a sink beside subak.Telemetry()"),
    ("queue = subak.Fifo(mark=subak.Red(low=9, high=3))", "queue.mark: low is 9, above high, 3"),
    ("queue = subak.Fifo(mark=subak.Red(low='k', high=3))", 'queue.mark: "k" is no parameter in packets or bytes'),
    (
        "queue = subak.Fifo(mark=subak.Red(low=1, high=3, most=2))",
        "queue.mark.most: it is 2; give a number from 0 to 1",
    ),
]


@pytest.mark.parametrize(("line", "says"), REFUSED)
def test_what_is_refused_before_the_run(line: str, says: str, tmp_path: Path) -> None:
    text = MINE.replace("    def source", f"    {line}\n    def source", 1)
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(subak.InputError, match=re.escape(says)):
        run(tmp_path, [{"python": "mine.py:Mine"}])


TO = "io.send([1], {})"
FAILING = [
    (TO.format("to='controller'"), "the scheme has no controller; define controller(self, network) in the scheme"),
    (TO.format("to='host'"), "the scheme has no state at nodes; define node(self, node) in the scheme"),
    (TO.format("to='moon'"), 'a source cannot send there; leave to away, or give "controller" or "host"'),
    (TO.format("flow=1"), "a source cannot send there"),
    (TO.format("node=0"), "a source cannot send there"),
]


@pytest.mark.parametrize(("body", "says"), FAILING)
def test_messages_to_what_is_not_there(body: str, says: str, tmp_path: Path) -> None:
    said = failed(tmp_path, MINE.replace("io.pace(window=self.bytes)", body))
    assert re.match(r'scheme "mine": on_start of flow \d+ at \d+ ns: ValueError: ', said)
    assert says in said


NODE = """
class There(subak.Node):
    def on_flow(self, io, flow, message):
        BODY
    def on_start(self, io):
        START

Mine.node = lambda self, node: There() if node.is_host else None
"""
AT_NODE = [
    (
        "io.send([1], flow=flow)",
        "pass",
        r"send of (flow|node number) \d+ at \d+ ns: messages that take no time answer each other without end",
    ),
    ("io.pace(rate=1)", "pass", r"on_flow of node number \d+ at \d+ ns: ValueError: only a source sets a pace"),
    ("io.send([1])", "pass", r"on_flow of node number \d+ at \d+ ns: ValueError: a node cannot send there"),
    (
        "io.send([1], flow=flow, subflow=1)",
        "pass",
        r"on_flow of .* the controller has no subflow; write its number into",
    ),
    ("io.note(a=1)", "pass", r"on_flow of node .* a node has no notes"),
    ("pass", "io.timer(0, 5)", r"on_start of node number \d+ at 0 ns: ValueError: a timer without a hook"),
    ("pass", "1 / 0", r"on_start of node number \d+ at 0 ns: ZeroDivisionError"),
]


@pytest.mark.parametrize(("body", "start", "says"), AT_NODE)
def test_a_fault_of_a_node(body: str, start: str, says: str, tmp_path: Path) -> None:
    answering = "        io.send([1], to='host')\n"
    answering += "    def on_message(self, io, message, subflow):\n        io.send([1], to='host')"
    text = MINE.replace("        io.pace(window=self.bytes)", answering)
    said = failed(tmp_path, text + NODE.replace("BODY", body).replace("START", start))
    assert re.match(r'scheme "mine": ' + says, said), said


CONTROLLER = """
class There(subak.Controller):
    def on_start(self, io):
        START
    def on_flow(self, io, flow, message):
        BODY

Mine.controller = lambda self, network: MADE
"""
AT_CONTROLLER = [
    (
        "io.send([1], node=3)",
        "pass",
        "There()",
        r"on_flow of the controller at \d+ ns: ValueError: the scheme has no state",
    ),
    ("io.send([1])", "pass", "There()", r"on_flow of the controller at \d+ ns: ValueError: the controller cannot send"),
    ("io.send([1], flow=10**9); 1 / 0", "pass", "There()", r"on_flow of the controller at \d+ ns: ZeroDivisionError"),
    ("pass", "io.pause('low', True)", "There()", r"on_start of the controller at 0 ns: ValueError: only a hop pauses"),
    ("pass", "pass", "None", r"controller of the controller at 0 ns: controller returned None; return the controller"),
    ("pass", "pass", "subak.Node()", r"controller of the controller at 0 ns: Node has admits, which a controller does"),
]


@pytest.mark.parametrize(("body", "start", "made", "says"), AT_CONTROLLER)
def test_a_fault_of_a_controller(body: str, start: str, made: str, says: str, tmp_path: Path) -> None:
    text = MINE.replace("io.pace(window=self.bytes)", "io.send([1], to='controller')")
    text += CONTROLLER.replace("BODY", body).replace("START", start).replace("MADE", made)
    (tmp_path / "mine.py").write_text(text)
    results = run(tmp_path, [{"python": "mine.py:Mine"}, {"name": "reno"}], controller={"at": "h0"})
    assert list(results.failed) == [0]
    assert re.match(r'scheme "mine": ' + says, str(results.failed[0])), results.failed[0]


HOP_BESIDE_NODE = """
class Hop(subak.Hop):
    def on_dequeue(self, io, packet, port):
        io.note(asked=1)
        io.timer(0, io.now_ns + 100)
    def on_timer(self, io, timer, port):
        io.note(heard=1)

class Beside(subak.Node):
    def on_timer(self, io, timer):
        assert 0, "a timer of the hop"
    def admits(self, io, packet, port):
        pass

Mine.hop = lambda self, port: Hop()
Mine.node = lambda self, node: Beside()
"""


def test_requests_of_a_hop_beside_a_node_are_the_hops(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE + HOP_BESIDE_NODE)
    results = run(tmp_path, [{"python": "mine.py:Mine"}], run={"duration": "1ms"})
    assert not results.failed, results.failed
    notes = results.table("note").to_pandas().groupby("name")["link"]
    # The run ends before the last timers.
    assert 0 <= notes.count()["asked"] - notes.count()["heard"] < 5
    assert notes.count()["asked"] > 100
    assert notes.nunique()["heard"] == notes.nunique()["asked"]


ANSWERED = """
class Answering(subak.Controller):
    def on_flow(self, io, flow, message):
        io.send([1], flow=flow)

Mine.controller = lambda self, network: Answering()
"""


def test_a_flow_at_the_controllers_host_that_answers_for_ever(tmp_path: Path) -> None:
    body = (
        "io.send([1], to='controller')\n    def on_message(self, io, message, subflow): io.send([1], to='controller')"
    )
    (tmp_path / "mine.py").write_text(MINE.replace("io.pace(window=self.bytes)", body) + ANSWERED)
    flows = [{"src": "h0", "dst": "h1", "size": "10kB"}]
    more = {"workload": {"kind": "steps", "flows": flows}, "controller": {"at": "h0"}}
    results = run(tmp_path, [{"python": "mine.py:Mine"}, {"name": "reno"}], **more)
    assert list(results.failed) == [0]
    assert "send of flow 0 at 0 ns: messages that take no time answer each other without end" in str(results.failed[0])


def test_a_restarted_controller_knows_what_changed(tmp_path: Path) -> None:
    faults = [
        {"kind": "capacity", "link": "*->h5", "capacity": "5Gbps", "at": "2ms"},
        {"kind": "down", "link": "h0->*", "down": "3ms", "up": "7ms"},
        {"kind": "restart", "machine": "controller", "at": "4ms"},
    ]
    paces = _central(tmp_path, fault=faults)
    assert paces.loc[6_000_000].to_list()[1:] == pytest.approx([7.5e9, *[1.5e9] * 3])
    assert paces.loc[9_000_000].to_list() == pytest.approx([4.5e9, 4.5e9, *[1.5e9] * 3])


ELSEWHERE = [
    ("node.is_host", "io.send([1], flow=0)", "", "it writes to flow 0, which starts at another host"),
    ("node.is_host", "io.send([1], flow=999)", "", "there is no flow 999"),
    ("not node.is_host", "pass", "io.send([1], to='host')", "the flow's host has no state"),
]


@pytest.mark.parametrize(("where", "timer", "start", "says"), ELSEWHERE)
def test_messages_without_a_way(where: str, timer: str, start: str, says: str, tmp_path: Path) -> None:
    text = MINE.replace("io.pace(window=self.bytes)", f"io.pace(window=self.bytes); {start}")
    text += f"""
class Writing(subak.Node):
    def on_start(self, io):
        io.timer(0, 500_000)
    def on_timer(self, io, timer):
        {timer}

Mine.node = lambda self, node: Writing() if {where} else None
"""
    (tmp_path / "mine.py").write_text(text)
    results = run(tmp_path, [{"python": "mine.py:Mine"}], workload={"kind": "permutation"})
    assert says in str(results.failed[0])


IGNORED = [
    ("Mine.node = lambda self, node: 0", "node returned 0, which has no hook"),
    ("Mine.node = lambda self, node: (1, 2)", r"node returned (1, 2), which has no hook"),
    ("Mine.hop = lambda self, port: 'h'", "hop returned 'h', which has no hook"),
    ("Mine.sink = lambda self, flow: 3", "sink returned 3, which has no hook"),
    (
        "class N(subak.Node):\n    def admit(self, io, packet, port): pass\nMine.node = lambda self, node: N()",
        '"admits"?',
    ),
    (
        "class N(subak.Node):\n    def admits(self, io, packet, port): pass\n"
        "Mine.node = lambda self, node: N()\nMine.hop = subak.Telemetry()",
        "N has admits or on_leave, and nodes do not see packets with telemetry",
    ),
    ("class N(subak.Node):\n    def __init__(self, node): 1 / 0\nMine.node = N", "ZeroDivisionError"),
    (
        "class N(subak.Node):\n    def __init__(self): self.on_start = self.go\n    def go(self, io): 1 / 0\n"
        "Mine.node = lambda self, node: N()",
        "on_start of node number 0 at 0 ns: ZeroDivisionError",
    ),
    ("Mine.check = lambda self: setattr(self, 'hop', lambda port: 1 / 0)", "ZeroDivisionError"),
]


@pytest.mark.parametrize(("more", "says"), IGNORED)
def test_nothing_that_a_scheme_gives_is_ignored(more: str, says: str, tmp_path: Path) -> None:
    assert says in failed(tmp_path, MINE + "\n" + more + "\n")


def test_a_controller_needs_its_place(tmp_path: Path) -> None:
    (tmp_path / "central.py").write_text(CENTRAL)
    with pytest.raises(
        subak.InputError, match='scheme "central" has a central controller, and the spec does not place'
    ):
        run(tmp_path, [{"python": "central.py:Central"}])


def test_stamp_has_no_numbers_beside_telemetry(tmp_path: Path) -> None:
    text = MINE.replace("    def source", "    hop = subak.Telemetry()\n    def source", 1)
    said = failed(tmp_path, text + "    def stamp(self, now_ns, packet, remaining_bytes): packet[0] = 1\n")
    assert "source of flow 0 at 0 ns: Sender has stamp, and packets with telemetry have no numbers" in said


def test_records_of_links_can_be_read(tmp_path: Path) -> None:
    text = MINE.replace("    def source", "    hop = subak.Telemetry()\n    def source", 1)
    text += "    def on_ack(self, io, ack): assert 0, ack.telemetry\n"
    said = failed(tmp_path, text)
    assert re.search(
        r"AssertionError: \(LinkRecord\(at_ns=\d+, bytes_per_ns=1.25, queued_bytes=\d+, sent_bytes=\d+\),\)", said
    )


@pytest.mark.parametrize("one", list(itertools.product(["Priority", "Fifo"], ["hop = subak.LargestWait()", "pass"])))
def test_the_same_bytes_twice(one: tuple[str, str], tmp_path: Path) -> None:
    text = RED.replace("subak.Fifo", f"subak.{one[0]}").replace("    def source", f"    {one[1]}\n    def source", 1)
    (tmp_path / "mine.py").write_text(text)
    both = [{"python": "mine.py:Marked", "label": name} for name in ("a", "b")]
    results = run(tmp_path, both, run={"duration": "1ms"})
    assert rows_of(results, "a").equals(rows_of(results, "b"))
