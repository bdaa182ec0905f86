"""Standard output of the commands. A failed write becomes an input error with a hint."""

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
        # Libraries write nothing to see whether they can write, and ignore the error.
        if text == "":
            return 0
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
    """Makes ``print`` raise ``InputError`` if its output cannot be written."""
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper):
        return
    encoding, by_line, at_once = out.encoding, out.line_buffering, out.write_through
    # File names may contain any bytes: they are printed unchanged.
    sys.stdout = _Output(out.detach(), encoding, "surrogateescape", line_buffering=by_line, write_through=at_once)


def flush() -> None:
    """Flushes standard output, if there is one."""
    if sys.stdout:
        sys.stdout.flush()


def drop() -> None:
    """Discards unwritten output, so that Python's exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
