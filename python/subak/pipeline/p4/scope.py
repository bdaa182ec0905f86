"""What names mean inside a control: the fields, constants and parameters of actions that expressions speak of."""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Token, Tree

from subak.pipeline.p4.parse import Node
from subak.pipeline.p4.unit import VALID, Control, Unit, number


@dataclass
class Scope:
    """A control, and inside an action its parameters."""

    unit: Unit
    control: Control
    parameters: dict[str, int] = field(default_factory=dict)
    """Bits of each; and of the variables of the action's own."""
    in_action: bool = False

    def inside(self, action: str) -> Scope:
        """The scope of an action's body."""
        return Scope(self.unit, self.control, dict(self.control.actions[action].parameters), in_action=True)

    def path(self, node: Node) -> str:
        """The dotted name that an expression spells, by role: ``hdr.ethernet.dst``."""
        if node.data == "name":
            name = str(node.children[0])
            if name in self.parameters:
                return name
            if name in self.control.variables:
                return self.control.prefix + name
            return self.control.roles.get(name, name)
        if node.data == "member":
            return f"{self.path(node.children[0])}.{node.children[1]}"  # type: ignore[arg-type]
        raise self.unit.error(node, "this is not a name", "name a field")

    def field(self, node: Node) -> str:
        """The field that an expression names."""
        path = self.path(node)
        if path in self.unit.fields:
            return path
        last = node.children[-1]
        shown = path.removeprefix(self.control.prefix)
        raise self.unit.error(
            last if isinstance(last, Token) else node, f'there is no field "{shown}"', "declare it before it is used"
        )

    def register(self, node: Node) -> str | None:
        """The register that a name is, if it is one."""
        name = str(node.children[0]) if node.data == "name" else ""
        return name if name in self.control.registers else None

    def header(self, node: Node) -> str:
        """The validity field of the header that an expression names."""
        path = f"{self.path(node)}.{VALID}"
        if path not in self.unit.fields:
            raise self.unit.error(node, f'"{self.path(node)}" is no header', "name a header of the headers' struct")
        return path

    def reads(self, node: Node) -> set[str]:
        """The fields that an expression looks at."""
        if node.data == "name" and str(node.children[0]) in self.parameters:
            return set()
        if node.data == "name" and str(node.children[0]) in self.unit.constants:
            return set()
        if node.data in ("name", "member"):
            return {self.field(node)}
        if node.data == "slice":
            return self.reads(node.children[0])  # type: ignore[arg-type]
        if node.data == "invoke":
            callee = node.children[0]
            assert isinstance(callee, Tree)
            if callee.data == "member" and str(callee.children[1]) == "isValid":
                return {self.header(callee.children[0])}  # type: ignore[arg-type]
            raise self.unit.error(
                node, "this call is outside the P4 that is read", "only isValid() stands in expressions"
            )
        inner = node.children[1:] if node.data == "cast" else node.children
        return {name for child in inner if isinstance(child, Tree) for name in self.reads(child)}

    def width(self, node: Node) -> int | None:
        """Bits of an expression; ``None`` for a number without a width."""
        data = str(node.data)
        if data == "number":
            return number(str(node.children[0]))[1]
        if data == "name" and str(node.children[0]) in self.parameters:
            return self.parameters[str(node.children[0])]
        if data == "name" and str(node.children[0]) in self.unit.constants:
            return self.unit.constants[str(node.children[0])][1]
        if data in ("name", "member"):
            return self.unit.fields[self.field(node)]
        if data == "slice":
            high, low = self.bounds(node)
            return high - low + 1
        if data == "cast":
            return self.unit.width(node.children[0])
        if data == "concat":
            widths = [self.width(child) for child in node.children]  # type: ignore[arg-type]
            if None in widths:
                raise self.unit.error(node, "++ of a number without a width", "write its width, such as 8w5")
            return sum(w or 0 for w in widths)
        if data in ("or", "and", "eq", "ne", "lt", "gt", "le", "ge", "not", "true", "false", "invoke"):
            return 1
        if data in ("shl", "shr"):
            return self.width(node.children[0])  # type: ignore[arg-type]
        held = [child for child in node.children[-2:] if isinstance(child, Tree)]
        widths = [self.width(child) for child in held]
        known = {w for w in widths if w is not None}
        if len(known) > 1:
            said = " and ".join(f"bit<{w}>" for w in sorted(known))
            raise self.unit.error(node, f"{said} meet here", "cast one to the width of the other")
        return known.pop() if known else None

    def bounds(self, node: Node) -> tuple[int, int]:
        """The highest and lowest bit of a slice."""
        high, low = self.unit.value(node.children[1]), self.unit.value(node.children[2])
        width = self.width(node.children[0])  # type: ignore[arg-type]
        if not 0 <= low <= high or (width is not None and high >= width):
            raise self.unit.error(node, f"bits {high} to {low} are not all there", f"the value has {width} bits")
        return high, low
