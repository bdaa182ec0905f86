"""Phases of the paper's figures that settle, with a window and with a rate as the sender's state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Spec = dict[str, Any]
STATES: dict[str, Spec] = {
    "window": {"state": "window"},
    "rate": {"state": "rate"},
    "rate, waits": {"state": "rate", "signal": "wait", "filter": "10us"},
}
"""Readings by label. The last one was recorded first: packets report their own wait, through a filter."""
WITHIN = 0.05
LATE = 0.25
"""Judged fraction at the end of a phase."""
AVERAGE_NS = 200_000
SIZES = {"mtu": 1048, "header": 48, "ack": 64}
GBPS, HOSTS = "100Gbps", 16


def _star(hosts: int) -> Spec:
    return {"kind": "star", "hosts": hosts, "rate": GBPS, "link_delay": "1us"}


def _links(delay: str, ends: list[tuple[str, str]]) -> list[dict[str, str]]:
    both = [pair for a, b in ends for pair in ((a, b), (b, a))]
    return [{"from": a, "to": b, "capacity": GBPS, "delay": delay} for a, b in both]


def _flow(name: str, src: str, dst: str, **more: Any) -> Spec:
    return {"id": name, "src": src, "dst": dst, **more}


def _fig2() -> Spec:
    later = [{} if k == 0 else {"weights": [["2ms", k + 1]]} for k in range(4)]
    flows = [_flow(f"f{k}", f"h{k}", "h4", **more) for k, more in enumerate(later)]
    return _spec(_star(5), flows, "6ms")


def _fig3() -> Spec:
    ends = [("blue0", "s0"), ("red0", "s0"), ("yellow0", "s1"), ("s0", "s1"), ("s1", "s2")]
    ends += [("s1", "blue1"), ("s2", "red1"), ("s2", "yellow1")]
    flows = [
        _flow("blue", "blue0", "blue1", weight=3),
        _flow("red", "red0", "red1", weight=2),
        _flow("yellow", "yellow0", "yellow1", weights=[["5ms", 4]]),
    ]
    return _spec(_links("1us", ends), flows, "10ms")


def _fig14() -> Spec:
    network = {"kind": "leaf-spine", "leaves": 5, "spines": 1, "hosts_per_leaf": 1, "host_rate": GBPS}
    network |= {"spine_rate": "400Gbps", "link_delay": "1us", "nic": "round-robin"}
    flows = [_flow(f"f{k}", f"h{k}", "h4", start=f"{10 * k}ms", stop=f"{10 * k + 40}ms") for k in range(4)]
    return _spec(network, flows, "71ms")


def _fig17() -> Spec:
    ends = [(f"from{k}", "s0" if k < 5 else "s1") for k in range(1, 7)] + [("s0", "s1"), ("s1", "s2")]
    ends += [(f"to{k}", "s1" if k == 1 else "s2") for k in range(1, 7)]
    weights = [[f"{10 * k}ms", k + 1] for k in range(1, 5)]
    flows = [_flow(f"f{k}", f"from{k}", f"to{k}", **({"weights": weights} if k == 1 else {})) for k in range(1, 7)]
    return _spec({"nic": "round-robin", "links": _links("2us", ends)}, flows, "50ms")


def _fig18b() -> Spec:
    weights = [["2ms", 1.05], ["4ms", 1.155], ["6ms", 1.386], ["8ms", 1.9404], ["10ms", 3.49272]]
    flows = [_flow("f0", "h0", "h2", weights=weights), _flow("f1", "h1", "h2")]
    return _spec(_star(3), flows, "12ms")


def _fig18c() -> Spec:
    flows = [_flow(f"f0-{k + 1}", "h0", "h2", start=f"{5 * k}ms") for k in range(4)]
    return _spec(_star(3) | {"nic": "round-robin"}, [*flows, _flow("f1", "h1", "h2")], "20ms")


def _tree(seed: int, both_ways: bool) -> Spec:
    """160 flows between random hosts; unless ``both_ways``, from one half of the hosts to the other."""
    rng, flows = Random(f"soze-states {seed}"), []
    for k in range(160):
        src = rng.randrange(HOSTS if both_ways else HOSTS // 2)
        dst = (src + 1 + rng.randrange(HOSTS - 1)) % HOSTS if both_ways else HOSTS // 2 + rng.randrange(HOSTS // 2)
        flows.append(_flow(f"f{k}", f"h{src}", f"h{dst}", weight=1 + 3 * rng.random()))
    spec = _spec({"kind": "fat-tree", "k": 4, "rate": GBPS, "link_delay": "1us"}, flows, "4ms")
    # ACKs are nearly free, so that exact rates need no share for them where they meet data.
    return spec | {"packets": SIZES | {"ack": 1}}


def _spec(network: Any, flows: list[Spec], duration: str) -> Spec:
    return {
        "network": network,
        "workload": {"kind": "steps", "jitter": "10us", "flows": flows},
        "measure": {"fct": False, "rates": "10us"},
        "packets": SIZES,
        "run": {"duration": duration},
    }


FIGURES: dict[str, Callable[[], Spec]] = {
    "2": _fig2,
    "3": _fig3,
    "14": _fig14,
    "17": _fig17,
    "18b": _fig18b,
    "18c": _fig18c,
}
TREES = {"tree one way": False, "tree both ways": True}


def _ns(text: str) -> float:
    return float(text.removesuffix("ms")) * 1e6


def _phases(spec: Spec) -> list[tuple[float, float]]:
    """Times between changes of the set of flows or of weights, ns; the last phase of figure 14 ends with its flow."""
    flows = spec["workload"]["flows"]
    times = {_ns(f[key]) for f in flows for key in ("start", "stop") if key in f}
    times |= {_ns(at) for f in flows for at, _ in f.get("weights", [])} | {0}
    if not any("stop" in f for f in flows):
        times.add(_ns(spec["run"]["duration"]))
    at = sorted(times)
    return list(pairwise(at))


def _simulate(spec: Spec, seed: int, params: Spec) -> dict[str, Any]:
    """Rates by label: assigned and received, a row for each sample and a column for each flow, bit/s."""
    schemes = [{"name": "soze", "label": label, "params": params | state} for label, state in STATES.items()]
    spec = spec | {"scheme": [*schemes, {"name": "ideal"}], "run": spec["run"] | {"seeds": [seed]}}
    with TemporaryDirectory() as folder:
        columns = ["scheme", "flow", "time_ns", "rate_bps", "assigned_bps"]
        frame = subak.run(spec, Path(folder), jobs=1, progress=False).table("rate", columns).to_pandas()
    return {
        label: mine.pivot(index="time_ns", columns="flow", values=["assigned_bps", "rate_bps"])
        for label, mine in frame.groupby("scheme")
    }


def _judge(rates: dict[str, Any], state: str, phase: tuple[float, float]) -> tuple[bool, np.ndarray, float]:
    """Whether a phase settled, errors of its flows at its end, and the received sum over the exact one."""
    begin, end = phase

    def late(label: str, column: str) -> np.ndarray:
        frame = rates[label][column]
        # The sample at the end belongs to the next phase.
        held = frame[(frame.index > end - LATE * (end - begin)) & (frame.index < end)]
        return np.asarray(held.dropna(axis=1), dtype=float)

    exact = late("ideal", "assigned_bps")[-1]
    assigned = late(state, "assigned_bps")
    over = round(AVERAGE_NS / 10_000)
    sums = np.cumsum(np.vstack([np.zeros(assigned.shape[1]), assigned]), axis=0)
    means = (sums[over:] - sums[:-over]) / over
    settled = bool((np.abs(means / exact - 1) <= WITHIN).all())
    used = float(late(state, "rate_bps").mean(axis=0).sum() / exact.sum())
    return settled, np.abs(assigned.mean(axis=0) / exact - 1), used


def run(settings: dict[str, Any], runs: int, seed: int, progress: Callable[[int, int, float], None]) -> dict[str, Any]:
    """Runs each figure with new starts, and each tree with new flows."""
    chosen = settings.get("figures", [*FIGURES, *TREES])
    held: dict[tuple[str, str], dict[str, list[float]]] = {}
    rows = []
    for k in range(runs):
        for number, name in enumerate(chosen):
            spec = FIGURES[name]() if name in FIGURES else _tree(seed + k, TREES[name])
            rates = _simulate(spec, seed + k, settings.get("params", {}))
            phases = _phases(spec)
            for state in STATES:
                seen = [_judge(rates, state, phase) for phase in phases]
                off = np.concatenate([one[1] for one in seen])
                mine = held.setdefault((name, state), {})
                values = {
                    "settled": float(sum(one[0] for one in seen)),
                    "worst": 100 * float(off.max()),
                    "median": 100 * float(np.median(off)),
                    "p95": 100 * float(np.quantile(off, 0.95)),
                    "used": 100 * float(np.mean([one[2] for one in seen])),
                }
                for key, value in values.items():
                    mine.setdefault(key, []).append(value)
                rows.append([name, state, seed + k, len(phases), *(round(v, 4) for v in values.values())])
            done = k * len(chosen) + number + 1
            progress(done, runs * len(chosen), done / (runs * len(chosen)))
    values_of: dict[str, Any] = {}
    for (name, state), mine in held.items():
        keys = ("median", "p95", "used") if name in TREES else ("settled", "worst", "used")
        for key in keys:
            of = "networks" if name in TREES else "runs"
            told: dict[str, Any] = {"statistic": "mean", "data": mine[key], "of": of}
            if key == "settled":
                count = sum(row[3] for row in rows if (row[0], row[1]) == (name, state))
                told = {"statistic": "share", "hits": round(sum(mine[key])), "count": count, "of": "phases"}
            values_of[f"{name} {state} {key}"] = told
    columns = ["figure", "state", "seed", "phases", "settled", "worst_off", "median_off", "p95_off", "used"]
    return {"values": values_of, "tables": {"runs": {"columns": columns, "rows": rows}}}


def draw(raw: RawResults) -> Figure:
    """Errors of the worst flow by figure, a point for each run."""
    figure, (plot,) = figures.axes(width=7)
    rows = raw.rows("runs")
    names = list(dict.fromkeys(row["figure"] for row in rows))
    for k, state in enumerate(STATES):
        mine = [row for row in rows if row["state"] == state]
        at = [names.index(row["figure"]) + 0.2 * (k - 1) for row in mine]
        plot.plot(at, [row["worst_off"] for row in mine], marker="o", markersize=3, linestyle="", label=state)
    plot.set_xticks(range(len(names)), [name.replace("tree ", "tree,\n") for name in names])
    plot.set(ylabel="error of the worst flow, %", yscale="log")
    plot.legend()
    return figure
