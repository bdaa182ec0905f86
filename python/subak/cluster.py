"""Trials of specs on the workers of a Dask scheduler; requires ``pip install "subak[cluster]"``.

A task is the number of a trial. The spec and the files that it names are sent once for all trials. The result is the
bytes of the trial's files, which the process that runs the sweep writes. Workers therefore need no shared folder.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import operator
import pkgutil
import re
import tempfile
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import lru_cache
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from distributed import Client, KilledWorker, LocalCluster, get_worker

from subak import _subak
from subak.build import build
from subak.errors import InputError

Came = tuple[int, bytes | None, bytes | None, str | None, float, float]
"""Result of a trial: number, table, packets, error, wall-clock time and processor time in seconds."""

WORK = "subak.cluster:work"
AHEAD = 2
"""Number of trials submitted for each worker thread: one that runs, and one that is queued."""
TOGETHER = 8
"""Largest number of results fetched at once."""
LOOK_S = 0.2
"""Interval, s, at which a run without new results checks for cancellation."""
COUNT_S = 1.0
"""Interval, s, at which workers are counted."""
LONELY_S = 300.0
"""Time, s, that a run waits while there is no worker."""
MOST_SPECS = 10
"""Largest number of times that the spec is sent again because workers die on receiving it."""
CONNECT_S = 10.0
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""Python code that makes local workers ignore Ctrl-C, which a terminal sends to them too; they end with their run."""
FULL = "No space left on device"
"""Message of the operating system for a full disk, which may appear in any error."""
KEPT = "what is complete is kept: the same command goes on from there"


@contextmanager
def opened(where: str) -> Iterator[Cluster]:
    """The workers of the scheduler at the address ``where``; ``local:N`` starts a scheduler and N workers here."""
    local = re.fullmatch(r"local:([1-9][0-9]{0,3})", where)
    if not local and not re.fullmatch(r"(tcp|tls|ws|wss)://.+:[0-9]+", where):
        hint = "give the scheduler's, such as tcp://10.0.0.1:8786, or local:N for N workers of this machine, 1 at least"
        raise InputError(None, "--cluster", f'"{where}" is no address', hint)
    # Messages about dying workers are suppressed: the results of trials show it.
    for name in ("distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if local:
        with (
            LocalCluster(
                n_workers=int(local[1]),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                preload=[DEAF],
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield Cluster(client)
        return
    try:
        client = _client(where)
    except OSError as error:
        what = f"no scheduler answers at {where}: {error}"
        hint = "start one with `dask scheduler`, and give the address that it prints"
        raise InputError(None, "--cluster", what, hint) from None
    try:
        yield Cluster(client)
    finally:
        client.close(timeout=CONNECT_S)


def _client(where: str) -> Client:
    """A client of the scheduler at ``where``. The timeout also applies to a server that accepts and sends nothing."""
    came: SimpleQueue[Client | str] = SimpleQueue()

    def connect() -> None:
        try:
            came.put(Client(where, timeout=CONNECT_S, set_as_default=False))
        except Exception as error:
            # Dask raises a TypeError for tls:// without certificates.
            failed = str(error) or type(error).__name__
        else:
            return
        # The client that failed closes when it is collected. A collection while another client starts would wait
        # forever for a lock of dask.distributed.
        gc.collect()
        came.put(failed)

    Thread(target=connect, daemon=True).start()
    try:
        client = came.get(timeout=1.5 * CONNECT_S)
    except Empty:
        raise TimeoutError("what listens there does not answer as one") from None
    if isinstance(client, str):
        raise OSError(client)
    return client


def work(job: dict[str, Any], trial: int) -> Came | dict[str, str]:
    """Runs one trial on a worker. If the result is a dict, it has the reason why this worker cannot run any trial."""
    worker = get_worker()
    if job["build"] != build():
        ours, theirs = (f"{one['version']} ({one['sources']})" for one in (build(), job["build"]))
        return {"worker": worker.address, "why": f"its build of subak is {ours}, and that of the run {theirs}"}
    key = worker.get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status.name not in ("closing", "closed")

    try:
        with tempfile.TemporaryDirectory(prefix="subak-") as folder:
            came = _spec(job["tree"], job["files"]).run_trial(trial, folder, wanted)
    except (OSError, InputError) as error:
        return {"worker": worker.address, "why": str(error)}
    except Exception as error:
        if FULL in str(error):
            return {"worker": worker.address, "why": f"{error}, in {tempfile.gettempdir()} there"}
        # Dask passes some exceptions on, but hangs silently at others.
        return trial, None, None, f"{type(error).__name__} at {worker.address}: {error}", 0.0, 0.0
    if came and came[3] and FULL in came[3]:
        return {"worker": worker.address, "why": f"{came[3]}, in {tempfile.gettempdir()} there"}
    return came or (trial, None, None, f"it was broken off at {worker.address}", 0.0, 0.0)


@lru_cache(maxsize=2)
def _spec(tree: str, files: tuple[tuple[str, bytes], ...]) -> _subak.Spec:
    """The spec, read once for all trials of a worker."""
    return _subak.Spec.brought(tree.encode(), dict(files))


class Cluster:
    """The workers of a Dask scheduler."""

    def __init__(self, client: Client, tell: Callable[[str], None] = warnings.warn) -> None:
        if not isinstance(client, Client):
            what = f"it is no client but {type(client).__name__}"
            raise InputError(None, "client", what, "give a distributed.Client(address)")
        if client.asynchronous:
            raise InputError(None, "client", "it is asynchronous", "make it without asynchronous=True")
        if client.status != "running":
            raise InputError(None, "client", f"it is {client.status}", "make one of a scheduler that answers")
        self.client = client
        self.tell = tell
        """Callback for messages to the user, such as about a worker that gets no trials."""
        self.workers = 0
        """Number of workers that run trials."""
        self.threads = 0
        """Number of trials that the workers run at once."""
        self.cpu_s = 0.0
        """Processor time of the trials, s."""

    def runs(self, spec: _subak.Spec) -> Callable[[list[int]], Iterator[Came | None]]:
        """A function that runs trials of ``spec`` on the cluster's workers."""
        if spec.is_on_hosts():
            hint = "run it here, without a cluster"
            raise InputError(None, "backend", "a testbed's trials are carried by the hosts of one machine", hint)
        return _Sweep(self, spec).come


class _Sweep:
    """The trials of one run that are in progress."""

    def __init__(self, cluster: Cluster, spec: _subak.Spec) -> None:
        tree, files = spec.parts()
        self._cluster, self._client = cluster, cluster.client
        self._name = f"subak-{uuid.uuid4().hex}"
        self._content = {"tree": tree, "files": tuple(files.items()), "build": build()}
        self._waiting: deque[int] = deque()
        self._out: dict[str, tuple[int, Any, set[str] | None]] = {}
        """By key of the task: the trial, its future, and the workers to which it is bound."""
        self._suspects: list[int] = []
        """Trials whose workers died. Each runs once more, alone, to find out which one caused it."""
        self._alone: int | None = None
        self._done: SimpleQueue[str] = SimpleQueue()
        self._sent = self._published = 0
        self._threads: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._counted = float("-inf")
        self._lonely_since = time.monotonic()

    def come(self, trials: list[int]) -> Iterator[Came | None]:
        """Yields the results of ``trials`` in any order, and ``None`` periodically while there is none."""
        self._waiting.extend(trials)
        self._publish()
        try:
            while self._waiting or self._out or self._suspects:
                yield from self._count()
                self._send()
                try:
                    keys = self._finished()
                except Empty:
                    yield None
                    continue
                yield from self._take(keys)
        finally:
            for _, future, _ in self._out.values():
                future.release()
            self._job.release()

    def _publish(self) -> None:
        """Sends the spec to the scheduler."""
        self._published += 1
        if self._published > MOST_SPECS:
            raise InputError(None, "cluster", "workers die as the spec comes to them", f"see what ends them; {KEPT}")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            # A task, not scattered data: data would be lost if the worker that stores them dies.
            self._job = self._client.submit(dict, **self._content, key=f"{self._name}-spec-{self._published}")

    def _count(self) -> Iterator[None]:
        """Counts the workers periodically."""
        if time.monotonic() - self._counted < COUNT_S:
            return
        self._threads = (yield from self._answer(self._client.scheduler.ncores())) or {}
        self._counted = time.monotonic()
        fit = self._fit()
        self._cluster.workers = len(fit)
        self._cluster.threads = sum(self._threads[worker] for worker in fit)
        if self._threads:
            self._lonely_since = self._counted
        elif self._counted - self._lonely_since > LONELY_S:
            what = f"there has been no worker for {LONELY_S:g} s"
            raise InputError(None, "cluster", what, f"start some with `dask worker {self._address()}`; {KEPT}")
        if self._threads and not fit:
            told = "; ".join(f"{worker}: {why}" for worker, why in self._refused.items() if worker in self._threads)
            raise InputError(
                None, "cluster", f"no worker can run trials. {told}", f"correct that at the workers; {KEPT}"
            )
        for key, (_, _, bound) in list(self._out.items()):
            if bound and not bound & fit:
                self._again(key)

    def _fit(self) -> set[str]:
        return set(self._threads) - set(self._refused)

    def _send(self) -> None:
        fit = self._fit()
        room = AHEAD * self._cluster.threads
        bound = fit if self._refused else None
        if self._suspects and not self._waiting and not self._out:
            self._alone = self._suspects.pop()
            self._waiting.append(self._alone)
        while self._waiting and len(self._out) < room:
            trial = self._waiting.popleft()
            self._sent += 1
            key = f"{self._name}-{trial}-{self._sent}"
            # The function is looked up by name where the task runs, since the scheduler may lack subak.
            task = (operator.call, (pkgutil.resolve_name, WORK), self._job, trial)
            future = self._client.get({key: task}, key, sync=False, workers=list(bound) if bound else None)
            self._out[key] = trial, future, bound
            future.add_done_callback(lambda _, key=key: self._done.put(key))

    def _again(self, key: str) -> None:
        trial, future, _ = self._out.pop(key)
        future.release()
        self._waiting.appendleft(trial)

    def _finished(self) -> list[str]:
        """Keys of finished trials, a few at a time."""
        keys = [self._done.get(timeout=LOOK_S)]
        while len(keys) < TOGETHER and not self._done.empty():
            keys.append(self._done.get())
        return [key for key in dict.fromkeys(keys) if key in self._out]

    def _take(self, keys: list[str]) -> Iterator[Came | None]:
        there = []
        for key in keys:
            trial, future, _ = self._out[key]
            if future.status == "finished":
                there.append(key)
            elif future.status == "error":
                yield from self._erred(key, trial, future.exception())
            elif future.status == "cancelled":
                raise self._gone()
            else:
                # Dask reset the task because its worker died.
                self._again(key)
        if not there:
            return
        futures = [self._out[key][1] for key in there]
        gather = self._client.gather(futures, asynchronous=True)
        answers = yield from self._answer(gather, lambda: all(future.status == "finished" for future in futures))
        if answers is None:
            # A worker died during the transfer: the state of each task is checked again.
            for key in there:
                self._done.put(key)
            return
        for key, answer in zip(there, answers, strict=True):
            if isinstance(answer, dict):
                self._refuse(answer["worker"], answer["why"])
                self._again(key)
            else:
                self._cluster.cpu_s += answer[5]
                self._forget(key)
                yield answer

    def _erred(self, key: str, trial: int, error: BaseException) -> Iterator[Came | None]:
        if isinstance(error, KilledWorker):
            if error.task != key:
                # The task with the spec failed, since workers died on receiving it.
                if error.task == self._job.key:
                    self._publish()
                self._again(key)
                return
            if trial != self._alone:
                self._forget(key)
                self._suspects.append(trial)
                return
            last = getattr(error.last_worker, "address", "unknown")
            died = error.allowed_failures + 1
            why = f"its workers died, {died} in a row, the last {last}: perhaps memory ran out"
        else:
            why = f"{type(error).__name__}: {error}"
            if isinstance(error, ImportError) and self._find_lacking():
                self._again(key)
                return
        self._forget(key)
        yield trial, None, None, why, 0.0, 0.0

    def _find_lacking(self) -> bool:
        """Refuses workers that cannot import subak, which the scheduler's error does not name.

        Returns whether there are any.
        """
        found = self._client.run(pkgutil.resolve_name, WORK, on_error="return")
        lacking = {worker: error for worker, error in found.items() if isinstance(error, BaseException)}
        for worker, error in lacking.items():
            self._refuse(worker, f"it cannot load subak: {error}")
        return bool(lacking)

    def _forget(self, key: str) -> None:
        self._out.pop(key)[1].release()

    def _refuse(self, worker: str, why: str) -> None:
        if worker not in self._refused:
            self._refused[worker] = why
            self._cluster.tell(f"worker {worker} gets no more trials: {why}")
        self._counted = float("-inf")

    def _address(self) -> str:
        return str(self._client.scheduler.address)

    def _answer(
        self, asked: Coroutine[Any, Any, Any], matters: Callable[[], bool] = lambda: True
    ) -> Generator[None, None, Any]:
        """The scheduler's reply, or ``None`` if it is no longer needed; the caller may cancel meanwhile."""
        coming = asyncio.run_coroutine_threadsafe(asked, self._client.loop.asyncio_loop)
        try:
            while True:
                try:
                    return coming.result(timeout=LOOK_S)
                except Exception as error:
                    if not matters():
                        return None
                    if coming.done():
                        raise self._gone() if isinstance(error, (OSError, CancelledError)) else error from None
                yield None
        finally:
            coming.cancel()

    def _gone(self) -> InputError:
        what = f"the scheduler at {self._address()} went away, or dropped what it had"
        return InputError(None, "cluster", what, f"start it again; {KEPT}")
