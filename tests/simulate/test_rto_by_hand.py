"""The retransmission timer (RFC 6298, section 5) beside a model of one flow, of which chosen packets and ACKs are lost.

Windows are larger than flows, and at an RTO at most one segment is missing: windows do not matter.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import subak

MTU, ACK, MSS = 1500, 64, 1446
WINDOW, REORDER = 40, 3


@dataclass
class _Path:
    """h0 -> s -> h1. Delays are of the links at h0; those at h1 have none, and there packets are lost.

    The links at h1 are `faster` than the data's other link, and the link of returning ACKs is `slower`.
    """

    rate_bps: float
    out_ns: float
    back_ns: float
    faster: float = 2
    slower: float = 1

    def out(self) -> list[tuple[float, float]]:
        """Time of a packet on each link, and the link's delay."""
        whole_ns = 8e9 * MTU / self.rate_bps
        return [(whole_ns, self.out_ns), (whole_ns / self.faster, 0)]

    def back(self) -> list[tuple[float, float]]:
        ack_ns = 8e9 * ACK / self.rate_bps
        return [(ack_ns / self.faster, 0), (ack_ns * self.slower, self.back_ns)]

    def rtt_ns(self) -> float:
        """Of a packet alone."""
        return sum(a + b for a, b in self.out() + self.back())


class _Line:
    """Links one after the other. The chosen packets are lost on one of them."""

    def __init__(self, links: list[tuple[float, float]], lossy: int, lost: frozenset[int]) -> None:
        self.links, self.lossy, self.lost = links, lossy, lost
        self.free = [0.0] * len(links)
        self.carried = 0
        self.losses: list[tuple[float, float]] = []

    def carry(self, time: float) -> float | None:
        """When the packet arrives."""
        number = self.carried
        self.carried += 1
        for at, (busy, delay) in enumerate(self.links):
            start = max(time, self.free[at])
            self.free[at] = start + busy
            time = start + busy + delay
            if at == self.lossy and number in self.lost:
                self.losses.append((start, start + busy))
                return None
        return time


@dataclass
class _Sender:
    path: _Path
    n: int
    rto_min_ns: float
    probe: bool
    lost: frozenset[int]
    acks_lost: frozenset[int]
    now: float = 0.0
    fct: float = 0.0
    sent: list[int] = field(default_factory=list)
    events: list[tuple[float, int, str, tuple[Any, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out, self.back = _Line(self.path.out(), 1, self.lost), _Line(self.path.back(), 0, self.acks_lost)
        self.acked, self.got = [False] * self.n, [False] * self.n
        self.last = [-1] * self.n
        self.srtt = self.var = 0.0
        self.timer = self.probe_timer = 0.0
        self.backoff, self.count = 1, 0
        for segment in range(self.n):
            self._send(segment)
        self._restart()
        while not all(self.acked):
            self.now, _, kind, about = heapq.heappop(self.events)
            if kind == "data":
                self._receive(*about)
            elif kind == "ack":
                self._take(*about)
            elif kind == "rto" and self.now == self.timer:
                self._expire()
            elif kind == "probe" and self.now == self.probe_timer:
                self._send(max(k for k in range(self.n) if not self.acked[k]))
                self.timer = self.probe_timer = 0.0
                self._restart()

    def _at(self, time: float, kind: str, *about: Any) -> float:
        self.count += 1
        heapq.heappush(self.events, (time, self.count, kind, about))
        return time

    def _restart(self) -> None:
        """Before the first sample the path's RTT counts as if it were one."""
        rto = max(self.rto_min_ns, self.srtt + 4 * self.var if self.srtt else 3 * self.path.rtt_ns())
        self.timer = self._at(self.now + rto * self.backoff, "rto")

    def _first(self) -> int:
        return self.acked.index(False)

    def _send(self, segment: int) -> None:
        self.last[segment] = len(self.sent)
        self.sent.append(segment)
        arrival = self.out.carry(self.now)
        if arrival is not None:
            self._at(arrival, "data", segment, self.now, self.last[segment])

    def _receive(self, segment: int, sent: float, number: int) -> None:
        new = not self.got[segment]
        self.got[segment] = True
        if new and all(self.got):
            self.fct = self.now
        arrival = self.back.carry(self.now)
        if arrival is not None:
            behind = self.got.index(False) if not all(self.got) else self.n
            # Of a run beyond a hole, the part up to this segment.
            run = next((k + 1 for k in range(segment, -1, -1) if not self.got[k]), 0)
            self._at(arrival, "ack", [*range(behind), *range(run, segment + 1)], sent, number)

    def _take(self, segments: list[int], sent: float, number: int) -> None:
        rtt, first = self.now - sent, self._first()
        if self.srtt:
            self.var = (3 * self.var + abs(self.srtt - rtt)) / 4
            self.srtt = (7 * self.srtt + rtt) / 8
        else:
            self.srtt, self.var = rtt, rtt / 2
        self.backoff = 1
        for segment in segments:
            self.acked[segment] = True
        if all(self.acked):
            return
        if self.acked[first]:
            self._restart()
        missing = [k for k in range(self.n) if not self.acked[k] and self.last[k] + REORDER <= number]
        for segment in missing:
            self._send(segment)
            if segment == self._first():
                self._restart()
        if self.probe:
            self.probe_timer = self._at(self.now + 2 * self.srtt + 4 * self.var, "probe")

    def _expire(self) -> None:
        assert self.acked.count(False) == 1
        self.backoff *= 2
        self.probe_timer = 0.0
        self._send(self._first())
        self._restart()


def _run(folder: Path, model: _Sender, scheme: str) -> dict[str, Any]:
    """The simulator's row. The second links are down in the middle of each packet that the model loses."""
    path = model.path
    ends = [("h0", "s"), ("s", "h1"), ("h1", "s"), ("s", "h0")]
    fast = path.rate_bps * path.faster
    rates = [path.rate_bps, fast, fast, path.rate_bps / path.slower]
    delays = [path.out_ns / 1e9, 0, 0, path.back_ns / 1e9]
    links = [
        {"from": a, "to": b, "capacity": rate, "delay": delay}
        for (a, b), rate, delay in zip(ends, rates, delays, strict=True)
    ]
    outages = [
        {
            "kind": "down",
            "link": link,
            "down": (0.7 * a + 0.3 * b) / 1e9,
            "up": (0.3 * a + 0.7 * b) / 1e9,
            "both": False,
        }
        for link, losses in (("s->h1", model.out.losses), ("h1->s", model.back.losses))
        for a, b in losses
    ]
    params = {"rto_min": model.rto_min_ns / 1e9, "probe": model.probe, "initial_window": WINDOW}
    spec: dict[str, Any] = {
        "network": {"links": links},
        "workload": {"kind": "steps", "flows": [{"src": "h0", "dst": "h1", "size": model.n * MSS}]},
        "scheme": [{"name": scheme, "params": params}],
        "run": {"duration": 10.0},
    }
    if outages:
        spec["fault"] = outages
    (row,) = subak.run(spec, folder / "out", progress=False).table("flow").to_pylist()
    return dict(row)


SHORT, MIDDLE, LONG = _Path(16e9, 300, 200), _Path(1e9, 5e3, 5e3), _Path(4e9, 12e6, 8e6)
ACKS_SLOWLY, SLOW, FAST = _Path(1e9, 2e4, 5e4, slower=100), _Path(1e7, 1e5, 2e6, faster=1), _Path(1e11, 1e5, 2e5)

# Path, packets, minimum RTO in ns, transmissions lost, ACKs lost.
CASES: list[tuple[_Path, int, float, set[int], set[int]]] = [
    # The head: a fast retransmission; its loss; SACKs too few for one.
    (MIDDLE, 8, 1e6, {0}, set()),
    (MIDDLE, 8, 1e6, {0, 8}, set()),
    (MIDDLE, 8, 1e3, {0, 8, 9}, set()),
    (LONG, 8, 1e3, {0, 8}, set()),
    (SLOW, 6, 1e3, {0, 6}, set()),
    (ACKS_SLOWLY, 10, 1e4, {0, 10}, set()),
    (SHORT, 10, 2e4, {0, 10, 11}, set()),
    (MIDDLE, 3, 1e6, {0}, set()),
    (ACKS_SLOWLY, 3, 5e6, {0}, set()),
    # The middle.
    (MIDDLE, 10, 1e3, {1, 10}, set()),
    (LONG, 10, 1e3, {4, 10}, set()),
    (SHORT, 10, 1e3, {3, 10}, set()),
    (ACKS_SLOWLY, 10, 1e3, {5, 10}, set()),
    (SLOW, 5, 1e3, {2}, set()),
    (MIDDLE, 5, 1e9, {2}, set()),
    # The tail, and its retransmissions.
    (MIDDLE, 5, 1e6, {4}, set()),
    (MIDDLE, 5, 1e6, {4, 5, 6, 7}, set()),
    (SHORT, 4, 1e3, {3}, set()),
    (SHORT, 4, 1e6, {3, 4}, set()),
    (LONG, 2, 1e3, {1}, set()),
    (LONG, 8, 1e9, {7}, set()),
    (SLOW, 4, 1e3, {3, 4}, set()),
    (FAST, 10, 1e3, {9}, set()),
    (FAST, 10, 2e6, {9, 10}, set()),
    (ACKS_SLOWLY, 8, 1e3, {7, 8}, set()),
    (MIDDLE, 5, 1.5e8, {4, 5, 6, 7}, set()),
    (LONG, 2, 1e9, {1, 2}, set()),
    # One packet alone: the RTO before any sample.
    (MIDDLE, 1, 1e6, {0, 1, 2}, set()),
    (LONG, 1, 1e3, {0}, set()),
    # Lost ACKs: of the last packet (it is retransmitted and ACKed again), of the first ones, and of retransmissions.
    (MIDDLE, 3, 1e6, set(), {2}),
    (MIDDLE, 6, 1e6, {5}, {0, 1}),
    (MIDDLE, 8, 1e4, {0}, {0, 7}),
    (LONG, 6, 1e3, {5}, {2, 5}),
    (SLOW, 4, 1e6, {3}, {1}),
]


@pytest.mark.parametrize("probe", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_timer_follows_rfc_6298(tmp_path: Path, case: int, probe: bool) -> None:
    """Also with probes (RFC 8985, section 7), each of which restarts the timer."""
    path, n, rto_min_ns, lost, acks_lost = CASES[case]
    model = _Sender(path, n, rto_min_ns, probe, frozenset(lost), frozenset(acks_lost))
    flow = _run(tmp_path, model, ("reno", "dctcp", "cubic")[case % 3])
    assert flow["drops"] == len(model.out.losses)
    assert flow["retransmissions"] == len(model.sent) - n
    assert flow["fct_ns"] == pytest.approx(model.fct, rel=2e-6, abs=30)
