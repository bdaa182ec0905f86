"""Schemes of users in Python: copies of built-in schemes have the same results, and errors have a clear message."""

from __future__ import annotations

import inspect
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import subak
from conftest import ROOT
from own_schemes import MINE, TEMPLATES, WHERE, rows_of, run, spec
from subak.outside import loading

# Failing trials are the subject of these tests.
pytestmark = pytest.mark.filterwarnings("ignore::subak.InputWarning")


@pytest.mark.parametrize("name", ["dctcp", "rcp"])
@pytest.mark.parametrize("where", range(len(WHERE)))
def test_ours_in_python_equal_ours(name: str, where: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text((TEMPLATES / f"{name}.py").read_text())
    own = {"name": "mine", "python": f"mine.py:{name.capitalize()}"}
    results = run(tmp_path, [{"name": name}, own], **WHERE[where])
    assert not results.failed
    assert rows_of(results, name).num_rows > 30
    assert rows_of(results, name).equals(rows_of(results, "mine"))
    trials = json.loads((tmp_path / "out/manifest.json").read_text())["trials"]
    counts = {t["scheme"]: (t["events"], t["packet_hops"]) for t in trials}
    assert counts[name] == counts["mine"]


def written(folder: Path, text: str = MINE, **more: Any) -> subak.Results:
    (folder / "mine.py").write_text(text)
    return run(folder, [{"python": "mine.py:Mine"} | more, {"name": "reno"}])


def test_parameters_are_swept_and_named(tmp_path: Path) -> None:
    results = written(tmp_path, params={"window": [2, 20], "word": "b"})
    assert not results.failed
    labels = results.table().column("scheme").unique().to_pylist()
    assert labels == ["mine window=2", "mine window=20", "reno"]
    assert not rows_of(results, "mine window=2").equals(rows_of(results, "mine window=20"))


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"windo": 3}, 'params.windo: scheme "mine" has no parameter "windo"; did you mean "window"?'),
        ({"window": "3 cows"}, "params.window"),
        ({"word": "c"}, 'params.word: unknown choice "c"'),
    ],
)
def test_parameters_are_checked(params: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(subak.InputError, match=re.escape(says)):
        written(tmp_path, params=params)


def failed(folder: Path, text: str, **more: Any) -> str:
    """Error of the failed trial; the trial of the built-in scheme is kept."""
    results = written(folder, text, **more)
    assert list(results.failed) == [0]
    assert rows_of(results, "reno").num_rows == 0 or not results.failed.get(1)
    assert (folder / "out/trials/1.parquet").exists()
    said = str(results.failed[0])
    assert "defect" not in said
    assert "panic" not in said
    return said


def hooked(body: str, hook: str = "on_start(self, io)") -> str:
    return MINE.replace("    def on_start(self, io):\n        io.pace(window=self.bytes)\n", "") + (
        f"    def {hook}:\n        {body}\n" + ("" if "on_start" in hook else "    def on_start(self, io): io.pace()\n")
    )


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
        ("on_ack(self, io, ack)", "assert 0, ack", r"on_ack of .* Ack\(acked_bytes=\d+, data=\(0.0, .*, subflow=0\) "),
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


HOP = (
    MINE
    + """
class Hop(subak.Hop):
    def on_enqueue(self, io, packet, port):
        BODY

Mine.hop = lambda self, port: Hop()
"""
)


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
            "in the class that source() or hop() or sink() returns",
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
        ("def source(self, flow):", "controller = 3\n    def source(self, flow):", "controller is not there yet"),
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


def test_its_text_is_in_the_identity(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(spec([{"python": "mine.py:Mine", "files": ["part.py"]}])))

    def rerun() -> subak.Results:
        return subak.run(tmp_path / "spec.json", tmp_path / "out", jobs=1, progress=False)

    text = MINE.replace("import subak\n", "import subak\nimport part\n").replace("scheme.window", "part.packets()")
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "part.py").write_text("def packets(): return 2\n")
    first = rerun().table()
    (tmp_path / "part.py").write_text("def packets(): return 20\n")
    with pytest.raises(subak.InputError, match="results of another spec"):
        rerun()
    (tmp_path / "part.py").write_text("def packets(): return 2\n")
    assert rerun().table().equals(first)
    (tmp_path / "mine.py").write_text(text + "# as before, but for this\n")
    with pytest.raises(subak.InputError, match="results of another spec"):
        rerun()


def test_no_state_is_left_for_the_next_trial(tmp_path: Path) -> None:
    text = MINE.replace("class Sender", "seen = []\n\nclass Sender").replace(
        "        io.pace(window=self.bytes)", "        seen.append(1)\n        io.pace(window=1000 * len(seen))"
    )
    (tmp_path / "mine.py").write_text(text)
    two = [{"python": "mine.py:Mine", "label": "a"}, {"python": "mine.py:Mine", "label": "b"}]
    results = run(tmp_path, two)
    assert rows_of(results, "a").equals(rows_of(results, "b"))


class InHere(subak.Scheme):
    """A scheme's class that is defined in the program itself, as in a notebook."""

    params = {"window": (20, "packets")}  # noqa: RUF012

    def source(self, flow: Any) -> subak.Source:
        return Steady(self.window * flow.mss_bytes)  # type: ignore[attr-defined]


class Steady(subak.Source):
    def __init__(self, size: float) -> None:
        self.size = size

    def on_start(self, io: Any) -> None:
        io.pace(window=self.size)


def test_a_class_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    run(tmp_path, [{"name": "mine", "python": "mine.py:Mine"}])
    of_file = subak.Results(tmp_path / "out").table()
    given = subak.run(
        spec([{"name": "mine"}]), tmp_path / "given", schemes={"mine": InHere}, jobs=1, progress=False
    ).table()
    assert given.equals(of_file)


def test_classes_that_nobody_asks_for(tmp_path: Path) -> None:
    with pytest.raises(subak.InputError, match=r"schemes\.mine: no \[\[scheme\]\] of the spec has the name"):
        subak.run(spec([{"name": "dctcp"}]), tmp_path, schemes={"mine": InHere})
    with pytest.raises(subak.InputError, match=r"schemes\.mine"):
        subak.run(spec([{"name": "mine"}]), tmp_path, schemes={"mine": 3})  # type: ignore[dict-item]


def test_a_class_without_methods(tmp_path: Path) -> None:
    class Empty(subak.Scheme):
        pass

    given = spec([{"name": "empty"}])
    with pytest.raises(subak.InputError, match=r"schemes.empty: Empty defines no method; define source\(self, flow\)"):
        subak.run(given, tmp_path / "out", schemes={"empty": Empty})


def test_the_page_has_each_hook_with_its_arguments() -> None:
    page = (ROOT / "docs/writing.md").read_text()
    for kind, names in loading.HOOKS.items():
        for name in names:
            arguments = list(inspect.signature(getattr(loading.BASES[kind], name)).parameters)[1:]
            assert f"`{name}({', '.join(arguments)})`" in page
    assert all(f"`{word}`" in page for word in loading.GOALS)


def test_a_class_of_a_notebook(tmp_path: Path) -> None:

    program = f"""
import math
import subak
FACTOR = 20
def size(flow):
    return math.floor(FACTOR) * flow.mss_bytes
{MINE.replace("import subak", "").replace("scheme.window * flow.mss_bytes", "size(flow)")}
print(subak.run({spec([{"name": "mine"}])!r}, "out", schemes={{"mine": Mine}}, progress=False).failed)
"""
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("{}\n", "")
    (tmp_path / "mine.py").write_text(MINE)
    run(tmp_path / ".", [{"name": "mine", "python": "mine.py:Mine"}])
    assert subak.Results(tmp_path / "out").table().num_rows > 0


POWERTCP_WHERE: list[dict[str, Any]] = [
    {},
    {"workload": {"kind": "incast", "senders": 7, "size": "100kB", "interval": "2us"}},
    {"network": {"kind": "dumbbell", "pairs": 4, "host_rate": "10Gbps", "bottleneck_rate": "10Gbps"}},
    {"fault": [{"kind": "loss", "probability": 0.01}]},
]


@pytest.mark.parametrize("more", POWERTCP_WHERE, ids=["star", "incast", "two switches", "loss"])
def test_powertcp_in_python_equals_ours(more: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "powertcp.py").write_text((ROOT / "examples/schemes/powertcp.py").read_text())
    ours = {"name": "powertcp", "params": {"pfc": "off", "recovery": "selective"}}
    results = run(tmp_path, [ours, {"name": "mine", "python": "powertcp.py:PowerTcp"}], **more)
    assert not results.failed, results.failed
    assert rows_of(results, "mine").num_rows > 100
    assert rows_of(results, "mine").equals(rows_of(results, "powertcp"))


def test_two_hash_seeds_give_the_same_bytes(tmp_path: Path) -> None:

    (tmp_path / "mine.py").write_text((TEMPLATES / "rcp.py").read_text())
    (tmp_path / "spec.json").write_text(json.dumps(spec([{"name": "mine", "python": "mine.py:Rcp"}])))
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "subak", "run", "spec.json", "--out", f"out{seed}"]
        subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, timeout=120)
    one, other = ((tmp_path / f"out{seed}/results.parquet").read_bytes() for seed in ("1", "2"))
    assert one == other


QUEUES = [
    "Fifo()",
    "Priority()",
    "Rank()",
    "Stfq()",
    "FairCodel()",
    "FairCodel(target=0, interval=0, bins=4, quantum=0)",
]


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_by_name(queue: str, tmp_path: Path) -> None:
    stamp = "    def stamp(self, now_ns, packet, left):\n        packet[0] = left or 0\n"
    text = MINE.replace("    def source", f"    queue = subak.{queue}\n    def source") + stamp
    results = written(tmp_path, text)
    assert not results.failed
    flows = rows_of(results, "mine").filter(pc.equal(rows_of(results, "mine")["kind"], "flow"))
    assert flows.num_rows > 5


ODD = ["None", "0", "-1", "1e308", "float('inf')", "float('nan')", "2**63", "2**64", "10**400", "'x'", "[]", "b''"]
ODD += ["True", "0.5", "io", "object()", "{}", "-0.0", "5e-324", "65535", "255", "256", "'low'"]
CALLS = ["io.pace(rate=A, window=B, subflow=C)", "io.pace(window=A, subflow=B)"]
CALLS += ["io.timer(A, B)", "io.timer(0, io.now_ns + 1000)"]
CALLS += ["io.send(A, B, C)", "io.send([A, B], class_=C)", "io.pause(A, B)", "return A", "packet[A] = B"]
CALLS += ["packet.ecn = A", "packet.class_ = A", "io.now_ns = A", "packet[A]", "io.random()", "ack[A]", "del packet[0]"]
HOOKS = {
    "Sender(subak.Source)": """on_start(self, io); on_ack(self, io, ack); on_timer(self, io, timer)
        on_loss(self, io, loss); on_message(self, io, packet, k); on_finish(self, io)""",
    "Link(subak.Hop)": """on_start(self, io); on_enqueue(self, io, packet, port); on_dequeue(self, io, packet, port)
        on_message(self, io, packet, visit, port); on_timer(self, io, timer, port)""",
    "End(subak.Sink)": "on_data(self, io, packet); on_message(self, io, packet, k); on_timer(self, io, timer)",
}


def nonsense(seed: int) -> str:
    """Source of a scheme that makes random calls, and continues if a call is refused."""
    draw = random.Random(seed)
    lines = ["import subak", "class Mine(subak.Scheme):", "    def source(self, flow): return Sender()"]
    lines += ["    def hop(self, port): return Link()", "    def sink(self, flow): return End()"]
    for machine, hooks in HOOKS.items():
        lines.append(f"class {machine}:")
        for hook in re.findall(r"on_\w+\(.*?\)", hooks):
            body = [draw.choice(CALLS) for _ in range(draw.randint(1, 3))]
            body = [re.sub(r"\b[ABC]\b", lambda _: draw.choice(ODD), line) for line in body]
            kept = [f"        try: {line}\n        except Exception: pass" for line in body if "return" not in line]
            first = ["        io.pace(window=30000)"] if "on_start" in hook and "Sender" in machine else []
            last = draw.choice(["return None"] * 60 + body)
            lines += [f"    def {hook}:", *first, *kept, f"        {last}"]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(40))
def test_nonsense_is_refused_in_words_or_carried_out(seed: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(nonsense(seed))
    workload = {"kind": "incast", "senders": 4, "size": "50kB"}
    results = run(tmp_path, [{"python": "mine.py:Mine"}], workload=workload, run={"duration": "1ms", "drain": "1ms"})
    for said in results.failed.values():
        assert re.match(r'scheme "mine": \w+ of (flow|link number|the receiver of flow) \d+ at \d+ ns: ', str(said)), (
            said
        )
        assert "Panic" not in str(said)
        assert "defect" not in str(said)


def test_processes_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("io.pace(", "print('said'); io.pace("))
    several = {"run": {"duration": "1ms", "seeds": 2}}
    text = json.dumps(spec([{"python": "mine.py:Mine"}, {"name": "reno"}], **several))
    (tmp_path / "spec.json").write_text(text)
    one, two = (
        subak.run(tmp_path / "spec.json", tmp_path / name, jobs=jobs, progress=False)
        for name, jobs in (("one", 1), ("two", 2))
    )
    assert not two.failed
    assert one.table().equals(two.table())
    written = [(tmp_path / name / "results.parquet").read_bytes() for name in ("one", "two")]
    assert written[0] == written[1]


NOTING = (
    (TEMPLATES / "dctcp.py")
    .read_text()
    .replace("import math\n", "import math\nimport kept\n")
    .replace(
        "            w.acked = w.marked = 0\n",
        "            w.acked = w.marked = 0\n"
        "            io.note(subflow=ack.subflow, alpha=w.alpha)\n"
        "            kept.series.append((io.now_ns, self.flow, ack.subflow, w.alpha))\n",
    )
    .replace("        self.g = scheme.g\n", "        self.g, self.flow = scheme.g, flow.flow\n")
)
"""DCTCP that notes its estimate at each change, and keeps the same in a list."""


def notes_of(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that schemes of this process can import, with a list."""
    module: Any = types.ModuleType("kept")
    module.series = []
    monkeypatch.setitem(sys.modules, "kept", module)
    return module


@pytest.mark.parametrize("where", range(len(WHERE)))
def test_notes_are_a_series_of_the_results(where: int, tmp_path: Path, kept: Any) -> None:
    (tmp_path / "mine.py").write_text(NOTING)
    own = {"name": "mine", "python": "mine.py:Dctcp"}
    results = run(tmp_path, [{"name": "dctcp"}, own], **WHERE[where])
    assert not results.failed
    notes = results.table("note")
    assert len(kept.series) > 10
    assert notes_of(notes, "time_ns", "flow", "subflow", "value") == kept.series
    assert set(notes["name"].to_pylist()) == {"alpha"}
    assert set(notes["scheme"].to_pylist()) == {"mine"}
    assert notes["link"].null_count == notes.num_rows
    # All other rows, the last included, are those of a run without notes.
    mine = rows_of(results, "mine")
    assert mine.filter(pc.not_equal(mine["kind"], "note")).equals(rows_of(results, "dctcp"))
    # Between two samples come the notes of the time between them.
    times = mine.filter(pc.is_in(mine["kind"], pa.array(["note", "queue"])))["time_ns"].to_pylist()
    seeds = mine.filter(pc.is_in(mine["kind"], pa.array(["note", "queue"])))["seed"].to_pylist()
    order = list(zip(seeds, times, strict=True))
    assert order == sorted(order)


def test_notes_are_those_of_processes_and_count_after_the_warm_up(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        MINE.replace(
            "        io.pace(window=self.bytes)", "        io.note(now=io.now_ns)\n        io.pace(window=30000)"
        )
    )
    several = {"run": {"duration": "2ms", "warmup": "1ms", "seeds": 2}}
    (tmp_path / "spec.json").write_text(json.dumps(spec([{"python": "mine.py:Mine"}], **several)))
    one, two = (
        subak.run(tmp_path / "spec.json", tmp_path / name, jobs=jobs, progress=False)
        for name, jobs in (("one", 1), ("two", 2))
    )
    assert (one.folder / "results.parquet").read_bytes() == (two.folder / "results.parquet").read_bytes()
    times = [at for (at,) in notes_of(two.table("note"), "time_ns")]
    assert notes_of(two.table("note"), "value") == [(float(at),) for at in times]
    measured = one.table("note", measured=True)["time_ns"].to_pylist()
    assert 0 < len(measured) < len(times)
    assert measured == [at for at in times if at >= 1_000_000]


def test_notes_of_every_hook(tmp_path: Path) -> None:
    machines = """
class Hop(subak.Hop):
    def on_start(self, io): self.seen = 0
    def on_enqueue(self, io, packet, port):
        self.seen += 1
        io.note(seen=self.seen)
        io.note(seen=self.seen)

class Sink(subak.Sink):
    def on_data(self, io, packet): io.note(subflow=packet.subflow, segment=packet.segment)

Mine.hop = lambda self, port: Hop() if port.link == 0 else None
Mine.sink = lambda self, flow: Sink()
"""
    stamping = """
    def stamp(self, now_ns, packet, left): self.io.note(stamped=now_ns, marked=True)
    def on_finish(self, io): io.note(finished=io.now_ns)
"""
    text = MINE.replace("        io.pace(", "        self.io = io\n        io.pace(") + stamping + machines
    (tmp_path / "mine.py").write_text(text)
    flows = [{"src": "h0", "dst": "h2", "size": "20kB", "start": 0, "id": "first"}]
    results = run(tmp_path, [{"python": "mine.py:Mine"}], workload={"kind": "steps", "flows": flows})
    assert not results.failed
    notes = results.table("note")

    def of(name: str, *columns: str) -> list[tuple[Any, ...]]:
        return notes_of(notes.filter(pc.equal(notes["name"], name)), *columns)

    packets = len(of("segment", "value"))
    assert of("segment", "flow", "flow_id", "subflow", "value") == [(0, "first", 0, float(k)) for k in range(packets)]
    # Two notes of one time are two rows.
    assert of("seen", "value") == [(float(k),) for k in range(1, packets + 1) for _ in range(2)]
    assert set(of("seen", "link", "flow")) == {("h0->switch0", None)}
    assert of("stamped", "time_ns") == [(int(at),) for (at,) in of("stamped", "value")]
    assert of("marked", "value") == [(1.0,)] * packets
    assert len(of("finished", "time_ns")) == 1
    times = notes["time_ns"].to_pylist()
    assert times == sorted(times)


def test_notes_of_a_stepped_simulation(tmp_path: Path, kept: Any) -> None:
    (tmp_path / "mine.py").write_text(NOTING)
    own = {"name": "mine", "python": "mine.py:Dctcp"}
    results = run(tmp_path, [own])
    columns = ["time_ns", "flow", "link", "subflow", "name", "value"]
    kept.series.clear()
    (tmp_path / "spec.json").write_text(json.dumps(spec([own])))
    simulation = subak.Simulation.of_spec(tmp_path / "spec.json")
    assert not len(simulation.notes)
    for step in (1, 2, 3, 50):
        simulation.run(f"{step}ms")
        assert notes_of(pa.table(simulation.notes), "time_ns", "flow", "subflow", "value") == kept.series
    notes = pa.table(simulation.notes)
    assert notes.column_names == columns
    arrivals = results.table("note", columns)
    assert notes_of(notes, *columns)[: arrivals.num_rows] == notes_of(arrivals, *columns)


def test_notes_without_a_time_are_refused(tmp_path: Path) -> None:
    hop = """
class Hop(subak.Hop):
    def on_start(self, io): self.io = io
    def on_capacity(self, port): self.io.note(late=1)

Mine.hop = lambda self, port: Hop()
"""
    fault = [{"kind": "capacity", "link": "h3->*", "capacity": "2Gbps", "at": "1ms"}]
    (tmp_path / "mine.py").write_text(MINE + hop)
    said = str(run(tmp_path, [{"python": "mine.py:Mine"}], fault=fault).failed[0])
    assert "on_capacity of link number" in said
    assert (
        "a note outside of this machine's hooks, or in on_capacity; note it in another hook (mine.py, line 18)" in said
    )


def test_notes_do_not_stay_in_memory(tmp_path: Path) -> None:
    """Rows are written while the trial runs: its memory does not grow with the notes, and none is missing."""
    body = "[io.note(number=k) for k in range(100)]"
    (tmp_path / "mine.py").write_text(HOP.replace("BODY", body).replace("Hop()", "Hop() if port.link < 4 else None"))
    few = {"measure": {"fct": True}, "workload": {"kind": "incast", "senders": 7, "size": "4MB", "interval": "2us"}}
    (tmp_path / "spec.json").write_text(json.dumps(spec([{"python": "mine.py:Mine"}], **few)))
    code = (
        "import re, subak\n"
        f"subak.run({str(tmp_path / 'spec.json')!r}, {str(tmp_path / 'out')!r}, jobs=1, progress=False)\n"
        "print(re.search('VmHWM: *([0-9]+)', open('/proc/self/status').read().replace('\\t', ' '))[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    notes = subak.Results(tmp_path / "out").table("note", ["value"])["value"]
    assert notes.slice(0, 300).to_pylist() == [float(k) for k in range(100)] * 3
    # All of them would take 200 MB; a run without notes takes 44 MB, and one with four times as many 72 MB.
    assert notes.length() > 3_000_000
    assert int(done.stdout) < 130_000


DYING = """
import os, subak

class Mine(subak.Scheme):
    params = {"window": (20, "packets")}
    def source(self, flow):
        if self.window == 3:
            os.kill(os.getpid(), 9)
        return Sender()

class Sender(subak.Source):
    def on_start(self, io):
        io.pace(window=30000)
"""


def test_a_process_that_dies_fails_its_trial_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DYING)
    schemes = [{"python": "mine.py:Mine", "params": {"window": [2, 3, 4]}}, {"name": "reno"}]
    (tmp_path / "spec.json").write_text(json.dumps(spec(schemes)))
    results = subak.run(tmp_path / "spec.json", tmp_path / "out", jobs=2, progress=False)
    assert list(results.failed) == [1]
    assert "its process was ended by SIGKILL" in str(results.failed[1])
    assert (tmp_path / "out/trials/3.parquet").exists()


def test_an_interrupted_run_ends_its_processes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    schemes = [{"python": "mine.py:Mine"}, {"name": "reno"}]
    text = json.dumps(spec(schemes, run={"duration": "10s", "seeds": 4}, measure={"rates": "10ms"}))
    (tmp_path / "spec.json").write_text(text)
    code = (
        f"import subak; subak.run({str(tmp_path / 'spec.json')!r}, {str(tmp_path / 'out')!r}, jobs=2, progress=False)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as run:
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
        while True:
            pids = [
                int(pid)
                for task in Path(f"/proc/{run.pid}/task").iterdir()
                for pid in (task / "children").read_text().split()
            ]
            if len(pids) == 2:
                break
            time.sleep(0.05)
        assert children.exists()
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        said = run.stderr.read() if run.stderr else ""
    assert "KeyboardInterrupt" in said
    assert "trials are complete" in said
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
