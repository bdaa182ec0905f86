"""Repeats of what a busy machine disturbs. An attempt counts against the code only where the machine kept time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

SLEEP_S = 0.001
# On two virtual processors that other tests use as well, a sleep of 1 ms is late by 0.1 to 0.25 ms on average.
MEAN_LATE_MS = 0.5
MOST_LATE_MS = 50


class Attempts:
    """Numbers of attempts, to be iterated over; :meth:`fail` once none of them was good."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._late: list[tuple[float, float]] = []

    def __iter__(self) -> Iterator[int]:
        for number in range(self._most):
            with _Beat() as beat:
                yield number
            self._late.append(beat.late())

    def fail(self, text: str) -> None:
        """Fails; skips the test if in every attempt a thread that sleeps for 1 ms woke too late."""
        if self._late and all(mean > MEAN_LATE_MS or most > MOST_LATE_MS for mean, most in self._late):
            late = ", ".join(f"{mean:.2f} and {most:.0f} ms" for mean, most in self._late)
            pytest.skip(f"{text}, but the machine was late in each attempt, on average and at most by {late}")
        pytest.fail(text)


class _Beat(threading.Thread):
    """A thread that sleeps for 1 ms again and again; how late it wakes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ends = threading.Event()
        self._sum_s = self._most_s = 0.0
        self._number = 0

    def __enter__(self) -> _Beat:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.join()

    def run(self) -> None:
        while not self._ends.is_set():
            before = time.monotonic()
            time.sleep(SLEEP_S)
            late = time.monotonic() - before - SLEEP_S
            self._sum_s += late
            self._most_s = max(self._most_s, late)
            self._number += 1

    def late(self) -> tuple[float, float]:
        """Mean and maximum, ms."""
        return self._sum_s / max(self._number, 1) * 1e3, self._most_s * 1e3
