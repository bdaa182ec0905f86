"""Goals of policies by an independent method, from the papers' equations alone: nothing of Subak is imported.

Utilities (NUMFabric, table 1 and equation 2) are maximized in the rates of paths, by Newton's method under a
logarithmic barrier whose weight falls to nothing. Max-min and bandwidth functions are linear programs: the common level
rises until it can rise no more, flows that cannot have more even alone stay at it, and the rest rises further. Where a
bandwidth function bends, the level stops, and goes on with the next slopes.

``links`` maps names to capacities. A flow has ``path`` or ``paths``, and the keys that its policy reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Links = Mapping[str, float]
Flow = Mapping[str, Any]
Points = Sequence[tuple[float, float]]
"""Points (fair share, rate) of a piecewise linear function."""
Slopes = Callable[[Floats], tuple[Floats, Floats]]
"""Gradient and Hessian of a concave function."""

RIDGE = 1e-13
"""Added to a Hessian with a diagonal of ones, which may be singular in double precision."""
NEAR = 1e-7
"""Relative difference of levels that counts as none."""


def rates(links: Links, flows: Sequence[Flow], policy: Mapping[str, Any]) -> Floats:
    """The rate of each flow, over all its paths, under a policy as a case has it."""
    kind = policy["kind"]
    if kind == "max-min":
        return by_level(links, flows, [[(0.0, 0.0), (1.0, flow.get("weight", 1))] for flow in flows], bounded=False)
    if kind == "bandwidth-function":
        return by_level(links, flows, [flow["bandwidth_function"] for flow in flows])
    return by_utility(links, flows, [_power(flow, policy) for flow in flows])


def utility_rates(links: Links, flows: Sequence[Flow], alpha: float) -> Floats:
    """Rates by the utilities of increasing bandwidth functions B: U'(x) = F(x)^-alpha, F the inverse of B."""
    return by_utility(links, flows, [Marginal(1.0, alpha, flow["bandwidth_function"]) for flow in flows])


class Marginal:
    """U'(x) = gain F(x)^-alpha. F(x) = x, or the inverse of a piecewise linear function that increases."""

    def __init__(self, gain: float, alpha: float, points: Points = ((0, 0), (1, 1))) -> None:
        self.gain, self.alpha = gain, alpha
        self.shares, self.rates = np.array(points, dtype=float).T
        self.bounded = len(points) > 2

    def scaled(self, unit: float, gain: float) -> Marginal:
        """The same in rates of ``unit``."""
        points = [(share, rate / unit) for share, rate in zip(self.shares, self.rates, strict=True)]
        if not self.bounded:
            return Marginal(self.gain / gain, self.alpha)
        return Marginal(self.gain / gain, self.alpha, points)

    def at(self, rate: float) -> tuple[float, float]:
        """U' and U''."""
        k = int(np.clip(np.searchsorted(self.rates, rate), 1, len(self.rates) - 1))
        slope = (self.shares[k] - self.shares[k - 1]) / (self.rates[k] - self.rates[k - 1])
        share = self.shares[k] + slope * (rate - self.rates[k])
        first = self.gain * share**-self.alpha
        return first, -self.alpha * first / share * slope


def _power(flow: Flow, policy: Mapping[str, Any]) -> Marginal:
    weight = float(flow.get("weight", 1))
    if policy["kind"] == "alpha-fair":
        return Marginal(weight ** policy["alpha"], policy["alpha"])
    urgency = {"fct": "size", "srpt": "size", "edf": "deadline"}[policy["kind"]]
    return Marginal(weight / flow[urgency], policy.get("epsilon", 0.125))


def by_utility(links: Links, flows: Sequence[Flow], utilities: Sequence[Marginal]) -> Floats:
    """Rates that maximize the sum of utilities."""
    uses, pools, room = _incidence(links, flows)
    unit = float(room.max())
    gain = max(u.gain for u in utilities)
    scaled = [u.scaled(unit, gain) for u in utilities]
    tops = [k for k, u in enumerate(scaled) if u.bounded]
    rows = np.vstack([uses, -np.eye(uses.shape[1]), pools[tops]])
    most = np.concatenate([room / unit, np.zeros(uses.shape[1]), [scaled[k].rates[-1] for k in tops]])

    def slopes(x: Floats) -> tuple[Floats, Floats]:
        first, second = np.array([u.at(rate) for u, rate in zip(scaled, pools @ x, strict=True)]).T
        return pools.T @ first, pools.T @ (second[:, None] * pools)

    start = np.full(uses.shape[1], 0.5 * float(most[most > 0].min()) / max(uses.sum(axis=1).max(), pools.sum()))
    return unit * (pools @ climb(slopes, rows, most, start))


def by_level(links: Links, flows: Sequence[Flow], functions: Sequence[Points], bounded: bool = True) -> Floats:
    """Rates of the largest levels, lexicographically; each flow's rate is its function of the level."""
    uses, pools, room = _incidence(links, flows)
    unit = float(room.max())
    curves = [np.array(points, dtype=float) / [1, unit if bounded else 1] for points in functions]
    bends = sorted({float(share) for curve in curves for share, _ in curve if share > 0}) if bounded else [1e6]
    fixed: dict[int, float] = {}
    level = 0.0
    while len(fixed) < len(flows) and level < bends[-1]:
        until = next(bend for bend in bends if bend > level * (1 + NEAR))
        lines = [_line(curve, level) for curve in curves]
        slope = np.array([0.0 if k in fixed else line[0] for k, line in enumerate(lines)])
        base = np.array([fixed.get(k, line[1]) for k, line in enumerate(lines)])
        level = _most(uses, pools, room / unit, slope, base, until)
        if level > until * (1 - NEAR):
            level = until
            continue
        reached, before = slope * level + base, set(fixed)
        for k in set(range(len(flows))) - set(fixed):
            # Whether this flow alone could have more, with every other at the level.
            more = _most(uses, pools, room / unit, np.eye(len(flows))[k], reached - reached[k] * np.eye(len(flows))[k])
            if more <= reached[k] * (1 + NEAR) + NEAR:
                fixed[k] = float(reached[k])
        assert set(fixed) > before, "no flow is held back"
    last = [fixed.get(k, float(np.interp(level, *curve.T))) for k, curve in enumerate(curves)]
    return unit * np.array(last)


def _line(curve: Floats, level: float) -> tuple[float, float]:
    """Slope and intercept of the function just above ``level``; the last piece of an unbounded one goes on."""
    k = int(np.searchsorted(curve[:, 0], level * (1 + NEAR), side="right"))
    if k == len(curve):
        if len(curve) > 2:
            return 0.0, float(curve[-1, 1])
        k -= 1
    (low, below), (high, above) = curve[max(k, 1) - 1], curve[max(k, 1)]
    slope = float((above - below) / (high - low))
    return slope, float(above - slope * high)


def _most(uses: Floats, pools: Floats, room: Floats, slope: Floats, base: Floats, until: float = 1e6) -> float:
    """The largest level at which each flow's rate can be ``slope * level + base``, by linear programming."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("GLOP")
    x = [solver.NumVar(0, solver.infinity(), "") for _ in range(uses.shape[1])]
    level = solver.NumVar(0, until, "")
    for row, most in zip(uses, room, strict=True):
        solver.Add(sum(x[p] for p in np.flatnonzero(row)) <= float(most))
    for row, by, least in zip(pools, slope, base, strict=True):
        solver.Add(sum(x[p] for p in np.flatnonzero(row)) >= float(by) * level + float(least) * (1 - NEAR / 100))
    solver.Maximize(level)
    status = solver.Solve()
    assert status == pywraplp.Solver.OPTIMAL, status
    return float(level.solution_value())


def climb(slopes: Slopes, rows: Floats, most: Floats, z: Floats) -> Floats:
    """The maximum of a concave function over ``rows @ z <= most``, from a point inside."""
    first = max(1.0, float(np.abs(slopes(z)[0]).max()))
    for weight in first * 10.0 ** -np.arange(0.0, 10.5 + np.log10(first), 0.5):
        for _ in range(60):
            gradient, hessian = _with_barrier(slopes, rows, most, z, weight)
            scale = 1 / np.sqrt(-np.diag(hessian))
            step = scale * np.linalg.solve(RIDGE * np.eye(len(z)) - hessian * np.outer(scale, scale), scale * gradient)
            if gradient @ step < 1e-6 * weight:
                break
            moves = rows @ step
            reach = ((most - rows @ z)[moves > 0] / moves[moves > 0]).min(initial=2.0)
            # The largest step at which the function still rises.
            low, high = 0.0, min(1.0, 0.9 * float(reach))
            by = high
            for _ in range(20):
                rises = _with_barrier(slopes, rows, most, z + by * step, weight)[0] @ step >= 0
                low, high = (by, high) if rises else (low, by)
                by = (low + high) / 2
                if low == high:
                    break
            if low == 0:
                break
            z = z + low * step
    return z


def _with_barrier(slopes: Slopes, rows: Floats, most: Floats, z: Floats, weight: float) -> tuple[Floats, Floats]:
    gradient, hessian = slopes(z)
    room = np.maximum(most - rows @ z, 1e-18)
    return gradient - weight * rows.T @ (1 / room), hessian - weight * (rows.T / room**2) @ rows


def _incidence(links: Links, flows: Sequence[Flow]) -> tuple[Floats, Floats, Floats]:
    """Links by paths, flows by paths, and the capacities of the links that some path uses."""
    paths = [(k, path) for k, flow in enumerate(flows) for path in flow.get("paths", [flow.get("path")])]
    names = sorted({link for _, path in paths for link in path})
    uses = np.array([[float(name in path) for _, path in paths] for name in names])
    pools = np.array([[float(owner == k) for owner, _ in paths] for k in range(len(flows))])
    return uses, pools, np.array([float(links[name]) for name in names])
