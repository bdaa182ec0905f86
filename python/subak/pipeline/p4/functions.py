"""Checks of a program's functions."""

from __future__ import annotations

from subak.pipeline.p4.declared import Action, arguments, is_a, walk
from subak.pipeline.p4.effects import Effect
from subak.pipeline.p4.scope import Ref, Scope
from subak.pipeline.p4.unit import Unit


def check(unit: Unit, function: Action) -> None:
    """Raises an error for a function that calls itself, directly or indirectly, or lacks a return value."""
    found: list[Action] = []
    left = [function]
    while left:
        calls = (n for n in walk(left.pop().body) if n.data in ("invoke", "call") and is_a(n.children[0], "name"))
        for call in calls:
            name = str(call.children[0].children[0])  # type: ignore[union-attr]
            called = unit.function(name, len(arguments(call)))
            if called is not None and all(called is not one for one in found):
                left.append(called)
                found.append(called)
    if any(function is one for one in found):
        raise unit.error(function.body, f"{function.name} calls itself", "let functions only call others")
    valued = function.result is not None and function.result.kind != "void"
    if valued and not any(n.data == "return" for n in walk(function.body)):
        raise unit.error(function.body, f"{function.name} returns nothing", "write return and its value")
    names = {p.name: Ref(p.type, None, p.direction in ("out", "inout")) for p in function.taken}
    scope = Scope(unit, unit.controls[0], names)
    Effect().add(function.body, scope.child({}, in_action=True, result=function.result))
