"""Schemes of users in C, tested like those in Python."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
import subak
from conftest import ROOT
from own_schemes import WHERE, rows_of, run

# Failing trials are the subject of these tests.
pytestmark = pytest.mark.filterwarnings("ignore::subak.InputWarning")


def compiled(folder: Path, text: str, name: str = "mine.so") -> Path:
    (folder / "mine.c").write_text(text)
    library = folder / name
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'include'}", "-o", str(library), str(folder / "mine.c")]
    subprocess.run(command, check=True, timeout=60)
    return library


@pytest.mark.parametrize("where", range(len(WHERE)))
def test_dctcp_in_c_equals_ours(where: int, tmp_path: Path) -> None:
    compiled(tmp_path, (ROOT / "examples/schemes/dctcp.c").read_text())
    results = run(tmp_path, [{"name": "dctcp"}, {"name": "mine", "library": "mine.so"}], **WHERE[where])
    assert not results.failed
    assert rows_of(results, "dctcp").equals(rows_of(results, "mine"))
    trials = json.loads((tmp_path / "out/manifest.json").read_text())["trials"]
    counts = {t["scheme"]: (t["events"], t["packet_hops"]) for t in trials}
    assert counts["dctcp"] == counts["mine"]


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
    ],
)
def test_a_fault_in_c_ends_its_trial_in_words(body: str, says: str, tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", body))
    results = run(tmp_path, [{"library": "mine.so"}, {"name": "reno"}])
    assert list(results.failed) == [0]
    said = str(results.failed[0])
    assert re.match(r'scheme "mine": on_start of flow \d+ at \d+ ns: ', said), said
    assert says in said


def test_timers_in_c_that_stand_still(tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", "io->timer(io, 1, 0)"))
    assert "10000 timers came due at the same time" in str(run(tmp_path, [{"library": "mine.so"}]).failed[0])


def test_each_trial_has_its_own_library(tmp_path: Path) -> None:
    compiled(tmp_path, C.replace("BODY", "io->pace(io, 0, INFINITY, 3000 * ++count)"))
    results = run(tmp_path, [{"library": "mine.so", "label": "a"}, {"library": "mine.so", "label": "b"}])
    assert rows_of(results, "a").equals(rows_of(results, "b"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("SUBAK_SCHEME_VERSION,", "9,", "its table has version 9, and this is 1"),
        (".source = source,", "", "its table has no source"),
        ("*subak_scheme(void) {", "*other(void) {", "it exports no function subak_scheme"),
        ('.name = "mine",', '.name = "mine", .queue = "Lifo",', 'an unknown queue, "Lifo"; give Fifo'),
        ('.name = "mine",', '.name = "mine", .mark = "k",', 'marks by "k", which is no parameter'),
        ('.name = "mine",', '.name = "reno",', 'Subak has a scheme called "reno" already'),
    ],
)
def test_libraries_that_are_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in C
    compiled(tmp_path, C.replace("BODY", "(void)io").replace(old, new))
    with pytest.raises(subak.InputError) as refused:
        run(tmp_path, [{"library": "mine.so"}])
    assert says in str(refused.value)
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(subak.InputError, match="it cannot be loaded"):
        run(tmp_path, [{"library": "text.so"}])
    assert not list(Path(tempfile.gettempdir()).glob("subak-*.so"))
