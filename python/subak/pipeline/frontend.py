"""Rules of v1model for both front ends: the traffic manager between ingress and egress, and exits of actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from subak.pipeline.program import Table

STANDARD = "standard_metadata"
METADATA = (STANDARD, "intrinsic_metadata", "queueing_metadata")
"""Headers of the fields below; the last two names occur in JSON of older compilers."""
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
"""Fields that the traffic manager sets between ingress and egress."""
QUEUED_BY = ("egress_spec", "mcast_grp", "priority", "$copies$")
"""Ingress fields that determine ``QUEUED``; the last one represents clones, resubmission and truncation."""
DROPPED = ("egress_spec", "mcast_grp")
"""Fields of standard metadata that the primitive mark_to_drop writes."""
DESTINED = " (queued)"
"""Suffix of the name of an ingress field's copy that the traffic manager read."""
COPIES = f"{STANDARD}.$copies${DESTINED}"
COUNTER_BITS = 64
"""Width of a counter's cell, and of a direct counter per entry: bytes or packets."""
METER_BITS = 128
"""Width of a meter's cell, and of a direct meter per entry: two buckets of 64 bits."""
NEVER, MAYBE, ALWAYS = 0, 1, 2
"""Whether an action executes ``exit``: never, on some paths, or always."""
Next = tuple[tuple[str, str | None], ...]


def looked(names: Iterable[str], egress: bool) -> set[str]:
    """Fields on which a read of ``names`` depends.

    In egress, fields that the traffic manager sets depend on the ingress fields from which it sets them.
    """
    found = set(names)
    if egress and any(_standard(name) in QUEUED for name in found):
        found |= {f"{STANDARD}.{name}{DESTINED}" for name in QUEUED_BY}
    return found


def changed(names: Iterable[str], egress: bool) -> set[str]:
    """Fields that a write to ``names`` changes. In ingress they include the copies that the traffic manager reads."""
    found = set(names)
    if not egress:
        found |= {f"{STANDARD}.{_standard(name)}{DESTINED}" for name in names if _standard(name) in QUEUED_BY}
    return found


def _standard(name: str) -> str:
    header, _, field = name.rpartition(".")
    return field if header in METADATA else ""


def leaving(outcomes: Next, exits: Mapping[str, int], by_action: bool, stop: str | None) -> Next:
    """Outcomes of a table, with those of actions that exit: they lead to ``stop``."""
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
    """The reachable tables, and a note for each unreachable one."""
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
    """Text of the note about primitives that send packets through the pipeline again."""
    return f"{name} sends packets through the pipeline again: dependencies hold within one pass"


def members(table: str, selects: bool) -> str:
    """Text of the note about a table whose actions are in an action profile."""
    what = "action selector" if selects else "action profile"
    return f"{table}: the members of its {what} are counted as action data of each entry"
