"""Refuses two declarations of one name in one scope, even if unused."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lark import Token, Tree

from subak.pipeline.p4.declared import parts
from subak.pipeline.p4.parse import Node

Fault = Callable[[Token, str, str], Exception]


def check(tree: Node, fault: Fault) -> None:
    """Raises an error if a name occurs twice in a block's variables, a parameter list or an enumeration."""
    for node in tree.iter_subtrees_topdown():  # type: ignore[no-untyped-call]
        if node.data == "block":
            inner = (part for part in parts(node) if isinstance(part, Tree))
            _once((parts(n)[1] for n in inner if n.data in ("variable", "constant")), "variables", fault)
        elif node.data == "parameters":
            _once(map(_parameter, parts(node)), "parameters", fault)
        elif node.data == "enum":
            items = (part for part in parts(node) if isinstance(part, Tree) and part.data == "enum_item")
            _once((parts(item)[0] for item in items), "members", fault)


def _parameter(node: Node) -> Token:
    """Name of a parameter, which follows its optional direction and its type."""
    held = parts(node)
    directed = isinstance(held[0], Token) and held[0].type == "DIRECTION"
    name: Token = held[2 if directed else 1]
    return name


def _once(names: Iterable[Token], what: str, fault: Fault) -> None:
    seen: set[str] = set()
    for name in names:
        if str(name) in seen:
            raise fault(name, f'there are two {what} "{name}" here', "give each its own name")
        seen.add(str(name))
