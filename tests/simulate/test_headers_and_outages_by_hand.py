"""Bytes of schemes' headers, and failures of links: times and bytes on one path computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import subak
from subak.errors import InputError

LINE_BPS = 10e9
PAYLOAD, MTU, ACK = 1446, 1500, 64
DELAY_NS = 1000
PACKETS = 1000


def _run(out: Path, scheme: str, packets: int = PACKETS, params: dict[str, Any] | None = None, **more: Any) -> Any:
    """One flow of full packets between two hosts, over two links; ``both`` gives one in each direction."""
    size = packets * PAYLOAD
    flows = f"start_ns,src,dst,size_bytes\n0,h0,h1,{size}\n" + f"0,h1,h0,{size}\n" * more.pop("both", False)
    (out / "flows.csv").write_text(flows)
    spec: dict[str, Any] = {
        "network": {"kind": "star", "hosts": 2, "rate": "10Gbps", "link_delay": "1us"},
        "workload": {"kind": "trace", "file": str(out / "flows.csv")},
        "scheme": [{"name": scheme, "params": params or {}}],
        "run": {"duration": "5ms"},
    }
    if scheme in ("numfabric", "dgd"):
        spec["policy"] = {"kind": "alpha-fair", "alpha": 1}
    return subak.run(spec | more, out / "out")


def _flow(results: Any) -> dict[str, Any]:
    (row,) = results.table("flow").to_pylist()
    return dict(row)


def _ns(wire_bytes: int, rate_bps: float = LINE_BPS) -> float:
    return wire_bytes * 8e9 / rate_bps


@pytest.mark.parametrize(
    ("scheme", "header", "ack_header"),
    [("hpcc", 42, 28), ("hpcc", 0, 0), ("hpcc", 1000, 1000), ("powertcp", 7, 3), ("numfabric", 13, 9), ("dgd", 100, 0)],
)
def test_links_carry_the_bytes_of_headers(tmp_path: Path, scheme: str, header: int, ack_header: int) -> None:
    params = {"header": header, "ack_header": ack_header}
    if (scheme, header) == ("hpcc", 42):
        params = {}
    results = _run(tmp_path, scheme, 100, params)
    bytes_of = {row["link"]: (row["data_bytes"], row["ack_bytes"]) for row in results.table("link").to_pylist()}
    data, acks = 100 * (MTU + header), 100 * (ACK + ack_header)
    assert bytes_of["h0->switch0"] == bytes_of["switch0->h1"] == (data, 0)
    assert bytes_of["h1->switch0"] == bytes_of["switch0->h0"] == (0, acks)


@pytest.mark.parametrize(("scheme", "header"), [("powertcp", 0), ("powertcp", 500), ("dgd", 100), ("dctcp", None)])
def test_the_fct_at_line_rate(tmp_path: Path, scheme: str, header: int | None) -> None:
    flow = _flow(_run(tmp_path, scheme, PACKETS, {} if header is None else {"header": header}))
    packet_ns = _ns(MTU + (header or 0))
    assert flow["fct_ns"] == pytest.approx((PACKETS + 1) * packet_ns + 2 * DELAY_NS, abs=2)
    # The slowdown's denominator has no headers.
    alone_ns = (PACKETS + 1) * _ns(MTU) + 2 * DELAY_NS
    assert flow["slowdown"] == pytest.approx(flow["fct_ns"] / alone_ns, rel=1e-5)


@pytest.mark.parametrize(
    ("scheme", "params"),
    [("powertcp", {"header": 0, "ack_header": 1000}), ("dgd", {"header": 100, "ack_header": 436})],
)
def test_acks_and_data_share_a_link_by_their_bytes(tmp_path: Path, scheme: str, params: dict[str, int]) -> None:
    results = _run(tmp_path, scheme, 10 * PACKETS, params, both=True, measure={"rates": "50us"})
    rows = [row for row in results.table("rate").to_pylist() if 2_000_000 <= row["time_ns"] <= 5_000_000]
    rate_bps = sum(row["rate_bps"] for row in rows) / len(rows)
    data, ack = MTU + params["header"], ACK + params["ack_header"]
    assert rate_bps == pytest.approx(LINE_BPS * data / (data + ack), rel=0.02)


@pytest.mark.parametrize("header", [-1, 1001, "2KB", "abc", "", 1.5, True, float("nan"), 1e300])
def test_odd_headers_are_refused_by_name(tmp_path: Path, header: Any) -> None:
    with pytest.raises(InputError, match=r"scheme\[0\].params.header"):
        _run(tmp_path, "hpcc", 1, {"header": header})


@pytest.mark.parametrize("header", [0, 500])
def test_a_link_that_becomes_slower(tmp_path: Path, header: int) -> None:
    fault = {"kind": "capacity", "link": "h0->switch0", "capacity": "5Gbps", "at": "500us"}
    flow = _flow(_run(tmp_path, "powertcp", PACKETS, {"header": header, "ack_header": 0}, fault=[fault]))
    wire = MTU + header
    # The packet on the link at the change ends at the old rate.
    before = int(500_000 // _ns(wire)) + 1
    expected_ns = before * _ns(wire) + (PACKETS - before) * _ns(wire, LINE_BPS / 2) + _ns(wire) + 2 * DELAY_NS
    assert flow["fct_ns"] == pytest.approx(expected_ns, abs=2)


def test_an_outage_that_keeps_what_waits(tmp_path: Path) -> None:
    fault = {"kind": "down", "link": "h0->switch0", "down": "200us", "up": "400us", "waiting": "keep"}
    flow = _flow(_run(tmp_path, "dctcp", fault=[fault]))
    packet_ns = _ns(MTU)
    # Lost: the packet that the link sends at 200 us, and the one sent before, which has not arrived.
    assert flow["drops"] == flow["retransmissions"] == 2
    sent = int(200_000 // packet_ns) + 1
    expected_ns = 400_000 + (PACKETS - sent + 2) * packet_ns + packet_ns + 2 * DELAY_NS
    assert flow["fct_ns"] == pytest.approx(expected_ns, abs=2)


def test_an_outage_that_loses_what_waits_ends_with_the_rto(tmp_path: Path) -> None:
    fault = {"kind": "down", "link": "h0->switch0", "down": "200us", "up": "400us"}
    flow = _flow(_run(tmp_path, "dctcp", params={"probe": False}, fault=[fault]))
    packet_ns, arrived = _ns(MTU), int((200_000 - DELAY_NS) // _ns(MTU))
    last_ack_ns = (arrived + 1) * packet_ns + 4 * DELAY_NS + 2 * _ns(ACK)
    rest_ns = (PACKETS - arrived + 1) * packet_ns + 2 * DELAY_NS
    # One packet at first: slow start costs a few RTTs.
    assert last_ack_ns + 1e6 + rest_ns <= flow["fct_ns"] <= last_ack_ns + 1e6 + rest_ns + 15_000


@pytest.mark.parametrize("rto_min_s", [0.001, 0.01])
def test_the_end_of_a_young_flow_is_probed_after_two_rtts(tmp_path: Path, rto_min_s: float) -> None:
    # RFC 8985, section 7: the last packets are lost; their retransmission does not wait for the RTO.
    fault = {"kind": "down", "link": "switch0->h1", "down": "12us", "up": "14us", "both": False}
    flow = _flow(_run(tmp_path, "dctcp", 10, {"rto_min": rto_min_s}, fault=[fault]))
    assert flow["drops"] > 0
    assert flow["fct_ns"] < 100_000


def test_the_end_of_an_old_flow_is_probed_after_two_rtts(tmp_path: Path) -> None:
    fault = {"kind": "down", "link": "h0->switch0", "down": "2000us", "up": "2100us"}
    results = _run(tmp_path, "dctcp", 4000, fault=[fault], measure={"rates": "20us"})
    silent = [row["time_ns"] for row in results.table("rate").to_pylist() if row["rate_bps"] == 0]
    assert max(silent) < 2_400_000
