"""Values of twelve experiments, computed from the papers' text and the experiments' pages alone.

A function reads the folder that `subak repro NAME` leaves, and returns values by the keys of the experiment's checks.
`flowtune_fig16` and `perc_wfk` read no results: they simulate and solve again. `fit_table6_2` reads the programs.

    python tests/models/twelve_rows.py flowtune-fig8 FOLDER

prints each value beside that of the folder's `verdict.json`.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

Array = NDArray[Any]
Values = dict[str, Any]
MS = 1_000_000
NS_PER_US = 1000.0


def table(folder: Path, kind: str, *columns: str) -> dict[str, Array]:
    """Columns of one kind of rows of a folder's `results.parquet`."""
    rows = pq.read_table(folder / "results.parquet", columns=["kind", *columns])
    rows = rows.filter(pc.equal(rows["kind"], kind))
    return {name: np.array(rows[name].to_pylist()) for name in columns}


def ordered(values: Iterable[Any]) -> list[Any]:
    """Distinct values in order of appearance."""
    return list(dict.fromkeys(values))


def where(rows: dict[str, Array], **equal: Any) -> dict[str, Array]:
    """The rows whose columns have these values."""
    keep = np.ones(len(next(iter(rows.values()))), bool)
    for name, value in equal.items():
        keep &= rows[name] == value
    return {name: column[keep] for name, column in rows.items()}


# Flowtune


def flowtune_fig8(folder: Path) -> Values:
    """Section 5.3.1 (D): rates of 100 us, five flows that come and go every 10 ms.

    Fair is within 10% of an equal share of the link, both ends included. A change has settled with the start of the
    first bin from which all bins are fair until the next change.
    """
    rows = table(folder / "run", "rate", "scheme", "seed", "time_ns", "flow", "rate_bps")
    starts, step, link = 10 * MS * np.arange(5), 10 * MS, 10_000_000_000
    values: Values = {}
    for scheme in ordered(rows["scheme"]):
        settled, first, uneven, least, used = [], [], [], [], []
        for seed in ordered(rows["seed"]):
            mine = where(rows, scheme=scheme, seed=seed)
            rates = np.zeros((900, 5), np.int64)
            rates[mine["time_ns"] // 100_000 - 1, mine["flow"]] = mine["rate_bps"].round()
            for change in range(9):
                running = (starts <= change * step) & (change * step < starts + 5 * step)
                bins = rates[100 * change : 100 * (change + 1), running]
                several = bins.shape[1] > 1
                # In whole numbers: 3.0 of 10 Gb/s is 10% off a third of them, and that is a frequent rate.
                fair = (10 * abs(bins * bins.shape[1] - link) <= link).all(axis=1)
                settled.append(100.0 * (np.flatnonzero(~fair).max(initial=-1) + 1) if fair[-1] else np.inf)
                first.append(100.0 * fair.argmax() if fair.any() else np.inf)
                used.append(100 * bins.sum(axis=1).mean() / link)
                if several:
                    second = bins[50:]
                    uneven.append(second.std(axis=0).mean() / second.mean())
                    least.append(bins.mean(axis=0).min() * bins.shape[1] / link)
        values |= {
            f"{scheme} settled": np.median(settled),
            f"{scheme} first": np.median(first),
            f"{scheme} uneven": np.mean(uneven),
            f"{scheme} least": np.mean(least),
            f"{scheme} used": np.mean(used),
        }
        if scheme == "flowtune":
            values["flowtune worst"] = max(settled)
            values["flowtune within"] = 100 * np.mean(np.array(settled) <= 100)
    return values


def flowtune_fig13(folder: Path) -> Values:
    """Section 5.3.3 (I): 99th percentile of the queueing delay of a path, from sampled queue lengths.

    All paths of two and of four links at all samples, where the experiment draws 2000 of each for each sample.
    """
    rows = table(folder / "run", "queue", "scheme", "load", "seed", "time_ns", "link", "queued_bytes", "measured")
    rows = where(rows, measured=True)
    hosts = {link.split("->")[0]: link.split("->")[1] for link in ordered(rows["link"]) if link.startswith("h")}
    leaves = ordered(hosts.values())
    spines = [x.split("->")[0] for x in ordered(rows["link"]) if x.startswith("spine") and x.endswith(f"->{leaves[0]}")]
    # Gb/s between a leaf and a spine: full bisection.
    across = 10.0 * len(hosts) / len(leaves) / len(spines)
    values: Values = {}
    for scheme in ("flowtune", "dctcp", "xcp"):
        tails = defaultdict(list)
        for load in ordered(rows["load"]):
            mine = where(rows, scheme=scheme, load=load)
            delays: dict[int, list[Array]] = {2: [], 4: []}
            for seed, time in ordered(zip(mine["seed"], mine["time_ns"], strict=True)):
                now = where(mine, seed=seed, time_ns=time)
                queue = dict(zip(now["link"], now["queued_bytes"] * 8 / 1e3, strict=True))
                ups = [[queue[f"{h}->{leaf}"] / 10 for h in hosts if hosts[h] == leaf] for leaf in leaves]
                downs = [[queue[f"{leaf}->{h}"] / 10 for h in hosts if hosts[h] == leaf] for leaf in leaves]
                for i, source in enumerate(leaves):
                    for j, sink in enumerate(leaves):
                        ends = np.add.outer(ups[i], downs[j])
                        if i == j:
                            delays[2].append(ends[~np.eye(len(ends), dtype=bool)])
                            continue
                        middle = [queue[f"{source}->{s}"] / across + queue[f"{s}->{sink}"] / across for s in spines]
                        delays[4].append(np.add.outer(ends, middle).ravel())
            for length, each in delays.items():
                tails[length].append(float(np.quantile(np.concatenate(each), 0.99)))
        values |= {f"{scheme} us {length}": tail for length, tail in tails.items()}
    over = {key: np.array(values[key]) / values[f"flowtune us {key[-1]}"] for key in values if key[0] != "f"}
    return values | {
        "flowtune worst": max(values["flowtune us 2"] + values["flowtune us 4"]),
        "dctcp": over["dctcp us 4"][-1],
        "xcp": over["xcp us 4"][-1],
        "dctcp 2": over["dctcp us 2"][-1],
        "xcp 2": over["xcp us 2"][-1],
        "dctcp every": min(over["dctcp us 2"].min(), over["dctcp us 4"].min()),
    }


def flowtune_fig16(steps: int, warmup: int, seeds: Sequence[int], loads: Sequence[float]) -> dict[str, list[float]]:
    """Section 5.4 (L), equations 3, 4 and 6: over-allocation in Gb/s, a value a seed; flows are drawn anew."""
    values = {}
    for method in ("NED", "Gradient"):
        for load in loads:
            values[f"over {method} {load}"] = [_over_allocation(method, load, steps, warmup, seed) for seed in seeds]
    return values


def _over_allocation(method: str, load: float, steps: int, warmup: int, seed: int) -> float:
    """Mean over the iterations after the warm-up; nine racks of 16 servers, four spines, an iteration every 10 us."""
    import subak

    sizes, random = subak.Sizes("facebook-web"), np.random.default_rng(seed)
    capacity = np.array([10.0] * 288 + [40.0] * 72)
    unit, gamma, interval = capacity.mean(), 0.4, 1e-5
    arrivals = load * 144 * 10e9 * interval / 8 / sizes.mean_bytes
    price = np.full(361, 1 / unit)
    price[360] = 0  # The link of paths within a rack that does not exist.
    paths, left = np.zeros((0, 4), int), np.zeros(0)
    over = []
    for step in range(steps):
        count = random.poisson(arrivals)
        source, spine = random.integers(144, size=count), random.integers(4, size=count)
        sink = (source + random.integers(1, 144, size=count)) % 144
        up, down = 288 + source // 16 * 4 + spine, 324 + sink // 16 * 4 + spine
        up[source // 16 == sink // 16] = down[source // 16 == sink // 16] = 360
        paths = np.vstack([paths, np.column_stack([source, 144 + sink, up, down])])
        left = np.append(left, [sizes.quantile(u) for u in random.random(count)])
        rate = np.minimum(10.0, 1 / np.maximum(price[paths].sum(axis=1), 1e-9))
        used, slope = (np.bincount(paths.ravel(), np.repeat(x, 4), 361)[:360] for x in (rate, rate**2))
        excess = used - capacity
        if step >= warmup:
            over.append(excess.clip(0).sum())
        fullest = np.append(used / capacity, 0)[paths].max(axis=1)
        left = left - rate / fullest * 1e9 * interval / 8
        # A link without flows keeps its price, under both methods.
        busy = used > 0
        change = excess[busy] / slope[busy] if method == "NED" else excess[busy] / unit**2
        price[:360][busy] = np.maximum(0, price[:360][busy] + gamma * change)
        paths, left = paths[left > 0], left[left > 0]
    return float(np.mean(over))


# NUMFabric


def numfabric_fig8(folder: Path) -> Values:
    """Section 6.3: throughput over the senders' links and rates of source-destination pairs, after the first sample."""
    names = ("scheme", "seed", "time_ns", "flow", "rate_bps", "workload.subflows", "workload.apart")
    rows = table(folder / "run", "rate", *names)
    rows = {name: column[rows["time_ns"] > rows["time_ns"].min()] for name, column in rows.items()}
    values = {}
    for name, scheme, subflows, apart in (
        ("8", "numfabric", 8, "false"),
        ("8_exact", "ideal", 8, "false"),
        ("1", "numfabric", 1, "false"),
        ("8_apart", "numfabric", 8, "true"),
    ):
        runs = []
        for seed in ordered(rows["seed"]):
            setting = {"workload.subflows": subflows, "workload.apart": apart}
            mine = where(rows, scheme=scheme, seed=seed, **setting)
            pair = mine["flow"] // subflows if apart == "true" else mine["flow"]
            rate = np.bincount(pair, mine["rate_bps"]) / len(set(mine["time_ns"]))
            mean, tenth = rate.mean(), np.quantile(rate, 0.1)
            runs.append((mean / 10e9, rate.min() / mean, tenth / mean, mean**2 / (rate**2).mean()))
        throughput, worst, low, jain = np.mean(runs, axis=0)
        values |= {f"throughput_{name}": throughput, f"worst_{name}": worst, f"tenth_{name}": low, f"jain_{name}": jain}
    return values | {"fairer": values["worst_8"] - values["worst_8_apart"]}


def numfabric_fig9(folder: Path) -> Values:
    """Section 6.3 and figure 2: distance of two flows' rates from water-filling in the fair share."""
    names = ("scheme", "trial", "time_ns", "flow_id", "rate_bps", "network.bottleneck_rate_bps", "workload.flows")
    rows = table(folder / "run", "rate", *names)
    rows = where(rows, time_ns=rows["time_ns"].max())
    worst: dict[str, dict[str, float]] = {"numfabric": defaultdict(float), "ideal": defaultdict(float)}
    rates = defaultdict(list)
    for trial in ordered(rows["trial"]):
        mine = where(rows, trial=trial)
        scheme, start, capacity = (mine[x][0] for x in ("scheme", "workload.flows", "network.bottleneck_rate_bps"))
        both = np.array([mine["rate_bps"][mine["flow_id"] == flow][0] for flow in ("1", "2")]) / 1e9
        off = abs(both - _by_fair_share(capacity / 1e9)).max()
        worst[scheme][str(start)] = max(worst[scheme][str(start)], off)
        if scheme == "numfabric":
            rates[capacity / 1e9].append(both)
    return {
        "worst": np.mean(list(worst["numfabric"].values())),
        "expected": max(worst["ideal"].values()),
        "at_10": np.mean(rates[10.0], axis=0).tolist() if rates[10.0] else None,
        "at_25": np.mean(rates[25.0], axis=0).tolist(),
    }


def _by_fair_share(capacity: float) -> Array:
    """Figure 2 in Gb/s: flow 1 alone up to 10, flow 2 at twice flow 1's slope up to 25, then flow 1 alone."""
    first = np.interp(capacity, [0, 10, 25, 50], [0, 10, 15, 40])
    return np.array([first, capacity - first])


# PERC


def perc_fig2_12(folder: Path) -> Values:
    """Section 2.7.3: times from flow D's start until assigned rates stay near the exact ones, means over the starts."""
    rows = table(folder / "run", "convergence", "scheme", "time_ns", "criterion", "convergence_ns")
    means = {
        (scheme, criterion): mine["convergence_ns"][mine["time_ns"] >= 5 * MS].mean() / NS_PER_US
        for scheme in ("fair", "rcp")
        for criterion in (0, 1)
        for mine in [where(rows, scheme=scheme, criterion=criterion)]
    }
    fair, rcp = means["fair", 0], means["rcp", 0]
    return {"fair": fair, "rcp": rcp, "ratio": rcp / fair, "rcp_20": means["rcp", 1]}


def _last_change(folder: Path, *columns: str) -> list[dict[str, Any]]:
    """The last change of the flows of each trial, with its convergence time in ms, infinite where not reached."""
    rows = table(folder, "convergence", "trial", "scheme", "time_ns", "converged", "convergence_ns", *columns)
    last: dict[int, dict[str, Any]] = {}
    for values in zip(*rows.values(), strict=True):
        row = dict(zip(rows, values, strict=True))
        if row["time_ns"] >= last.get(row["trial"], row)["time_ns"]:
            last[row["trial"]] = row | {"ms": row["convergence_ns"] / MS if row["converged"] else np.inf}
    return list(last.values())


def perc_table4_2(folder: Path) -> Values:
    """Section 4.4: means over the starts, from the last flow's start; the filter's lag is subtracted."""
    times = defaultdict(list)
    for part in ("s-perc", "tcp"):
        for row in _last_change(folder / part, "workload.senders"):
            times[row["scheme"], int(row["workload.senders"])].append(row["ms"])
    mean = {s: [float(np.mean(times[s, n])) for n in (2, 3, 10)] for s in ("s-perc", "dctcp", "reno")}
    chain = [row["ms"] for row in _last_change(folder / "chain") if row["scheme"] == "s-perc"]
    dctcp, reno = (_own_stable_rates(folder / "chain", scheme) for scheme in ("dctcp", "reno"))
    return {
        "s_perc": mean["s-perc"],
        "dctcp": mean["dctcp"],
        "reno": mean["reno"],
        "dctcp_over": min(a / b for a, b in zip(mean["dctcp"], mean["s-perc"], strict=True)),
        "reno_over": min(a / b for a, b in zip(mean["reno"], mean["s-perc"], strict=True)),
        "s_perc_chain": np.mean(chain),
        "dctcp_chain": dctcp,
        "reno_chain": reno,
        "chain_over": dctcp / np.mean(chain),
    }


def _own_stable_rates(folder: Path, scheme: str) -> float:
    """Mean time in ms until rates, smoothed over 20 ms, stay within 20% of their means of the last second for 50 ms."""
    change = {row["trial"]: row["time_ns"] // MS for row in _last_change(folder) if row["scheme"] == scheme}
    rows = table(folder, "rate", "trial", "time_ns", "flow_id", "rate_bps")
    smoothing, times = 20.0, []
    for trial, start in change.items():
        mine = where(rows, trial=trial)
        flow, count = np.unique(mine["flow_id"], return_inverse=True)[1], mine["time_ns"].max() // MS
        rates = np.zeros((count, flow.max() + 1))
        rates[mine["time_ns"] // MS - 1, flow] = mine["rate_bps"]
        smooth = np.zeros_like(rates)
        for i in range(count):
            before = smooth[i - 1] if i else 0.0
            smooth[i] = before + (rates[i] - before) * (1 - np.exp(-1 / smoothing))
        stable = rates[-1000:].mean(axis=0)
        near = (abs(smooth - stable) <= 0.2 * stable).all(axis=1)
        # Sample i is at i + 1 ms.
        ends = (i + 1 - start for i in range(start - 1, count - 50) if near[i : i + 51].all())
        times.append(next(ends, np.inf) - smoothing * np.log(5))
    return float(np.mean(times))


def perc_fig4_7(folder: Path) -> Values:
    """Section 4.4: two flows, means over the starts; the lag of the filter of 1 ms to within 20% counts."""
    times = defaultdict(list)
    for row in _last_change(folder / "run"):
        times[row["scheme"]].append(row["ms"])
    bare = {scheme: float(np.mean(each)) for scheme, each in times.items()}
    lag = np.log(1 / 0.2)
    full = {scheme: mean + lag for scheme, mean in bare.items()}
    return {
        "s_perc": full["s-perc"],
        "dctcp": full["dctcp"],
        "reno": full["reno"],
        "dctcp_over": full["dctcp"] / full["s-perc"],
        "reno_over_dctcp": full["reno"] / full["dctcp"],
        "dctcp_over_less_lag": bare["dctcp"] / bare["s-perc"],
    }


FIGURES = {
    "2.4": ({1: 10, 2: 15, 3: 3}, [{2, 3}, {1, 2}, {1}, {2}]),
    "3.8a": ({1: 10, 2: 10, 3: 6, 4: 1}, [{3, 4}, {2, 3}, {1, 2}, {1}]),
    "3.8b": ({1: 10, 2: 18, 3: 6, 4: 1}, [{3, 4}, {2, 3}, {1, 2}, {1}, {2}]),
}
"""Capacities in Gb/s as the page has them; paths of the flows as section 3.4.6 tells them."""


def perc_wfk() -> Values:
    """Algorithm 7 and definition 3.4.20: iterations, rates and precedence of WF1, WF2 and water-filling."""
    values: Values = {}
    for figure, (capacity, paths) in FIGURES.items():
        for name, degree in (("WF1", 1), ("WF2", 2), ("WF-infinity", len(capacity))):
            rates, iterations = _waterfill(capacity, paths, degree)
            values[f"{figure} {name} rates"] = [float(rate) for rate in rates]
            values[f"{figure} {name} partition"] = [removed for _, removed, _ in iterations]
            for number, (level, _, _) in enumerate(iterations, 1):
                for link, rate in level.items():
                    values[f"{figure} {name} link {link} in iteration {number}"] = float(rate)
            if degree <= 2:
                values[f"{figure} {name} precedence"] = _precedence(iterations, degree)
            if name == "WF2":
                # Definition 3.4.5: the first iteration in which no neighbour of the link has less.
                least = [all(level[1] <= level[x] for x in near[1]) for level, _, near in iterations if 1 in level]
                values[f"{figure} WF2 freeze of link 1"] = least.index(True) + 1
        final = {link: level[link] for level, removed, _ in iterations for link in removed}
        values[f"{figure} WF2 bottlenecks"] = [
            [link for link in sorted(path) if final[link] == rate] for path, rate in zip(paths, rates, strict=True)
        ]
    return values


Iteration = tuple[dict[int, Fraction], list[int], dict[int, set[int]]]
"""Rates of the links, the links removed, and first-degree neighbours."""


def _waterfill(capacity: dict[int, int], paths: list[set[int]], degree: int) -> tuple[list[Fraction], list[Iteration]]:
    """Algorithm 7: a link goes if none of its neighbours up to this degree has less."""
    left, active = {link: Fraction(c) for link, c in capacity.items()}, dict(enumerate(paths))
    rates, iterations = [Fraction()] * len(paths), []
    while active:
        count = {link: sum(link in path for path in active.values()) for link in left}
        level = {link: left[link] / n for link, n in count.items() if n}
        near = {link: set().union(*(path for path in active.values() if link in path)) for link in level}
        removed = []
        for link in level:
            reach = {link}
            for _ in range(degree):
                reach = set().union(*(near[x] for x in reach))
            if level[link] == min(level[x] for x in reach):
                removed.append(link)
        iterations.append((level, removed, near))
        for flow, path in list(active.items()):
            if through := path & set(removed):
                rates[flow] = level[min(through)]
                for link in path:
                    left[link] -= rates[flow]
                del active[flow]
    return rates, iterations


def _precedence(iterations: list[Iteration], degree: int) -> list[str]:
    """Definition 3.4.20; under WF1 direct and indirect precedents alone (section 2.6.3)."""
    edges = []
    for (level, gone, near), (_, removed, _) in pairwise(iterations):
        for link in removed:
            first = near[link] - {link}
            for x in first:
                if level[x] < level[link]:
                    if x in gone:
                        edges.append(f"{x} before {link} (direct)")
                    for z in near[x] - {x}:
                        if x not in gone and z in gone and level[z] < level[x]:
                            edges.append(f"{z} before {link} (indirect via {x})")
            for y in set().union(*(near[x] for x in first)) - first - {link} if degree == 2 else ():
                between = [x for x in first if y in near[x]]
                if level[y] >= level[link] or any(level[x] < level[link] for x in between):
                    continue
                if y in gone:
                    edges.append(f"{y} before {link} (second-direct)")
                for z in near[y] - {y}:
                    if y not in gone and z in gone and level[z] < level[y]:
                        edges.append(f"{z} before {link} (second-indirect via {y})")
    return sorted(edges)


def fit_table6_2() -> Values:
    """Table 6.2: tables, and dependencies by kind; the reduced counts leave out the implied ones."""
    kinds = ("match", "action", "successor")
    values: Values = {}
    for key, file in {
        "complex_rmt": "l2l3-complex",
        "simple_rmt": "l2l3-simple",
        "mtag_rmt": "l2l3-mtag",
        "l3dc_rmt": "l3dc",
        "simple_flexpipe": "l2l3-simple@flexpipe",
        "mtag_flexpipe": "l2l3-mtag@flexpipe",
    }.items():
        program = json.loads(files("subak.pipeline").joinpath(f"programs/{file}.json").read_text())
        tables = [t["name"] for t in program["tables"]]
        edges = {(a, b): kind for kind in reversed(kinds) for a, b in program["dependencies"].get(kind, ())}
        values[key] = [len(tables)] + [sum(k == kind for k in edges.values()) for kind in kinds]
        kept = [kind for edge, kind in edges.items() if not _implied(edge, kinds.index(kind), edges, kinds)]
        values[f"{key}_reduced"] = [kept.count(kind) for kind in kinds]
        if key == "mtag_flexpipe":
            without = {"Vrf", "UrpfV6", "Igmp_Snooping", "Ipv6_Prefix", "Ipv6_Forwarding"}
            rest = [kind for edge, kind in edges.items() if not without & set(edge)]
            values[f"{key}_11"] = [len(set(tables) - without)] + [rest.count(kind) for kind in kinds]
    return values


def _implied(edge: tuple[str, str], rank: int, edges: dict[tuple[str, str], str], kinds: Sequence[str]) -> bool:
    """Whether a chain of other dependencies joins the pair, one of them at least as strict."""
    seen, ahead = set(), [(edge[0], False)]
    while ahead:
        at, strict = ahead.pop()
        for (a, b), kind in edges.items():
            state = (b, strict or kinds.index(kind) <= rank)
            if a == at and (a, b) != edge and state not in seen:
                seen.add(state)
                ahead.append(state)
    return (edge[1], True) in seen


# Soze


def soze_fig3(folder: Path) -> Values:
    """Section 3.2: assigned rates and queues in the last millisecond of each part, means over the runs.
    Rates and queues themselves are those of the first run.

    Samples at the ends of the millisecond do not count: at the first the rates are the past's, at the last the flows
    have new weights, or have ended.
    """
    rates = table(folder / "run", "rate", "scheme", "seed", "time_ns", "flow_id", "assigned_bps")
    queues = table(folder / "run", "queue", "scheme", "seed", "time_ns", "link", "queued_bytes")
    weight = {1: {"blue": 3, "red": 2, "yellow": 1}, 2: {"blue": 3, "red": 2, "yellow": 4}}
    exact = {1: {"blue": 60, "red": 40, "yellow": 60}, 2: {"blue": 200 / 3, "red": 100 / 3, "yellow": 200 / 3}}
    values: Values = {}
    for scheme in ("soze", "soze-virtual"):
        aim = 0.98 if scheme == "soze-virtual" else 1.0
        for part, end in ((1, 5 * MS), (2, rates["time_ns"].max())):
            runs = defaultdict(list)
            for seed in ordered(rates["seed"]):
                own, other = ("blue", "yellow") if part == 1 else ("yellow", "blue")
                of_run = [where(rows, scheme=scheme, seed=seed) for rows in (rates, queues)]
                rated, queued = (_last_ms(rows, end) for rows in of_run)
                rate = {f: where(rated, flow_id=f)["assigned_bps"].mean() / 1e9 for f in exact[part]}
                wait = [where(queued, link=x)["queued_bytes"].mean() * 8 / 1e5 for x in ("s0->s1", "s1->s2")]
                each = {flow: rate[flow] / weight[part][flow] for flow in rate}
                runs["off"].append(100 * max(abs(rate[f] / exact[part][f] / aim - 1) for f in rate))
                runs["same"].append(100 * abs(each["red"] / each[own] - 1))
                runs["other"].append(each[other] / each["red"])
                runs["rates"].append([rate[flow] for flow in ("blue", "red", "yellow")])
                runs["queues"].append(wait)
                if scheme == "soze":
                    runs["longer"].append(wait[0] / wait[1] if part == 1 else wait[1] / wait[0])
            for name, each_run in runs.items():
                first = ", ".join(f"{x:.2f}" for x in each_run[0]) if name in ("rates", "queues") else None
                values[f"{scheme} part {part} {name}"] = first or np.mean(each_run)
    return values


def _last_ms(rows: dict[str, Array], end: int) -> dict[str, Array]:
    inside = (rows["time_ns"] > end - MS) & (rows["time_ns"] < end)
    return {name: column[inside] for name, column in rows.items()}


def soze_fig6(folder: Path) -> Values:
    """Section 5.1.1: completion times of a job in seconds, and its weights at the start."""

    def job(part: str, scheme: str, policy: str) -> float:
        rows = table(folder / part, "job", "scheme", "workload.policy", "fct_ns")
        return float(where(rows, scheme=scheme, **{"workload.policy": policy})["fct_ns"][0] / 1e9)

    def gain(part: str, scheme: str) -> float:
        return job(part, scheme, "critical-path") / job(part, scheme, "even")

    weights = table(folder / "full", "weight", "workload.policy", "time_ns", "flow_id", "weight")
    first = where(weights, time_ns=0, **{"workload.policy": "critical-path"})
    return {
        "even": job("full", "soze", "even"),
        "critical": job("full", "soze", "critical-path"),
        "weights": ", ".join(f"{where(first, flow_id=f'job/{flow}')['weight'][0]:.3f}" for flow in ("f1", "f4")),
        "packets": gain("packets", "soze-virtual") / gain("fluid", "ideal"),
        "ideal even": job("fluid", "ideal", "even"),
        "ideal critical": job("fluid", "ideal", "critical-path"),
    }


ROWS: dict[str, Callable[[Path], Values]] = {
    "flowtune-fig8": flowtune_fig8,
    "flowtune-fig13": flowtune_fig13,
    "flowtune-fig16": lambda _: dict(flowtune_fig16(4000, 2000, range(6), (0.2, 0.4, 0.6, 0.8))),
    "numfabric-fig8": numfabric_fig8,
    "numfabric-fig9": numfabric_fig9,
    "perc-fig2.12": perc_fig2_12,
    "perc-wfk": lambda _: perc_wfk(),
    "perc-table4.2": perc_table4_2,
    "perc-fig4.7": perc_fig4_7,
    "fit-table6.2": lambda _: fit_table6_2(),
    "soze-fig3": soze_fig3,
    "soze-fig6": soze_fig6,
}


def measured(folder: Path) -> Values:
    """The values in a folder's `verdict.json`, without their intervals."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return float(value["value"])
        return [bare(one) for one in value] if isinstance(value, list) else value

    checks = json.loads((folder / "verdict.json").read_text())["checks"]
    return {check["key"]: bare(check["measured"]) for check in checks if check.get("measured") is not None}


if __name__ == "__main__":
    name, out = sys.argv[1], Path(sys.argv[2])
    mine = ROWS[name](out)
    for key, value in measured(out).items():
        print(f"{key}\n    there {value}\n    here  {mine.get(key, '-')}")
