"""What both front ends know of v1model: how the traffic manager ties ingress to egress, and how actions exit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from subak.pipeline.program import Table

STANDARD = "standard_metadata"
METADATA = (STANDARD, "intrinsic_metadata", "queueing_metadata")
"""Headers that the fields below lie in: the last two in JSON of older compilers."""
QUEUED = (
    "egress_port",
    "instance_type",
    "packet_length",
    "enq_timestamp",
    "enq_qdepth",
    "deq_timedelta",
    "deq_qdepth",
    "egress_global_timestamp",
    "egress_rid",
)
"""What the traffic manager sets between ingress and egress."""
QUEUED_BY = ("egress_spec", "mcast_grp", "priority", "$copies$")
"""What of ingress it goes by; the last stands for clones, resubmission and truncation."""
DROPPED = ("egress_spec", "mcast_grp")
"""What mark_to_drop writes."""
DESTINED = " (queued)"
"""What the name of a field of ingress ends with where the traffic manager has taken it."""
COPIES = f"{STANDARD}.$copies${DESTINED}"
COUNTER_BITS = 64
"""Of a counter's cell, and of a direct counter an entry: bytes or packets."""
METER_BITS = 128
"""Of a meter's cell, and of a direct meter an entry: two buckets of 64 bits."""
NEVER, MAYBE, ALWAYS = 0, 1, 2
"""How an action exits."""
Next = tuple[tuple[str, str | None], ...]


def looked(names: Iterable[str], egress: bool) -> set[str]:
    """The fields that a look takes in: in egress, with what the traffic manager went by."""
    found = set(names)
    if egress and any(_standard(name) in QUEUED for name in found):
        found |= {f"{STANDARD}.{name}{DESTINED}" for name in QUEUED_BY}
    return found


def changed(names: Iterable[str], egress: bool) -> set[str]:
    """The fields that a write changes: in ingress, with what the traffic manager takes of them."""
    found = set(names)
    if not egress:
        found |= {f"{STANDARD}.{_standard(name)}{DESTINED}" for name in names if _standard(name) in QUEUED_BY}
    return found


def _standard(name: str) -> str:
    header, _, field = name.rpartition(".")
    return field if header in METADATA else ""


def leaving(outcomes: Next, exits: Mapping[str, int], by_action: bool, stop: str | None) -> Next:
    """The outcomes of a table whose actions exit, by name: an exit leads to ``stop``."""
    if all(how == NEVER for how in exits.values()):
        return outcomes
    if min(exits.values()) == ALWAYS:
        return (("exit", stop),)
    if by_action:
        named = {name for name, _ in outcomes}
        outcomes = tuple((name, stop if exits.get(name) == ALWAYS else to) for name, to in outcomes)
        if all(how == NEVER or (how == ALWAYS and name in named) for name, how in exits.items()):
            return outcomes
    return (*outcomes, ("exit", stop))


def met(tables: Sequence[Table], start: str | None) -> tuple[tuple[Table, ...], set[str]]:
    """The tables that packets can meet, and a note on each other one."""
    by_name = {table.name: table for table in tables}
    found, ahead = set(), [start] if start else []
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += [to for _, to in by_name[name].next or () if to is not None]
    left = {f"no packet meets {name}: it is left out" for name in by_name if name not in found}
    return tuple(table for table in tables if table.name in found), left


def again(name: str) -> str:
    """The note about what sends packets through the pipeline again."""
    return f"{name} sends packets through the pipeline again: dependencies hold within one pass"


def members(table: str, selects: bool) -> str:
    """The note about a table whose actions lie in a profile of their own."""
    what = "action selector" if selects else "action profile"
    return f"{table}: the members of its {what} are counted as action data of each entry"
