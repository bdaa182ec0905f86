"""`io.note`: series that schemes of users in Python record in the results."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import subak
from own_schemes import HOP, MINE, TEMPLATES, WHERE, rows_of, run, spec

# Failing trials are the subject of these tests.
pytestmark = pytest.mark.filterwarnings("ignore::subak.InputWarning")


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
