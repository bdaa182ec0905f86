"""FCTs of the scheme `ideal` beside a model that fills the links from nothing at each event."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
import subak

HEADER, MSS = 54, 1446
Listed = tuple[list[str], float, float]


def _wire_bits(size: int) -> float:
    return 8.0 * (size + math.ceil(size / MSS) * HEADER)


def _fill(caps: dict[str, float], flows: list[Listed]) -> list[float]:
    """Weighted max-min rates by progressive filling. A flow: path, weight, demand."""
    rates, left, active = [0.0] * len(flows), dict(caps), set(range(len(flows)))
    while active:
        weight = {link: sum(flows[i][1] for i in active if link in flows[i][0]) for link in left}
        levels = [(max(left[link], 0.0) / w, link) for link, w in weight.items() if w > 0]
        demands = [(flows[i][2] / flows[i][1], i) for i in active]
        (by_link, link), (by_demand, one) = min(levels), min(demands)
        frozen = [one] if by_demand < by_link else [i for i in active if link in flows[i][0]]
        for i in frozen:
            rates[i] = min(by_link, by_demand) * flows[i][1]
            for crossed in flows[i][0]:
                left[crossed] -= rates[i]
            active.discard(i)
    return rates


def _ends(caps: dict[str, float], flows: list[dict[str, Any]], changes: list[tuple[float, str, float]]) -> list[float]:
    """Times at which the flows' last bits leave; infinity for a flow that is stopped."""
    left = [f["bits"] for f in flows]
    ends, caps, now = [math.inf] * len(flows), dict(caps), 0.0
    marks = {f["start"] for f in flows} | {f.get("stop", 0.0) for f in flows} | {t for t, _, _ in changes}
    over = [False] * len(flows)
    while not all(over):
        caps |= {link: capacity for at, link, capacity in changes if at == now}
        over = [o or f.get("stop", math.inf) <= now for o, f in zip(over, flows, strict=True)]
        run = [i for i, f in enumerate(flows) if f["start"] <= now and not over[i]]
        rates = _fill(caps, [(flows[i]["path"], flows[i]["weight"], flows[i]["demand"]) for i in run])
        done = {i: now + left[i] / rate for i, rate in zip(run, rates, strict=True)}
        then = min([m for m in marks if m > now] + list(done.values()), default=math.inf)
        for i, rate in zip(run, rates, strict=True):
            left[i] -= rate * (then - now)
            if done[i] == then:
                ends[i], over[i] = then, True
        now = then
        if now == math.inf:
            break
    return ends


@pytest.mark.parametrize("seed", range(12))
def test_fcts_equal_those_of_a_model_from_nothing(tmp_path: Path, seed: int) -> None:
    """Arrivals, departures, stops, weights, demands and changes of capacity; times are whole nanoseconds."""
    draw = random.Random(seed)
    names = [f"l{i}" for i in range(draw.randint(2, 7))]
    caps = {name: draw.choice([1e9, 1e9, 2e9, 1e10, round(draw.uniform(1e9, 4e10))]) for name in names}
    flows: list[dict[str, Any]] = []
    for _ in range(draw.randint(3, 20)):
        path = draw.sample(names, draw.randint(1, min(4, len(names))))
        flow = {"path": path, "start": round(draw.uniform(0, 0.009), 9), "size": draw.randint(1, 2_000_000)}
        flow |= {"weight": draw.choice([1.0, 1.0, 2.0, 0.5, 10.0]), "demand": round(draw.uniform(1e8, 3e9))}
        stop = round(flow["start"] + draw.uniform(1e-4, 5e-3), 9)
        flows.append(flow | ({"stop": stop} if draw.random() < 0.3 else {}))
    flows.sort(key=lambda f: f["start"])
    changes = [(round(draw.uniform(0, 0.009), 9), draw.choice(names), round(draw.uniform(5e8, 2e10))) for _ in range(2)]
    faults = [{"kind": "capacity", "link": link, "at": at, "capacity": c, "both": False} for at, link, c in changes]
    spec = {
        "network": {"links": [{"id": name, "capacity": c, "delay": "1us"} for name, c in caps.items()]},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "10ms", "drain": "10s"},
        "fault": faults,
    }
    rows = subak.run(spec, tmp_path / "out", progress=False).table("flow").to_pandas().sort_values("flow")
    lone = [min([f["demand"], *(caps[link] for link in f["path"])]) for f in flows]
    ideal_s = [ns / 1e9 for ns in rows["ideal_fct_ns"]]
    # What a flow sends as a fluid: not more than a flow alone sends in its ideal FCT, as its last packet has line rate.
    bits = [min(_wire_bits(f["size"]), s * rate) for f, s, rate in zip(flows, ideal_s, lone, strict=True)]
    ends = _ends(caps, [f | {"bits": b} for f, b in zip(flows, bits, strict=True)], changes)
    for flow, end, b, rate, s, fct in zip(flows, ends, bits, lone, ideal_s, rows["fct_ns"], strict=True):
        expected_s = end - flow["start"] + s - b / rate
        if flow["start"] + expected_s > flow.get("stop", math.inf):
            assert math.isnan(fct)
        else:
            assert fct == pytest.approx(1e9 * expected_s, rel=1e-6, abs=20)
