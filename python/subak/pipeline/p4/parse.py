"""Parses the text of a P4 program; the message of a syntax error names its place and the construct around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from subak.errors import InputError
from subak.pipeline.p4.preprocess import Flags, Source, preprocess
from subak.pipeline.p4.types import GIVEN_TYPES

Node = Tree[Token]
_SHOWN = {"TYPE": "a type", "NAME": "a name", "NUMBER": "a number", "BODY": "a body", "STRING": "a text"}
_SHOWN |= {"OPEN": "<", "CLOSE": ">", "SHIFT_RIGHT": ">>", "COMPOUND": "+= and its like", "TYPEDEF": "type"}
_FOREIGN = {
    "for": ("a loop", "write its rounds out: a packet goes through a pipeline once"),
    "while": ("a loop", "write its rounds out: a packet goes through a pipeline once"),
    "do": ("a loop", "write its rounds out: a packet goes through a pipeline once"),
    "extern": ("an extern of the program's own", "nothing says what it costs: use v1model's externs"),
    "package": ("a package of the program's own", "write for v1model"),
    "value_set": ("a value set outside a parser", "use a table"),
    "abstract": ("an abstract method", "write for v1model"),
}
_RESERVED = frozenset(("this", "list", "pattern", *_FOREIGN))
_IN_TABLES = {"key": "KEY", "actions": "ACTIONS", "default_action": "DEFAULT_ACTION", "size": "SIZE"}
_IN_TABLES |= {"entries": "ENTRIES"}
_CONSTRUCTS = (
    "header",
    "struct",
    "header_union",
    "enum",
    "error",
    "match_kind",
    "parser",
    "control",
    "action",
    "table",
)
_TAKES_TYPES = ("bit", "int", "varbit", "tuple")
_P4_14 = re.compile(
    r"^[ \t]*(?:header_type\s+\w+\s*\{|(?:control|parser)\s+\w+\s*\{|(?:header|metadata)\s+\w+\s+\w+(?:\s*\[\w+\])?\s*;"
    r"|table\s+\w+\s*\{\s*reads\b|primitive_action\s+\w+)",
    re.MULTILINE,
)
"""Declarations that exist in P4_14 but not in P4-16."""
_TOO_DEEP = 400
_TOO_LONG = 1000
"""Largest number of characters of a numeric literal."""


def parse(data: bytes, file: str, flags: Flags | None = None) -> tuple[Node, Source]:
    """The syntax tree of a program, and the preprocessed text with the file and line of each of its lines."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(file, f"byte {error.start}", "it is not UTF-8", "save it as UTF-8") from None
    _check_size(text, lambda line: (file, f"line {line}"))
    source = preprocess(text, file, flags)
    _check_size(source.text, source.place)
    tokens = _Tokens(frozenset((*GIVEN_TYPES, *_declared(source.text))))
    try:
        tree = _parser().parse(source.text)
    except UnexpectedInput as error:
        if old := _P4_14.search(source.text):
            where, place = source.place(source.text.count("\n", 0, old.start()) + 1)
            said = " ".join(old.group().split())
            hint = "compile it (p4c-bm2-ss --std p4-14) and give the JSON, or translate it to P4-16"
            raise InputError(where, place, f'"{said}": the program is P4_14, and P4-16 is read', hint) from None
        raise _fault(error, tokens, source, file) from None
    return tree, source


def _check_size(text: str, place: Callable[[int], tuple[str, str]]) -> None:
    """Raises an error for brackets that nest too deep and for numbers that are too long."""
    if deep := _too_deep(text):
        raise InputError(*place(deep), f"brackets nest deeper than {_TOO_DEEP}", "nest less")
    if long := re.search(rf"\b\d\w{{{_TOO_LONG},}}", text):
        line = text.count("\n", 0, long.start()) + 1
        raise InputError(*place(line), f"a number of {len(long[0])} characters", f"write at most {_TOO_LONG}")


def _declared(text: str) -> Iterator[str]:
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    yield from re.findall(r"(?<![.\w])(?:typedef|type)\s[^;:{}=]*?(\w+)\s*;", bare)
    yield from re.findall(r"\b(?:header|struct|header_union)\s+(\w+)\s*\{", bare)
    yield from re.findall(r"\benum\s[^{};]*?(\w+)\s*\{", bare)


def _too_deep(text: str) -> int:
    """The line at which brackets nest too deep; 0 for none."""
    depth, line = 0, 1
    for char in text:
        line += char == "\n"
        depth += (char in "({[") - (char in ")}]")
        if depth > _TOO_DEEP:
            return line
    return 0


def deepest(tree: Node) -> Node:
    """The most deeply nested node that has a line number."""
    found, most, ahead = tree, 0, [(tree, 1)]
    while ahead:
        node, depth = ahead.pop()
        if depth > most and getattr(node.meta, "line", None):
            found, most = node, depth
        ahead += [(child, depth + 1) for child in node.children if isinstance(child, Tree)]
    return found


class _Tokens:
    """Determines the type of words and brackets from their context."""

    always_accept = ()
    current: _Tokens

    def __init__(self, types: frozenset[str]) -> None:
        self.types = types
        self.inside: dict[int, str] = {}
        """The construct around each token, by the token's position."""
        self._open: list[tuple[str, str]] = []
        self._parens = 0
        self._angles: list[int] = []
        _Tokens.current = self

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yields the tokens; the context determines the type of some."""
        tokens = list(stream)
        kind, name, at = "", "", 0
        while at < len(tokens):
            token = tokens[at]
            if token.value == "@" and at + 1 < len(tokens):
                at = _annotated(tokens, at + 2)
                continue
            self.inside[token.start_pos or 0] = self._open[-1][1] if self._open else ""
            if token.value in _CONSTRUCTS and (at == 0 or tokens[at - 1].value != "."):
                kind, name = token.value, tokens[at + 1].value if at + 1 < len(tokens) else ""
            if token.value == "{":
                if kind == "parser" and not self._open:
                    at, kind = _past(tokens, at, "{", "}"), ""
                    yield Token.new_borrow_pos("BODY", "{}", token)
                    continue
                # A list among parameters, as a default value, opens no construct.
                opens = kind if not self._parens else ""
                named = f"{opens} {name}" if opens else self._open[-1][1] if self._open else ""
                self._open.append((opens, named))
                kind = kind if self._parens else ""
            elif token.value == "}" and self._open:
                self._open.pop()
            elif token.value == ";":
                kind = ""
            yield self._meant(tokens, at)
            # Two adjacent > are a shift, unless they close types.
            shifts = token.value == ">" and not self._closed and tokens[at + 1 : at + 2]
            at += 1
            if shifts and tokens[at].value == ">" and tokens[at].start_pos == token.end_pos:
                at += 1

    def _meant(self, tokens: list[Token], at: int) -> Token:
        token, before = tokens[at], tokens[at - 1].value if at else ""
        after = tokens[at + 1] if at + 1 < len(tokens) else token
        self._parens += (token.value in ("(", "[")) - (token.value in (")", "]"))
        self._closed = False
        meant = token.type
        if token.value == "<" and self._opens_types(tokens, at):
            self._angles.append(self._parens)
            meant = "OPEN"
        elif token.value == ">" and self._angles and self._angles[-1] == self._parens:
            self._angles.pop()
            self._closed = True
            meant = "CLOSE"
        elif token.value == ">" and after.value == ">" and after.start_pos == token.end_pos:
            return Token.new_borrow_pos("SHIFT_RIGHT", ">>", token)
        elif token.value.isidentifier():
            meant = "NAME" if before == "." else self._word(token, after)
        return token if meant == token.type else Token.new_borrow_pos(meant, token.value, token)

    def _word(self, token: Token, after: Token) -> str:
        word, where = token.value, self._open[-1][0] if self._open else ""
        if word in _IN_TABLES and where == "table" and after.value == "=":
            return _IN_TABLES[word]
        if word == "apply" and where == "control" and after.value == "{":
            return "APPLY"
        if word == "type" and not self._open and (after.value in _TAKES_TYPES or after.value in self.types):
            return "TYPEDEF"
        if word == "priority" and after.value == "=" and len(self._open) > 2 and self._open[-2][0] == "table":
            return "PRIORITY"
        if word == "void":
            return "VOID"
        if word in self.types:
            return "TYPE"
        return "RESERVED" if word in _RESERVED else token.type

    def _opens_types(self, tokens: list[Token], at: int) -> bool:
        before, after = tokens[at - 1] if at else None, tokens[at + 1 : at + 3]
        if before is None or not after:
            return False
        if before.value in _TAKES_TYPES or before.value in self.types:
            return True
        typed = after[0].value in (*_TAKES_TYPES, "bool", "_") or after[0].value in self.types
        member = len(after) > 1 and after[1].value == "."
        return before.value.isidentifier() and typed and not member


def _past(tokens: list[Token], at: int, opens: str, closes: str) -> int:
    """The position after the bracket that closes the one at position ``at``, or the end."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at].value == opens) - (tokens[at].value == closes)
        at += 1
        if not depth:
            break
    return at


def _annotated(tokens: list[Token], at: int) -> int:
    """The position after the content of an annotation, if it has any."""
    if at < len(tokens) and tokens[at].value in ("(", "["):
        return _past(tokens, at, tokens[at].value, ")" if tokens[at].value == "(" else "]")
    return at


class _Postlex:
    """Passes tokens to the ``_Tokens`` of the current program: Lark has one instance of this class for all programs."""

    always_accept = ("AT",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return _Tokens.current.process(stream)


@cache
def _parser() -> Lark:
    grammar = files("subak.pipeline.p4").joinpath("grammar.lark").read_text(encoding="utf-8")
    options: dict[str, Any] = {"postlex": _Postlex(), "propagate_positions": True, "maybe_placeholders": True}
    return Lark(grammar, parser="lalr", lexer="basic", **options)


def _fault(error: UnexpectedInput, tokens: _Tokens, source: Source, file: str) -> InputError:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        said, hint = _unexpected(error, source.text)
        inside = tokens.inside.get(error.token.start_pos or 0, "")
        held = f" in {inside}" if inside else ""
        where, place = source.place(error.line, error.column)
        return InputError(where, place, f"{said}{held}", hint)
    if isinstance(error, UnexpectedCharacters):
        where, place = source.place(error.line, error.column)
        return InputError(where, place, f'"{source.text[error.pos_in_stream or 0]}" is no P4', "remove it")
    last = len(source.text.rstrip().split("\n"))
    return InputError(*source.place(last), "the program ends too early", "close what is open")


def _unexpected(error: UnexpectedToken, text: str) -> tuple[str, str]:
    word, at = str(error.token), error.token.start_pos or 0
    if error.token.type == "RESERVED" and word in _FOREIGN:
        what, hint = _FOREIGN[word]
        return f'"{word}": {what} is not read', hint
    expected = sorted({_plain(name) for name in error.accepts or error.expected})
    if word == "." and re.match(r"\w", text[at + 1 : at + 2]) and not re.search(r"[\w)\]]\s*$", text[:at][-80:]):
        hint = "give what is meant a name of its own, and write that without the dot"
        return "a name with a dot before it, for the outermost one, is not read", hint
    said = f'"{word}" cannot stand here'
    if ";" in expected and (word.isidentifier() or word == "}"):
        return said, "close what stands before it with ;"
    many = len(expected) > 8
    return said, f"write {' or '.join(expected[:8])}{', or the like' if many else ''}"


def _plain(name: str) -> str:
    """Spelling of a kind of token in messages."""
    return _SHOWN.get(name) or _spelled().get(name) or name.lower()


@cache
def _spelled() -> dict[str, str]:
    return {one.name: one.pattern.value for one in _parser().terminals if one.pattern.type == "str"}


def fault(node: Node | Token, source: Source, what: str, hint: str) -> InputError:
    """An input error with the file, line and column of ``node``."""
    place = node if isinstance(node, Token) else node.meta
    line, column = getattr(place, "line", None), getattr(place, "column", None)
    if not line:
        return InputError(source.origins[0][0], "", what, hint)
    where, said = source.place(line, column)
    return InputError(where, said, what, hint)
