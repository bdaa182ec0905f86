"""Pooled max-min rates beside linear programs, one water level after the other (GLOP)."""

import math
import random

import numpy as np
import pytest
import subak
from ortools.linear_solver import pywraplp

Flow = tuple[list[list[str]], float, float]


def _largest(goal: np.ndarray, rows: list[np.ndarray], bounds: list[float]) -> np.ndarray:
    """The point at which `goal` is largest."""
    program = pywraplp.Solver.CreateSolver("GLOP")
    variables = [program.NumVar(0, program.infinity(), str(i)) for i in range(len(goal))]
    for row, bound in zip(rows, bounds, strict=True):
        program.Add(sum(float(row[i]) * variables[i] for i in np.flatnonzero(row)) <= bound)
    program.Maximize(sum(float(goal[i]) * variables[i] for i in np.flatnonzero(goal)))
    assert program.Solve() == program.OPTIMAL
    return np.array([variable.solution_value() for variable in variables])


def _levels(caps: dict[str, float], flows: list[Flow]) -> list[float]:
    """Rates: the least rate per weight as high as possible, then the next, and so on. A flow: paths, weight, demand."""
    paths = [(f, path) for f, (all_paths, _, _) in enumerate(flows) for path in all_paths]
    n = len(paths)
    on_link = [np.array([float(link in path) for _, path in paths] + [0.0]) for link in caps]
    of_flow = [np.array([float(g == f) for g, _ in paths] + [0.0]) for f in range(len(flows))]
    capped = [f for f, flow in enumerate(flows) if flow[2] < math.inf]
    rows, bounds = on_link + [of_flow[f] for f in capped], [*caps.values(), *(flows[f][2] for f in capped)]
    level = np.eye(n + 1)[n]
    fixed: dict[int, float] = {}
    while len(fixed) < len(flows):
        free = [f for f in range(len(flows)) if f not in fixed]
        least = [-of_flow[f] + (0.0 if f in fixed else flows[f][1]) * level for f in range(len(flows))]
        t = _largest(level, rows + least, bounds + [-fixed.get(f, 0.0) * (1 - 1e-11) for f in range(len(flows))])[n]
        held = [fixed.get(f, t * flows[f][1]) for f in range(len(flows))]
        for one in free:
            others = [f for f in range(len(flows)) if f != one]
            lowest = [-held[f] * (1 - 1e-11) for f in others]
            most = _largest(of_flow[one], rows + [-of_flow[f] for f in others], bounds + lowest)
            if of_flow[one] @ most <= held[one] * (1 + 1e-7):
                fixed[one] = held[one]
        assert any(f in fixed for f in free), "a water level holds a flow at least"
    return [fixed[f] for f in range(len(flows))]


@pytest.mark.parametrize("seed", range(8))
def test_two_leaves_with_unequal_spines_and_parallel_links(seed: int) -> None:
    """Flows of several weights and demands over some of the paths, in two islands."""
    draw = random.Random(seed)
    caps: dict[str, float] = {}
    flows: list[Flow] = []
    for island in "ab":
        lanes = [f"{island}{s}{p}" for s in range(draw.randint(1, 3)) for p in range(draw.randint(1, 2))]
        hosts = [f"{island}h{h}" for h in range(3)]
        caps |= {name: draw.choice([1.0, 1.0, 2.0, 0.5, 4.0]) for name in [*lanes, *hosts]}
        for _ in range(draw.randint(1, 4)):
            host = draw.choice(hosts)
            some = draw.sample(lanes, draw.randint(1, len(lanes)))
            demand = draw.choice([math.inf, math.inf, 0.3, 1.0])
            flows.append(([[host, lane] for lane in some], draw.choice([1.0, 1.0, 2.0, 0.5, 10.0]), demand))
    listed = [
        {"paths": paths, "weight": weight} | ({"demand": demand * 1e9} if demand < math.inf else {})
        for paths, weight, demand in flows
    ]
    links = [{"id": name, "capacity": c * 1e9} for name, c in caps.items()]
    answer = subak.solve({"network": {"links": links}, "flows": listed, "policy": {"kind": "max-min"}})
    assert answer.status == "optimal"
    assert answer.to_numpy()["rate_bps"] / 1e9 == pytest.approx(_levels(caps, flows), rel=1e-6)
