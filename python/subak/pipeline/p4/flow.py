"""Control flow of statements, and the tables whose outcome directs it."""

from __future__ import annotations

from typing import NamedTuple

from lark import Tree

from subak.pipeline.p4.declared import is_a
from subak.pipeline.p4.parse import Node


class Ways(NamedTuple):
    """Nodes that may follow a statement in the control flow."""

    follow: str | None
    """Node of the next statement in order; ``None`` at the end of the pipeline."""
    end: str | None
    """Node that follows a return; ``None`` at the end of the pipeline."""
    stop: str | None
    """Next node after an exit, which leaves ingress or egress."""

    def then(self, follow: str | None) -> Ways:
        """The same next nodes, with another next statement."""
        return self._replace(follow=follow)


def applied_table(condition: Node) -> tuple[Node, bool] | None:
    """The table whose hit or miss a condition tests, and which of the two makes the condition true."""
    if condition.data == "not":
        inner = applied_table(condition.children[0])  # type: ignore[arg-type]
        return (inner[0], not inner[1]) if inner else None
    if condition.data == "member" and str(condition.children[1]) in ("hit", "miss"):
        table = apply_call(condition.children[0])
        return (table, str(condition.children[1]) == "hit") if table else None
    return None


def run_table(selector: Node) -> Node | None:
    """The table whose action a switch statement tests."""
    if selector.data == "member" and str(selector.children[1]) == "action_run":
        return apply_call(selector.children[0])
    return None


def apply_call(node: object) -> Node | None:
    """The table of ``t.apply`` in an expression, if it is one."""
    if isinstance(node, Tree) and is_a(node, "invoke"):
        callee = node.children[0]
        if isinstance(callee, Tree) and callee.data == "member" and str(callee.children[1]) == "apply":
            return callee
    return None
