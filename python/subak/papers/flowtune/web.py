"""Optimizers under a stream of flows (section 5.4), for Flowtune's figures 16 and 17.

Poisson arrivals with the sizes of the web workload, and an iteration every 10 us. Only the optimizer is simulated: no
messages, no packets. A flow is active from the first iteration after its arrival. Until the next iteration it sends at
its rate after F-NORM, Flowtune's normalization per flow. It ends at the first iteration after its last byte.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import subak
from subak.ned import Method, Precision
from subak.papers.flowtune.fabric import Fabric
from subak.repro import computed
from subak.repro.computed import Progress, Settings, total

LOADS = (0.2, 0.4, 0.6, 0.8)
HOST_BPS = 10e9
INTERVAL_US = 10.0
"""Flowtune, section 5.3: "an iteration every 10 us"."""
GAMMA = 0.4
"""Flowtune, section 5.3: "experiments have gamma = 0.4"."""
TOPOLOGY: dict[str, Any] = {
    "kind": "leaf-spine",
    "leaves": 9,
    "hosts_per_leaf": 16,
    "spines": 4,
    "host_rate": HOST_BPS,
    "spine_rate": 40e9,
}
"""Flowtune, section 5.3: four spines, nine racks of 16 servers at 10 Gb/s, full bisection."""
KEYS = ("steps", "warmup", "every", "gradient_gamma", "interval_us", "steps_each", "most_lines", "passes", "bounded")
"""``steps``: number of intervals; ``warmup``: number of these, at the start, that are not measured; ``every``: number
between comparisons with the optimum; ``gradient_gamma``: step size of Gradient; ``interval_us``: interval, us;
``steps_each``: optimizer steps per interval; ``most_lines``: largest rate before normalization, in line rates;
``passes``: passes of F-NORM; ``bounded``: 1 if NED's prices fall to a quarter at most in a step."""
OPTIMIZERS: dict[str, tuple[Method, Precision]] = {
    "NED": ("ned", "double"),
    "NED-RT": ("ned", "approximate"),
    "Gradient": ("gradient", "double"),
    "Gradient-RT": ("gradient", "approximate"),
    "FGM": ("fgm", "double"),
}
"""The optimizers of figure 16: method and precision."""
COLUMNS = ["method", "load", "seed", "over_gbps", "most_over_gbps", "f_norm", "u_norm", "flows"]


@dataclass(frozen=True)
class Timing:
    """Length of a run, and the interval of the optimizer."""

    intervals: int
    warmup: int
    """Number of intervals that are not measured."""
    interval_s: float
    steps_each: int
    """Optimizer steps per interval."""

    @classmethod
    def of(cls, given: Settings, intervals: int, warmup: int) -> Timing:
        """The settings of the experiment."""
        return cls(
            given.count("steps", intervals, 1_000_000),
            given.count("warmup", warmup, 1_000_000),
            1e-6 * given.number("interval_us", INTERVAL_US, 0.01, 1e3),
            given.count("steps_each", 1, 1000),
        )


@dataclass(frozen=True)
class Job:
    """Parameters of a simulation."""

    optimizer: str
    load: float
    seed: int
    gamma: float | None
    timing: Timing
    most_lines: float = 1.0
    passes: int = 1
    bounded: bool = False
    every: int | None = None
    """Intervals between two comparisons with the optimum; ``None`` for no comparisons."""


@dataclass(frozen=True)
class Ran:
    """Results of a run."""

    over_gbps: float
    """Over-allocation without normalization, Gb/s summed over links: mean over the iterations."""
    most_over_gbps: float
    flow: float
    """Throughput with F-NORM relative to the optimum, percent, mean over the comparisons."""
    uniform: float
    overload: float
    """Largest relative overload of a link by F-NORM's rates, over all iterations."""
    flows: float


def jobs(settings: dict[str, Any], runs: int, seed: int, optimizers: list[str], looks: bool) -> list[Job]:
    """The runs of these optimizers at each load."""
    given = Settings(settings, *KEYS)
    timing = Timing.of(given, 4000, 2000)
    most_lines, passes = given.number("most_lines", 1, 1, 1e9), given.count("passes", 1, 100)
    bounded = given.number("bounded", 0, 0, 1) > 0
    every = given.count("every", 20, 1_000_000) if looks else None
    gradient = given.number("gradient_gamma", 0, 0, 10)
    gammas = {"ned": GAMMA, "gradient": gradient or None}
    return [
        Job(
            optimizer,
            load,
            seed + run,
            gammas.get(OPTIMIZERS[optimizer][0]),
            timing,
            most_lines,
            passes,
            bounded and OPTIMIZERS[optimizer][0] == "ned",
            every,
        )
        for run in range(max(runs, 1))
        for load in LOADS
        for optimizer in optimizers
    ]


@dataclass
class Runs:
    """The runs of an experiment, with their results."""

    jobs: list[Job]
    ran: list[Ran]
    values: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, jobs: list[Job], progress: Progress) -> Runs:
        """Runs all jobs."""
        return cls(jobs, computed.Jobs(len(jobs), progress).each(jobs, run))

    def select(self, optimizer: str, load: float, what: str) -> list[float]:
        """A result of each run of the optimizer at the load."""
        pairs = zip(self.jobs, self.ran, strict=True)
        return [getattr(ran, what) for job, ran in pairs if (job.optimizer, job.load) == (optimizer, load)]

    def sample(self, key: str, data: list[float]) -> None:
        """Adds the mean of data over the runs."""
        self.values[key] = computed.sample("mean", "runs", data)

    def ratio(self, key: str, data: list[float], over: list[float]) -> None:
        """Adds the ratio of two means over the runs."""
        self.values[key] = computed.ratio("mean", "runs", data, over)

    def report(self) -> dict[str, Any]:
        """The values, and a table of the runs."""
        worst = max(ran.overload for ran in self.ran)
        table = [
            [job.optimizer, job.load, job.seed, ran.over_gbps, ran.most_over_gbps, *_looks(ran), ran.flows]
            for job, ran in zip(self.jobs, self.ran, strict=True)
        ]
        return {
            "values": self.values | {"overload": worst},
            "tables": {"runs": {"columns": COLUMNS, "rows": table}},
        }


def _looks(ran: Ran) -> list[float | None]:
    return [computed.finite(ran.flow), computed.finite(ran.uniform)]


def run(job: Job) -> Ran:
    """Runs one optimizer under the stream of flows."""
    fabric, timing = Fabric(job.seed, **TOPOLOGY), job.timing
    sizes = subak.Sizes("facebook-web")
    method, precision = OPTIMIZERS[job.optimizer]
    ned = subak.Ned(
        fabric.network,
        method=method,
        gamma=job.gamma,
        precision=precision,
        most_lines=job.most_lines,
        bounded=job.bounded,
    )
    # Section 5.3: load 1 is the servers' capacity over the mean size.
    gap_s = 8.0 * sizes.mean_bytes / (job.load * HOST_BPS * len(fabric.hosts))
    until_s = timing.intervals * timing.interval_s
    flows = fabric.router.poisson(subak.Stream(job.seed, "web"), sizes, gap_s, until_s).to_arrow()
    path = flows["path"].combine_chunks()
    rows = ned.serve(
        subak.Rows(path.offsets.to_numpy(), path.values.to_numpy()),
        flows["start_s"].to_numpy(),
        flows["size_bytes"].to_numpy(),
        interval_s=timing.interval_s,
        intervals=timing.intervals,
        steps=timing.steps_each,
        passes=job.passes,
        compare_from=timing.warmup,
        compare_every=job.every or 0,
    ).to_numpy()
    over, measured = rows["excess_gbps"][timing.warmup :], timing.intervals - timing.warmup
    looks = ~np.isnan(rows["optimum_bps"])
    best = rows["optimum_bps"][looks]

    def relative(column: str) -> float:
        return total(100.0 * rows[column][looks] / best) / len(best) if len(best) else math.nan

    return Ran(
        over_gbps=total(over) / measured,
        most_over_gbps=float(np.max(over)),
        flow=relative("rate_bps"),
        uniform=relative("uniform_bps"),
        overload=float(np.max(rows["overload"])),
        flows=total(rows["flows"][timing.warmup :]) / measured,
    )
