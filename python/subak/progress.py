"""Progress of a run on standard error: a bar on a terminal, otherwise JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from subak.hooks import Listener

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

EVERY_S = 1.0
"""Smallest time between two JSON lines, s, unless the number of finished trials changes."""


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Shows on a terminal that work of unknown duration is in progress."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False).status(doing):
        yield


Workers = Callable[[], int | None]
"""Callback that returns the number of a cluster's workers; ``None`` without a cluster."""


def _no_cluster() -> None:
    """Callback for runs without a cluster: there is no number of workers."""


@contextmanager
def listening(wanted: Listener | bool | None, name: str, workers: Workers = _no_cluster) -> Iterator[Listener | None]:
    """The listener for progress: the caller's function, or a bar if the output is visible."""
    if callable(wanted):
        yield wanted
        return
    if wanted is False or (wanted is None and not (sys.stderr.isatty() or _in_notebook())):
        yield None
        return
    from tqdm.auto import tqdm

    form = "{desc}: {percentage:3.0f}%|{bar}| {postfix}{elapsed}<{remaining}"
    with tqdm(total=1.0, desc=name, bar_format=form) as bar:

        def show(done: int, trials: int, fraction: float) -> None:
            bar.set_postfix_str(f"{done} of {trials} trials{_on(workers())} ", refresh=False)
            bar.update(fraction - bar.n)

        yield show


def _on(workers: int | None) -> str:
    return "" if workers is None else f", {workers} worker{'' if workers == 1 else 's'}"


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and "IPKernelApp" in getattr(shell.get_ipython(), "config", {})


class Reporter:
    """Shows the progress of one run inside its ``with`` block; each call updates the progress."""

    def __init__(self, name: str, workers: Workers = _no_cluster) -> None:
        self._name = name
        self._workers = workers
        self._begun = time.monotonic()
        self._said = (-1, 0.0)
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Reporter:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[trials]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._name, total=1.0, trials="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Prints a message for the user during the run."""
        if self._bar:
            self._bar.console.print(f"subak: {text}", markup=False, highlight=False)
        else:
            print(json.dumps({"event": "note", "run": self._name, "note": text}), file=sys.stderr)

    def __call__(self, done: int, trials: int, fraction: float) -> None:
        """Shows the number of finished trials, of all trials, and the fraction of the work done."""
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=fraction, trials=f"{done}/{trials} trials{_on(self._workers())}")
            return
        seconds = time.monotonic() - self._begun
        last_done, last_seconds = self._said
        if done != last_done or seconds - last_seconds >= EVERY_S:
            self._said = (done, seconds)
            line: dict[str, object] = {"event": "progress", "run": self._name, "done": done, "trials": trials}
            if (workers := self._workers()) is not None:
                line["workers"] = workers
            print(json.dumps({**line, "fraction": round(fraction, 4), "seconds": round(seconds, 1)}), file=sys.stderr)
