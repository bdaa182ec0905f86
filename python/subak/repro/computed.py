"""What experiments of the kind ``python`` share: their settings, their jobs, and the values of their reports."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

from subak.errors import InputError

J = TypeVar("J")
R = TypeVar("R")

Progress = Callable[[int, int, float], None]
THREADS: ContextVar[int | None] = ContextVar("threads", default=None)
"""Number of threads of ``Jobs.each``; one per processor by default."""


class Settings:
    """Settings of an experiment; a setting that the experiment does not know is an error."""

    def __init__(self, given: dict[str, Any], *known: str) -> None:
        self.given = given
        for name in given:
            if name not in known:
                hint = f"choose among: {', '.join(known)}" if known else "it has no settings"
                raise InputError(None, f"settings.{name}", "the experiment has no such setting", hint)

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """The setting ``name``, from ``least`` to ``most``."""
        given = self.given.get(name, default)
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not least <= given <= most:
            hint = f"give a number from {least:g} to {most:g}"
            raise InputError(None, f"settings.{name}", f"it is {given!r}", hint)
        return float(given)

    def count(self, name: str, default: int, most: int) -> int:
        """The setting ``name`` as a whole number, from 1 to ``most``."""
        return rounded(self.number(name, default, 1, most))


class Jobs:
    """The jobs of an experiment, of which there are ``of`` in all."""

    def __init__(self, of: int, progress: Progress) -> None:
        self.of, self.done, self.progress = of, 0, progress

    def each(self, jobs: Sequence[J], work: Callable[[J], R]) -> list[R]:
        """The results of ``work`` on every job, in order. Threads help as far as ``work`` releases the interpreter."""
        threads = min(THREADS.get() or os.cpu_count() or 1, len(jobs))
        if threads < 2:
            return [self._tell(work(job)) for job in jobs]
        with ThreadPoolExecutor(threads) as pool:
            try:
                return [self._tell(result) for result in pool.map(work, jobs)]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _tell(self, result: R) -> R:
        self.done += 1
        self.progress(self.done, self.of, self.done / self.of)
        return result


def sample(statistic: str, of: str, data: Iterable[float]) -> dict[str, Any]:
    """The ``statistic`` (``median``, ``p95``, ``mean``, ``max``) of data with one value for each of ``of``."""
    return {"statistic": statistic, "data": [finite(x) for x in data], "of": of}


def ratio(statistic: str, of: str, data: Iterable[float], over: Iterable[float]) -> dict[str, Any]:
    """The statistic of ``data`` over that of ``over``, each with one value for each of ``of``."""
    return sample(statistic, of, data) | {"over": [finite(x) for x in over]}


def share(of: str, hits: int, count: int) -> dict[str, Any]:
    """The fraction ``hits`` / ``count`` of ``of``."""
    return {"statistic": "share", "hits": int(hits), "count": int(count), "of": of}


def finite(x: float) -> float | None:
    """The number; ``None`` if it is infinite or NaN."""
    return float(x) if math.isfinite(x) else None


def rounded(x: float) -> int:
    """The nearest whole number; halves away from zero."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def quantile(values: Iterable[float], q: float) -> float:
    """The ``q``-quantile of the values without interpolation; NaN without values."""
    ordered = sorted(values)
    return ordered[rounded((len(ordered) - 1) * q)] if ordered else math.nan


def largest(values: Iterable[float]) -> float:
    """The largest of values that are not negative; 0 without values."""
    return max(values, default=0.0)


def total(values: Iterable[float]) -> float:
    """The sum, added one after the other: the same bits under every version of Python."""
    held = 0.0
    for value in values:
        held += value
    return held
