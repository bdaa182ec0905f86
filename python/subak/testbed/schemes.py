"""Schemes that hosts run, from the registry."""

from __future__ import annotations

from functools import cache

from subak import _subak


@cache
def on_hosts() -> dict[str, str]:
    """How hosts run each of these schemes.

    ``kernel``: the kernel's own congestion control. ``programs``: eBPF programs at senders and queues. ``control``:
    control packets between agents. ``allocator``: the allocator's daemon.
    """
    return {one["name"]: one["on_hosts"] for one in _subak.schemes() if one["on_hosts"]}
