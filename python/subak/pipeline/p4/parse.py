"""From the text of a P4 program to its tree; what is outside the part that is read is said with line and column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from subak.errors import InputError

Node = Tree[Token]
GIVEN_TYPES = ("packet_in", "packet_out", "standard_metadata_t")
_PLAIN = {"LPAR": "(", "RPAR": ")", "LBRACE": "{", "RBRACE": "}", "SEMICOLON": ";", "TYPE": "a type", "NAME": "a name"}
_RESERVED = frozenset(
    [
        "abstract",
        "do",
        "enum",
        "error",
        "extern",
        "for",
        "header_union",
        "list",
        "match_kind",
        "package",
        "pattern",
        "string",
        "this",
        "tuple",
        "value_set",
        "varbit",
        "void",
        "while",
    ]
)
_TOO_DEEP = 400


def parse(data: bytes, file: str) -> Node:
    """The tree of a program."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(file, f"byte {error.start}", "it is not UTF-8", "save it as UTF-8") from None
    if text.count("(") > _TOO_DEEP and _depth(text) > _TOO_DEEP:
        raise InputError(file, "", f"it nests deeper than {_TOO_DEEP} brackets", "nest less")
    _refuse_macros(text, file)
    try:
        _Types.known = frozenset((*GIVEN_TYPES, *_declared(text)))
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise _fault(error, text, file) from None


def _declared(text: str) -> Iterator[str]:
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    yield from re.findall(r"\btypedef\s+[^;]*?(\w+)\s*;", bare)
    yield from re.findall(r"\b(?:header|struct)\s+(\w+)\s*\{", bare)


def _depth(text: str) -> int:
    depth = most = 0
    for char in text:
        depth += (char in "({[") - (char in ")}]")
        most = max(most, depth)
    return most


def _refuse_macros(text: str, file: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") and not line.lstrip().startswith("#include"):
            column = len(line) - len(line.lstrip()) + 1
            word = line.split()[0]
            mend = "use const in place of #define, and run the preprocessor for the rest"
            raise InputError(file, f"line {number}, column {column}", f"{word} is outside the P4 that is read", mend)


class _Types:
    """Tells names of types from other names, and words that are only keywords in their place."""

    always_accept = ()
    known: frozenset[str] = frozenset()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens, some under another type."""
        last, held = "", None
        for token in _shifts(stream):
            if held is not None:
                yield self._named(held, last, token)
                last = str(held)
            held = token
        if held is not None:
            yield held

    def _named(self, token: Token, before: str, follows: Token) -> Token:
        if token.type == "NAME" and token.value in self.known:
            return Token.new_borrow_pos("TYPE", token.value, token)
        if token.type == "NAME" and token.value in _RESERVED and before != ".":
            return Token.new_borrow_pos("RESERVED", token.value, token)
        keyword = token.value.isidentifier() and token.type not in ("NAME", "APPLY")
        elsewhere = (token.type == "SIZE" and follows.value != "=") or (
            token.type == "REGISTER" and follows.value != "<"
        )
        if elsewhere or (keyword and before == "."):
            return Token.new_borrow_pos("NAME", token.value, token)
        return token


def _shifts(stream: Iterator[Token]) -> Iterator[Token]:
    """Two `>` side by side are a shift, but where they close types."""
    open_types, opens, held = 0, False, None
    for token in stream:
        if held is not None and token.value == ">" and held.end_pos == token.start_pos:
            yield Token.new_borrow_pos("SHIFT_RIGHT", ">>", held)
            held = None
            continue
        if held is not None:
            yield held
            held = None
        if token.value == "<" and opens:
            open_types += 1
        opens = token.value in ("bit", "int", "register")
        if token.value == ">" and open_types:
            open_types -= 1
        elif token.value == ">":
            held = token
            continue
        yield token
    if held is not None:
        yield held


@cache
def _parser() -> Lark:
    grammar = files("subak.pipeline.p4").joinpath("grammar.lark").read_text(encoding="utf-8")
    options: dict[str, Any] = {"postlex": _Types(), "propagate_positions": True, "maybe_placeholders": True}
    return Lark(grammar, parser="lalr", lexer="basic", **options)


def _fault(error: UnexpectedInput, text: str, file: str) -> InputError:
    place = f"line {error.line}, column {error.column}"
    if isinstance(error, UnexpectedCharacters):
        return InputError(file, place, f'"{text[error.pos_in_stream or 0]}" is no P4', "remove it")
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        expected = sorted(_plain(name) for name in error.accepts or error.expected)
        wanted = f"{', '.join(expected[:8])}{' or the like' if len(expected) > 8 else ''} can stand there"
        return InputError(file, place, f'"{error.token}" is outside the P4 that is read', wanted)
    if isinstance(error, UnexpectedEOF | UnexpectedToken):
        last = len(text.rstrip().split("\n"))
        return InputError(file, f"line {last}", "the program ends too early", "close what is open")
    return InputError(file, place, "it cannot be read", "check the syntax")


def _plain(name: str) -> str:
    return _PLAIN.get(name, name.lower() if name.isalpha() else name)


def fault(node: Node | Token, file: str, what: str, mend: str) -> InputError:
    """An error at the place of ``node``."""
    place = node if isinstance(node, Token) else node.meta
    line, column = getattr(place, "line", None), getattr(place, "column", None)
    return InputError(file, f"line {line}, column {column}" if line else "", what, mend)
