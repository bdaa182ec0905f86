"""This version reads files of earlier versions, with the same content.

``data/kept`` has a small file of each format, written by the version of its time, and ``figures.json`` their content. A
failure means that a format, or the values read from it, has changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import subak
from conftest import ROOT, Subak

KEPT = ROOT / "tests/data/kept"
FIGURES: dict[str, Any] = json.loads((KEPT / "figures.json").read_text())
ADVICE = """{file}, which an earlier version wrote, is read otherwise than then.
If this was not meant: correct the reader.
If the format has to change: let the reader know both forms, say so in CHANGELOG.md, and put a file of the new form
beside the old one.
Only where the old form cannot be read: raise `schema`, refuse the old one by name, and add `subak migrate` for it.
Never write over a file in tests/data/kept."""


RENAMED = {"cell": "trial"}
"""Columns whose names have changed since the files were written: new and old names."""


def same(file: str, got: Any) -> None:
    assert json.loads(json.dumps(got)) == FIGURES[file], ADVICE.format(file=file)


def then(columns: list[str]) -> list[str]:
    """Columns by their earlier names."""
    old = {new: old for old, new in RENAMED.items()}
    return [old.get(name, name) for name in columns]


def results(folder: str = "results") -> Any:
    """All tables without packets, and values computed from them."""
    kept = subak.Results(KEPT / folder)
    kinds = ["flow", "rate", "queue", "pace", "link", "wait", "convergence", "summary"]
    tables = {kind: kept.table(kind).to_pylist() for kind in kinds}
    sums = {
        kind: [len(rows), sorted({*then([key for row in rows for key, value in row.items() if value is not None])})]
        for kind, rows in tables.items()
    }
    flows = [[row["scheme"], row["size_bytes"], row["fct_ns"], row["received_bytes"]] for row in tables["flow"]]
    links = [[row["link"], row["data_bytes"], row["ack_bytes"], row["lost_packets"]] for row in tables["link"]]
    return {"kinds": sums, "flows": flows, "links": links, "complete": kept.complete, "failed": kept.failed}


def problem(file: str) -> Any:
    answer = subak.solve(KEPT / file)
    return {
        "status": answer.status,
        "rates_mbps": [round(rate / 1e6) for rate in pa.table(answer.flows)["rate_bps"].to_pylist()],
    }


def network(file: str) -> Any:
    return [list(link.values()) for link in pa.table(subak.Network.from_file(KEPT / file).links).to_pylist()]


READERS: dict[str, Any] = {
    "results": results,
    "case.toml": lambda: problem("case.toml"),
    "case.json": lambda: problem("case.json"),
    "network.json": lambda: network("network.json"),
    "network-links.json": lambda: network("network-links.json"),
    "network.graphml": lambda: network("network.graphml"),
}


FOLDERS = pytest.mark.parametrize("folder", ["results", "results-trials"])
"""Results with the old name of a trial (cell), as before 0.1.0, and with the present one."""


@pytest.mark.parametrize("file", READERS)
def test_what_was_kept_says_the_same(file: str) -> None:
    same(file, READERS[file]())


def test_results_of_today_say_what_those_of_then_did() -> None:
    """Present results have the values of the old ones; tables may have new columns."""
    now = json.loads(json.dumps(results("results-trials")))
    was = FIGURES["results"]
    assert {key: now[key] for key in was if key != "kinds"} == {key: was[key] for key in was if key != "kinds"}
    for kind, (rows, columns) in was["kinds"].items():
        assert now["kinds"][kind][0] == rows
        assert set(columns) <= set(now["kinds"][kind][1])


@FOLDERS
def test_the_summary_of_kept_results(folder: str, subak: Subak) -> None:
    rows = subak("diff", KEPT / folder, KEPT / "results", "--json").json["rows"]
    same("summary", [[metric["name"], metric["first"]["mean"]] for row in rows for metric in row["metrics"]])


@FOLDERS
def test_recorded_packets(folder: str, subak: Subak, tmp_path: Path) -> None:
    rows = subak("export", KEPT / folder, "--kind", "packet").out.splitlines()
    same("packets", [len(rows), ",".join(then(rows[0].split(","))), rows[1], rows[-1]])
    capture = tmp_path / "kept.pcapng"
    assert subak("export", KEPT / folder, "--pcapng", "--trial", "0", "--output", capture).code == 0
    assert capture.stat().st_size > 1000
    assert pq.read_metadata(next((KEPT / folder).glob("*/0.packets.parquet"))).num_rows > 100


@FOLDERS
def test_a_report_of_kept_results(folder: str, subak: Subak, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert subak("report", KEPT / folder, "--output", page).code == 0
    assert "dctcp" in page.read_text()


def test_a_spec_is_read(subak: Subak) -> None:
    trials = subak("run", KEPT / "spec.toml", "--print-trials", "--json").json
    same("spec.toml", [[trial["scheme"]["label"], trial["seed"]] for trial in trials["runs"][0]["trials"]])


@pytest.mark.parametrize("file", ["trace.csv", "flows.txt", "matrix.cm"])
def test_traces(file: str, tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 3},
        "workload": {"kind": "trace", "file": str(KEPT / file)},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "1ms"},
    }
    if file == "flows.txt":
        spec["workload"] |= {"format": "hpcc"}
    flows = subak.run(spec, tmp_path).table("flow").to_pylist()
    same(file, [[flow["src"], flow["dst"], flow["start_ns"], flow["size_bytes"], flow["weight"]] for flow in flows])


def test_answers_keep_their_keys(subak: Subak) -> None:
    """``--json`` documents have every key and value that they had: programs depend on them."""
    for file, words in {
        "answer.json": ["solve", KEPT / "case.toml"],
        "converge.json": ["converge", KEPT / "two-flows.json", "--scheme", "s-perc", "--trace"],
        "placement.json": ["fit", KEPT / "program.json", "--switch", "rmt"],
    }.items():
        lost = missing(json.loads((KEPT / file).read_text()), subak(*words, "--json").json)
        assert lost == [], ADVICE.format(file=file)


# Running time, and the method of the solver, may change. So may a link's price: with multipath flows,
# different prices prove the same rates.
FREE = {"seconds", "iterations", "solver", "updates", "price"}


def missing(was: Any, now: Any, place: str = "") -> list[str]:
    """Places where ``now`` lacks a value of ``was``. New keys are allowed."""
    if isinstance(was, dict):
        if not isinstance(now, dict):
            return [place]
        gone = [f"{place}.{key}" for key in was if key not in now]
        held = [key for key in was if key in now and key not in FREE]
        return gone + [lost for key in held for lost in missing(was[key], now[key], f"{place}.{key}")]
    if isinstance(was, list):
        if not isinstance(now, list) or len(was) != len(now):
            return [place]
        return [lost for k, (a, b) in enumerate(zip(was, now, strict=True)) for lost in missing(a, b, f"{place}[{k}]")]
    if isinstance(was, float):
        return [] if now == pytest.approx(was, rel=1e-6, abs=1e-6) else [f"{place}: {was} is {now}"]
    return [] if was == now else [f"{place}: {was} is {now}"]


def test_a_kept_placement_is_valid(subak: Subak) -> None:
    done = subak("fit", KEPT / "program.json", "--switch", "rmt", "--check", KEPT / "placement.json", "--json")
    assert done.code == 0, ADVICE.format(file="placement.json") + done.out + done.err


def test_a_kept_log_of_weights(subak: Subak) -> None:
    done = subak("policy", "check", KEPT / "weights.csv", "--policy", KEPT / "weights.toml", "--json")
    assert done.code == 0, ADVICE.format(file="weights.csv")
    same("weights.csv", done.json)


def test_what_is_missing_is_found() -> None:
    was = {"a": 1, "b": [{"c": 2.0}], "seconds": 3}
    assert missing(was, {"a": 1, "b": [{"c": 2.0, "d": 5}], "seconds": 4}) == []
    assert missing(was, {"b": [{"c": 2.1}], "seconds": 3}) == [".a", ".b[0].c: 2.0 is 2.1"]
    assert missing(was, {"a": 1, "b": [], "seconds": 3}) == [".b"]


def test_every_kept_file_is_read() -> None:
    """A test reads every file in the folder, and the files are small."""
    text = Path(__file__).read_text() + (ROOT / "crates/testbed/tests/kept.rs").read_text()
    names = {path.name for path in KEPT.iterdir()} - {"figures.json"}
    assert [name for name in sorted(names) if name not in text] == []
    assert sum(path.stat().st_size for path in KEPT.rglob("*") if path.is_file()) < 200_000
