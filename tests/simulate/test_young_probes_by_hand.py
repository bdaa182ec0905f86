"""Tail loss probes of young flows, computed by hand: the last of n packets is lost."""

from pathlib import Path
from typing import Any

import pytest
import subak

MTU, ACK, MSS = 1500, 64, 1446


def _lost_tail(
    folder: Path, n: int, delay_ns: float, rate_bps: float, rto_min_s: float, scheme: str, acks_lost: int = 0
) -> dict[str, Any]:
    """The row of a flow of n packets over h0 -> s -> h1. The last is lost on s -> h1, its first ACKs on h1 -> s."""
    packet_ns, ack_ns = 8e9 * MTU / rate_bps, 8e9 * ACK / rate_bps
    at_s = (n * packet_ns + 2 * delay_ns + packet_ns / 2) / 1e9
    ends = [("h0", "s"), ("s", "h0"), ("s", "h1"), ("h1", "s")]
    links = [{"from": a, "to": b, "capacity": rate_bps, "delay": delay_ns / 1e9} for a, b in ends]
    outage = {"kind": "down", "link": "s->h1", "down": at_s, "up": at_s + packet_ns / 4e9, "both": False}
    first_ack_s = (2 * packet_ns + 2 * delay_ns) / 1e9
    no_acks = {"down": first_ack_s, "up": first_ack_s + ((acks_lost - 0.5) * packet_ns + ack_ns) / 1e9}
    silence = [{"kind": "down", "link": "h1->s", "both": False, **no_acks}] if acks_lost else []
    spec = {
        "network": {"links": links},
        "workload": {"kind": "steps", "flows": [{"src": "h0", "dst": "h1", "size": n * MSS}]},
        "scheme": [{"name": scheme, "params": {"rto_min": rto_min_s}}],
        "run": {"duration": 2.0},
        "fault": [outage, *silence],
    }
    rows = subak.run(spec, folder / "out", progress=False).table("flow").to_pandas()
    return rows.iloc[0].to_dict()


def _fct_ns(n: int, delay_ns: float, rate_bps: float, rto_min_s: float, acks_lost: int = 0) -> float:
    """All packets are sent at 0; an ACK each. Every ACK sets the probe anew (RFC 8985, section 7.2).

    It is due two smoothed RTTs and four variations after the last ACK, or with the RTO if that is earlier.
    """
    packet_ns, ack_ns = 8e9 * MTU / rate_bps, 8e9 * ACK / rate_bps
    srtt = var = 0.0
    last = 0.0
    for k in range(acks_lost, n - 1):
        last = (k + 2) * packet_ns + 4 * delay_ns + 2 * ack_ns
        if k == acks_lost:
            srtt, var = last, last / 2
        else:
            srtt, var = (7 * srtt + last) / 8, (3 * var + abs(srtt - last)) / 4
    due = min(last + 2 * srtt + 4 * var, last + max(rto_min_s * 1e9, srtt + 4 * var))
    return due + 2 * packet_ns + 2 * delay_ns


CASES = [(3, 250e3, 1e10), (10, 250e3, 1e10), (10, 5e6, 4e10), (5, 1e4, 1e11)]


@pytest.mark.parametrize("scheme", ["reno", "dctcp", "cubic"])
@pytest.mark.parametrize("rto_min_s", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(("n", "delay_ns", "rate_bps"), CASES)
def test_the_probe_follows_the_last_ack(
    tmp_path: Path, n: int, delay_ns: float, rate_bps: float, rto_min_s: float, scheme: str
) -> None:
    """Neither early nor late, although each ACK makes the variation of the RTT smaller."""
    flow = _lost_tail(tmp_path, n, delay_ns, rate_bps, rto_min_s, scheme)
    assert flow["drops"] == flow["retransmissions"] == 1
    assert flow["fct_ns"] == pytest.approx(_fct_ns(n, delay_ns, rate_bps, rto_min_s), rel=2e-6, abs=30)


@pytest.mark.parametrize("acks_lost", [1, 2, 3])
@pytest.mark.parametrize("delay_ns", [1e3, 250e3, 5e6])
def test_the_first_acks_are_lost(tmp_path: Path, delay_ns: float, acks_lost: int) -> None:
    """The first ACK that arrives gives the first RTT sample. `rto_min` is longer than all that."""
    flow = _lost_tail(tmp_path, 6, delay_ns, 1e10, 1.0, "reno", acks_lost)
    assert flow["drops"] == flow["retransmissions"] == 1
    assert flow["fct_ns"] == pytest.approx(_fct_ns(6, delay_ns, 1e10, 1.0, acks_lost), rel=2e-6, abs=30)


def test_the_rto_restarts_at_the_probe(tmp_path: Path) -> None:
    """RFC 8985, section 7.3: after a probe the RTO timer is set anew. Here the RTO fires before the probe's ACK."""
    flow = _lost_tail(tmp_path, 6, 500, 1e9, 2e-4, "reno")
    assert flow["drops"] == flow["retransmissions"] == 1
    assert flow["duplicate_bytes"] == 0
