"""The incremental solver from Python: after any sequence of changes, its answer equals that of a new solve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import subak as sb


def three_links() -> sb.Network:
    return sb.Network.from_links(
        [{"id": "a", "capacity": 12e9}, {"id": "b", "capacity": 20e9}, {"id": "c", "capacity": 30e9}]
    )


def rates(answer: sb.Answer) -> dict[str, float]:
    return {row["id"]: row["rate_bps"] for row in pa.table(answer.flows).to_pylist()}


def test_flows_come_and_go() -> None:
    now = sb.Incremental(three_links())
    assert rates(now.solve()) == {}
    now.add([{"id": "green", "path": ["a", "c"]}, {"id": "brown", "path": ["b", "c"]}])
    assert rates(now.solve()) == {"green": 12e9, "brown": 18e9}
    now.set_capacity("c", "10Gbps")
    now.set_weight("green", 4)
    now.set_demand("brown", "1Gbps")
    assert now.answer().status == "inaccurate"  # The rates are those before the change.
    done = now.repair(1e-6)
    assert 0 < done.flows <= 2
    assert rates(now.answer()) == pytest.approx({"green": 9e9, "brown": 1e9}, rel=1e-6)
    now.set_demand("brown", None)
    now.remove("green")
    now.repair(1e-6)
    assert now.rate_bps("brown") == pytest.approx(10e9, rel=1e-6)
    assert (len(now), "green" in now, "brown" in now) == (1, False, True)


def test_from_a_case_and_from_rows(two_flows: dict[str, Any]) -> None:
    now = sb.Incremental(two_flows)
    assert rates(now.solve()) == {"fB": 18e9, "fG": 12e9}
    now = sb.Incremental(three_links(), flows=sb.Rows([0, 2, 4], [0, 2, 1, 2]))
    now.remove("0")
    now.add({"id": "new", "path": ["a"]})
    assert rates(now.solve()) == {"1": 20e9, "new": 12e9}


def test_flows_between_hosts() -> None:
    network = sb.Network.generate("leaf-spine", leaves=2, spines=2, hosts_per_leaf=4, host_rate="10Gbps")
    flows = [{"id": f"f{i}", "src": f"h{i}", "dst": f"h{7 - i}"} for i in range(4)]
    now = sb.Incremental(network)
    for flow in flows:
        now.add(flow)
    assert rates(now.solve()) == rates(sb.solve(network, flows=flows))


def worst(answer: sb.Answer) -> float:
    """Largest value of the certificate, without the duality gap of the worst single flow."""
    return max(value for name, value in answer.certificate.items() if name != "flow_gap")


class Plain:
    """The same problem as a plain dict, which a test changes in parallel with the incremental one."""

    def __init__(self, policy: dict[str, Any], pooled: bool, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.policy, self.pooled, self.count = policy, pooled, 0
        self.capacity = {f"l{i}": 10e9 for i in range(8)}
        self.flows: dict[str, dict[str, Any]] = {}
        self.now = sb.Incremental(self.case())

    def case(self) -> dict[str, Any]:
        links = [{"id": name, "capacity": capacity} for name, capacity in self.capacity.items()]
        return {"network": {"links": links}, "flows": list(self.flows.values()), "policy": self.policy}

    def path(self) -> list[str]:
        return [f"l{i}" for i in self.random.choice(8, 3, replace=False)]

    def change(self) -> None:
        what = self.random.integers(6)
        if what <= 1 or not self.flows:
            paths = [self.path()] + [self.path() for _ in range(self.random.integers(2) if self.pooled else 0)]
            paths = [list(path) for path in dict.fromkeys(map(tuple, paths))]
            flow = {"id": f"f{self.count}", "paths": paths, "weight": float(self.random.uniform(0.5, 2))}
            self.count += 1
            self.flows[flow["id"]] = flow
            self.now.add(flow)
            return
        flow = self.flows[str(self.random.choice(list(self.flows)))]
        if what == 2:
            del self.flows[flow["id"]]
            self.now.remove(flow["id"])
        elif what == 3:
            flow["weight"] = float(self.random.uniform(0.5, 2))
            self.now.set_weight(flow["id"], flow["weight"])
        elif what == 4:
            flow["demand"] = float(self.random.uniform(0.1, 5)) * 1e9
            self.now.set_demand(flow["id"], flow["demand"])
        else:
            link = f"l{self.random.integers(8)}"
            self.capacity[link] *= float(self.random.uniform(0.6, 1.5))
            self.now.set_capacity(link, self.capacity[link])


@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_repairs_is_within_its_tolerance(seed: int) -> None:
    plain = Plain({"kind": "max-min"}, pooled=False, seed=seed)
    for step in range(60):
        plain.change()
        tolerance = 10.0 ** -plain.random.integers(1, 7)
        plain.now.repair(tolerance)
        answer = plain.now.answer()
        assert answer.status == "optimal"
        assert worst(answer) <= tolerance
        assert answer.certificate["infeasibility"] <= 1e-9
        if step % 5 == 0:
            assert rates(plain.now.solve()) == pytest.approx(rates(sb.solve(plain.case())), rel=1e-7)


@pytest.mark.parametrize(
    "policy", [{"kind": "max-min"}, {"kind": "alpha-fair", "alpha": 1}, {"kind": "alpha-fair", "alpha": 2}]
)
@pytest.mark.parametrize("seed", range(3))
def test_any_sequence_is_a_solve_from_nothing(policy: dict[str, Any], seed: int) -> None:
    plain = Plain(policy, pooled=True, seed=seed)
    for step in range(40):
        plain.change()
        if step % 4 == 0:
            answer = plain.now.solve()
            assert answer.status == "optimal", answer.certificate
            assert rates(answer) == pytest.approx(rates(sb.solve(plain.case())), rel=1e-4)


def test_prices_of_utilities_carry_over() -> None:
    rng = np.random.default_rng(5)
    network = sb.Network.from_links([{"id": f"l{i}", "capacity": 10e9} for i in range(60)])

    def flow(id: str) -> dict[str, Any]:
        return {"id": id, "path": [f"l{i}" for i in rng.choice(60, 4, replace=False)]}

    now = sb.Incremental(network, flows=[flow(f"f{i}") for i in range(300)], policy={"kind": "alpha-fair", "alpha": 1})
    cold = now.solve().iterations
    warm = []
    for i in range(10):
        now.remove(f"f{i}")
        now.add(flow(f"g{i}"))
        warm.append(now.solve())
    assert all(answer.status == "optimal" for answer in warm)
    assert sum(answer.iterations for answer in warm) / len(warm) < cold


def test_a_repair_moves_few() -> None:
    rng = np.random.default_rng(7)
    links = np.stack([rng.choice(400, 4, replace=False) for _ in range(2000)])
    network = sb.Network.from_links([{"id": f"l{i}", "capacity": 10e9} for i in range(400)])
    now = sb.Incremental(network, flows=sb.Rows(np.arange(2001) * 4, links.ravel()))
    now.solve()
    moved = []
    for i in range(50):
        now.remove(str(i))
        now.add({"id": f"new{i}", "path": [f"l{j}" for j in rng.choice(400, 4, replace=False)]})
        moved.append(now.repair(0.05).flows)
    assert np.median(moved) < 400  # A single change in a dense network may affect all flows, but rarely does.
    assert worst(now.answer()) <= 0.05


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda now: now.add({"id": "green", "path": ["a"]}), "flows[0].id"),
        (lambda now: now.add([{"id": "x", "path": ["a"]}, {"id": "x", "path": ["a"]}]), "flows[1].id"),
        (lambda now: now.add([{"id": "x", "path": ["a"]}, {"id": "y", "path": ["z"]}]), "flows[1].path[0]"),
        (lambda now: now.add([{"id": "x", "path": ["a"]}, {"path": ["b"]}]), "flows[1].id"),
        (lambda now: now.add({"id": "x", "path": ["a"], "weight": float("nan")}), "flows[0].weight"),
        (lambda now: now.add({"id": "x", "paths": [["a"], ["a"]]}), "flows[0].paths[1]"),
        (lambda now: now.remove("x"), "ids"),
        (lambda now: now.remove(["green", "x"]), "ids"),
        (lambda now: now.remove(["green", "green"]), "ids"),
        (lambda now: now.set_weight("x", 1), "id"),
        (lambda now: now.set_weight("green", 0), "weight"),
        (lambda now: now.set_weight("green", float("nan")), "weight"),
        (lambda now: now.set_demand("green", -1), "demand"),
        (lambda now: now.set_demand("green", float("inf")), "demand"),
        (lambda now: now.set_demand("green", "5GB"), "demand"),
        (lambda now: now.set_capacity("c", 0), "capacity"),
        (lambda now: now.set_capacity("c", None), "capacity"),
        (lambda now: now.set_capacity("z", "1Gbps"), "link"),
        (lambda now: now.repair(0), "tolerance"),
        (lambda now: now.repair(float("nan")), "tolerance"),
        (lambda now: now.solve("magic"), "solver"),
        (lambda now: now.rate_bps("x"), "id"),
    ],
)
def test_what_is_refused_changes_nothing(change: Any, place: str) -> None:
    now = sb.Incremental(
        three_links(), flows=[{"id": "green", "path": ["a", "c"]}, {"id": "brown", "path": ["b", "c"]}]
    )
    with pytest.raises(sb.InputError) as caught:
        change(now)
    assert caught.value.place == place
    assert caught.value.hint
    assert rates(now.solve()) == {"green": 12e9, "brown": 18e9}


def test_utilities_and_pools_cannot_be_repaired() -> None:
    for policy, path in (("max-min", {"paths": [["a"], ["b"]]}), ({"kind": "alpha-fair", "alpha": 1}, {"path": ["a"]})):
        now = sb.Incremental(three_links(), flows=[{"id": "f", **path}], policy=policy)
        for refused in (now.repair, now.answer, lambda now=now: now.rate_bps("f")):
            with pytest.raises(sb.InputError, match="single paths") as caught:
                refused()
            assert caught.value.place == "policy"
        assert now.solve().status == "optimal"


def test_answers_stay_as_they_were() -> None:
    now = sb.Incremental(three_links(), flows=[{"id": "green", "path": ["a", "c"]}])
    before = now.solve()
    now.add({"id": "brown", "path": ["a"]})
    now.set_capacity("a", "1Gbps")
    assert rates(now.solve()) == {"green": 0.5e9, "brown": 0.5e9}
    assert rates(before) == {"green": 12e9}
    assert pa.table(before.links)["capacity_bps"].to_pylist() == [12e9, 20e9, 30e9]
