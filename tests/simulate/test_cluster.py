"""Trials on the workers of a Dask scheduler give the bytes of a local run, even if workers die or the disk is full."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import subak as sb
from conftest import COMMAND, ROOT, Subak
from dask_processes import Dask, within
from distributed import Client
from subak import cluster

SPEC: dict[str, Any] = {
    "name": "small",
    "network": {"kind": "star", "hosts": 8, "rate": "10Gbps"},
    "workload": {"kind": "poisson", "sizes": "web-search", "load": [0.4, 0.7]},
    "scheme": [{"name": "dctcp"}, {"name": "s-perc"}],
    "run": {"duration": "10ms", "seeds": 2},
}
TRIALS = 8
OTHER_BUILD = "import subak.build; subak.build.build = lambda: {'version': '0.0.1', 'sources': 'old'}"
NO_ROOM = """
import tempfile
def full(**_): raise OSError(28, 'No space left on device')
tempfile.TemporaryDirectory = full
"""
NO_SUBAK = "import sys; sys.modules['subak'] = None"
BAD_TRIALS = """
import os, subak.cluster as c
work = getattr(c.work, "work", c.work)  # it is loaded twice
def bad(job, trial):
    if trial == 3: os._exit(1)
    return (4, None, None, 'out of luck', 0.1, 0.1) if trial == 4 else work(job, trial)
bad.work, c.work = work, bad
"""
NOT_ITS_TABLE = """
import subak.cluster as c
work = getattr(c.work, "work", c.work)
def bad(job, trial):
    if trial == 6: return (trial, b'PAR1' * 9, None, None, 0.0, 0.0)
    return (trial, *work(job, 0)[1:]) if trial == 5 else work(job, trial)
bad.work, c.work = work, bad
"""


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Callable[..., Dask]]:
    """A function that starts schedulers, which end with the test."""
    with contextlib.ExitStack() as stack:

        def make(**environment: str) -> Dask:
            folder = tmp_path / "dask"
            folder.mkdir()
            made = Dask(folder, **environment)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """A scheduler with two workers, for tests that leave both unchanged."""
    made = Dask(tmp_path_factory.mktemp("dask"))
    made.worker()
    made.worker()
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(two: Dask) -> Iterator[Client]:
    with Client(two.address, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "small.json"
    path.write_text(json.dumps(SPEC))
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Bytes of the results of a local run."""
    out = tmp_path_factory.mktemp("whole") / "out"
    sb.run(SPEC, out)
    return results(out)


def results(out: Path) -> bytes:
    return (out / "results.parquet").read_bytes()


def trials_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "trials").iterdir()}


def test_200_trials_with_workers_that_die_and_one_that_comes_late(
    dask: Callable[..., Dask], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = SPEC | {"run": {"duration": "3ms", "seeds": 50}}
    sb.run(many, tmp_path / "local")
    made = dask()
    first, second = made.worker(), made.worker()
    heard: list[tuple[int, int, float]] = []

    def disturb(done: int, trials: int, fraction: float) -> None:
        heard.append((done, trials, fraction))
        if done >= 20 and first.poll() is None:
            first.send_signal(signal.SIGKILL)
            first.wait()
            made.worker()
        if done >= 100 and second.poll() is None:
            # The remaining trials are those of the worker that started late.
            second.send_signal(signal.SIGKILL)
            second.wait()

    with Client(made.address, set_as_default=False) as client:
        run = sb.run(many, tmp_path / "cluster", client=client, progress=disturb)
    assert run.failed == {}
    assert (first.returncode, second.returncode) == (-signal.SIGKILL, -signal.SIGKILL)
    assert heard[-1][:2] == (200, 200)
    assert [done for done, _, _ in heard] == sorted(done for done, _, _ in heard)
    assert trials_of(tmp_path / "cluster") == trials_of(tmp_path / "local")
    assert results(tmp_path / "cluster") == results(tmp_path / "local")
    assert all(trial["wall_s"] > 0 and trial["cpu_s"] > 0 for trial in run.manifest["trials"])


def test_overhead_a_trial(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the overhead of a trial. It has no limit, since it depends on the machine."""
    tiny = SPEC | {
        "workload": {"kind": "incast", "senders": 2, "size": "1kB"},
        "run": {"duration": "1ms", "seeds": 100},
    }
    client.wait_for_workers(2, timeout=30)
    first = {"name": "first", "run": {"duration": "1ms", "seeds": 5}}
    sb.run(tiny | first, tmp_path / "first", client=client)
    begun = time.monotonic()
    run = sb.run(tiny, tmp_path / "out", client=client)
    seconds = time.monotonic() - begun
    spent = sum(trial["wall_s"] for trial in run.manifest["trials"])
    assert run.complete
    assert len(run.manifest["trials"]) == 200
    with capsys.disabled():
        print(f"\noverhead a trial: {1e3 * (seconds - spent / 2) / 200:.1f} ms of 200 trials on 2 workers")


def test_files_that_a_spec_names_go_along(client: Client, tmp_path: Path) -> None:
    here = tmp_path / "specs"
    (here / "sub").mkdir(parents=True)
    links = [{"source": f"h{i}", "target": "s", "capacity": "10Gbps", "delay": "1us"} for i in range(4)]
    nodes = [{"id": f"h{i}", "kind": "host"} for i in range(4)] + [{"id": "s", "kind": "switch"}]
    net = {"directed": False, "multigraph": False, "nodes": nodes, "links": links}
    (here / "sub/net.json").write_text(json.dumps(net))
    (tmp_path / "sizes.csv").write_text("size_bytes,probability\n1000,0.5\n20000,1\n")
    flows = {
        "start": [0.0, 1e-4, 2e-4],
        "src": ["h0", "h1", "h3"],
        "dst": ["h2", "h2", "h0"],
        "size": [9000, 80000, 1],
    }
    pq.write_table(pa.table(flows), tmp_path / "flows.parquet")
    base = {"scheme": [{"name": "dctcp"}], "run": {"duration": "1ms", "seeds": 2}}
    poisson = {"kind": "poisson", "load": 0.5, "sizes": [{"file": str(tmp_path / "sizes.csv")}, "web-search"]}
    trace = {"kind": "trace", "file": "../flows.parquet"}
    for name, spec in {
        "sizes": {"network": {"file": "sub/net.json"}, "workload": poisson, "measure": {"packets": True}, **base},
        "trace": {"network": [{"file": "sub/net.json"}, net], "workload": trace, **base},
    }.items():
        (here / f"{name}.json").write_text(json.dumps(spec))
        sb.run(here / f"{name}.json", tmp_path / name / "local")
        run = sb.run(here / f"{name}.json", tmp_path / name / "cluster", client=client)
        assert run.failed == {}
        assert len(trials_of(tmp_path / name / "local")) == 4 * (2 if name == "sizes" else 1)
        assert trials_of(tmp_path / name / "cluster") == trials_of(tmp_path / name / "local")
        assert results(tmp_path / name / "cluster") == results(tmp_path / name / "local")


def test_a_folder_that_is_half_there(client: Client, whole: bytes, tmp_path: Path) -> None:
    """A cluster completes a folder that local runs began, in any order, before the spec was extended."""
    out = tmp_path / "out"
    for trial in (6, 1, 3):
        sb.run(SPEC, out, trial=trial)
    held = trials_of(out)
    heard: list[tuple[int, int]] = []
    sb.run(SPEC, out, client=client, progress=lambda done, trials, _: heard.append((done, trials)))
    assert heard[-1] == (TRIALS - 3, TRIALS - 3)
    assert results(out) == whole
    assert held.items() <= trials_of(out).items()
    grown = SPEC | {"run": {"duration": "10ms", "seeds": 3}}
    heard.clear()
    sb.run(grown, out, client=client, progress=lambda done, trials, _: heard.append((done, trials)))
    assert heard[-1] == (4, 4)
    sb.run(grown, tmp_path / "grown")
    assert results(out) == results(tmp_path / "grown")
    heard.clear()
    assert sb.run(grown, out, client=client, progress=lambda done, trials, _: heard.append((done, trials))).complete
    assert heard == []


def test_the_command_tells_of_workers(subak: Subak, two: Dask, spec: Path, whole: bytes, tmp_path: Path) -> None:
    ended = subak("run", spec, "--out", tmp_path / "out", "--cluster", two.address, "--json")
    assert ended.code == 0, ended
    (run,) = ended.json["runs"]
    assert (run["trials"], run["ran"], run["failed"], run["merged"]) == (TRIALS, TRIALS, {}, True)
    last = json.loads(ended.err.splitlines()[-1])
    assert (last["done"], last["trials"], last["workers"]) == (TRIALS, TRIALS, 2)
    assert results(tmp_path / "out") == whole
    ended = subak("run", ROOT / "examples/demo.toml", "--out", tmp_path / "out", "--cluster", two.address)
    assert (ended.code, "another spec" in ended.err) == (2, True), ended


def test_workers_of_this_machine(subak: Subak, spec: Path, whole: bytes, tmp_path: Path) -> None:
    ended = subak("run", spec, "--out", tmp_path / "out", "--cluster", "local:1", "--json")
    assert ended.code == 0, ended
    assert results(tmp_path / "out") == whole
    assert '"workers": 1' in ended.err


def test_an_experiment(subak: Subak, two: Dask, tmp_path: Path) -> None:
    asked = ("--cluster", two.address, "--json")
    ended = subak("repro", "numfabric-fig9", "--out", tmp_path / "out", *asked)
    assert ended.code == 0, ended
    local = subak("repro", "numfabric-fig9", "--out", tmp_path / "local", "--json")
    assert ended.json["checks"] == local.json["checks"]
    assert ended.json["jobs"] == 2
    assert ended.json["cpu_seconds"] > 0
    ended = subak("repro", "perc-fig2.3", "--out", tmp_path / "other", *asked)
    assert (ended.code, "no trials to send" in ended.err) == (2, True), ended


def test_workers_of_another_build_and_without_subak_or_room_get_no_trials(
    dask: Callable[..., Dask], subak: Subak, spec: Path, whole: bytes, tmp_path: Path
) -> None:
    made = dask()
    odd = [made.worker("--preload", text) for text in (OTHER_BUILD, NO_SUBAK, NO_ROOM)]
    with Client(made.address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=30)
    ended = subak("run", spec, "--out", tmp_path / "out", "--cluster", made.address)
    assert ended.code == 2, ended
    assert "0.0.1 (old)" in ended.err
    assert "it cannot load subak" in ended.err
    assert "No space left" in ended.err
    assert "Traceback" not in ended.err
    # With a worker of this build the run completes.
    made.worker()
    with Client(made.address, set_as_default=False) as client:
        client.wait_for_workers(4, timeout=30)
        said: list[str] = []
        workers = cluster.Cluster(client, said.append)
        assert sb.run(SPEC, tmp_path / "out", client=workers).complete
        assert all("gets no more trials" in one for one in said)
    assert results(tmp_path / "out") == whole
    assert [one.poll() for one in odd] == [None] * 3


@pytest.mark.parametrize("where", ["10.0.0.1:8786", "local:0", "local:", "tcp://nowhere", ""])
def test_no_address(subak: Subak, spec: Path, tmp_path: Path, where: str) -> None:
    ended = subak("run", spec, "--out", tmp_path / "out", "--cluster", where)
    assert (ended.code, "is no address" in ended.err, len(ended.err.splitlines())) == (2, True, 1), ended
    assert not (tmp_path / "out").exists()


def open_clients() -> set[str]:
    return {one.id for one in gc.get_objects() if isinstance(one, Client) and one.status != "closed"}


def test_a_scheduler_that_nobody_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with pytest.raises(sb.InputError, match=r"no scheduler answers at tcp://127.0.0.1:1: .*dask scheduler"):
        cluster.opened("tcp://127.0.0.1:1").__enter__()


def test_a_port_that_takes_a_connection_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        where = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(sb.InputError, match="does not answer as one"):
            cluster.opened(where).__enter__()


def test_tls_without_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client that failed is gone: a later collection of it may wait forever for another one that starts."""
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    before = open_clients()
    gc.disable()
    try:
        with pytest.raises(sb.InputError, match=r"no scheduler answers at tls://127.0.0.1:1: "):
            cluster.opened("tls://127.0.0.1:1").__enter__()
        assert open_clients() <= before
    finally:
        gc.enable()


@pytest.mark.parametrize("option", [("--jobs", "2"), ("--trial", "0"), ("--watch",)])
def test_options_that_make_no_sense_beside_it(
    subak: Subak, spec: Path, tmp_path: Path, option: tuple[str, ...]
) -> None:
    ended = subak("run", spec, "--out", tmp_path / "out", "--cluster", "local:1", *option)
    assert (ended.code, ended.err.startswith(f"subak: {option[0]}: ")) == (2, True), ended


def test_what_is_not_sent(client: Client, tmp_path: Path) -> None:
    with pytest.raises(sb.InputError, match="client: it is no client but str"):
        sb.run(SPEC, tmp_path / "out", client="tcp://127.0.0.1:1")  # type: ignore[arg-type]
    with pytest.raises(sb.InputError, match="policies: "):
        sb.run(SPEC, tmp_path / "out", client=client, policies={"mine": lambda *_: {}})
    with pytest.raises(sb.InputError, match="trial: "):
        sb.run(SPEC, tmp_path / "out", client=client, trial=0)
    with pytest.raises(sb.InputError, match="hosts of one machine"):
        sb.run(SPEC | {"scheme": [{"name": "dctcp"}]}, tmp_path / "out", client=client, backend="testbed")
    assert not (tmp_path / "out").exists()


def test_without_dask(spec: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['distributed'] = None; from subak.cli import main; main()"
    command = [sys.executable, "-c", code, "run", spec, "--out", tmp_path / "out", "--cluster", "local:1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr == 'subak: distributed is missing; install it: pip install "subak[cluster]"\n'
    code = "import sys, subak.cli; print([name for name in sys.modules if name.startswith(('dask', 'distributed'))])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "[]\n", "the command starts without it"


def test_ctrl_c(dask: Callable[..., Dask], whole: bytes, spec: Path, tmp_path: Path) -> None:
    made = dask()
    made.worker()
    out = tmp_path / "out"
    words = [COMMAND, "run", spec, "--out", out, "--cluster", made.address]
    # Trials of several minutes: their worker cancels them.
    long = SPEC | {"name": "long", "run": {"duration": "60s", "seeds": 2}}
    (tmp_path / "long.json").write_text(json.dumps(long))
    slow = subprocess.Popen([COMMAND, "run", tmp_path / "long.json", "--out", tmp_path / "long", *words[-2:]])
    with Client(made.address, set_as_default=False) as client:
        within(30, lambda: any(client.processing().values()))
        slow.send_signal(signal.SIGINT)
        assert slow.wait(30) == 130
        assert not list((tmp_path / "long/trials").iterdir())
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        within(30, lambda: (out / "trials/0.parquet").exists())
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)[0].decode()
        assert "Traceback" not in said
        assert running.returncode in (130, 0), said
        within(30, lambda: not any(client.processing().values()))
    assert running.returncode == 0 or "the same command resumes" in said
    assert sb.run(SPEC, out).complete
    assert results(out) == whole


def test_a_scheduler_that_goes_away(dask: Callable[..., Dask], whole: bytes, tmp_path: Path) -> None:
    made = dask()
    made.worker()

    def kill(done: int, trials: int, fraction: float) -> None:
        if done >= 2 and made.scheduler.poll() is None:
            made.scheduler.kill()
            made.scheduler.wait()

    many = SPEC | {"run": {"duration": "5ms", "seeds": 25}}
    client = Client(made.address, set_as_default=False)
    with pytest.raises(sb.InputError, match=r"went away, .* what is complete is kept"):
        sb.run(many, tmp_path / "out", client=client, progress=kill)
    client.close(timeout=1)
    held = len(list((tmp_path / "out/trials").iterdir()))
    assert 2 <= held < 100
    sb.run(many, tmp_path / "out")
    sb.run(many, tmp_path / "local")
    assert results(tmp_path / "out") == results(tmp_path / "local")


def test_nobody_comes(dask: Callable[..., Dask], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cluster, "LONELY_S", 1.5)
    with (
        Client(dask().address, set_as_default=False) as client,
        pytest.raises(sb.InputError, match=r"no worker for 1.5 s; start some with `dask worker tcp://127"),
    ):
        sb.run(SPEC, tmp_path / "out", client=client)


def test_a_trial_that_kills_its_workers(dask: Callable[..., Dask], whole: bytes, tmp_path: Path) -> None:
    """Trials queued behind the one that kills workers do not fail. The error of another failed trial is the
    worker's."""
    made = dask(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    made.worker("--nanny", "--preload", BAD_TRIALS)
    with Client(made.address, set_as_default=False) as client:
        run = sb.run(SPEC, tmp_path / "out", client=client)
    assert run.failed.keys() == {3, 4}
    assert "its workers died, 1 in a row" in run.failed[3]
    assert run.failed[4] == "out of luck"
    assert sorted(trials_of(tmp_path / "out")) == sorted(
        f"{trial}.{'error.json' if trial in (3, 4) else 'parquet'}" for trial in range(TRIALS)
    )
    sb.run(SPEC, tmp_path / "out")
    assert results(tmp_path / "out") == whole


def test_what_is_no_table_of_the_trial_is_not_kept(dask: Callable[..., Dask], whole: bytes, tmp_path: Path) -> None:
    made = dask()
    made.worker("--preload", NOT_ITS_TABLE)
    with Client(made.address, set_as_default=False) as client:
        run = sb.run(SPEC, tmp_path / "out", client=client)
    assert run.failed.keys() == {5, 6}
    assert "no table of this trial" in run.failed[5]
    sb.run(SPEC, tmp_path / "out")
    assert results(tmp_path / "out") == whole


def test_many_begin_in_one_folder_trial_by_trial(spec: Path, whole: bytes, tmp_path: Path) -> None:
    """Many processes start in one folder, each with one trial, as the jobs of a batch system do."""
    for attempt in range(2):
        out = tmp_path / str(attempt)
        command = [COMMAND, "run", spec, "--out", out, "--jobs", "1", "--trial"]
        all_at_once = [subprocess.Popen([*command, str(trial)], stdout=subprocess.DEVNULL) for trial in range(TRIALS)]
        assert [one.wait(60) for one in all_at_once] == [0] * TRIALS
        assert len(trials_of(out)) == TRIALS
        sb.run(SPEC, out)
        assert results(out) == whole


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="only root can make a small disk")
def test_a_worker_whose_disk_is_full(dask: Callable[..., Dask], whole: bytes, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "small", disk], check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    made = dask()
    try:
        (disk / "fill").write_bytes(bytes(4096))
        made.worker("--preload", f"import tempfile; tempfile.tempdir = {str(disk)!r}")
        with Client(made.address, set_as_default=False) as client:
            gone = pytest.raises(sb.InputError, match="No space left")
            with gone, pytest.warns(UserWarning, match="No space left"):
                sb.run(SPEC, tmp_path / "alone", client=client)
            made.worker()
            client.wait_for_workers(2)
            with warnings.catch_warnings(action="ignore"):
                run = sb.run(SPEC, tmp_path / "out", client=client)
        assert run.failed == {}
        assert results(tmp_path / "out") == whole
    finally:
        # The worker is still alive.
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="only root can make a small disk")
def test_a_full_disk(subak: Subak, two: Dask, spec: Path, whole: bytes, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "small", disk], check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        ended = subak("run", spec, "--out", disk / "out", "--cluster", two.address)
        assert ended.code == 2, ended
        assert "No space left" in ended.err
        assert str(disk) in ended.err
        assert "Traceback" not in ended.err
        assert not list(disk.rglob("*.part"))
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        ended = subak("run", spec, "--out", disk / "out", "--cluster", two.address, "--json")
        assert ended.code == 0, ended
        assert results(disk / "out") == whole
    finally:
        subprocess.run(["umount", disk], check=True)
