"""Reading of inputs: files, standard input, and Python objects as JSON."""

from __future__ import annotations

import datetime
import difflib
import functools
import inspect
import json
import math
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from subak import _subak
from subak.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

MOST_BYTES = 1 << 30
"""Largest input, bytes."""


def read(path: str | os.PathLike[str]) -> tuple[bytes, str]:
    """The bytes of a file, or of standard input for ``-``, and the name for messages."""
    if os.fspath(path) == "-":
        return _bounded(sys.stdin.buffer.read(MOST_BYTES + 1), "<stdin>"), "<stdin>"
    name = os.fspath(path)
    with _readable(name):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(name, "", "this is a directory", "name a file in it")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise InputError(name, "", "this is not a file", "name a regular file, or - for standard input")
        with open(path, "rb") as file:
            return _bounded(file.read(MOST_BYTES + 1), name), name


def check_file(name: str) -> None:
    """Raises ``InputError`` unless the path is a regular file that can be read."""
    with _readable(name):
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(name, "", "is a directory", "name a file in it")
        if not stat.S_ISREG(mode):
            raise InputError(name, "", "is not a regular file", "name one")
        with open(name, "rb"):
            pass


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Converts an operating system's error about an unreadable file to an ``InputError``."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(name, "", "there is no such file", "check the path") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(name, "", f"it cannot be read: {what}", "check the path and its permissions") from None


def flow_number(flow: int) -> int:
    """The number of a flow; an error for what is no such number."""
    if isinstance(flow, bool) or not hasattr(flow, "__index__") or not 0 <= flow < 1 << 32:
        raise InputError(None, "flow", f"it is {flow!r}", "give the number that add returned")
    return flow


def time_ns(place: str, given: int | str) -> int:
    """A time in ns: a whole number of nanoseconds, or text with a unit."""
    if isinstance(given, str):
        return _subak.nanoseconds(given)
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise InputError(None, place, f"it is {given!r}", 'give a whole number of nanoseconds, or text such as "5ms"')
    if given.__index__() < 0:
        raise InputError(None, place, f"it is {given!r}", "give a time of at least 0")
    return given.__index__()


def keywords(call: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function or method: an unknown keyword raises an error that names the nearest known one."""
    known = [name for name in inspect.signature(call).parameters if name not in ("self", "cls")]
    called = call.__qualname__.removesuffix(".__new__").removesuffix(".__init__")

    @functools.wraps(call)
    def checked(*args: P.args, **given: P.kwargs) -> T:
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name.lower(), known, 1)
                hint = f'did you mean "{near[0]}"?' if near else f"choose from: {', '.join(known)}"
                raise TypeError(f'{called}: unknown keyword "{name}"; {hint}')
        return call(*args, **given)

    return checked


def check_flag(place: str, given: object) -> None:
    """Raises ``InputError`` for a value that is neither true nor false: Python treats ``"no"`` as true."""
    if not (isinstance(given, bool) or type(given).__name__ in ("bool", "bool_")):
        raise InputError(None, place, f"{given!r} is neither True nor False", "set True or False, without quotes")


def read_json(path: str | os.PathLike[str]) -> Any:
    """The value in a JSON file."""
    data, name = read(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(name, "", f"it is not JSON: {error}", "write it as JSON") from None


def folder_of(name: str) -> str:
    """The folder to which file names inside the input ``name`` are relative."""
    return str(Path(name).parent) if name != "<stdin>" else "."


def to_json(value: Any) -> bytes:
    """A Python object as JSON; numpy's scalars and arrays are numbers and lists."""
    try:
        return json.dumps(value, allow_nan=False, default=_plain).encode()
    except ValueError as error:
        if "float" in str(error):
            for place, number in _not_finite(value, ""):
                raise InputError(None, place, f"the value is {number}", "give a finite number") from None
        raise InputError(None, "", str(error), "give dicts, lists, strings and finite numbers") from None
    except TypeError as error:
        place = next(_not_plain_at(value, ""), "")
        raise InputError(None, place, str(error), "give dicts, lists, strings and finite numbers") from None
    except RecursionError as error:
        raise InputError(None, "", str(error), "give dicts, lists, strings and finite numbers") from None


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise InputError(name, "", "it is larger than 1 GiB", "pass flows of this number as arrays, from Python")
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return _nanoseconds(value)
    if hasattr(value, "tolist"):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        return _texts_of_times(value) if kind == "m" else _without_dates(value) if kind == "M" else value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal | Fraction):
        return float(value)
    if isinstance(value, datetime.date):
        if value != value:
            raise TypeError("the time is missing (NaT)")
        raise TypeError(f"{value} is a date, and times count from the start of the run")
    raise TypeError(f"{type(value).__name__} is not a value of a case")


def _nanoseconds(value: datetime.timedelta) -> str:
    """A difference of times as text with its unit; pandas' differences have nanoseconds too."""
    if value != value:
        raise TypeError("the time is missing (NaT)")
    whole = (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
    return f"{whole + getattr(value, 'nanoseconds', 0)}ns"


def _texts_of_times(value: Any) -> Any:
    """Differences of times of numpy, one or an array, as text with its unit."""
    import numpy as np

    if np.datetime_data(value.dtype)[0] == "generic":
        raise TypeError("the time has no unit")
    whole = value.astype("timedelta64[ns]")
    if np.isnat(whole).any() or (whole.astype(value.dtype) != value).any():
        raise TypeError("the time is missing (NaT), or too long")
    texts = np.char.add(whole.astype(np.int64).astype(str), "ns")
    return texts.tolist()


def _without_dates(value: Any) -> Any:
    raise TypeError(f"{value!r:.60} is a date, and times count from the start of the run")


def _not_plain_at(value: Any, place: str) -> Iterator[str]:
    """Places of values that have no JSON."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _not_plain_at(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _not_plain_at(inner, f"{place}[{i}]")
    elif not isinstance(value, str | int | float | bool | None):
        try:
            _plain(value)
        except TypeError:
            yield place


def _not_finite(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _not_finite(inner, f"{place}[{i}]")
    elif hasattr(value, "tolist"):
        yield from _not_finite(value.tolist(), place)


def format_of(name: str, data: bytes) -> str:
    """``json`` or ``toml``: by the file name's extension, otherwise by the first character."""
    suffix = Path(name).suffix.lower()
    if suffix in (".json", ".toml"):
        return suffix[1:]
    return "json" if data[:1000].lstrip()[:1] in (b"{", b"") else "toml"


def check_ending(option: str, path: Path | None, *endings: str) -> None:
    """An error if a file to be written has an ending of another format; one without an ending may be a device."""
    if path is None or path.suffix == "" or path.suffix.lower() in endings:
        return
    kinds = " or ".join(endings)
    what = f'the file {path.name} would not hold what its ending "{path.suffix}" says'
    raise InputError(None, option, what, f"name a file that ends with {kinds}")
