"""Time of an iteration of NED at the seven sizes in Flowtune's table of multicore times."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import subak
from subak.papers.flowtune.fabric import rows
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE = ((384, 3072), (768, 6144), (1536, 12288), (1536, 24576), (1536, 49152), (3072, 49152), (4608, 49152))
"""Nodes and flows of the rows of the table."""
RACK, SPINES, RATE_BPS = 48, 8, 40e9
FASTPASS = 2.2 / 8.0
"""Throughput of Fastpass, Tbit/s per core: "2.2 Tbit/s on 8 cores"."""
LONGEST_US = 30.71
"""Longest iteration in the paper's table, us."""
GROUPS = 2
"""Groups of racks: 4 FlowBlocks, as in the paper's first row."""
TIMES = ("single_us", "double_us", "normalized_us", "straight_us", "blocks_us", "threads_us")
HEADERS = ["nodes", "flows", "f32_us", "f64_us", "f_norm_us", "straight_us", "blocks_us", "threads_us", "tbps"]
COLUMNS = (
    ("f32_us", "one core, f32"),
    ("f64_us", "one core, f64"),
    ("f_norm_us", "f32 with F-NORM"),
    ("straight_us", "straight loop, f32"),
    ("threads_us", "threads, f32"),
)


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Times of an iteration for each row, in wall-clock time of this machine, on which nothing else should run.

    ``seconds``: measuring time; ``threads``: largest number of threads; ``rows``: number of the table's rows, from the
    first.
    """
    given = Settings(settings, "seconds", "threads", "rows")
    seconds, threads = given.number("seconds", 0.3, 1e-4, 100), given.count("threads", 2, 1024)
    table = TABLE[: given.count("rows", len(TABLE), len(TABLE))]
    runs = max(runs, 1)
    seen: dict[tuple[int, int], list[dict[str, Any]]] = {size: [] for size in table}
    for k in range(runs):
        for row, size in enumerate(table):
            seen[size].append(times(*size, seed + k, seconds, threads, compare=row == 0))
            done = k * len(table) + row + 1
            progress(done, runs * len(table), done / (runs * len(table)))
    values: dict[str, Any] = {"same bits": all(one["same_bits"] for one in seen[table[0]])}
    told = []
    for size, all_of in seen.items():
        nodes, flows = size
        of = {name: [one[name] for one in all_of] for name in TIMES}
        name = f"{nodes}/{flows}"
        for key, column in (("us", "single_us"), ("us f64", "double_us"), ("us F-NORM", "normalized_us")):
            values[f"{key} {name}"] = computed.sample("median", "runs", of[column])
        for key, above, below in (
            ("straight over ours", "straight_us", "single_us"),
            ("one over threads", "blocks_us", "threads_us"),
            ("whole over threads", "single_us", "threads_us"),
        ):
            values[f"{key} {name}"] = computed.ratio("median", "runs", of[above], of[below])
        told += [[nodes, flows, *(one[column] for column in TIMES), _tbps(nodes)] for one in all_of]
    # The largest network whose iteration on one core takes no longer than the paper's longest on 64 cores.
    most = [
        max((_tbps(nodes) for (nodes, _), one in seen.items() if one[k]["single_us"] <= LONGEST_US), default=0.0)
        for k in range(runs)
    ]
    values["Tbit/s a core"] = computed.sample("median", "runs", most)
    values["over Fastpass a core"] = computed.sample("median", "runs", [tbps / FASTPASS for tbps in most])
    return {
        "setup": {"threads": threads},
        "tables": {"times": {"columns": HEADERS, "rows": told}},
        "values": values,
    }


def _tbps(nodes: int) -> float:
    return nodes * RATE_BPS / 1e12


def times(nodes: int, flows: int, seed: int, seconds: float, threads: int, *, compare: bool = False) -> dict[str, Any]:
    """Times of an iteration for flows between random servers over random spines."""
    racks = -(-nodes // RACK)
    rates = {"host_rate": RATE_BPS, "spine_rate": RATE_BPS}
    network = subak.Network.generate("leaf-spine", leaves=racks, hosts_per_leaf=RACK, spines=SPINES, **rates)
    numbers = {row["id"]: k for k, row in enumerate(network.links)}
    stream = subak.Stream(seed, "bench")
    paths = []
    for _ in range(flows):
        src, spine = stream.below(nodes), stream.below(SPINES)
        dst = (src + 1 + stream.below(nodes - 1)) % nodes
        one, other = src // RACK, dst // RACK
        core = [] if one == other else [f"leaf{one}->spine{spine}", f"spine{spine}->leaf{other}"]
        path = [f"h{src}->leaf{one}", *core, f"leaf{other}->h{dst}"]
        paths.append([numbers[link] for link in path])
    return subak.ned_times(network, rows(paths), threads=threads, groups=GROUPS, seconds=seconds, compare=compare)


def draw(raw: RawResults) -> Figure:
    """Time of an iteration by size, us, one line per implementation."""
    figure, (plot,) = figures.axes(width=7, height=4)
    rows = raw.rows("times")
    sizes = list(dict.fromkeys((row["nodes"], row["flows"]) for row in rows))
    for column, label in COLUMNS:
        times = [median(row[column] for row in rows if (row["nodes"], row["flows"]) == size) for size in sizes]
        plot.plot(range(len(sizes)), times, marker="o", label=label)
    plot.set_xticks(range(len(sizes)), [f"{nodes}\n{flows}" for nodes, flows in sizes])
    plot.set(yscale="log", xlabel="nodes, flows", ylabel="an iteration, us")
    plot.legend(fontsize="small")
    return figure
