"""``subak run`` and ``subak.run``: the same bytes for any number of attempts and threads; and their outcome."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import subak as sb
from conftest import COMMAND, ROOT, Subak
from subak import _subak
from subak.results import KINDS

SPEC: dict[str, Any] = {
    "name": "small",
    "network": {"kind": "star", "hosts": 8, "rate": "10Gbps"},
    "workload": {"kind": "poisson", "sizes": "web-search", "load": [0.4, 0.7]},
    "scheme": [{"name": "dctcp"}, {"name": "s-perc"}, {"name": "ideal"}],
    "measure": {"fct": True, "rates": "500us", "queues": "500us"},
    "run": {"duration": "10ms", "seeds": 4},
}
TRIALS = 24


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "small.json"
    path.write_text(json.dumps(SPEC))
    return path


@pytest.fixture(scope="module")
def whole(subak: Subak, spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of an uninterrupted run on one thread."""
    out = tmp_path_factory.mktemp("whole") / "out"
    ended = subak("run", spec, "--out", out, "--jobs", "1", "--json")
    assert ended.code == 0, ended
    (run,) = ended.json["runs"]
    assert (run["trials"], run["complete"], run["ran"], run["failed"]) == (TRIALS, TRIALS, TRIALS, {})
    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert lines[-1]["done"] == lines[-1]["trials"] == TRIALS
    return out


def results(out: Path) -> bytes:
    return (out / "results.parquet").read_bytes()


def test_a_minute_as_a_fluid(subak: Subak, tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 4, "rate": "10Gbps"},
        "workload": {"kind": "closed", "sizes": "fixed", "size": "2GB", "think": "1s", "connections": 2},
        "scheme": [{"name": "s-perc", "backend": "fluid"}],
        "run": {"duration": "60s"},
    }
    path = tmp_path / "fluid.json"
    path.write_text(json.dumps(spec))
    ended = subak("run", path, "--out", tmp_path / "out", "--json")
    assert ended.code == 0, ended
    flows = [row for row in pq.read_table(tmp_path / "out" / "results.parquet").to_pylist() if row["kind"] == "flow"]
    assert len(flows) > 50
    assert {row["scheme"] for row in flows} == {"s-perc fluid"}
    assert all(row["size_bytes"] == 10**9 and row["fct_ns"] for row in flows)


def test_on_two_threads(subak: Subak, spec: Path, whole: Path, tmp_path: Path) -> None:
    assert subak("run", spec, "--out", tmp_path / "out", "--jobs", "2").code == 0
    assert results(tmp_path / "out") == results(whole)


def test_threads_share_a_trial(subak: Subak, tmp_path: Path) -> None:
    shared = {
        **SPEC,
        "network": {"kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4, "host_rate": "10Gbps"},
        "scheme": [{"name": "dctcp"}, {"name": "s-perc"}, {"name": "hpcc"}],
        "fault": [{"kind": "loss", "probability": 0.001}],
        "run": {"duration": "2ms", "seeds": 1},
    }
    sb.run(shared, tmp_path / "1", jobs=1, threads=1)
    sb.run(shared, tmp_path / "3", jobs=1, threads=3)
    assert results(tmp_path / "3") == results(tmp_path / "1")
    (tmp_path / "shared.json").write_text(json.dumps(shared))
    assert subak("run", tmp_path / "shared.json", "--out", tmp_path / "2", "--threads", "2").code == 0
    assert results(tmp_path / "2") == results(tmp_path / "1")
    with pytest.raises(sb.InputError, match="threads"):
        sb.run(shared, tmp_path / "none", threads=0)
    refused = subak(
        "run", tmp_path / "shared.json", "--out", tmp_path / "none", "--threads", "2", "--cluster", "local:1"
    )
    assert refused.code == 2
    assert "--threads" in refused.err
    assert not (tmp_path / "none").exists()


def test_trial_by_trial(subak: Subak, spec: Path, whole: Path, tmp_path: Path) -> None:
    for trial in reversed(range(TRIALS)):
        assert not (tmp_path / "out" / "results.parquet").exists()
        assert subak("run", spec, "--out", tmp_path / "out", "--trial", str(trial)).code == 0
    assert results(tmp_path / "out") == results(whole)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_resumed(subak: Subak, spec: Path, whole: Path, tmp_path: Path, sent: signal.Signals) -> None:
    out, running, said = interrupted(tmp_path, [COMMAND, "run", spec, "--out", "OUT", "--jobs", "1"], sent)
    done = len(list(out.glob("trials/[0-9]*.parquet")))
    assert 2 <= done < TRIALS
    assert not (out / "results.parquet").exists()
    assert "Traceback" not in said
    if sent == signal.SIGINT:
        assert running.returncode == 130
        assert "resumes" in said
    ended = subak("run", spec, "--out", out, "--json")
    assert ended.json["runs"][0]["ran"] == TRIALS - done
    assert results(out) == results(whole)
    assert not list(out.rglob("*.part"))


def interrupted(tmp_path: Path, command: list[Any], sent: signal.Signals) -> tuple[Path, subprocess.Popen[bytes], str]:
    """A run of ``command`` into a folder (OUT) that gets a signal after two trials; repeated if the run ended
    before."""
    for attempt in range(20):
        out = tmp_path / f"out{attempt}"
        words = [out if word == "OUT" else word for word in command]
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while not (out / "trials" / "1.parquet").exists():
            assert running.poll() is None or (out / "results.parquet").exists()
            time.sleep(0.005)
        running.send_signal(sent)
        said = running.communicate(timeout=60)[0].decode()
        if not (out / "results.parquet").exists():
            return out, running, said
    raise AssertionError("each run was over before the signal")


def test_nothing_left_to_do(subak: Subak, spec: Path, whole: Path) -> None:
    before = results(whole)
    ended = subak("run", spec, "--out", whole, "--json")
    assert ended.json["runs"][0]["ran"] == 0
    assert results(whole) == before


def test_other_spec_into_the_same_folder(subak: Subak, whole: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps(SPEC | {"name": "other"}))
    ended = subak("run", tmp_path / "other.json", "--out", whole)
    assert ended.code == 2
    assert str(whole) in ended.err
    assert "another" in ended.err


def test_two_specs(subak: Subak, tmp_path: Path) -> None:
    one = SPEC | {"workload": {"kind": "incast", "senders": 3, "size": "10kB"}, "scheme": [{"name": "reno"}]}
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(one | {"name": name}))
    ended = subak("run", tmp_path / "one.json", tmp_path / "two.json", "--out", tmp_path / "out")
    assert ended.code == 0, ended
    assert (tmp_path / "out" / "one" / "results.parquet").exists()
    assert (tmp_path / "out" / "two" / "results.parquet").exists()


def test_trials_are_listed_and_not_run(subak: Subak, spec: Path, tmp_path: Path) -> None:
    (run,) = subak("run", spec, "--print-trials", "--json", cwd=tmp_path).json["runs"]
    trials = run["trials"]
    assert [trial["trial"] for trial in trials] == list(range(TRIALS))
    order = [(trial["axes"]["workload.load"], trial["scheme"]["name"], trial["seed"]) for trial in trials]
    assert order[:5] == [(0.4, "dctcp", 1), (0.4, "dctcp", 2), (0.4, "dctcp", 3), (0.4, "dctcp", 4), (0.4, "s-perc", 1)]
    assert order[TRIALS // 2][0] == 0.7
    seconds = {(trial["scheme"]["name"], trial["axes"]["workload.load"]): trial["cost"]["seconds"] for trial in trials}
    assert 0 < seconds["dctcp", 0.4] < seconds["s-perc", 0.4], "control packets are work too"
    assert seconds["dctcp", 0.4] < seconds["dctcp", 0.7]
    assert list(tmp_path.iterdir()) == []
    assert "s-perc" in subak("run", spec, "--print-trials").out


def test_comparison_for_people(subak: Subak, spec: Path, whole: Path) -> None:
    out = subak("run", spec, "--out", whole).out
    for said in ("dctcp", "s-perc", "ideal", "load 0.4", "load 0.7", "Mean slowdown", "±", str(whole)):
        assert said in out


def test_few_endless_flows_have_their_rates_printed(subak: Subak, tmp_path: Path) -> None:
    """Two flows of weights 3 and 1 over 100 Mb/s: the command prints each flow's mean rate after the warm-up."""
    spec = tmp_path / "spec.toml"
    example = (ROOT / "examples/testbed.toml").read_text()
    spec.write_text(example.replace('"5s"', '"1s"').replace('warmup = "1s"', 'warmup = "500ms"'))
    done = subak("run", str(spec), "--backend", "packet", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "Rates, means after the warm-up" in done.out
    row = next(line.split() for line in done.out.splitlines() if line.startswith(" soze-virtual") and "Mb/s" in line)
    heavy, light = float(row[1]), float(row[3])
    assert 70 < heavy < 80
    assert 2.8 < heavy / light < 3.2


def test_export(subak: Subak, whole: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(subak("export", whole, "--kind", "flow").out)))
    table = pq.read_table(whole / "results.parquet", filters=[("kind", "==", "flow")])
    assert len(rows) == table.num_rows > 0
    assert rows[0].keys() == set(table.column_names)
    assert float(rows[0]["slowdown"]) == table["slowdown"][0].as_py()
    ended = subak("export", whole, "--output", tmp_path / "all.csv", "--json")
    assert ended.json["rows"] == pq.read_metadata(whole / "results.parquet").num_rows
    assert len((tmp_path / "all.csv").read_text().splitlines()) == ended.json["rows"] + 1
    ended = subak("export", whole, "--kind", "flew")
    assert (ended.code, "flow" in ended.err) == (2, True)


def test_export_of_packets(subak: Subak, whole: Path, tmp_path: Path) -> None:
    incast = {
        "network": {"kind": "star", "hosts": 5},
        "workload": {"kind": "incast", "senders": 4, "size": "20kB"},
        "scheme": [{"name": "dctcp"}],
        "measure": {"packets": {"links": ["switch0->h0"]}},
        "run": {"duration": "2ms"},
    }
    (tmp_path / "spec.json").write_text(json.dumps(incast))
    assert subak("run", tmp_path / "spec.json", "--out", tmp_path / "out", "--json").code == 0
    rows = list(csv.DictReader(io.StringIO(subak("export", tmp_path / "out", "--kind", "packet").out)))
    left = sum(row["event"] == "dequeue" for row in rows)
    asked = ("export", tmp_path / "out", "--pcapng", "--output", tmp_path / "incast.pcapng")
    assert subak(*asked, "--json").json["frames"] == left >= 4 * 14
    assert (tmp_path / "incast.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    for more, said in [(["--link", "switch0->h9"], "switch0->h4"), (["--trial", "3"], "choose one of: 0")]:
        ended = subak(*asked, *more)
        assert (ended.code, said in ended.err) == (2, True), ended
    ended = subak("export", whole, "--pcapng", "--output", tmp_path / "none.pcapng")
    assert (ended.code, "recorded no packets" in ended.err) == (2, True), ended
    ended = subak("export", tmp_path / "out", "--pcapng")
    assert (ended.code, "--output" in ended.err) == (2, True), ended
    incast["measure"] = {"packets": {"flows": [4]}}
    (tmp_path / "spec.json").write_text(json.dumps(incast))
    ended = subak("run", tmp_path / "spec.json", "--out", tmp_path / "other")
    assert (ended.code, "measure.packets.flows[0]" in ended.err) == (2, True), ended


def test_export_to_a_reader_that_goes_away(whole: Path) -> None:
    piped = subprocess.run(f"{COMMAND} export {whole} | head -1", shell=True, capture_output=True, timeout=60)
    assert piped.stdout.startswith(b"trial,scheme,seed,load,kind")
    assert piped.stderr == b""


def test_diff(subak: Subak, whole: Path, tmp_path: Path) -> None:
    assert subak("diff", whole, whole, "--json").json["identical"] is True
    assert "same" in subak("diff", whole, whole).out
    other = SPEC | {"run": {"duration": "10ms", "seeds": [7]}}
    sb.run(other, tmp_path / "out")
    found = subak("diff", whole, tmp_path / "out", "--json").json
    assert found["identical"] is False
    assert len(found["rows"]) == 6
    assert "slowdown_mean" in subak("diff", whole, tmp_path / "out").out
    ended = subak("diff", whole, tmp_path)
    assert (ended.code, str(tmp_path) in ended.err) == (2, True)


def test_what_is_measured_has_one_definition(tmp_path: Path) -> None:
    workload = {"kind": "poisson", "sizes": "enterprise", "load": 0.4}
    spec = {"network": {"kind": "star", "hosts": 4}, "workload": workload, "scheme": [{"name": "ideal"}]}
    run = sb.run(spec | {"run": {"warmup": "1ms", "duration": "3ms"}}, tmp_path / "out", progress=False)
    counted, all_flows = run.table("flow", ["slowdown", "start_ns"], measured=True), run.table("flow")
    assert counted.num_rows == run.summary()["rows"][0]["metrics"]["flows"]["mean"] < all_flows.num_rows
    assert min(counted["start_ns"].to_pylist()) >= 1_000_000
    with pytest.raises(sb.InputError, match="do not say whether they count"):
        run.table("link", measured=True)


def test_from_python(whole: Path, tmp_path: Path) -> None:
    heard: list[tuple[int, int, float]] = []
    run = sb.run(SPEC, tmp_path / "out", jobs=2, progress=lambda *news: heard.append(news))
    assert run.complete
    assert run.failed == {}
    assert heard[-1] == (TRIALS, TRIALS, pytest.approx(1.0))
    assert run.table().num_rows == pq.read_metadata(whole / "results.parquet").num_rows
    flows = run.table("flow", ["scheme", "slowdown"])
    assert flows.column_names == ["scheme", "slowdown"]
    with pytest.raises(sb.InputError, match="choose one of: flow, rate"):
        run.table("flew")
    with pytest.raises(sb.InputError) as refused:  # The core knows the same kinds of rows.
        _subak.export(tmp_path / "out", "flew", None)
    assert ", ".join(KINDS) in refused.value.hint
    assert min(flows["slowdown"].to_pylist()) > 0.99
    assert [row["seeds"] for row in run.summary()["rows"]] == [4] * 6
    assert sb.Results(tmp_path / "out").manifest["name"] == "small"


def test_what_a_listener_raises_stops_the_run(tmp_path: Path) -> None:
    def fed_up(done: int, trials: int, fraction: float) -> None:
        raise RuntimeError("fed up")

    with pytest.raises(RuntimeError, match="fed up"):
        sb.run(SPEC, tmp_path / "out", jobs=1, progress=fed_up)
    unfinished = sb.Results(tmp_path / "out")
    assert not unfinished.complete
    with (
        pytest.raises(sb.InputError, match="not complete: no trial of it is")
        if not done(unfinished)
        else pytest.warns(sb.InputWarning, match="are not complete")
    ):
        unfinished.table()


def done(results: sb.Results) -> int:
    """Number of complete trials."""
    return sum(trial["status"] == "complete" for trial in results.manifest["trials"])


def test_ctrl_c_in_python(spec: Path, tmp_path: Path) -> None:
    code = "import subak, sys\ntry:\n subak.run(*sys.argv[1:], jobs=1)\nexcept KeyboardInterrupt:\n print('stopped')"
    _, _, said = interrupted(tmp_path, [sys.executable, "-c", code, spec, "OUT"], signal.SIGINT)
    assert said == "stopped\n"


def test_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(sb.InputError) as caught:
        sb.Results(tmp_path)
    assert caught.value.file == str(tmp_path)


@pytest.mark.parametrize("scheme", ["dctcp", "ideal"])
def test_a_flow_may_be_complete_at_its_sender(scheme: str, tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "network": {"kind": "star", "hosts": 3, "rate": "10Gbps", "link_delay": "1us"},
        "workload": {"kind": "incast", "senders": 1, "size": "100KB"},
        "scheme": [{"name": scheme}],
        "run": {"duration": "10ms"},
    }
    (first,) = sb.run(spec, tmp_path / "receiver").table("flow").to_pylist()
    (last,) = sb.run(spec | {"measure": {"fct": "sender"}}, tmp_path / "sender").table("flow").to_pylist()
    # Two links with 1 us of delay, and 64 bytes at 10 Gb/s on each.
    back_ns = 2 * (1000 + 52)
    assert last["ideal_fct_ns"] - first["ideal_fct_ns"] == back_ns
    assert abs(last["fct_ns"] - first["fct_ns"] - back_ns) <= 2
    with pytest.raises(sb.InputError, match="receiver"):
        sb.run(spec | {"measure": {"fct": "somewhere"}}, tmp_path / "wrong")


TWO: dict[str, Any] = {
    "name": "two",
    "network": {"kind": "star", "hosts": 3},
    "workload": {"kind": "incast", "senders": 2, "size": "10KB"},
    "scheme": [{"name": "dctcp"}, {"name": "reno"}],
    "run": {"duration": "1ms"},
}


def test_what_is_there_of_a_run_is_read_and_the_rest_named(subak: Subak, tmp_path: Path) -> None:
    out = tmp_path / "out"
    part = sb.run(TWO, out, trial=0)
    with pytest.warns(sb.InputWarning, match="1 of 2 trials are not complete and left out: 1"):
        assert set(part.table("flow")["scheme"].to_pylist()) == {"dctcp"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert part.table("flow", partial=True).num_rows == 2
    ended = subak("export", out, "--kind", "flow")
    assert ended.code == 0
    assert "1 of 2 trials are not complete and left out: 1" in ended.err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sb.run(TWO, out).table("flow").num_rows == 4
    assert sb.Results(out).lacking() == ""


SEEDS: dict[str, Any] = {**TWO, "scheme": [{"name": "dctcp"}], "run": {"duration": "1ms", "seeds": [1, 2, 3]}}


def test_files_that_are_gone_are_named_wherever_results_are_read(subak: Subak, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    held, other = sb.run(SEEDS, out), sb.run(SEEDS, whole)
    for gone in (out / "results.parquet", out / "trials/1.parquet"):
        gone.unlink()
    said = "1 of 3 trials are complete by the manifest, but their files are gone, and they are left out: 1"
    assert held.lacking().startswith(said)
    with pytest.warns(sb.InputWarning, match=said):
        assert held.table("flow").num_rows == 4
    with pytest.warns(sb.InputWarning, match=said):
        assert held.summary()["rows"][0]["seeds"] == 2
    with pytest.warns(sb.InputWarning, match=said):
        sb.diff(other, held)
    for command in (["export", out, "--kind", "flow"], ["diff", whole, out], ["plot", out, "--what", "table"]):
        ended = subak(*command)
        assert (ended.code, said in ended.err) == (0, True), command
    ended = subak("report", out, "--output", tmp_path / "report.html")
    assert said in ended.err
    assert said in (tmp_path / "report.html").read_text()
    assert sb.run(SEEDS, out).lacking() == ""
    assert (out / "results.parquet").read_bytes() == (whole / "results.parquet").read_bytes()


def test_the_joined_table_is_enough_and_no_file_at_all_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    held = sb.run(SEEDS, out)
    for trial in range(3):
        (out / f"trials/{trial}.parquet").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert held.summary()["rows"][0]["seeds"] == 3
    (out / "results.parquet").unlink()
    with pytest.raises(sb.InputError, match="the files of all its trials are gone"):
        held.table("flow")


def test_an_unknown_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    results = sb.run(TWO, tmp_path / "out")
    with pytest.raises(sb.InputError) as refused:
        results.table("flow", ["scheme", "slowdwn"])
    assert (refused.value.file, refused.value.place) == (None, "columns")
    assert str(refused.value) == 'columns: the results have no column "slowdwn"; did you mean "slowdown"?'


def test_overwrite_starts_anew_and_leaves_other_files(subak: Subak, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sb.run(TWO, out)
    (out / "mine.txt").write_text("mine")
    other = {**TWO, "name": "other", "scheme": [{"name": "cubic"}]}
    with pytest.raises(sb.InputError, match="overwrite=True"):
        sb.run(other, out)
    results = sb.run(other, out, overwrite=True)
    assert set(results.table("flow")["scheme"].to_pylist()) == {"cubic"}
    assert (out / "mine.txt").read_text() == "mine"
    (tmp_path / "two.json").write_text(json.dumps(TWO))
    assert subak("run", tmp_path / "two.json", "--out", out).code == 2
    assert subak("run", tmp_path / "two.json", "--out", out, "--overwrite").code == 0
    assert subak("run", tmp_path / "two.json", "--out", out, "--overwrite", "--trial", "0").code == 2
    # A folder without a run's results is never cleared.
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "manifest.json").write_text("[]")
    with pytest.raises(sb.InputError, match="not the manifest"):
        sb.run(TWO, strange, overwrite=True)
    assert (strange / "manifest.json").exists()


def test_functions_that_no_job_asks_for_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sb.InputError) as refused:
        sb.run(TWO, tmp_path / "out", policies={"mine": lambda _: {}})
    assert refused.value.place == "policies.mine"


def test_an_unknown_column_of_a_frame_has_the_nearest_name() -> None:
    network = sb.Network.generate("star", hosts=3)
    with pytest.raises(sb.InputError, match='did you mean "weight" for "weigth"'):
        sb.solve(network, flows={"src": ["h0"], "dst": ["h1"], "weigth": [2.0]})


def test_pairs_are_listed_with_what_they_serve(subak: Subak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    shown = subak("schemes", "--json").json
    served = {one["name"]: one["policies"] for one in shown["pairs"]}
    assert served["ned-central/swift"] == "alpha-fair, fct, srpt, edf"
    assert served["xwi/levels"] == "alpha-fair up to alpha 2"
    assert {"xwi/paced", "dgd/soze-virtual"}.isdisjoint(served)
    listed = subak("schemes", "--pairs").out
    assert "no: weights are no rates" in listed
    assert "no: rates do not converge" in listed
