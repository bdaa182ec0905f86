"""Macros and includes: the preprocessor's run over a P4 program, and where each line of its output came from."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pcpp import Preprocessor
from pcpp.evaluator import Value

from subak.errors import InputError

GIVEN = ("core.p4", "v1model.p4")
"""What these declare is known without reading them."""
DEFINED = {"V1MODEL_VERSION": 20180101}
DEFINED |= {f"V1MODEL_METER_COLOR_{name}": k for k, name in enumerate(("GREEN", "YELLOW", "RED"))}
"""Macros of v1model.p4."""
MOST_FILES = 200
MOST_GROWTH = 300_000
"""Tokens that macros may add."""
_CRASHES = (IndexError, KeyError, ValueError, TypeError, AttributeError, AssertionError)
"""What pcpp raises at directives that are cut short."""
_PRAGMA = re.compile(r"^[ \t]*#pragma\b[^\n]*|@pragma\b[^\n]*", re.MULTILINE)


MOST_SHIFT = 63
"""Bits; a number of the preprocessor has 64."""
_FAILED = re.compile(r"Could not evaluate expression due to (.*) \(passed to evaluator: '(.*)'\)$", re.DOTALL)
_shift = Value.__lshift__


def _bounded_shift(value: Any, by: Any) -> Any:
    if not 0 <= int(by) <= MOST_SHIFT:
        raise ValueError(f"a shift by {int(by)}")
    return _shift(value, by)


# As it comes, a shift makes numbers as long as memory is.
Value.__lshift__ = _bounded_shift


class Source(NamedTuple):
    """A preprocessed program."""

    text: str
    origins: tuple[tuple[str, int], ...]
    """File and line of each line of the text."""

    def place(self, line: int, column: int | None = None) -> tuple[str, str]:
        """The file and the place in it that a line, counted from 1, of the text came from."""
        file, number = self.origins[min(line, len(self.origins)) - 1]
        return file, f"line {number}" + (f", column {column}" if column else "")


def preprocess(text: str, file: str) -> Source:
    """The program with its macros expanded and its own files included; ``<core.p4>`` and ``<v1model.p4>`` are given."""
    pp = _Preprocessor(file)
    pp.parse(_PRAGMA.sub(_blank, text), file)
    lines, origins, line, origin = [], [], "", (file, 1)
    while (token := _next(pp)) is not None:
        if not line.strip():
            origin = (pp.shown(token.source), token.lineno)
        for k, part in enumerate(token.value.split("\n")):
            if k:
                lines.append(line)
                origins.append(origin)
                line, origin = "", (origin[0], origin[1] + 1)
            line += part
    return Source("\n".join([*lines, line]) + "\n", (*origins, origin))


def _next(pp: Preprocessor) -> Any:
    try:
        return pp.token()
    except InputError:
        raise
    except RecursionError:
        raise InputError(pp.file, "", "its macros or includes nest too deep", "nest less") from None
    except _CRASHES:
        raise InputError(pp.file, f"line {pp.line}", "this line cannot be preprocessed", "mend its directive") from None


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


class _Preprocessor(Preprocessor):  # type: ignore[misc]
    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.line_directive = None
        self._opened = 0
        self._called = ""
        self._grown = 0
        self.line = 1
        for name, value in DEFINED.items():
            self.define(f"{name} {value}")
        if file != "-":
            self.add_path(str(Path(file).parent))

    def shown(self, source: str | None) -> str:
        """The name of a file as the user knows it."""
        same = not source or os.path.abspath(source) == os.path.abspath(self.file)
        return self.file if same else str(source)

    def on_error(self, file: str, line: int, msg: str) -> None:
        if failed := _FAILED.match(msg):
            what = f"#if {_shortened(failed[2])} has no value"
            mend = f"compare whole numbers, and shift by 0 to {MOST_SHIFT}"
            raise InputError(self.shown(file), f"line {line}", what, mend)
        what = re.sub(r"\s+", " ", msg).strip()
        raise InputError(self.shown(file), f"line {line}", f"the preprocessor stops: {what}", "mend this line")

    def on_unknown_macro_function_in_expr(self, ident: str) -> Any:
        self._called = self._called or ident
        return lambda _: 0

    def evalexpr(self, tokens: list[Any]) -> Any:
        found = super().evalexpr(tokens)
        if self._called:
            what = f"#if calls {_shortened(self._called)}, which is no macro"
            raise InputError(self.file, f"line {self.line}", what, "define it, or put this inside an #ifdef of it")
        return found

    def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
        if Path(includepath).name in GIVEN:
            return io.StringIO("")
        if is_system_include:
            raise OSError
        self._opened += 1
        if self._opened > MOST_FILES:
            raise InputError(self.file, "", f"it includes more than {MOST_FILES} files", "break the circle of includes")
        if not Path(includepath).is_file():
            raise OSError
        try:
            return io.StringIO(Path(includepath).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise InputError(includepath, "", "it is not UTF-8", "save it as UTF-8") from None

    def on_include_not_found(self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str) -> None:
        what = f"the include {includepath} is not found"
        mend = "name a file beside this one"
        if is_system_include and not is_malformed:
            what = f"<{includepath}> is not among what is known"
            mend = "write for v1model: <core.p4> and <v1model.p4>"
        raise InputError(self.file, f"line {self.line}", what, mend)

    def on_directive_handle(self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any) -> Any:
        self.line = directive.lineno
        if directive.value == "error":
            said = "".join(t.value for t in toks).strip()
            raise InputError(self.file, f"line {directive.lineno}", f"#error {said}", "define what it asks for")
        if directive.value == "include" and not "".join(t.value for t in toks).strip():
            raise InputError(self.file, f"line {directive.lineno}", "#include of nothing", "name a file")
        return super().on_directive_handle(directive, toks, ifpassthru, precedingtoks)

    def expand_macros(self, tokens: list[Any], expanding_from: Sequence[str] = ()) -> list[Any]:
        before = len(tokens)
        found: list[Any] = super().expand_macros(tokens, list(expanding_from))
        self._grown += len(found) - before
        if self._grown > MOST_GROWTH:
            what = f"its macros grow to more than {MOST_GROWTH} words"
            raise InputError(self.file, f"line {self.line}", what, "let macros name fewer others")
        return found

    def on_comment(self, tok: Any) -> bool:
        return False
