"""Every policy by every optimizer over every transport that serves it: error, convergence time, queues and overhead."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from subak.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from subak.repro import RawResults

LEAVES, SPINES, HOSTS = 4, 2, 4
LINE_BPS = 10e9
RUNNING, CHANGED = 24, 8
MEASURED_MS, SAMPLE_MS = 4.0, 0.5
NETWORK = {
    "kind": "leaf-spine",
    "leaves": LEAVES,
    "spines": SPINES,
    "hosts_per_leaf": HOSTS,
    "host_rate": "10Gbps",
    "spine_rate": "10Gbps",
    "link_delay": "2us",
    "controller_rate": "10Gbps",
}


@dataclass(frozen=True)
class Column:
    """A policy, with the paths and keys that its flows need."""

    name: str
    policy: Mapping[str, Any]
    paths: int = 1
    keys: tuple[str, ...] = ()
    """Keys of a flow that the policy uses in addition to the weight."""

    @property
    def ranks(self) -> bool:
        """Whether some flows have priority over others, so that nearly all exact rates are nearly 0."""
        return self.policy["kind"] in ("fct", "srpt", "edf")


def _alpha(alpha: float, name: str = "", paths: int = 1) -> Column:
    return Column(name or f"alpha {alpha:g}", {"kind": "alpha-fair", "alpha": alpha}, paths)


COLUMNS = (
    Column("max-min", {"kind": "max-min"}),
    *(_alpha(alpha) for alpha in (0.5, 1.0, 2.0, 5.0)),
    _alpha(1.0, "pooled", 2),
    Column("pooled max-min", {"kind": "max-min"}, 2),
    Column("fct", {"kind": "fct"}, keys=("size",)),
    Column("srpt", {"kind": "srpt"}, keys=("size",)),
    Column("edf", {"kind": "edf"}, keys=("deadline",)),
    Column("bandwidth-function", {"kind": "bandwidth-function"}, keys=("bandwidth_function",)),
    Column("bandwidth-function 10", {"kind": "bandwidth-function", "alpha": 10}, keys=("bandwidth_function",)),
)


def run(
    settings: Mapping[str, Any], runs: int, seed: int, progress: Callable[[int, int, float], None]
) -> dict[str, Any]:
    """Runs all pairs of policy and scheme, each with ``runs`` random sets of flows that change several times."""
    from subak import _subak

    infos = {info["name"]: info for info in [*_subak.schemes(), *_subak.pairs()] if info["settles_within"] is not None}
    # RCP has no weights, but the flows have some.
    left_out = {
        "ideal",
        *_presets(infos),
        *(n for n, info in infos.items() if info["goal"] == "max-min of equal weights"),
    }
    infos = {name: info for name, info in infos.items() if name not in left_out}
    wanted = settings.get("schemes", list(infos))
    columns = [column for column in COLUMNS if column.name in settings.get("policies", [c.name for c in COLUMNS])]
    jobs = [(column, draw) for column in columns for draw in range(runs)]
    cells: dict[tuple[str, str], list[Sample]] = {}
    for done, (column, draw) in enumerate(jobs):
        names = [name for name in wanted if serves(infos[name]["policies"], column)]
        for name, sample in _samples(column, names, seed + draw, settings):
            cells.setdefault((column.name, name), []).append(sample)
        progress(done + 1, len(jobs), (done + 1) / len(jobs))
    return _report(cells, columns, infos)


def _presets(infos: Mapping[str, Any]) -> Iterator[str]:
    """Names of pairs that also have a name of their own, which is used instead."""
    made_of = {"/".join(info["made_of"]) for name, info in infos.items() if info["made_of"] and "/" not in name}
    yield from (name for name in infos if name in made_of)


def serves(policies: str, column: Column) -> bool:
    """Whether a scheme for the policies ``policies`` supports the policy of the column."""
    kind, alpha = column.policy["kind"], column.policy.get("alpha")
    if policies == "any":
        return True
    if policies == "all but max-min":
        return bool(kind != "max-min")
    if column.paths > 1 and kind == "max-min":
        # Of the schemes of max-min only those with a controller pool several paths.
        return False
    for one in policies.split(", "):
        name, _, most = one.partition(" up to alpha ")
        if name == kind:
            return not most or alpha is None or alpha <= float(most)
    return False


@dataclass
class Sample:
    """Results of one combination of policy and scheme with one random set of flows."""

    errors: list[float]
    """Relative error of each flow's rate at the end of each phase, after division of rates by the factor ``use``."""
    use: list[float]
    """Sum of the rates over the sum of the exact rates, of each phase."""
    settled_ms: list[float | None]
    """Time from each change until 90% of the flows are, and stay until the end of the phase, within 10% of their
    rates."""
    queued_bytes: float
    """Mean queue length over the samples of all links, bytes."""
    overhead: float
    """Bytes of added headers, ACKs and control messages, over those of data."""


def draw_flows(column: Column, seed: int, changes: int) -> list[dict[str, Any]]:
    """Random flows from one half of the hosts to the other; at each change some stop, and as many start."""
    rng = Random(f"{column.name} {seed}")
    hosts = LEAVES * HOSTS
    flows = []
    for k in range(RUNNING + changes * CHANGED):
        src, dst = rng.randrange(hosts // 2), hosts // 2 + rng.randrange(hosts // 2)
        spine = rng.randrange(SPINES)
        flow: dict[str, Any] = {"id": f"f{k}", "weight": rng.choice([1, 2, 4])}
        paths = [_path(src, dst, (spine + p) % SPINES) for p in range(column.paths)]
        flow |= {"path": paths[0]} if column.paths == 1 else {"paths": paths}
        slope = 1e9 * rng.randint(1, 4)
        drawn = {
            # Flows are so large that none ends, and no utility function changes much, within the run.
            "size": 10 ** rng.randint(12, 15) * rng.randint(1, 9),
            "deadline": f"{rng.randint(1, 20) * 200}s",
            "bandwidth_function": [[0, 0], [1, slope], [2, slope * rng.randint(1, 2)], [8, 4 * slope]],
        }
        flows.append(flow | {key: drawn[key] for key in column.keys})
    if "bandwidth_function" in column.keys:
        return [{key: value for key, value in flow.items() if key != "weight"} for flow in flows]
    return flows


def _path(src: int, dst: int, spine: int) -> list[str]:
    a, b = src // HOSTS, dst // HOSTS
    return [f"h{src}->leaf{a}", f"leaf{a}->spine{spine}", f"spine{spine}->leaf{b}", f"leaf{b}->h{dst}"]


def _samples(
    column: Column, schemes: list[str], seed: int, settings: Mapping[str, Any]
) -> Iterator[tuple[str, Sample]]:
    """Results of one run of all ``schemes`` with a random set of flows."""
    import subak

    changes, phase_ms = settings["changes"], float(settings["phase_ms"])
    flows = draw_flows(column, seed, changes)
    running = [range(CHANGED * phase, RUNNING + CHANGED * phase) for phase in range(changes + 1)]
    exact = [_exact(column, [flows[k] for k in some]) for some in running]
    spec = {
        "name": column.name.replace(" ", "-"),
        "network": NETWORK,
        "policy": column.policy,
        "workload": {"kind": "steps", "flows": [_step(flow, k, changes, phase_ms) for k, flow in enumerate(flows)]},
        "controller": {"at": "controller"},
        "scheme": [_scheme(name, column) for name in schemes],
        "measure": {"rates": f"{SAMPLE_MS}ms", "queues": "0.1ms"},
        "run": {"duration": f"{phase_ms * (changes + 1)}ms", "drain": "0s", "seeds": [seed]},
    }
    with tempfile.TemporaryDirectory() as folder:
        results = subak.run(spec, Path(folder) / "run", progress=False)
        for name in schemes:
            rates = _rates(results, name, len(flows))
            yield name, _sample(results, name, column, flows, rates, running, exact, phase_ms)


def _scheme(name: str, column: Column) -> dict[str, Any]:
    given: dict[str, Any] = {"label": name}
    optimizer, slash, transport = name.partition("/")
    given |= {"optimizer": optimizer, "transport": transport} if slash else {"name": name}
    # NUMFabric, section 6.2: slower by a factor of 2 for alpha below 0.5.
    return given | ({"params": {"time_scale": 2.0}} if name == "numfabric" and column.ranks else {})


def _step(flow: dict[str, Any], k: int, changes: int, phase_ms: float) -> dict[str, Any]:
    starts = max(0, (k - RUNNING) // CHANGED + 1)
    stops = k // CHANGED + 1
    return (
        flow
        | ({"start": f"{starts * phase_ms}ms"} if starts else {})
        | ({"stop": f"{stops * phase_ms}ms"} if stops <= changes else {})
    )


def _exact(column: Column, flows: list[dict[str, Any]], share: float = 1.0) -> list[float]:
    """The exact rates if data may use the fraction ``share`` of each link."""
    import subak

    plain = {key: value for key, value in NETWORK.items() if key != "controller_rate"}
    plain |= {"host_rate": share * LINE_BPS, "spine_rate": share * LINE_BPS}
    answer = subak.solve({"network": plain, "flows": flows, "policy": column.policy})
    return [float(flow["rate_bps"]) for flow in answer]


def _rates(results: Any, scheme: str, flows: int) -> dict[int, list[float]]:
    """Rate of each flow, bit/s, by the index of the sample."""
    rows = results.table("rate", ["scheme", "time_ns", "flow", "rate_bps"]).to_pylist()
    found: dict[int, list[float]] = {}
    for row in rows:
        if row["scheme"] == scheme:
            at = round(row["time_ns"] / (SAMPLE_MS * 1e6))
            found.setdefault(at, [0.0] * flows)[row["flow"]] = row["rate_bps"] or 0.0
    return found


def _sample(
    results: Any,
    scheme: str,
    column: Column,
    flows: list[dict[str, Any]],
    rates: dict[int, list[float]],
    running: list[range],
    exact: list[list[float]],
    phase_ms: float,
) -> Sample:
    errors, use, settled = [], [], []
    per_phase, last = round(phase_ms / SAMPLE_MS), round(MEASURED_MS / SAMPLE_MS)
    for phase, (some, want) in enumerate(zip(running, exact, strict=True)):
        at_times = [rates.get(phase * per_phase + at + 1) for at in range(per_phase)]
        samples = [[of_flows[k] if of_flows else 0.0 for k in some] for of_flows in at_times]
        got = [sum(of) / last for of in zip(*samples[-last:], strict=True)]
        factor = sum(got) / sum(want)
        use.append(factor)
        if "bandwidth_function" in column.keys:
            # These policies' rates are not proportional to the capacity, so that they are solved for the used fraction.
            want = [bps / factor for bps in _exact(column, [flows[k] for k in some], factor)]
        errors += _errors(column, got, want, factor)
        settled.append(_settled_ms(column, samples, want, factor))
    links = results.table("link", ["scheme", "data_bytes", "ack_bytes", "ctl_bytes"]).to_pylist()
    mine = [row for row in links if row["scheme"] == scheme]
    data = sum(row["data_bytes"] or 0 for row in mine)
    other = sum((row["ack_bytes"] or 0) + (row["ctl_bytes"] or 0) for row in mine)
    queues = results.table("queue", ["scheme", "queued_bytes"]).to_pylist()
    queued = [row["queued_bytes"] or 0 for row in queues if row["scheme"] == scheme]
    return Sample(errors, use, settled, sum(queued) / max(len(queued), 1), other / max(data, 1))


def _errors(column: Column, got: list[float], want: list[float], factor: float) -> list[float]:
    least = LINE_BPS * (0.5 if column.ranks else 0.05)
    return [abs(g / max(factor, 1e-9) - w) / max(w, least) for g, w in zip(got, want, strict=True)]


def _settled_ms(column: Column, samples: list[list[float]], want: list[float], factor: float) -> float | None:
    near = [sum(e <= 0.1 for e in _errors(column, got, want, factor)) >= 0.9 * len(want) for got in samples]
    since = len(near)
    while since > 0 and near[since - 1]:
        since -= 1
    return (since + 1) * SAMPLE_MS if since < len(near) else None


def quantile(values: list[float], q: float) -> float:
    """The smallest value with a fraction ``q`` of the values at or below it."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def _report(
    cells: dict[tuple[str, str], list[Sample]], columns: list[Column], infos: Mapping[str, Any]
) -> dict[str, Any]:
    rows: list[list[Any]] = []
    values: dict[str, int] = {}
    for (policy, scheme), samples in cells.items():
        errors = [error for sample in samples for error in sample.errors]
        each = sorted(quantile(sample.errors, 0.95) for sample in samples)
        times = [ms for sample in samples for ms in sample.settled_ms]
        reached = sorted(ms for ms in times if ms is not None)
        made_of = infos[scheme]["made_of"] or [scheme, ""]
        rows.append(
            [
                policy,
                scheme,
                *made_of,
                quantile(errors, 0.5),
                quantile(errors, 0.95),
                each[0],
                each[-1],
                sum(sum(s.use) / len(s.use) for s in samples) / len(samples),
                quantile(reached, 0.5) if len(reached) * 2 > len(times) else None,
                len(reached) / len(times),
                sum(s.queued_bytes for s in samples) / len(samples),
                sum(s.overhead for s in samples) / len(samples),
            ]
        )
    for column in columns:
        p95 = [row[5] for row in rows if row[0] == column.name]
        values |= {
            f"{column.name}: schemes": len(p95),
            f"{column.name}: within 5%": sum(p <= 0.05 for p in p95),
            f"{column.name}: within 15%": sum(p <= 0.15 for p in p95),
        }
    names = [
        "policy",
        "scheme",
        "optimizer",
        "transport",
        "median",
        "p95",
        "p95_least",
        "p95_most",
        "use",
        "settled_ms",
    ]
    names += ["settled_share", "queued_bytes", "overhead"]
    return {"values": values, "tables": {"cells": {"columns": names, "rows": rows}}}


def draw(raw: RawResults) -> Figure:
    """Heat map: the 95th percentile of the error of each scheme under each policy."""
    import numpy as np
    from matplotlib.colors import LogNorm

    rows = raw.rows("cells")
    policies = [column.name for column in COLUMNS if any(row["policy"] == column.name for row in rows)]
    schemes = sorted({row["scheme"] for row in rows}, key=lambda name: _order(rows, name))
    grid = np.full((len(schemes), len(policies)), np.nan)
    for row in rows:
        grid[schemes.index(row["scheme"]), policies.index(row["policy"])] = 100 * row["p95"]
    figure, plots = figures.axes(width=7.5, height=0.9 + 0.21 * len(schemes))
    shown = plots[0].imshow(np.clip(grid, 0.1, 100), norm=LogNorm(0.3, 60), cmap="RdYlGn_r", aspect="auto")
    plots[0].grid(visible=False)
    for (i, j), percent in np.ndenumerate(grid):
        if not math.isnan(percent):
            dark = percent > 30 or percent < 0.5
            text = f"{percent:.1f}" if percent < 100 else f"{percent:.0f}"
            plots[0].text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
    plots[0].set_xticks(range(len(policies)), policies, rotation=35, ha="left", fontsize=8)
    plots[0].xaxis.tick_top()
    plots[0].set_yticks(range(len(schemes)), schemes, fontsize=7.5)
    figure.colorbar(shown, ax=plots[0], label="p95 of the flows' error, %", shrink=0.6)
    return figure


def _order(rows: list[dict[str, Any]], scheme: str) -> tuple[bool, str, str]:
    row = next(row for row in rows if row["scheme"] == scheme)
    return (not row["transport"], row["transport"], row["optimizer"])
