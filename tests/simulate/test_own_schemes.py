"""Schemes of users in Python: copies of built-in schemes have the same results; parameters, identity and processes."""

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
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
import subak
from conftest import ROOT
from own_schemes import MINE, TEMPLATES, WHERE, rows_of, run, spec, written
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


def test_globals_of_a_notebook_with_the_names_of_arguments(tmp_path: Path) -> None:
    program = f"""
import subak
flow, io, window = [1], object(), {{2}}
{MINE.replace("import subak", "")}
for flow in range(3):
    pass
print(subak.run({spec([{"name": "mine"}])!r}, "out", schemes={{"mine": Mine}}, progress=False).failed)
"""
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("{}\n", "")


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
