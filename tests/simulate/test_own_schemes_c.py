"""Schemes of users in C, tested like those in Python."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import subak
from conftest import ROOT
from own_schemes import WHERE, rows_of, run

COMPILED = (ROOT / "examples/schemes/dctcp_compiled.py").read_text()
# Failing trials are the subject of these tests.
pytestmark = pytest.mark.filterwarnings("ignore::subak.InputWarning")


def compiled(folder: Path, text: str, *flags: str) -> None:
    (folder / "mine.c").write_text(text)
    command = ["cc", "-O2", "-ffp-contract=off", *flags, "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    subprocess.run([*command, "-o", "mine.so", "mine.c"], cwd=folder, check=True, timeout=60)


@pytest.mark.parametrize("where", range(len(WHERE)))
def test_dctcp_in_c_equals_ours(where: int, tmp_path: Path) -> None:
    compiled(tmp_path, (ROOT / "examples/schemes/dctcp.c").read_text())
    results = run(tmp_path, [{"name": "dctcp"}, {"name": "mine", "library": "mine.so"}], **WHERE[where])
    assert not results.failed
    assert rows_of(results, "dctcp").equals(rows_of(results, "mine"))
    trials = json.loads((tmp_path / "out/manifest.json").read_text())["trials"]
    counts = {t["scheme"]: (t["events"], t["packet_hops"]) for t in trials}
    assert counts["dctcp"] == counts["mine"]


@pytest.mark.parametrize("where", range(len(WHERE)))
def test_a_compiled_dctcp_equals_ours(where: int, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    (tmp_path / "mine.py").write_text(COMPILED)
    results = run(tmp_path, [{"name": "dctcp"}, {"name": "mine", "python": "mine.py:Dctcp"}], **WHERE[where])
    assert not results.failed, results.failed
    assert rows_of(results, "dctcp").num_rows > 30
    assert rows_of(results, "dctcp").equals(rows_of(results, "mine"))
    trials = json.loads((tmp_path / "out/manifest.json").read_text())["trials"]
    counts = {t["scheme"]: (t["events"], t["packet_hops"]) for t in trials}
    assert counts["dctcp"] == counts["mine"]


def test_a_compiled_scheme_has_parameters_timers_random_numbers_and_an_identity(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    timers = """
    def on_timer(self, io, timer):
        self.size += timer * compiled.random(io)
        compiled.pace(io, window=self.size)
        compiled.timer(io, timer + 1, io.now_ns + 100_000)

    def on_reroute(self, io, path):
        self.size = path.hops * self.mss

    def on_loss("""
    text = COMPILED.replace("\n    def on_loss(", timers)
    text = text.replace("(io, window=self.size)\n\n", "(io, window=self.size)\n        compiled.timer(io, 1, 0)\n\n", 1)
    (tmp_path / "mine.py").write_text(text)
    results = run(tmp_path, [{"python": "mine.py:Dctcp", "params": {"k": [5, 65]}}])
    assert not results.failed, results.failed
    assert results.table().column("scheme").unique().to_pylist() == ["dctcp-compiled k=5", "dctcp-compiled k=65"]
    assert not rows_of(results, "dctcp-compiled k=5").equals(rows_of(results, "dctcp-compiled k=65"))
    (tmp_path / "mine.py").write_text(text.replace("timer + 1", "timer + 2"))
    with pytest.raises(subak.InputError, match="results of another spec"):
        subak.run(tmp_path / "spec.json", tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("self.mss =", "self.mess =", "Dctcp.begin: there is no field 'mess'; name it in state"),
        ("self.alpha / 2", "str(self.alpha)", "Dctcp.on_ack: numba cannot compile it: No implementation of function"),
        ("def on_loss", "def on_los", "a compiled scheme has no hook on_los; hooks are begin, on_start"),
        ('"alpha": float', '"alpha": str', "state.alpha: it is <class 'str'>; give float, int or bool"),
        ('"alpha": float', '"g": float', "state.g: there is a parameter of that name"),
        ('subak.Fifo(mark="k")', "subak.Rank()", "queue: a compiled scheme has a Fifo"),
        ('rto_min="1ms"', "probe=False", "recovery: a compiled scheme sets rto_min and rto_max alone"),
        ('(1 / 16, "")', '(True, "flag")', "params.g: a compiled scheme has numbers alone"),
        ("    state =", '    goal = "max-min"\n    state =', "Dctcp.goal: a compiled scheme cannot set it"),
    ],
)
def test_what_a_compiled_scheme_may_not_have(old: str, new: str, says: str, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    assert old in COMPILED
    (tmp_path / "mine.py").write_text(COMPILED.replace(old, new))
    with pytest.raises(subak.InputError) as refused:
        run(tmp_path, [{"python": "mine.py:Dctcp"}])
    assert says in str(refused.value)


def test_a_fault_of_a_compiled_scheme_ends_its_trial_in_words(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    text = COMPILED.replace("compiled.pace(io, window=self.size)", "compiled.pace(io, window=self.size / self.marked)")
    (tmp_path / "mine.py").write_text(text.replace("self.alpha = 1.0", "self.size = -1.0"))
    results = run(tmp_path, [{"python": "mine.py:Dctcp"}, {"name": "reno"}])
    assert list(results.failed) == [0]
    said = str(results.failed[0])
    assert re.match(r'scheme "dctcp-compiled": on_start of flow \d+ at \d+ ns: the window is -inf', said), said


SWIFT_WHERE: list[dict[str, Any]] = [
    {},
    {"workload": {"kind": "incast", "senders": 15, "size": "100kB", "interval": "2us"}},
    {
        "network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
        "routing": {"reroute": "50us"},
        "fault": [
            {"kind": "loss", "probability": 0.01},
            {"kind": "down", "link": "leaf0->spine0", "down": "300us", "up": "800us"},
        ],
    },
]


@pytest.mark.parametrize("more", SWIFT_WHERE, ids=["star", "incast", "leaf-spine"])
def test_google_swift_in_c_equals_ours(more: dict[str, Any], tmp_path: Path) -> None:
    compiled(tmp_path, (ROOT / "examples/schemes/google_swift.c").read_text(), "-Wall", "-Wextra", "-Werror")
    results = run(tmp_path, [{"name": "google-swift"}, {"name": "mine", "library": "mine.so"}], **more)
    assert not results.failed, results.failed
    assert rows_of(results, "mine").num_rows > 100
    assert rows_of(results, "mine").equals(rows_of(results, "google-swift"))


def test_parameters_of_c_are_swept_and_its_bytes_are_its_identity(tmp_path: Path) -> None:
    text = (ROOT / "examples/schemes/dctcp.c").read_text()
    compiled(tmp_path, text)
    results = run(tmp_path, [{"library": "mine.so", "params": {"k": [5, 65]}}])
    assert results.table().column("scheme").unique().to_pylist() == ["dctcp-c k=5", "dctcp-c k=65"]
    assert not rows_of(results, "dctcp-c k=5").equals(rows_of(results, "dctcp-c k=65"))
    compiled(tmp_path, text.replace("cut(w, 0.5,", "cut(w, 0.7,"))
    with pytest.raises(subak.InputError, match="results of another spec"):
        subak.run(tmp_path / "spec.json", tmp_path / "out", progress=False)


C = """
#include <stdlib.h>
#include <subak_scheme.h>
static int count;
static void *source(void *s, const struct subak_flow *f) { (void)s; (void)f; return malloc(8); }
static void on_start(void *s, struct subak_io *io) { (void)s; BODY; }
static void on_timer(void *s, struct subak_io *io, uint32_t n) { (void)s; io->timer(io, n, 0); }
const struct subak_scheme *subak_scheme(void) {
    static const struct subak_scheme table = {
        .version = SUBAK_SCHEME_VERSION, .name = "mine", .source = source, .source_free = free,
        .on_start = on_start, .on_timer = on_timer,
    };
    return &table;
}
"""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("io->pace(io, 0, NAN, INFINITY)", "the rate is not a number"),
        ("io->pace(io, 0, -1, INFINITY)", "the rate is -1"),
        ("io->pace(io, 0, INFINITY, -3)", "the window is -3"),
        ("io->pace(io, 7, INFINITY, INFINITY)", "there is no subflow 7"),
        ("io->pace(io, 4294967295u, INFINITY, INFINITY)", "there is no subflow 4294967295"),
        ("double m[8] = {0}; io->send(io, 0, m, 0, SUBAK_LOW)", "a message has 0 bytes"),
        ("double m[8] = {0}; io->send(io, 0, m, 64, 3)", "there is no class 3"),
        ("io->send(io, 0, NULL, 64, SUBAK_LOW)", "a message has no numbers"),
        ("io->pause(io, SUBAK_LOW, 1)", "only a hop does"),
        ('io->fail(io, "I give up")', "I give up"),
        ('io->note(io, -1, "alpha", NAN)', "the note alpha is not a number; give a finite number"),
        ('io->note(io, 1, "alpha", 1)', "there is no subflow 1"),
        ("io->note(io, -1, NULL, 1)", 'a note is named ""'),
        ('for (;;) { io->note(io, -1, "a", 1); if (++count > 10001) return; }', "more than 10000 notes in one hook"),
    ],
)
def test_a_fault_in_c_ends_its_trial_in_words(body: str, says: str, tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", body))
    results = run(tmp_path, [{"library": "mine.so"}, {"name": "reno"}])
    assert list(results.failed) == [0]
    said = str(results.failed[0])
    assert re.match(r'scheme "mine": on_start of flow \d+ at \d+ ns: ', said), said
    assert says in said


HOP = """
static void *hop(void *s, const struct subak_port *p) { (void)s; (void)p; return malloc(8); }
static void hop_on_start(void *h, struct subak_io *io) { (void)h; BODY; }
const struct subak_scheme *"""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("io->pace(io, 0, INFINITY, 1)", "it sets a pace; only a source does"),
        ("double m[8] = {0}; io->send(io, 0, m, 64, SUBAK_LOW)", "it sends a message; a hop changes the messages that"),
        ("io->pause(io, 3, 1)", "there is no class 3"),
    ],
)
def test_a_fault_of_a_hop_in_c(body: str, says: str, tmp_path: Path) -> None:
    text = C.replace("BODY", "io->pace(io, 0, INFINITY, 30000)").replace(
        "const struct subak_scheme *", HOP.replace("BODY", body), 1
    )
    compiled(tmp_path, text.replace(".source = source,", ".source = source, .hop = hop, .hop_on_start = hop_on_start,"))
    said = str(run(tmp_path, [{"library": "mine.so"}]).failed[0])
    assert re.match(r'scheme "mine": on_start of link number \d+ at 0 ns: ', said), said
    assert says in said


@pytest.mark.parametrize("pace", ["INFINITY, INFINITY", "INFINITY, 1e300", "1e300, INFINITY", "1e17, 1e12"])
def test_an_endless_flow_without_bounds_in_c(pace: str, tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", f"io->pace(io, 0, {pace})"))
    results = run(tmp_path, [{"library": "mine.so"}, {"name": "reno"}], workload={"kind": "permutation"})
    assert list(results.failed) == [0]
    said = str(results.failed[0])
    assert re.match(r'scheme "mine": pace of flow \d+ at \d+ ns: a GiB is in flight; give a rate or', said), said


def test_timers_in_c_that_stand_still(tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", "io->timer(io, 1, 0)"))
    assert "10000 timers came due at the same time" in str(run(tmp_path, [{"library": "mine.so"}]).failed[0])


def test_timers_in_c_without_end(tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", "for (int k = 0; k <= 1000000; k++) io->timer(io, 1, io->now_ns + 1 + k)"))
    said = str(run(tmp_path, [{"library": "mine.so"}]).failed[0])
    assert re.match(r'scheme "mine": on_start of flow \d+ at \d+ ns: 1000000 timers are pending; set a', said), said


def test_each_trial_has_its_own_library(tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", "io->pace(io, 0, INFINITY, 3000 * ++count)"))
    results = run(tmp_path, [{"library": "mine.so", "label": "a"}, {"library": "mine.so", "label": "b"}])
    assert rows_of(results, "a").equals(rows_of(results, "b"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("SUBAK_SCHEME_VERSION,", "9,", "its table has version 9, and this is 2"),
        (".source = source,", "", "its table has no source"),
        ("*subak_scheme(void) {", "*other(void) {", "it exports no function subak_scheme"),
        ('.name = "mine",', '.name = "mine", .queue = "Lifo",', 'an unknown queue, "Lifo"; give Fifo'),
        ('.name = "mine",', '.name = "mine", .mark = "k",', 'marks by "k", which is no parameter'),
        ('.name = "mine",', '.name = "mine", .links = "Wait",', 'unknown state at links, "Wait"; give Telemetry'),
        ('.name = "mine",', '.name = "mine", .flags = 16,', "its table has unknown flags, 0x10"),
        ('.name = "mine",', '.name = "mine", .flags = SUBAK_LOSSLESS,', 'cannot be paused; give the queue "Priority"'),
        ('.name = "mine",', '.name = "mine", .links = "Telemetry", .queue = "Stfq",', "whose packets have no numbers"),
        ('.name = "mine",', '.name = "mine", .red_high = "k",', "its table has red_high or red_most without mark"),
        ('.name = "mine",', '.name = "reno",', 'Subak has a scheme called "reno" already'),
    ],
)
def test_libraries_that_are_refused(
    old: str, new: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in C
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setenv("TMPDIR", str(copies))
    compiled(tmp_path, C.replace("BODY", "(void)io").replace(old, new))
    with pytest.raises(subak.InputError) as refused:
        run(tmp_path, [{"library": "mine.so"}])
    assert says in str(refused.value)
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(subak.InputError, match="it cannot be loaded"):
        run(tmp_path, [{"library": "text.so"}])
    assert not list(copies.iterdir())


LINKS = """
#include <subak_scheme.h>
static const struct subak_param PARAMS[] = {
    {"low", 2e3, "bytes", ""}, {"high", 40e3, "bytes", ""}, {"most", 0.5, "", ""},
};
static void *source(void *s, const struct subak_flow *f) { (void)s; (void)f; return (void *)PARAMS; }
static void on_start(void *s, struct subak_io *io) { (void)s; io->pace(io, 0, SUBAK_NO_LIMIT, 60000); }
static void on_ack(void *s, struct subak_io *io, const struct subak_ack *a) {
    (void)s;
    io->note(io, a->subflow, "links", a->link_count);
    for (uint32_t k = 0; k < a->link_count; k++) {
        io->note(io, -1, "sent", a->links[k].sent_bytes);
        io->note(io, -1, "queued", a->links[k].queued_bytes + a->links[k].bytes_per_ns * a->links[k].at_ns);
    }
    io->note(io, -1, "path", a->path_id);
    io->note(io, -1, "ecn", a->ecn);
}
const struct subak_scheme *subak_scheme(void) {
    static const struct subak_scheme table = {
        .version = SUBAK_SCHEME_VERSION, .name = "mine", .param_count = 3, .params = PARAMS, .queue = "Priority",
        .mark = "low", .red_high = "high", .red_most = "most", .links = "Telemetry",
        .flags = SUBAK_LOSSLESS | SUBAK_GO_BACK_N | SUBAK_ROUND_ROBIN | SUBAK_PATH_DEPENDENT,
        .source = source, .on_start = on_start, .on_ack = on_ack,
    };
    return &table;
}
"""
THE_SAME_IN_PYTHON = """
import subak

class Mine(subak.Scheme):
    params = {"low": (2e3, "bytes"), "high": (40e3, "bytes"), "most": (0.5, "")}
    queue = subak.Priority(mark=subak.Red(low="low", high="high", most="most"))
    hop = subak.Telemetry()
    lossless = subak.Pfc()
    recovery = subak.Recovery(rto_min=0, reorder=None, probe=False, go_back=True)
    nic = "round-robin"
    path_dependent = True

    def source(self, flow):
        return Sender()

class Sender(subak.Source):
    def on_start(self, io):
        io.pace(window=60000)
    def on_ack(self, io, ack):
        io.note(subflow=ack.subflow, links=len(ack.telemetry))
        for one in ack.telemetry:
            io.note(sent=one.sent_bytes)
            io.note(queued=float(np.float32(one.queued_bytes) + np.float32(one.bytes_per_ns) * np.float32(one.at_ns)))
        io.note(path=ack.path_id)
        io.note(ecn=ack.ecn)
"""


@pytest.mark.parametrize("more", SWIFT_WHERE, ids=["star", "incast", "leaf-spine"])
def test_telemetry_red_pfc_and_notes_in_c_equal_those_in_python(more: dict[str, Any], tmp_path: Path) -> None:
    compiled(tmp_path, LINKS, "-Wall", "-Wextra", "-Werror")
    (tmp_path / "twin.py").write_text(THE_SAME_IN_PYTHON.replace("import subak", "import numpy as np\nimport subak"))
    both = [{"library": "mine.so", "label": "c"}, {"python": "twin.py:Mine", "label": "python"}]
    results = run(tmp_path, both, **more)
    assert not results.failed, results.failed
    assert rows_of(results, "c").equals(rows_of(results, "python"))
    notes = results.table("note").to_pandas().groupby("name")["value"]
    assert 0 < notes.get_group("ecn").mean() < 1
    assert notes.get_group("links").max() == (3 if "network" in more else 1)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"low": 50e3, "high": 20e3}, "RED's low threshold is above the high one"),
        ({"most": 2}, "params.most: red_most is 2; give a number from 0 to 1"),
    ],
)
def test_red_in_c_has_its_bounds(params: dict[str, Any], says: str, tmp_path: Path) -> None:
    compiled(tmp_path, LINKS)
    with pytest.raises(subak.InputError, match=re.escape(says)):
        run(tmp_path, [{"library": "mine.so", "params": params}])


HOSTILE_WHERE: list[dict[str, Any]] = [
    {"workload": {"kind": "incast", "senders": 4, "size": "50kB"}},
    {
        "network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "routing": {"reroute": "50us"},
        "fault": [
            {"kind": "loss", "probability": 0.01},
            {"kind": "down", "link": "leaf0->spine0", "down": "300us", "up": "600us"},
            {"kind": "capacity", "link": "h1->*", "capacity": "2Gbps", "at": "200us"},
            {"kind": "restart", "node": "leaf0", "at": "500us"},
        ],
    },
    {"workload": {"kind": "permutation"}, "network": {"kind": "star", "hosts": 6}},
]


@pytest.mark.parametrize("more", HOSTILE_WHERE, ids=["incast", "faults", "endless"])
@pytest.mark.parametrize("queue", ["Fifo", "Priority", "Rank", "Stfq"])
def test_a_hostile_library_is_refused_in_words_or_carried_out(queue: str, more: dict[str, Any], tmp_path: Path) -> None:
    compiled(tmp_path, (ROOT / "tests/support/hostile.c").read_text(), f'-DQUEUE="{queue}"')
    params = {"seed": list(range(8)), "odd": [0, 1e-4, 0.02]}
    schemes = [{"library": "mine.so", "params": params}, {"name": "reno"}]
    results = run(tmp_path, schemes, run={"duration": "1ms", "drain": "1ms"}, **more)
    assert (tmp_path / "out/trials/24.parquet").exists()
    for said in map(str, results.failed.values()):
        assert re.match(r'scheme "hostile": \w+ of (flow|link number) \d+ at \d+ ns: ', said), said
        assert "Panic" not in said
        assert "defect" not in said
    # Without odd values some runs complete, and with many of them all fail.
    assert 3 < len(results.failed) < 24
