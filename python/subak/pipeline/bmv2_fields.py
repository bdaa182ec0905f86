"""Fields that bmv2's JSON declares: of headers, header stacks and unions."""

from __future__ import annotations

from collections.abc import Mapping

from subak.pipeline.reading import Node

VALID, INDEX = "$valid$", "$index$"


class Fields:
    """Widths of fields by ``header.field``, and the structures that contain them."""

    def __init__(self, top: Mapping[str, Node]) -> None:
        self.widths: dict[str, int] = {}
        self._within: dict[str, list[str]] = {}
        """Fields of each header, stack and union."""
        self._union_of: dict[str, str] = {}
        self._number: dict[str, int] = {}
        """Index of each field in its header."""
        names: dict[int, str] = {}
        types = {t["name"].text(): _widths(t) for t in (n.mapping() for n in top["header_types"].items())}
        for node in top["headers"].items():
            told = node.mapping(needed=("name", "header_type"))
            name, kind = told["name"].text(), told["header_type"].text()
            if kind not in types:
                raise told["header_type"].error(f'there is no header type "{kind}"', "declare it in header_types")
            held = {f"{name}.{field}": width for field, width in types[kind].items()} | {f"{name}.{VALID}": 1}
            self._number |= {f"{name}.{field}": k for k, field in enumerate(types[kind])}
            self.widths |= held
            self._within[name] = list(held)
            if "id" in told:
                names[told["id"].whole()] = name
        unions = self._gather(top, "header_unions", "header_ids", names)
        for union, headers in unions.items():
            self._union_of |= dict.fromkeys(headers, union)
        stacks = self._gather(top, "header_stacks", "header_ids", names)
        stacks |= self._gather(top, "header_union_stacks", "header_union_ids", dict(self._ids(top, "header_unions")))
        for stack in stacks:
            self.widths[f"{stack}.{INDEX}"] = 32
            self._within[stack].append(f"{stack}.{INDEX}")

    def _gather(self, top: Mapping[str, Node], key: str, ids: str, names: Mapping[int, str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for node in top[key].items() if key in top else []:
            told = node.mapping(needed=("name", ids))
            held = []
            for one in told[ids].items():
                if one.whole() not in names:
                    raise one.error(f"there is no header {one.value}", "declare it in headers")
                held.append(names[one.whole()])
            found[told["name"].text()] = held
            self._within[told["name"].text()] = [field for header in held for field in self._within[header]]
        return found

    def _ids(self, top: Mapping[str, Node], key: str) -> list[tuple[int, str]]:
        nodes = [node.mapping() for node in (top[key].items() if key in top else [])]
        return [(told["id"].whole(), told["name"].text()) for told in nodes if "id" in told]

    def field(self, node: Node) -> str:
        """The field that the pair [header, field] names."""
        parts = node.items()
        if len(parts) != 2:
            raise node.error("this names no field", "write [header, field]")
        name = f"{parts[0].text()}.{parts[1].text()}"
        if name not in self.widths:
            raise node.error(f'there is no field "{name}"', "declare it in header_types and headers")
        return name

    def leaves(self, node: Node) -> set[str]:
        """All fields of a header, a stack or a union."""
        if node.text() not in self._within:
            raise node.error(f'there is no header "{node.value}"', "declare it in headers")
        return set(self._within[node.text()])

    def numbered(self, names: set[str], number: Node) -> set[str]:
        """The fields of several headers that have this index in their header."""
        return {name for name in names if self._number.get(name) == number.whole()}

    def stack_field(self, node: Node) -> set[str]:
        """For a field of the last header of a stack, which is known only at run time: that field of every header."""
        parts = node.items()
        last = parts[-1].text()
        return {name for name in self.leaves(parts[0]) if name.endswith((f".{last}", f".{INDEX}", f".{VALID}"))}

    def validity(self, node: Node) -> set[str]:
        """The field that stores whether a header is valid; for a union, those of all its headers."""
        value = node.mapping()["value"] if isinstance(node.value, dict) else node
        if isinstance(value.value, dict):
            raise value.error("which header this is only the packet tells", "name a header")
        name = value.text()
        fields = self.leaves(value)
        if name in self._union_of:
            fields = set(self._within[self._union_of[name]])
        return {field for field in fields if field.endswith(VALID)}


def _widths(told: Mapping[str, Node]) -> dict[str, int]:
    most = 8 * told["max_length"].whole() if "max_length" in told and told["max_length"].value else 0
    found = {}
    for field in told["fields"].items():
        parts = field.items()
        if len(parts) < 2:
            raise field.error("this declares no field", "write [name, bits, signed]")
        found[parts[0].text()] = most if parts[1].value == "*" else parts[1].whole()
    return found
