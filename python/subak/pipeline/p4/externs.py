"""Operands of v1model's functions and of its externs' methods, in order: in (i) and out (o)."""

from __future__ import annotations

FUNCTIONS = {
    "mark_to_drop": ("", "i"),
    "hash": ("oiiii",),
    "random": ("oii",),
    "digest": ("ii",),
    "clone": ("ii",),
    "clone3": ("iii",),
    "clone_preserving_field_list": ("iii",),
    "resubmit": ("i",),
    "resubmit_preserving_field_list": ("i",),
    "recirculate": ("i",),
    "recirculate_preserving_field_list": ("i",),
    "truncate": ("i",),
    "assert": ("i",),
    "assume": ("i",),
    "log_msg": ("i", "ii"),
}
TAKEN = {
    "hash": ("number", "HashAlgorithm", "number", "", "number"),
    "random": ("number", "number", "number"),
    "digest": ("number", ""),
    "clone": ("CloneType", "number"),
    "clone3": ("CloneType", "number", ""),
    "clone_preserving_field_list": ("CloneType", "number", "number"),
    "resubmit_preserving_field_list": ("number",),
    "recirculate_preserving_field_list": ("number",),
    "truncate": ("number",),
    "assert": ("bool",),
    "assume": ("bool",),
    "log_msg": ("string", ""),
}
"""Type of each operand, if a particular one is required."""
COPYING: tuple[str, ...] = (
    "clone",
    "clone3",
    "clone_preserving_field_list",
    "resubmit",
    "resubmit_preserving_field_list",
)
COPYING += ("recirculate", "recirculate_preserving_field_list", "truncate")
"""Functions whose operands reach egress: by the copies that the traffic manager makes, or by the length of packets."""
AGAIN = ("resubmit", "resubmit_preserving_field_list", "recirculate", "recirculate_preserving_field_list")
METHODS = {
    "register": {"read": "oi", "write": "ii"},
    "counter": {"count": "i"},
    "meter": {"execute_meter": "io"},
    "direct_counter": {"count": ""},
    "direct_meter": {"read": "o"},
    "Checksum16": {"get": "i"},
    "action_profile": {},
    "action_selector": {},
}
STATE = ("register", "counter", "meter")
"""Externs with cells: they are in one stage, with every table that uses them."""
CHECKSUMS = ("verify_checksum", "update_checksum", "verify_checksum_with_payload", "update_checksum_with_payload")
