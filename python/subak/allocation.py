"""Flowtune's allocator and its endpoints over flows that start and end, without packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak import _subak, inputs
from subak.api import _indices, _values
from subak.errors import InputError
from subak.ned import _sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@inputs.keywords
def allocate(
    network: _subak.Network,
    src: ArrayLike,
    dst: ArrayLike,
    start_s: ArrayLike,
    size_bytes: ArrayLike,
    *,
    ticks: int,
    tick: int | str = "10us",
    group: int = 1,
    gamma: float | None = None,
    seed: int = 1,
    compare_from: int = 0,
    compare_every: int = 0,
) -> _subak.Table:
    """Runs the allocator of Flowtune with an endpoint on each host, and returns what its link carries in each tick.

    Endpoints announce flows that start and end, the allocator makes an iteration of NED in each tick, and sends the
    rates that changed. A datagram takes a tick. A flow sends at the rate that its endpoint has. With ``group`` the
    allocator sends to intermediaries, each of so many hosts, which takes one tick more.

    ``src`` and ``dst`` are places in ``network.hosts``, ``start_s`` seconds in ascending order; ``seed`` is that of the
    flows' paths, by the number of the flow. The table has ``flows`` (active ones), ``datagrams`` and ``rates`` in them,
    and ``bytes`` of their frames with headers and gaps. Every ``compare_every`` ticks from ``compare_from`` on,
    ``rate_bps`` is the sum of the rates that endpoints have, and ``optimum_bps`` that of the optimal ones.

    Perry et al., "Flowtune: Flowlet Control for Datacenter Networks", NSDI 2017, sections 5.3 and 6.
    """
    if group < 1 or ticks < 0:
        name, count = ("group", group) if group < 1 else ("ticks", ticks)
        raise InputError(None, name, f"it is {count}", "give a whole number, not below 0; a group has 1 host at least")
    if (tick_ns := inputs.time_ns("tick", tick)) == 0:
        raise InputError(None, "tick", "it is 0", "give a time above 0")
    flows = (_indices("src", src), _indices("dst", dst), _values("start_s", start_s), _sizes(size_bytes))
    counts = (group, compare_from, compare_every)
    return _subak.allocate(network, flows, seed, tick_ns, ticks, gamma, counts)
