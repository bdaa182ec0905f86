"""Random logs with planted offenders (applications over their budget), and what the policy checker reports."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from subak.policy import Application, Policy, Setting, check
from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRACE_NS = 1_000_000
END_NS = 10_000_000_000
PORTS = range(65536)


class _Log:
    """A random log of one application, within its weight budget."""

    def __init__(self, rng: Random, number: int) -> None:
        self.rng, self.name = rng, f"application{number}"
        self.budget = rng.choice([1.0, 8.0, 100.0, rng.uniform(0.5, 50)])
        self.hosts = [f"10.0.{number}.{h}" for h in range(rng.randint(1, 6))]
        self.rows: list[Setting] = []
        self.weights: dict[Any, float] = {}
        self.now_ns = rng.randrange(GRACE_NS)

    def set(self, flow: Any, weight: float, later_ns: int = 0) -> None:
        self.rows.append(Setting(self.now_ns + later_ns, flow, weight))
        if weight > 0:
            self.weights[flow] = weight
        else:
            self.weights.pop(flow, None)

    def left(self) -> float:
        return self.budget - sum(self.weights.values())

    def step(self) -> None:
        """A random event: a flow starts, ends, changes its weight, or transfers weight to another flow."""
        rng = self.rng
        self.now_ns += rng.randrange(2 * GRACE_NS, 50 * GRACE_NS)
        flows = list(self.weights)
        deed = rng.randrange(4)
        if deed == 0 or len(flows) < 2:
            if self.left() > 1e-6 * self.budget:
                host = rng.choice(self.hosts)
                flow = (host, "10.9.9.9", rng.randrange(65536), rng.randrange(65536), rng.choice(["tcp", "udp"]))
                if flow not in self.weights:
                    self.set(flow, self.left() * rng.choice([1.0, rng.uniform(0.05, 0.9)]))
        elif deed == 1:
            self.set(rng.choice(flows), 0)
        elif deed == 2:
            flow = rng.choice(flows)
            self.set(flow, self.weights[flow] * rng.uniform(0.1, 1))
        else:
            giver, taker = rng.sample(flows, 2)
            moved = self.weights[giver] * rng.uniform(0.1, 0.9)
            first = rng.choice(["giver", "both", "taker"])
            late_ns = 0 if first == "both" else rng.randrange(1, GRACE_NS)
            self.set(giver, self.weights[giver] - moved, late_ns if first == "taker" else 0)
            self.set(taker, self.weights[taker] + moved, late_ns if first == "giver" else 0)

    def offend(self) -> None:
        """Adds a flow whose weight exceeds the budget, for the grace time or longer."""
        rng = self.rng
        self.now_ns += 3 * GRACE_NS
        over = self.budget * rng.choice([0.001, 0.05, 1.0, rng.uniform(0.001, 3)])
        flow = (rng.choice(self.hosts), "10.8.8.8", rng.randrange(65536), rng.randrange(65536), "tcp")
        self.set(flow, self.left() + over)
        self.now_ns += rng.choice([GRACE_NS, rng.randrange(GRACE_NS, 100 * GRACE_NS)])
        self.set(flow, 0)


def _one(rng: Random, stranger: bool) -> tuple[set[str], set[str], int, int]:
    """Names of planted and of reported offenders, number of compliant applications, and number of rows."""
    logs = [_Log(rng, number) for number in range(rng.randint(2, 20))]
    planted = {log.name for log in logs if rng.random() < 1 / 3}
    for log in logs:
        steps = rng.randint(5, 40)
        at = rng.randrange(steps)
        for k in range(steps):
            log.step()
            if log.name in planted and k == at:
                log.offend()
    rows = [row for log in logs for row in log.rows]
    if stranger:
        rows.append(Setting(rng.randrange(END_NS), ("10.99.0.1", "10.9.9.9", 1, 2, "tcp"), 1.0))
    rng.shuffle(rows)
    sources = {log.name: tuple((host, PORTS) for host in log.hosts) for log in logs}
    policy = Policy(tuple(Application(log.name, log.budget, sources[log.name]) for log in logs), GRACE_NS)
    named = {offence.application for offence in check(policy, rows)}
    follow = len(logs) - len(planted)
    return planted | ({"10.99.0.1"} if stranger else set()), named, follow, len(rows)


def run(settings: dict[str, Any], runs: int, seed: int, progress: Callable[[int, int, float], None]) -> dict[str, Any]:
    """Runs the checker on random logs."""
    found, tried, accused, planted_all, followed, rows_all = 0, 0, 0, 0, 0, 0
    table = []
    for k in range(runs):
        planted, named, follow, rows = _one(Random(f"{seed} {k}"), stranger=k % 4 == 3)
        tried += bool(planted)
        found += bool(planted) and planted <= named
        accused += len(named - planted)
        planted_all += len(planted)
        followed += follow
        rows_all += rows
        table.append([len(planted), len(planted & named), len(named - planted), rows])
        progress(k + 1, runs, (k + 1) / runs)
    values = {
        "found": {"statistic": "share", "hits": found, "count": tried, "of": "runs"},
        "accused": accused,
        "planted": planted_all,
        "followed": followed,
        "rows": rows_all,
    }
    columns = ["planted", "found", "accused", "rows"]
    return {"values": values, "tables": {"logs": {"columns": columns, "rows": table}}}


def draw(raw: RawResults) -> Figure:
    """Number of found offenders by number of planted offenders, one point per log."""
    figure, (plot,) = figures.axes(width=4.6)
    rows = raw.rows("logs")
    plot.scatter([row["planted"] for row in rows], [row["found"] for row in rows], s=14)
    most = max(row["planted"] for row in rows)
    plot.plot([0, most], [0, most], color="grey", linewidth=0.8, linestyle=":")
    plot.set(xlabel="offenders planted in a log", ylabel="of them found")
    return figure
