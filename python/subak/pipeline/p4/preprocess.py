"""Preprocessor of P4 programs: macros and includes, with the origin of each output line."""

from __future__ import annotations

import copy
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pcpp import Preprocessor
from pcpp.evaluator import Value

from subak.errors import InputError

_CORE = "#define _CORE_P4_\n"
_V1MODEL = """#define _V1_MODEL_P4_
#define _CORE_P4_
#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif
#define V1MODEL_METER_COLOR_GREEN 0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED 2
"""
GIVEN = {"core.p4": _CORE, "v1model.p4": _V1MODEL}
"""Architecture files with the macros that they define; their declarations are built in."""
COMPILER = {"__p4c__": "1", "__TARGET_BMV2__": "1"}
"""Macros that p4c's compiler for bmv2 predefines."""
MOST_FILES = 200
MOST_GROWTH = 300_000
"""Largest number of tokens that macros may add."""
_CRASHES = (IndexError, KeyError, ValueError, TypeError, AttributeError, AssertionError)
"""Exceptions that pcpp raises at truncated directives."""
_PRAGMA = re.compile(r"^[ \t]*#pragma\b[^\n]*|@pragma\b[^\n]*", re.MULTILINE)
_NUMBERED = re.compile(r"^[ \t]*#[ \t]*(?:line\b|ident\b|\d)[^\n]*", re.MULTILINE)
"""Line markers that an earlier preprocessor wrote, as ``cpp -E`` does."""
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(ifdef|ifndef|if|elifdef|elifndef|elif|else|endif)\b", re.MULTILINE)
_ELIFDEF = re.compile(r"^([ \t]*#[ \t]*)elif(n?)def\b[ \t]*(\w*)", re.MULTILINE)
_LITERALS = re.compile(r'^[ \t]*#[^\n]*|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_MACRO = re.compile(r"[A-Za-z_]\w*")


MOST_SHIFT = 63
"""Largest shift, bits: the preprocessor's numbers have 64."""
_FAILED = re.compile(r"Could not evaluate expression due to (.*) \(passed to evaluator: '(.*)'\)$", re.DOTALL)
_shift = Value.__lshift__


def _bounded_shift(value: Any, by: Any) -> Any:
    if not 0 <= int(by) <= MOST_SHIFT:
        raise ValueError(f"a shift by {int(by)}")
    return _shift(value, by)


# Without a limit, a shift could make numbers of any length.
Value.__lshift__ = _bounded_shift


class Source(NamedTuple):
    """A preprocessed program."""

    text: str
    origins: tuple[tuple[str, int], ...]
    """File and line of each line of the text."""
    notes: tuple[str, ...] = ()
    """Macros that are tested but never defined, and definitions that are never used."""

    def place(self, line: int, column: int | None = None) -> tuple[str, str]:
        """File and place of a line of the output, counted from 1."""
        file, number = self.origins[min(line, len(self.origins)) - 1]
        return file, f"line {number}" + (f", column {column}" if column else "")


@dataclass(frozen=True)
class Flags:
    """Options of a C preprocessor."""

    defines: Mapping[str, str] = field(default_factory=dict)
    """Macros by name: ``-D NAME=VALUE``."""
    folders: Sequence[str] = ()
    """Folders in which included files are searched, after the folder of the including file: ``-I DIR``."""


def preprocess(text: str, file: str, flags: Flags | None = None) -> Source:
    """The program with macros expanded and files included; ``<core.p4>`` and ``<v1model.p4>`` are built in."""
    pp = _Preprocessor(file, flags or Flags())
    pp.parse(pp.read(text, file), file)
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
    return Source("\n".join([*lines, line]) + "\n", (*origins, origin), pp.notes())


def _next(pp: Preprocessor) -> Any:
    try:
        return pp.token()
    except InputError:
        raise
    except RecursionError:
        raise InputError(pp.file, "", "macros or includes nest too deep", "nest less") from None
    except _CRASHES:
        raise pp.fault("this line cannot be preprocessed", "correct its directive") from None


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _elif(found: re.Match[str]) -> str:
    """Replaces ``#elifdef`` and ``#elifndef`` of C23, which pcpp ignores."""
    start, negated, name = found.groups()
    return f"{start}elif {'!' if negated else ''}defined({name})"


def _only_lines(found: re.Match[str]) -> str:
    return "\n" * found.group().count("\n")


def _on_one_line(found: re.Match[str]) -> str:
    """Joins a string literal over several lines, since pcpp ends a string with its line."""
    text = found.group()
    if not text.startswith('"') or "\n" not in text:
        return text
    return text.replace("\\\n", "  ").replace("\n", " ") + "\n" * text.count("\n")


def checked_defines(defines: Mapping[str, str]) -> None:
    """Raises an error for macros that no C preprocessor could define."""
    for name, value in defines.items():
        if not _MACRO.fullmatch(name):
            raise InputError(None, "-D", f'"{name}" is not the name of a macro', "write -D NAME or -D NAME=VALUE")
        if "\n" in value:
            raise InputError(None, f"-D {name}", "the value has several lines", "write it on one")


class _Preprocessor(Preprocessor):  # type: ignore[misc]
    def __init__(self, file: str, flags: Flags) -> None:
        super().__init__()
        self.file = file
        self.line_directive = None
        self._defines = flags.defines
        self._folders = [os.path.abspath(folder) for folder in flags.folders]
        self._opened = 0
        self._called = ""
        self._grown = 0
        self._texts: list[str] = []
        self._asked: dict[str, str] = {}
        self._at = (file, 1)
        checked_defines(self._defines)
        for name, value in (COMPILER | dict(self._defines)).items():
            self.define(f"{name} {value}")
        if file != "-":
            self.add_path(str(Path(file).parent))
        for folder in flags.folders:
            if not Path(folder).is_dir():
                raise InputError(None, "-I", f'there is no folder "{folder}"', "name a folder with files to include")
            self.add_path(folder)

    def read(self, text: str, file: str) -> str:
        """Text of a file in the form that pcpp accepts."""
        cleaned = self.cleaned(text)
        self.check_conditions(_COMMENT.sub(_only_lines, cleaned), file)
        return cleaned

    def cleaned(self, text: str) -> str:
        """Text of a file without pragmas and line markers, with each string on one line."""
        text = _NUMBERED.sub(_blank, text.removeprefix("\ufeff"))
        self._texts.append(text)
        return _LITERALS.sub(_on_one_line, _ELIFDEF.sub(_elif, _PRAGMA.sub(_blank, text)))

    def check_conditions(self, text: str, file: str) -> None:
        """Refuses ``#else`` and ``#elif`` after the ``#else`` of the same ``#if``: pcpp drops their text."""
        ended: list[bool] = []
        for found in _CONDITION.finditer(text):
            word = found[1]
            if word.startswith("if"):
                ended.append(False)
            elif word == "endif":
                ended = ended[:-1]
            elif ended and ended[-1]:
                line = text.count("\n", 0, found.start()) + 1
                what = f"#{word} stands after the #else of the same #if"
                raise InputError(self.shown(file), f"line {line}", what, "end the condition with #endif before it")
            elif ended:
                ended[-1] = word == "else"

    def notes(self) -> tuple[str, ...]:
        """Macros that were tested but never defined, and definitions on the command line that no file uses."""
        undefined = [
            f"{place}: {name} is not defined, so the preprocessor takes it as 0; -D {name} defines it"
            for name, place in self._asked.items()
            if name not in self.macros
        ]
        unused = [
            f"-D {name}: the program does not name this macro"
            for name in self._defines
            if not any(re.search(rf"\b{name}\b", text) for text in self._texts)
        ]
        return (*undefined, *unused)

    def fault(self, what: str, hint: str) -> InputError:
        """An error at the line of the last directive."""
        return InputError(self._at[0], f"line {self._at[1]}", what, hint)

    def shown(self, source: str | None) -> str:
        """File name for messages: an included file by its path from the program's folder."""
        if not source or os.path.abspath(source) == os.path.abspath(self.file):
            return self.file
        folder = Path(self.file).parent
        return str(folder / os.path.relpath(source, folder))

    def on_error(self, file: str, line: int, msg: str) -> None:
        if failed := _FAILED.match(msg):
            what = f"#if {_shortened(failed[2])} has no value"
            hint = f"compare whole numbers, and shift by 0 to {MOST_SHIFT}"
            raise InputError(self.shown(file), f"line {line}", what, hint)
        what = re.sub(r"\s+", " ", msg).strip()
        raise InputError(self.shown(file), f"line {line}", f"the preprocessor stops: {what}", "correct this line")

    def on_unknown_macro_in_defined_expr(self, tok: Any) -> bool:
        self._ask(tok.value)
        return False

    def on_unknown_macro_in_expr(self, ident: str) -> int:
        self._ask(ident)
        return 0

    def _ask(self, name: str) -> None:
        self._asked.setdefault(name, f"{self._at[0]}, line {self._at[1]}")

    def on_unknown_macro_function_in_expr(self, ident: str) -> Any:
        self._called = self._called or ident
        return lambda _: 0

    def evalexpr(self, tokens: list[Any]) -> Any:
        if not any(token.value.strip() for token in self.expand_macros(copy.deepcopy(tokens))):
            raise self.fault("#if has no value", "write a condition; -D NAME alone defines NAME as 1")
        found = super().evalexpr(tokens)
        if self._called:
            what = f"#if calls {_shortened(self._called)}, which is no macro"
            raise self.fault(what, "define it, or put this inside an #ifdef of it")
        return found

    def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
        if Path(includepath).name in GIVEN:
            return io.StringIO(self.cleaned(GIVEN[Path(includepath).name]))
        if is_system_include and not any(Path(includepath).is_relative_to(folder) for folder in self._folders):
            raise OSError
        self._opened += 1
        if self._opened > MOST_FILES:
            raise self.fault(f"more than {MOST_FILES} files are included", "break the circle of includes")
        if not Path(includepath).is_file():
            raise OSError
        try:
            return io.StringIO(self.read(Path(includepath).read_text(encoding="utf-8"), includepath))
        except UnicodeDecodeError:
            raise InputError(self.shown(includepath), "", "the file is not UTF-8", "save it as UTF-8") from None

    def on_include_not_found(self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str) -> None:
        what = f"the include {includepath} is not found"
        hint = "name a file beside this one, or its folder with -I"
        if is_system_include and not is_malformed:
            what = f"<{includepath}> is not among what is known"
            hint = "write for v1model: <core.p4> and <v1model.p4>, or name the folder of the file with -I"
        raise self.fault(what, hint)

    def include(self, tokens: list[Any], original_line: list[Any]) -> Any:
        """The tokens of an included file."""
        if not tokens:
            raise self.fault("#include of nothing", "name a file")
        yield from super().include(tokens, original_line)

    def on_directive_handle(self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any) -> Any:
        self._at = (self.shown(directive.source), directive.lineno)
        return super().on_directive_handle(directive, toks, ifpassthru, precedingtoks)

    def on_directive_unknown(self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any) -> Any:
        if directive.value == "error":
            said = "".join(t.value for t in toks).strip()
            raise self.fault(f"#error {said}", "define what the program asks for: -D NAME=VALUE")
        if directive.value not in {"warning", "line", "ident"}:
            what = f"the preprocessor has no directive #{_shortened(directive.value)}"
            hint = "include files with #include; conditions are #if, #ifdef, #ifndef, #elif, #else and #endif"
            raise self.fault(what, hint)
        return super().on_directive_unknown(directive, toks, ifpassthru, precedingtoks)

    def expand_macros(self, tokens: list[Any], expanding_from: Sequence[str] = ()) -> list[Any]:
        before = len(tokens)
        found: list[Any] = super().expand_macros(tokens, list(expanding_from))
        self._grown += len(found) - before
        if self._grown > MOST_GROWTH:
            raise self.fault(f"macros grow to more than {MOST_GROWTH} words", "let macros name fewer others")
        return found

    def on_comment(self, tok: Any) -> bool:
        return False
