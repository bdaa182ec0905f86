"""Types of P4-16, and v1model's declarations: standard metadata, enumerations, names of externs."""

from __future__ import annotations

from dataclasses import dataclass

WIDEST = 4096
"""Largest width of a value, bits."""
VALID = "$valid$"
INDEX = "$index$"
"""Name of the field that counts the used headers of a header stack."""


@dataclass(frozen=True)
class Type:
    """A type; ``width`` is in bits, or the number of headers of a stack."""

    kind: str
    """bit, int, bool, number (no width), enum, error, varbit, header, struct, union, stack, extern, list, void."""
    width: int | None = None
    name: str = ""
    """Name of a declared type; of a stack, that of its headers."""

    def __str__(self) -> str:
        if self.kind in ("bit", "int", "varbit"):
            return f"{self.kind}<{self.width}>"
        if self.kind == "stack":
            return f"{self.name}[{self.width}]"
        if self.kind == "number":
            return "a number"
        return self.name or self.kind

    @property
    def scalar(self) -> bool:
        """Whether the type is a single field."""
        return self.kind in ("bit", "int", "bool", "enum", "error", "varbit")


BOOL, NUMBER, ERROR, STRING, VOID = Type("bool", 1), Type("number"), Type("error", 32), Type("string"), Type("void")
LIST = Type("list")


def bits(width: int) -> Type:
    """An unsigned integer of ``width`` bits."""
    return Type("bit", width)


STANDARD = {
    "ingress_port": bits(9),
    "egress_spec": bits(9),
    "egress_port": bits(9),
    "instance_type": bits(32),
    "packet_length": bits(32),
    "enq_timestamp": bits(32),
    "enq_qdepth": bits(19),
    "deq_timedelta": bits(32),
    "deq_qdepth": bits(19),
    "ingress_global_timestamp": bits(48),
    "egress_global_timestamp": bits(48),
    "mcast_grp": bits(16),
    "egress_rid": bits(16),
    "checksum_error": bits(1),
    "parser_error": ERROR,
    "priority": bits(3),
}
"""Fields of v1model's standard_metadata_t, with their types."""
ENUMS = {
    "HashAlgorithm": ("crc32", "crc32_custom", "crc16", "crc16_custom", "random", "identity", "csum16", "xor16"),
    "CounterType": ("packets", "bytes", "packets_and_bytes"),
    "MeterType": ("packets", "bytes"),
    "CloneType": ("I2E", "E2E"),
}
EXTERNS = (
    "register",
    "counter",
    "direct_counter",
    "meter",
    "direct_meter",
    "action_profile",
    "action_selector",
    "Checksum16",
)
GIVEN_TYPES = (*ENUMS, *EXTERNS, "packet_in", "packet_out", "standard_metadata_t", "PortId_t")
CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


def number(text: str) -> tuple[int, Type]:
    """Value and type of a numeric literal."""
    digits, kind = text.replace("_", ""), NUMBER
    for mark, signed in (("w", "bit"), ("s", "int")):
        head, found, tail = digits.partition(mark)
        if found and head.isdigit():
            digits, kind = tail, Type(signed, int(head))
            break
    base = {"0x": 16, "0b": 2, "0d": 10, "0o": 8}.get(digits[:2].lower(), 10)
    return int(digits[2:] if digits[1:2].isalpha() else digits, base), kind
