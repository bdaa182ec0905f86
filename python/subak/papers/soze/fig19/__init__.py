"""Figure 19 of Soze: convergence times by network size and by number of flows, and the time of water-filling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import subak
from subak.papers.soze import networks
from subak.papers.soze.networks import EACH, SIZES, Averages
from subak.repro import RawResults, computed, figures
from subak.repro.computed import Progress, Settings, finite, quantile, rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WITHIN = 0.03
SHARE = 0.95
"""Fraction of the flows that must be within the tolerance."""
LIMIT, HELD = 200, 50
"""Largest length of a run, and dwell time of convergence, RTTs."""
FLUID, PACKETS, WINDOW = "fluid", "packets", "packets, soze"
"""``soze-virtual`` as a fluid and in packets, and ``soze`` with a window in packets."""
IN_PACKETS = 0.92
"""Fraction of a link for data if 64-byte ACKs of 1048-byte packets cross the link too."""
SHARES = {FLUID: 0.98, PACKETS: IN_PACKETS, WINDOW: 1.0}
"""Fraction of a link for data: ACKs share links with data, so that the capacity that they may use is kept free. Those
of the window have one byte."""
GROUPS = {
    "size": ("size", FLUID),
    "flows": ("flows", FLUID),
    "few packets": ("few", PACKETS),
    "few fluid": ("few", FLUID),
    "few window": ("few", WINDOW),
    "size packets": ("size", PACKETS),
    "flows packets": ("flows", PACKETS),
    "flows window": ("flows", WINDOW),
}
"""Groups in the report: the varied quantity, and the model."""
COLUMNS = ["by", "ports", "flows", "backend", "seed", "settled_rtts", "near", "peak_us", "rtt_us", "solve_ms"]
COLUMNS += ["settled_ms"]


@dataclass(frozen=True)
class _Job:
    by: str
    ports: int
    flows: int
    model: str
    seed: int

    @property
    def level(self) -> int:
        return self.flows if self.by == "flows" else self.ports


@dataclass(frozen=True)
class _Result:
    settled_rtts: float
    near: float
    peak_us: float
    rtt_us: float
    solve_ms: float


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Convergence times by size of a fat-tree and by number of flows.

    ``ports``: ports of the largest fat-tree's switches; ``flows``: largest number of flows; ``packet_ports``: largest
    fat-tree simulated in packets; ``packet_flows``: largest number of flows on the largest fat-tree that are simulated
    in packets; ``flows_by_size``: flows of figure 19a.
    """
    given = Settings(settings, "ports", "flows", "packet_ports", "packet_flows", "flows_by_size")
    ports, most = given.count("ports", 16, 32), given.count("flows", 1_000_000, 10_000_000)
    packet_ports = given.count("packet_ports", 8, 16)
    packet_flows = given.count("packet_flows", 10_000, 1_000_000)
    by_size = given.count("flows_by_size", 10_000, 1_000_000)
    jobs = []
    for one in range(seed, seed + max(runs, 1)):
        jobs += [_Job("size", k, by_size, FLUID, one) for k in range(4, ports + 1, 4)]
        for k in range(4, min(packet_ports, ports) + 1, 4):
            # Ten flows per host; a fat-tree of k-port switches has k^3 / 4 hosts.
            jobs += [_Job("few", k, 10 * k**3 // 4, model, one) for model in (PACKETS, FLUID, WINDOW)]
            jobs.append(_Job("size", k, by_size, PACKETS, one))
        flows = 10
        while flows <= most:
            models = (FLUID, PACKETS, WINDOW) if flows <= packet_flows else (FLUID,)
            jobs += [_Job("flows", ports, flows, model, one) for model in models]
            flows *= 10
    all_of = computed.Jobs(len(jobs), progress)
    # One after the other, since each run is timed and the largest ones fill the memory.
    seen = {job: all_of.each([job], _run)[0] for job in jobs}
    values: dict[str, Any] = {}
    for name, (by, model) in GROUPS.items():
        mine = {job: one for job, one in seen.items() if (job.by, job.model) == (by, model)}
        if mine:
            _tell(values, name, mine)
    rows = [_row(job, one) for job, one in seen.items()]
    return {"values": values, "tables": {"scale": {"columns": COLUMNS, "rows": rows}}}


def _row(job: _Job, seen: _Result) -> list[Any]:
    settled_ms = finite(seen.settled_rtts * seen.rtt_us / 1e3)
    times = [finite(seen.settled_rtts), seen.near, seen.peak_us, seen.rtt_us, seen.solve_ms, settled_ms]
    return [job.by, job.ports, job.flows, job.model, job.seed, *times]


def _tell(values: dict[str, Any], name: str, seen: dict[_Job, _Result]) -> None:
    values[f"{name} near"] = rounded(1e4 * min(one.near for one in seen.values())) / 100
    medians = []
    for level in sorted({job.level for job in seen}):
        mine = [one for job, one in seen.items() if job.level == level]
        rtts = [one.settled_rtts for one in mine]
        values[f"{name} {level} rtts"] = computed.sample("median", "networks", rtts)
        values[f"{name} {level} solve"] = computed.sample("median", "networks", [one.solve_ms for one in mine])
        medians.append(quantile(rtts, 0.5))
    flat = max(medians) / min(medians)
    values[f"{name} flat"] = rounded(100 * flat) / 100 if math.isfinite(flat) else None


@dataclass(frozen=True)
class _Setup:
    """A fat-tree as in Soze's section 5, with flows of weights 1 to 4 between random hosts."""

    network: subak.Network
    links: list[dict[str, Any]]
    rows: subak.Rows
    weights: Any
    rtts_ns: Any
    """Base RTT of each flow."""

    @property
    def rtt_ns(self) -> int:
        return int(self.rtts_ns.max())


def _draw(job: _Job) -> _Setup:
    network = subak.Network.generate("fat-tree", k=job.ports, rate="100Gbps", link_delay="1us")
    hosts = network.hosts
    stream = subak.Stream(job.seed, f"soze scale {job.ports} {job.flows}")
    router = subak.Router(network, seed=job.seed, symmetric=True)
    links = [
        {"id": row["id"], "capacity": row["capacity_bps"], "delay": f"{row['delay_ns']}ns"} for row in network.links
    ]
    # All links are alike, and reverse paths have the links' reverse links.
    rtts = [networks.idle_rtt_ns(links[:hops], links[:hops]) for hops in range(7)]
    flat: list[int] = []
    ends, weights, rtts_ns = [0], [], []
    for key in range(job.flows):
        src = stream.below(len(hosts))
        dst = (src + 1 + stream.below(len(hosts) - 1)) % len(hosts)
        path = router.path(hosts[src], hosts[dst], key)
        flat += path
        ends.append(len(flat))
        rtts_ns.append(rtts[len(path)])
        weights.append(1.0 + 3.0 * stream.unit())
    rows = subak.Rows(np.array(ends), np.array(flat, dtype=np.uint32), np.array(weights))
    return _Setup(network, links, rows, rows.weight, np.array(rtts_ns))


def _run(job: _Job) -> _Result:
    setup = _draw(job)
    want, _ = networks.exact(setup.links, setup.rows, SHARES[job.model])
    settled, near, peak_us = _as_fluid(setup, want) if job.model == FLUID else _in_packets(job, setup, want)
    # The shorter of two times of water-filling.
    solve_ms = min(1e3 * subak.solve(setup.network, flows=setup.rows).seconds for _ in range(2))
    return _Result(settled, near, peak_us, setup.rtt_ns / 1e3, solve_ms)


def _as_fluid(setup: _Setup, want: Any) -> tuple[float, float, float]:
    fluid = subak.SozeFluid(setup.network, setup.rows, setup.rtts_ns)
    settled, near = 0.0, 0.0
    for step in range(1, LIMIT * EACH + 1):
        fluid.step()
        near = fluid.near(want, WITHIN)
        now = step / EACH
        if near < SHARE:
            settled = now
        elif now - settled >= HELD:
            break
    return math.inf if near < SHARE else settled, near, fluid.peak_ns / 1e3


def _in_packets(job: _Job, setup: _Setup, want: Any) -> tuple[float, float, float]:
    scheme = "soze" if job.model == WINDOW else "soze-virtual"
    params = {} if job.model == WINDOW else {"headroom": 1.0 - IN_PACKETS}
    sizes = SIZES | {"ack": 1} if job.model == WINDOW else SIZES
    simulation = subak.Simulation(setup.network, scheme, params=params, seed=job.seed, sections={"packets": sizes})
    ids = [link["id"] for link in setup.links]
    paths = np.split(np.asarray(setup.rows.links), np.asarray(setup.rows.link_ptr)[1:-1])
    simulation.add_all(
        [
            {"path": [ids[link] for link in path], "weight": float(weight)}
            for path, weight in zip(paths, setup.weights, strict=True)
        ]
    )
    averages = Averages(job.flows)
    settled, near = 0.0, 0.0
    for step in range(1, LIMIT * EACH + 1):
        averages.add(simulation.sample([step * setup.rtt_ns // EACH]).to_numpy()["assigned_bps"])
        rates, now = averages.now, step / EACH
        near = 0.0 if rates is None else np.count_nonzero(np.abs(rates / want - 1.0) <= WITHIN) / job.flows
        if near < SHARE:
            settled = now
        elif now - settled >= HELD:
            break
    return math.inf if near < SHARE else settled, near, networks.peak_us(simulation)


def draw(raw: RawResults) -> Figure:
    """Convergence times at packet level and of the fluid model, and computing times of water-filling."""
    figure, plots = figures.axes(columns=2, width=4.8)
    rows = raw.rows("scale")
    for plot, by, label in ((plots[0], "ports", "hosts"), (plots[1], "flows", "flows")):
        kinds = [("size" if by == "ports" else "flows", "fluid", "settled_ms", "10,000 flows, fluid")]
        if by == "ports":
            kinds += [("few", "packets", "settled_ms", "10 flows a host, packets")]
            kinds += [("few", "fluid", "settled_ms", "10 flows a host, fluid")]
        else:
            kinds = [
                ("flows", "fluid", "settled_ms", "1024 hosts, fluid"),
                ("flows", "packets", "settled_ms", "1024 hosts, packets"),
                ("flows", "packets, soze", "settled_ms", "1024 hosts, packets, soze"),
            ]
        kinds += [(kinds[0][0], "fluid", "solve_ms", "water-filling, one core")]
        for k, (group, backend, column, name) in enumerate(kinds):
            mine = [r for r in rows if (r["by"], r["backend"]) == (group, backend) and r[column] is not None]
            levels = sorted({r[by] for r in mine})
            values = [min(r[column] for r in mine if r[by] == level) for level in levels]
            at = [level**3 // 4 for level in levels] if by == "ports" else levels
            colour = figures.COLOURS[3 if column == "solve_ms" else k]
            plot.plot(at, values, marker="o", color=colour, label=name)
        plot.set(xlabel=label, xscale="log", yscale="log")
        plot.legend(fontsize="small")
    plots[0].set_ylabel("ms")
    return figure
