"""Faults of schemes of users in Python: each ends its own trial, or is refused, with a clear message."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import subak
from own_schemes import HOP, MINE, failed, hooked, run, spec, written

# Failing trials are the subject of these tests.
pytestmark = pytest.mark.filterwarnings("ignore::subak.InputWarning")


FAILING = [
    ("1 / 0", r"ZeroDivisionError: division by zero \(mine.py, line 14\)"),
    ("io.pace(rate=float('nan'))", r"ValueError: the rate is not a number; give bit/s .* \(mine.py, line 14\)"),
    ("io.pace(rate=-1)", r"the rate is -1; give bit/s on the wire, 0 or more"),
    ("io.pace(window=-1e9)", r"the window is -1000000000; give payload bytes, 0 or more"),
    ("io.pace(subflow=1)", r"there is no subflow 1; the flow has one subflow, number 0"),
    ("io.pace(subflow=-1)", r"there is no subflow -1"),
    ("io.pace(subflow=10**30)", r"OverflowError"),
    ("io.pace(window='much')", r"TypeError"),
    ("io.pace(windw=3)", r"TypeError: .*windw"),
    ("io.pace(self.bytes)", r"TypeError: .*positional argument"),
    ("io.timer(0, io.now_ns - 1)", r"the timer is at -?\d+ ns, and now is \d+ ns; give a time from now on"),
    ("io.timer(0, float('nan'))", r"the timer is at NaN ns"),
    ("io.send([0] * 9)", r"there are 8 numbers; count them from 0 to 7"),
    ("io.send([1], bytes=0)", r"a message has 0 bytes"),
    ("io.send([1], class_='loud')", r'class "loud"; give "control", "high" or "low"'),
    (
        "io.send(['a'])",
        r"TypeError: the message has 'a'; give up to 8 numbers, such as \[1.5, 0\] \(mine.py",
    ),
    ("io.send(3)", r"TypeError: the message has 3; give up to 8 numbers"),
    ("io.timer(0, io.now_ns)", r"ValueError: a timer without a hook; define on_timer \(mine.py, line 14\)"),
    ("return 3", r"TypeError: on_start returned 3; return nothing, and set rates and windows with io.pace"),
    ("yield", r"TypeError: on_start returned <generator .*; return nothing"),
    ("io.pause('low', True)", r"only a hop pauses a class"),
    ("raise SystemExit(3)", r"SystemExit: 3"),
    ("raise KeyboardInterrupt", r"KeyboardInterrupt"),
    ("def f(): f()\n        f()", r"RecursionError"),
    ("import helper", r"No module named 'helper'"),
    ("io.note(a=float('nan'))", r"ValueError: the note a is not a number; give a finite number \(mine.py, line 14\)"),
    ("io.note(a=-float('inf'))", r"ValueError: the note a is -inf; give a finite number"),
    ("io.note(b=1, a='x')", r"TypeError: the note a is 'x'; give a finite number \(mine.py, line 14\)"),
    ("io.note(a=None)", r"TypeError: the note a is None; give a finite number"),
    ("io.note(a=10**400)", r"TypeError: the note a is 10{59}; give a finite number"),
    ("io.note()", r"TypeError: a note without a value; name one, as in io.note\(alpha=0.5\)"),
    ("io.note(0.5)", r"TypeError: .*positional argument"),
    ("io.note(**{'a b': 1})", r'ValueError: a note is named "a b"; use letters, digits and _, and no digit first'),
    ("io.note(subflow=1, a=1)", r"there is no subflow 1; the flow has one subflow, number 0"),
    ("for i in range(1001): io.note(**{f'x{i}': i})", r'than 1000 names, the last "x1000"; give what changes as'),
    ("while True: io.note(a=1)", r"ValueError: more than 10000 notes in one hook; note less often"),
]


@pytest.mark.parametrize(("body", "says"), FAILING)
def test_a_fault_ends_its_trial_in_words(body: str, says: str, tmp_path: Path) -> None:
    said = failed(tmp_path, hooked(body))
    assert re.match(r'scheme "mine": on_start of flow \d+ at \d+ ns: ' + ".*" + says, said, re.DOTALL), said


@pytest.mark.parametrize(
    ("hook", "body", "says"),
    [
        ("stamp(self, now_ns, packet, left)", "packet[8] = 1", r"stamp of flow \d+ at \d+ ns: IndexError: there are 8"),
        ("stamp(self, now_ns, packet, left)", "packet.bytes = 1", r"stamp of flow \d+ at \d+ ns: AttributeError"),
        ("stamp(self, now_ns, packet, left)", "return packet", r"stamp of flow \d+ at \d+ ns: .* returned Packet\("),
        ("stamp(self, now_ns, packet, left)", "packet.class_ = 'x'", r"stamp of flow \d+ at \d+ ns: ValueError: class"),
        (
            "on_ack(self, io, ack)",
            "ack.rtt",
            r"on_ack of flow \d+ at \d+ ns: AttributeError: .*'rtt'; did you mean \"rtt_ns\"\? \(mine.py, line 14\)",
        ),
        (
            "on_ack(self, io, ack)",
            "ack.delay",
            r"on_ack of .* 'delay'; there are acked_bytes, data, ecn, ",
        ),
        (
            "on_ack(self, io, ack)",
            "assert 0, ack",
            r"on_ack of .* Ack\(acked_bytes=\d+, data=\(0.0, .*, subflow=0, telemetry=None\) ",
        ),
        ("on_ack(self, *rest)", "assert 0, len(rest)", r"on_ack of .* AssertionError: 2 "),
        (
            "on_ack(self, io)",
            "pass",
            r"source of flow \d+ at 0 ns: Sender.on_ack takes \(io\), without self \(mine.py, line 13\); "
            r"write def on_ack\(self, io, ack\)",
        ),
        ("on_ack(self, io, ack: int, more: int)", "pass", r"source of flow \d+ .* takes \(io, ack, more\)"),
        ("on_acks(self, io, ack)", "pass", r'source of flow \d+ at 0 ns: Sender has a hook on_acks, .*mean "on_ack"'),
        ("on_finish(self, io)", "io.nothing", r"on_finish of flow \d+ at \d+ ns: AttributeError"),
    ],
)
def test_a_fault_of_any_hook(hook: str, body: str, says: str, tmp_path: Path) -> None:
    said = failed(tmp_path, hooked(body, hook))
    assert re.match(r'scheme "mine": ' + says, said), said


def test_a_fault_of_source_itself(tmp_path: Path) -> None:
    said = failed(tmp_path, MINE.replace("return Sender(self, flow)", "return None"))
    assert "source of flow 0 at 0 ns: source returned None; return the sender of the flow" in said
    said = failed(tmp_path, MINE.replace("return Sender(self, flow)", "return Sender"))
    assert "source of flow 0 at 0 ns: source returned the class Sender; return an object, such as Sender()" in said
    said = failed(tmp_path, MINE.replace("def on_start(self, io)", "def begin(self, io)"))
    assert "Sender has no on_start, and a source sends nothing before its first io.pace; define on_start" in said
    said = failed(tmp_path, MINE.replace("return Sender(self, flow)", "return Sender(self, flw)"))
    assert "NameError: name 'flw' is not defined" in said
    assert "(mine.py, line 8)" in said


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("io.pace(rate=1e9)", "only a source sets a pace"),
        ("io.send([1])", "a hop sends no message"),
        ("io.note(subflow=0, a=1)", "a hop has no subflows; leave subflow away"),
        ("io.note(a=float('nan'))", "the note a is not a number; give a finite number (mine.py, line 18)"),
        ("packet.class_ = 'high'", "the class of a packet is set in stamp alone"),
        ("port.link.name", "AttributeError"),
    ],
)
def test_a_fault_of_a_hop(body: str, says: str, tmp_path: Path) -> None:
    said = failed(tmp_path, HOP.replace("BODY", body))
    assert re.match(r'scheme "mine": on_enqueue of link number \d+ at \d+ ns: ', said), said
    assert says in said


def test_a_fault_of_a_sink(tmp_path: Path) -> None:
    sink = HOP.replace("subak.Hop", "subak.Sink").replace("Mine.hop", "Mine.sink").replace("port)", "packet)")
    sink = sink.replace("on_enqueue(self, io, packet, packet)", "on_data(self, io, packet)")
    said = failed(tmp_path, sink.replace("BODY", "return 3"))
    assert re.match(
        r'scheme "mine": on_data of the receiver of flow \d+ at \d+ ns: TypeError: on_data returned 3', said
    )
    assert "a receiver marks no packet" in failed(tmp_path, sink.replace("BODY", "packet.ecn = True"))


def test_timers_that_stand_still(tmp_path: Path) -> None:
    text = hooked("io.timer(0, io.now_ns)", "on_timer(self, io, timer)").replace("io.pace()", "io.timer(0, io.now_ns)")
    said = failed(tmp_path, text)
    assert re.match(r'scheme "mine": on_timer of flow \d+ at \d+ ns: 10000 timers came due at the same time', said)


@pytest.mark.parametrize(
    "body", ["while True: pass", "try:\n            while True: pass\n        except Exception: pass"]
)
def test_a_hook_without_end(body: str, tmp_path: Path) -> None:
    said = failed(tmp_path, hooked(body), hook_time="300ms")
    assert re.match(r'scheme "mine": on_start of flow 0 at \d+ ns: .*more than 0.3 s \(hook_time\)', said), said
    assert "(mine.py, line 1" in said


def test_an_endless_flow_without_bounds(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(hooked("io.pace()"))
    results = run(tmp_path, [{"python": "mine.py:Mine"}, {"name": "reno"}], workload={"kind": "permutation"})
    assert list(results.failed) == [0]
    said = str(results.failed[0])
    assert re.match(r'scheme "mine": pace of flow \d+ at \d+ ns: a GiB is in flight; give a rate or', said), said


def test_an_endless_hook_ends_at_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(hooked("open('begun', 'w').close()\n        while True: pass"))
    (tmp_path / "spec.json").write_text(json.dumps(spec([{"python": "mine.py:Mine"}])))
    code = "import subak; subak.run('spec.json', 'out', jobs=1, progress=False)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        while not (tmp_path / "begun").exists():
            assert run.poll() is None
            time.sleep(0.05)
        sent = time.monotonic()
        run.send_signal(signal.SIGINT)
        said = run.stderr.read() if run.stderr else ""
    assert "KeyboardInterrupt" in said
    assert time.monotonic() - sent < 5


HELD = [
    ("io.pace(rate=0)", 5),
    ("pass", 5),
    ("io.pace(rate=0) if io.random() < 2 else None", 5),
    (
        "io.pace(rate=0)\n        io.timer(0, io.now_ns + 10**12)\n    def on_timer(self, io, timer):\n        pass",
        None,
    ),
    ("io.pace(rate=1)", None),
    ("io.pace(window=0)", None),  # One packet is always allowed.
]


@pytest.mark.parametrize(("body", "flows"), HELD)
def test_flows_that_are_held_for_ever_are_told(body: str, flows: int | None, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(hooked(body))
    results = run(
        tmp_path,
        [{"python": "mine.py:Mine"}, {"name": "reno"}],
        workload={"kind": "incast", "senders": 5, "size": "20kB"},
        run={"duration": "1ms", "drain": "1ms"},
    )
    assert not results.failed
    said = [one["text"] for one in results.warnings if one["kind"] == "held"]
    if flows is None:
        assert not said
    else:
        assert said == [f"{flows} flows were held for ever by their scheme: no rate, nothing in flight, no timer"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('(20, "packets")', '(20, "pakets")', "params.window: unknown unit 'pakets'"),
        ('(20, "packets")', "20", "params.window: it is 20; give default and unit"),
        ('(20, "packets")', '(-1, "packets")', "params.window"),
        ('"window": (20', '"queue": (20', "params.queue: the class has an attribute of that name"),
        ("def source", "def sorce", "Mine: the class has no source"),
        (
            "def source(self, flow):",
            "queu = 3\n    def source(self, flow):",
            'Mine: unknown attribute "queu"; did you mean "queue"?',
        ),
        (
            "def source(self, flow):",
            "def on_ack(self, io, ack): pass\n    def source(self, flow):",
            "hook on_ack, which only machines have; define it in the class that source() returns",
        ),
        (
            "def source(self, flow):",
            "def on_timer(self, io, timer): pass\n    def source(self, flow):",
            "in the class that source() or hop() or sink() or node() or controller() returns",
        ),
        (
            "def source(self, flow):",
            "def check(self): return self.window > 0\n    def source(self, flow):",
            'check: Mine.check returned True; raise ValueError("what is wrong") to refuse parameters',
        ),
        (
            "class Mine(subak.Scheme)",
            "class Mine",
            "Mine: the class is not derived from subak.Scheme; write class ",
        ),
        (
            "def source(self, flow):",
            "queue = 3\n    def source(self, flow):",
            "queue: it is 3; give one of: subak.Fifo",
        ),
        ("def source(self, flow):", "header_bytes = -1\n    def source(self, flow):", "header_bytes: it is -1"),
        ("def source(self, flow):", "goal = 'maxmin'\n    def source(self, flow):", 'did you mean "max-min"?'),
        ("def source(self, flow):", "node = 3\n    def source(self, flow):", "it is 3; define node(self, node)"),
        (
            "def source(self, flow):",
            "def check(self): 1/0\n    def source(self, flow):",
            "Mine refuses them: ZeroDivisionError",
        ),
        (
            "def source(self, flow):",
            "queue = subak.Fifo(mark='j')\n    def source(self, flow):",
            'queue.mark: "j" is no parameter',
        ),
        (
            "import subak",
            "import subak\n1 / 0",
            "it cannot be loaded: ZeroDivisionError: division by zero (mine.py, line 3)",
        ),
        ("import subak", "import subak\n)", "it cannot be loaded: SyntaxError: unmatched ')' (mine.py, line 3)"),
        ("class Mine(", "class Other(", "there is no scheme Mine in it; choose one of: Other"),
        ("import subak", "import subak, helper", 'which files does not list; write files = ["helper.py"]'),
    ],
)
def test_what_is_refused_as_the_spec_is_read(old: str, new: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("x = 3\n")
    assert MINE.replace(old, new) != MINE
    with pytest.raises(subak.InputError) as refused:
        written(tmp_path, MINE.replace(old, new))
    assert says in str(refused.value)
    assert not str(refused.value).count("report this")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"python": "mine.py"}, 'python: "mine.py" names no class; write FILE:CLASS'),
        ({"python": "yours.py:Mine"}, "yours.py: cannot be read"),
        ({"python": "mine.py:Mine", "name": "a/b"}, 'name: "a/b" is no name of a scheme'),
        ({"python": "mine.py:Mine", "name": "dctcp"}, 'Subak has a scheme called "dctcp" already'),
        ({"python": "mine.py:Mine", "backend": "fluid"}, 'the backend "fluid" does not run a scheme from outside'),
        ({"python": "mine.py:Mine", "transport": "swift"}, "a scheme of your own has no optimizer"),
        ({"name": "dctcp", "files": ["a.py"]}, "files: it goes with python alone"),
        ({"name": "dctcp", "hook_time": "1s"}, "hook_time: it goes with python alone"),
        ({"pyton": "mine.py:Mine"}, 'did you mean "python"?'),
    ],
)
def test_keys_of_the_table(table: dict[str, Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    with pytest.raises(subak.InputError) as refused:
        run(tmp_path, [table])
    assert says in str(refused.value)
