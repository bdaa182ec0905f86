"""HPCC, DCQCN, TIMELY and priority flow control against independent models, and on cases of an independent reader."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import subak
from lossless_models import compare, dcqcn_paper, dcqcn_sim, hpcc, timely

SIMULATOR = "hpcc-simulator"
Spec = dict[str, Any]


@pytest.fixture
def go(tmp_path: Path) -> Any:
    """Runs a spec; returns its rows, its packets if they were recorded, and its warnings."""

    def run(spec: Spec, files: dict[str, str] | None = None) -> tuple[pl.DataFrame, pl.DataFrame | None, list[str]]:
        folder = tmp_path / "spec"
        folder.mkdir(exist_ok=True)
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        path = folder / "spec.json"
        path.write_text(json.dumps(spec))
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        results = subak.run(path, out, jobs=1)
        if results.failed:
            raise RuntimeError(str(next(iter(results.failed.values()))))
        packets = out / "trials" / "0.packets.parquet"
        told = [one["kind"] for one in results.warnings]
        return pl.read_parquet(out / "results.parquet"), pl.read_parquet(packets) if packets.exists() else None, told

    return run


def flows(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("kind") == "flow").sort("trial", "flow")


def links(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("kind") == "link")


def total(rows: pl.DataFrame, column: str) -> int:
    return int(rows.filter(pl.col("kind") == "summary")[column].sum())


def star(scheme: str, params: Spec, rate: int, delay_ns: int, senders: int, size: int, duration: str) -> Spec:
    steps = [{"src": f"h{i}", "dst": "h0", "size": size, "start": i * 1e-5} for i in range(1, senders + 1)]
    return {
        "network": {"kind": "star", "hosts": senders + 2, "rate": f"{rate}Gbps", "link_delay": f"{delay_ns}ns"},
        "workload": {"kind": "steps", "flows": steps},
        "scheme": [{"name": scheme, "params": params}],
        "measure": {"paces": "1us", "packets": {"flows": [0]}},
        "run": {"duration": duration},
    }


def agree(model: list[tuple[int, float]], rows: pl.DataFrame) -> None:
    """Fails unless the model's pacing rates equal the simulator's, except for two samples at the time of a change."""
    paces = rows.filter((pl.col("kind") == "pace") & (pl.col("flow") == 0)).select("time_ns", "pace_bps").rows()
    worst, count, off = compare(model, paces)
    assert count > 50
    assert off <= 2, worst


@pytest.mark.parametrize(("rate", "delay", "n"), [(40, 1000, 4), (10, 20000, 4), (100, 500, 12)])
@pytest.mark.parametrize(
    ("params", "stage", "ai", "eta", "low"),
    [
        ({}, 5, None, 0.95, 0),
        ({"preset": SIMULATOR}, 0, 0.0004, 0.95, 0.01),
        ({"preset": SIMULATOR, "eta": 0.8}, 0, 0.0004, 0.8, 0.01),
        ({"preset": SIMULATOR, "max_stage": 5}, 5, 0.0004, 0.95, 0.01),
    ],
)
def test_windows_of_hpcc(
    go: Any, params: Spec, stage: int, ai: float | None, eta: float, low: float, rate: int, delay: int, n: int
) -> None:
    rows, packets, _ = go(star("hpcc", params, rate, delay, n, 600_000, "3ms"))
    bytes_per_ns = rate / 8
    rtt = 4 * delay + 2 * math.ceil(1542 * 8 / rate) + 2 * math.ceil(92 * 8 / rate)
    first = bytes_per_ns * rtt
    model = hpcc(
        packets,
        0,
        "h1",
        B=bytes_per_ns,
        T=rtt,
        max_stage=stage,
        eta=eta,
        wai=ai * first if ai else None,
        wmin=low * first,
    )
    agree([(at, window * 8e9 / rtt) for at, window in model], rows)


@pytest.mark.parametrize(("rate", "delay", "n"), [(40, 1000, 4), (100, 20000, 3)])
@pytest.mark.parametrize(
    ("params", "settings"),
    [
        ({}, {}),
        ({"clamp": True}, {"clamp": True}),
        ({"fast": 5, "timer": 50e-6}, {"fast": 5, "timer": 50_000}),
        ({"min_rate": 0.05, "ai": 0.01, "hai": 0.1}, {"ai": 0.01, "hai": 0.1, "rmin": 0.05}),
    ],
)
def test_rates_of_dcqcn_as_the_simulator_has_it(
    go: Any, params: Spec, settings: Spec, rate: int, delay: int, n: int
) -> None:
    rows, packets, _ = go(star("dcqcn", {"preset": SIMULATOR} | params, rate, delay, n, 3_000_000, "12ms"))
    model = dcqcn_sim(packets, 0, C=rate / 8, **({"rmin": 0.01} | settings), end=15_000_000)
    agree([(at, x * 8e9) for at, x in model], rows)


@pytest.mark.parametrize(("rate", "delay", "n"), [(40, 1000, 4), (10, 1000, 8), (100, 20000, 3)])
@pytest.mark.parametrize(
    ("params", "settings"),
    [
        ({}, {}),
        ({"counter": 0}, {"counter": 0}),
        ({"counter": 100_000}, {"counter": 100_000}),
        ({"counter": 30_000, "hai": 0.02}, {"counter": 30_000, "hai": 0.02}),
        ({"clamp": False, "min_rate": 0.05}, {"clamp": False, "rmin": 0.05}),
    ],
)
def test_rates_of_dcqcn_as_its_paper_has_it(
    go: Any, params: Spec, settings: Spec, rate: int, delay: int, n: int
) -> None:
    rows, packets, _ = go(star("dcqcn", params, rate, delay, n, 3_000_000, "12ms"))
    model = dcqcn_paper(packets, 0, C=rate / 8, end=15_000_000, **settings)
    agree([(at, x * 8e9) for at, x in model], rows)


AS_SIMULATED = {"look": "rtt", "interval": 0, "hai_after": 6, "hai_below": True, "rmin": 0.01}


@pytest.mark.parametrize(("rate", "delay", "n"), [(40, 1000, 4), (10, 1000, 3)])
@pytest.mark.parametrize(
    ("params", "settings"),
    [
        ({}, {}),
        ({"patched": True}, {"patched": True, "beta": 0.008}),
        ({"preset": SIMULATOR}, AS_SIMULATED),
        ({"preset": SIMULATOR, "hai_below": False}, AS_SIMULATED | {"hai_below": False}),
        ({"segment": 64_000, "hai": 10, "hai_after": 3}, {"seg": 64_000, "hai": 10, "hai_after": 3}),
    ],
)
def test_rates_of_timely(go: Any, params: Spec, settings: Spec, rate: int, delay: int, n: int) -> None:
    rows, packets, _ = go(star("timely", params, rate, delay, n, 2_000_000, "10ms"))
    agree([(at, x * 8e9) for at, x in timely(packets, 0, C=rate / 8, **settings)], rows)


def both(a: str, b: str, gbps: float) -> list[Spec]:
    link = {"capacity": gbps * 1e9, "delay": 1e-6}
    return [{"from": a, "to": b, **link}, {"from": b, "to": a, **link}]


@pytest.mark.parametrize(
    ("gbps", "params", "alpha"),
    [
        (20, {}, 0.25),
        (25, {}, 0.5),
        (40, {}, 0.5),
        (80, {"pfc_headroom": 60_000}, 1),
        (40, {"pfc_alpha": 2}, 2),
        (40, {"pfc_reserve": 10_000}, 0.5),
        (40, {"pfc": "static", "pfc_threshold": 100_000}, None),
    ],
)
def test_a_link_is_paused_at_the_threshold(go: Any, gbps: int, params: Spec, alpha: float | None) -> None:
    """Eight hosts at 10 Gb/s send to one host over a faster link, at a rate that does not decrease."""
    network = [link for i in range(8) for link in both(f"a{i}", "s0", 10)]
    network += [*both("s0", "s1", gbps), *both("s1", "z", 10)]
    given = {"pfc_buffer": "1200KB", "pfc_headroom": 20_000, "min_rate": 1} | params
    rows, _, _ = go(
        {
            "network": {"links": network},
            "workload": {"kind": "steps", "flows": [{"src": f"a{i}", "dst": "z", "size": 400_000} for i in range(8)]},
            "scheme": [{"name": "timely", "params": given}],
            "run": {"duration": "3ms", "drain": "50ms"},
        }
    )
    reserve = given.get("pfc_reserve", 0)
    free = 1_200_000 - 2 * (given["pfc_headroom"] + reserve)
    want = (alpha * free / (1 + alpha) if alpha else given["pfc_threshold"]) + reserve
    peak = links(rows).filter(pl.col("link") == "s1->z")["peak_queued_bytes"][0]
    assert want - 1500 <= peak <= want + gbps * 1e9 / 8 * 2.2e-6 + 4 * 1500
    assert total(rows, "drops") == 0


@pytest.mark.parametrize(("scheme", "data", "ack"), [("dcqcn", 0, 0), ("timely", 8, 0), ("hpcc", 42, 28)])
@pytest.mark.parametrize("size", [1, 1446, 1447, 14_460])
def test_a_flow_alone_and_its_bytes(go: Any, scheme: str, data: int, ack: int, size: int) -> None:
    sent = [1446] * (size // 1446) + ([size % 1446] if size % 1446 else [])
    times = [0.8 * (payload + 54) for payload in sent]
    # The last packet queues behind a larger one at the second link.
    ideal = sum(times) + 2000 + (max(times[-2:]) if len(times) > 1 else times[0])
    for end, back in (("receiver", 0), ("sender", 2 * 51.2 + 2000)):
        rows, _, _ = go(
            {
                "network": {"kind": "star", "hosts": 2, "rate": "10Gbps"},
                "workload": {"kind": "steps", "flows": [{"src": "h0", "dst": "h1", "size": size}]},
                "scheme": [{"name": scheme, "params": {"preset": SIMULATOR}}],
                "measure": {"fct": end},
                "run": {"duration": "1ms"},
            }
        )
        assert abs(flows(rows)["ideal_fct_ns"][0] - ideal - back) <= 3
        there, back_link = (links(rows).filter(pl.col("link") == name) for name in ("h0->switch0", "h1->switch0"))
        assert there["data_bytes"][0] == size + len(sent) * (54 + data)
        assert back_link["ack_bytes"][0] == len(sent) * (64 + ack)


@pytest.mark.parametrize(
    ("params", "low", "high", "most", "event"),
    [({}, 5e3, 2e5, 0.01, "enqueue"), ({"preset": SIMULATOR}, 16e4, 64e4, 0.2, "dequeue")],
)
def test_marks_of_dcqcn(go: Any, params: Spec, low: float, high: float, most: float, event: str) -> None:
    """Marks by the queue length at a packet's arrival or departure; thresholds are for 40 Gb/s and scale with the
    rate."""
    network = [link for i in range(12) for link in both(f"a{i}", "s", 100)] + both("s", "z", 100)
    _, packets, _ = go(
        {
            "network": {"links": network},
            "workload": {
                "kind": "steps",
                "flows": [{"src": f"a{i}", "dst": "z", "size": 1_250_000} for i in range(12)],
            },
            "scheme": [{"name": "dcqcn", "params": params | {"min_rate": 0.3, "pfc_buffer": "200MB"}}],
            "measure": {"packets": {"links": ["s->z"]}},
            "run": {"duration": "5ms"},
        }
    )
    data = packets.filter(pl.col("packet") == "data")
    left = data.filter(pl.col("event") == "dequeue")
    came = data.filter(pl.col("event") == "enqueue").select("flow", "segment", found="queued_bytes")
    seen = left.join(came, on=["flow", "segment"]).with_columns(
        q=pl.col("found") if event == "enqueue" else pl.col("queued_bytes")
    )
    low, high = 2.5 * low, 2.5 * high
    assert seen.filter(pl.col("q") <= low)["ecn"].sum() == 0
    assert seen.filter((pl.col("q") >= high) & ~pl.col("ecn")).height == 0
    between = seen.filter((pl.col("q") > low) & (pl.col("q") < high))
    wanted = most * (between["q"] - low) / (high - low)
    assert abs(between["ecn"].sum() - wanted.sum()) <= 4 * math.sqrt((wanted * (1 - wanted)).sum()) + 1


def test_nothing_is_sent_again_where_nothing_was_lost(go: Any) -> None:
    """No retransmissions without loss: a hundred senders at 10 to 400 Gb/s, whose first packets wait up to 8 ms."""
    rates = (10, 25, 40, 100, 200, 400)
    network = [link for i in range(100) for link in both(f"a{i}", "s", rates[i % 6])] + both("s", "z", 10)
    names = ("hpcc", "dcqcn", "timely")
    rows, _, _ = go(
        {
            "network": {"links": network},
            "workload": {"kind": "steps", "flows": [{"src": f"a{i}", "dst": "z", "size": 100_000} for i in range(100)]},
            "scheme": [{"name": name, "params": {"pfc_buffer": "64MB"}} for name in names],
            "run": {"duration": "1ms", "drain": "100ms"},
        }
    )
    assert total(rows, "drops") == 0
    assert flows(rows)["retransmissions"].sum() == 0
    assert flows(rows)["fct_ns"].is_not_null().all()


def test_the_first_cut_halves_however_long_a_flow_was_alone(go: Any) -> None:
    steps = [
        {"src": "h1", "dst": "h0", "size": "80MB"},
        {"src": "h2", "dst": "h0", "size": "1MB", "start": "10ms"},
    ]
    rows, _, _ = go(
        {
            "network": {"kind": "star", "hosts": 3, "rate": "40Gbps"},
            "workload": {"kind": "steps", "flows": steps},
            "scheme": [{"name": "dcqcn"}],
            "measure": {"paces": "1us"},
            "run": {"duration": "12ms"},
        }
    )
    paces = rows.filter((pl.col("kind") == "pace") & (pl.col("flow") == 0)).sort("time_ns")["pace_bps"].to_list()
    assert next(pace for pace in paces if pace != paces[0]) / paces[0] == pytest.approx(0.5, abs=0.01)


INCAST = {
    "network": {"kind": "star", "hosts": 17, "rate": "100Gbps"},
    "workload": {"kind": "incast", "senders": 16, "size": "500KB"},
    "run": {"duration": "1ms", "drain": "100ms"},
}


def test_too_little_headroom_is_warned_of(go: Any) -> None:
    fast = {"min_rate": 1, "pfc_buffer": "2MB"}
    rows, _, told = go(INCAST | {"scheme": [{"name": "timely", "params": fast | {"pfc_headroom": 1}}]})
    assert total(rows, "drops") > 0
    assert "pfc-drops" in told
    rows, _, told = go(INCAST | {"scheme": [{"name": "timely", "params": fast}]})
    assert total(rows, "drops") == 0
    assert "pfc-drops" not in told


def test_traces_that_say_something_else(go: Any) -> None:
    spec = INCAST | {"scheme": [{"name": "hpcc"}], "workload": {"kind": "trace", "file": "flows.txt", "format": "hpcc"}}
    late = "1\n0 1 3 100 5000 2.5\n"
    assert "no-flow" in go(spec, {"flows.txt": late})[2]
    more = "1\n0 1 3 100 5000 2.0001\n1 2 3 100 5000 2.0002\n"
    assert total(go(spec, {"flows.txt": more})[0], "flows") == 1, "HPCC's simulator reads the announced ones"


@pytest.mark.parametrize("params", [{"fast": 1.5}, {"preset": "mellanox"}, {"pfc_buffer": 10_000}, {"header": 1}])
def test_what_makes_no_sense_is_refused(go: Any, params: Spec) -> None:
    with pytest.raises((subak.InputError, RuntimeError)):
        go(INCAST | {"scheme": [{"name": "dcqcn", "params": params}]})


def test_the_buffer_asked_for_is_enough(go: Any) -> None:
    with pytest.raises(RuntimeError, match="switch0") as refused:
        go(INCAST | {"scheme": [{"name": "dcqcn", "params": {"pfc_buffer": 10_000}}]})
    least = int(str(refused.value).split("at least ")[1].split(" ")[0])
    assert total(go(INCAST | {"scheme": [{"name": "dcqcn", "params": {"pfc_buffer": least}}]})[0], "drops") == 0
