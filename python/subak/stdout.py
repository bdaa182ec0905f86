"""Standard output of the commands: where it cannot be written, an error says so."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from subak.errors import InputError

STDOUT = "standard output"


class _Output(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        with _failures_told():
            return super().write(text)

    def flush(self) -> None:
        with _failures_told():
            super().flush()


@contextmanager
def _failures_told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        drop()
        what = f"it cannot be written: {error.strerror}"
        raise InputError(None, STDOUT, what, "write to a place that has room") from None


def watch() -> None:
    """From now on ``print`` raises ``InputError`` where its output cannot be written."""
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper):
        return
    encoding, by_line, at_once = out.encoding, out.line_buffering, out.write_through
    # Names of files have any bytes: they are shown as they came.
    sys.stdout = _Output(out.detach(), encoding, "surrogateescape", line_buffering=by_line, write_through=at_once)


def flush() -> None:
    """What waits to be written is written; there may be no output at all."""
    if sys.stdout:
        sys.stdout.flush()


def drop() -> None:
    """Nobody gets what is left, so that nothing fails again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
