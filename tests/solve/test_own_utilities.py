"""Utilities of the user's own: points, policies of tenants, and Python functions sampled into points."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import subak

LINK = {"links": [{"id": "l", "capacity": "6Gbps"}]}
UTILITY = {"kind": "utility"}


def solved(*utilities: Any, capacity: str = "6Gbps", **more: Any) -> subak.Answer:
    flows = [{"path": ["l"], "utility": utility, **more} for utility in utilities]
    return subak.solve({"network": {"links": [{"id": "l", "capacity": capacity}]}, "flows": flows, "policy": UTILITY})


def rates(answer: subak.Answer) -> np.ndarray:
    return answer.to_numpy()["rate_bps"]


def test_points_say_where_two_tenants_are_worth_the_same() -> None:
    answer = solved([["1Gbps", 1], ["2Gbps", 0.5]], [["1Gbps", 1], ["2Gbps", 0.25]])
    assert answer.status == "optimal"
    np.testing.assert_allclose(rates(answer), [4e9, 2e9], rtol=1e-6)


def test_a_function_is_sampled_and_its_optimum_found() -> None:
    # U' = exp(-x/s): equal where x/s is equal.
    sampled = [subak.utility(lambda x, s=s: math.exp(-x / s), least=1e6, most=60e9, points=2001) for s in (1e9, 2e9)]
    np.testing.assert_allclose(rates(solved(*sampled)), [2e9, 4e9], rtol=1e-4)


def test_tenants_have_policies_of_their_own() -> None:
    of = {"kind": "fct", "epsilon": 0.5}
    flows = [
        {"path": ["l"], "utility": of, "size": 4000},
        {"path": ["l"], "utility": of, "size": 8000},
        {"path": ["l"], "utility": {"kind": "alpha-fair", "alpha": 0.5}},
    ]
    answer = subak.solve({"network": LINK, "flows": flows, "policy": UTILITY})
    # U' = x^-0.5 / size, and x^-0.5 for the last: x is in proportion to size^-2.
    parts = np.array([4000.0**-2, 8000.0**-2, 1])
    np.testing.assert_allclose(rates(answer), 6e9 * parts / parts.sum(), rtol=1e-5)
    assert answer.warnings == []


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ({}, 'flows[0].utility: policy "utility" needs the flow\'s utility'),
        ({"utility": [["1Gbps", 1]]}, "flows[0].utility: 1 of at least two points"),
        ({"utility": [["1Gbps", 1], ["2Gbps", 2]]}, "flows[0].utility[1]: the marginal utility goes from 1 to 2"),
        ({"utility": [["1Gbps", 1], ["2Gbps"]]}, "flows[0].utility[1]:"),
        ({"utility": [["1Gbps", 1], ["2Gbps", "x"]]}, "flows[0].utility[1][1]"),
        ({"utility": {"kind": "max-min"}}, 'flows[0].utility.kind: "max-min" has no utility'),
        ({"utility": {"kind": "alpha-fair", "alpha": 0}}, "flows[0].utility.alpha: alpha is 0"),
        ({"utility": {"kind": "fct"}}, 'flows[0].size: policy "fct" needs the flow\'s size'),
        ({"utility": 3}, "flows[0].utility:"),
    ],
)
def test_what_is_no_utility_is_refused(flow: dict[str, Any], message: str) -> None:
    with pytest.raises(subak.InputError) as told:
        subak.solve({"network": LINK, "flows": [{"path": ["l"], **flow}], "policy": UTILITY})
    assert message in str(told.value)


def test_another_policy_says_that_it_does_not_use_a_utility() -> None:
    case = {"network": LINK, "flows": [{"path": ["l"], "utility": [[1e6, 1], [1e9, 0.1]]}]}
    said = '1 of 1 flows have a utility, which the policy "max-min" does not use'
    assert subak.solve(case).warnings == [said]
    unused = solved([[1e6, 1], [1e9, 0.1]], size=1000).warnings
    assert unused == ['1 of 1 flows have a size, which the policy "utility" does not use']


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"marginal": lambda x: x}, "marginal"),
        ({"marginal": lambda _: math.nan}, "marginal"),
        ({"marginal": lambda x: 1 / x, "least": 0}, "least"),
        ({"marginal": lambda x: 1 / x, "least": "1Gbps"}, "least"),
        ({"marginal": lambda x: 1 / x, "most": 1e5}, "most"),
        ({"marginal": lambda x: 1 / x, "points": 1}, "points"),
    ],
)
def test_what_is_no_concave_function_is_refused(given: dict[str, Any], place: str) -> None:
    marginal = given.pop("marginal")
    with pytest.raises(subak.InputError) as told:
        subak.utility(marginal, **given)
    assert told.value.place == place


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ([["1Gbps", 1], ["2Gbps", 0.5]], {"kind": "alpha-fair", "alpha": 1}, "utilities through points"),
        ({"kind": "alpha-fair", "alpha": 1}, {"kind": "alpha-fair", "alpha": 2}, "utilities of several alphas"),
    ],
)
@pytest.mark.parametrize("solver", ["ned", "gradient", "newton"])
def test_iterations_with_one_alpha_refuse_others(first: Any, second: Any, what: str, solver: str) -> None:
    flows = [{"path": ["l"], "utility": utility} for utility in (first, second)]
    with pytest.raises(subak.InputError) as told:
        subak.solve({"network": LINK, "flows": flows, "policy": UTILITY}, solver=solver)
    assert what in str(told.value)


def test_iterations_serve_tenants_of_one_alpha() -> None:
    flows = [{"path": ["l"], "utility": {"kind": "alpha-fair", "alpha": 2}, "weight": weight} for weight in (1, 2)]
    answer = subak.solve({"network": LINK, "flows": flows, "policy": UTILITY}, solver="ned")
    np.testing.assert_allclose(rates(answer), [2e9, 4e9], rtol=1e-3)


def spec(workload: Any, *schemes: dict[str, Any]) -> dict[str, Any]:
    return {
        "network": {"kind": "star", "hosts": 3, "rate": "10Gbps"},
        "workload": workload,
        "policy": UTILITY,
        "scheme": list(schemes),
        "run": {"duration": "20ms"},
        "measure": {"rates": "1ms"},
    }


def run(tmp_path: Path, given: dict[str, Any]) -> Any:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(given))
    results = subak.run(path, tmp_path / "out", progress=False, jobs=1)
    assert not results.failed
    return results


def test_schemes_come_near_the_utilities_of_workloads_and_flows(tmp_path: Path) -> None:
    flows = [
        {"id": "a", "src": "h0", "dst": "h2"},
        {"id": "b", "src": "h1", "dst": "h2", "utility": [["1Gbps", 1], ["2Gbps", 0.25]]},
    ]
    workload = {"kind": "steps", "flows": flows, "utility": [["1Gbps", 1], ["2Gbps", 0.5]]}
    results = run(tmp_path, spec(workload, {"name": "ideal"}, {"name": "numfabric"}))
    rates = results.table("rate").to_pandas()
    last = rates[rates["time_ns"] > 15_000_000].groupby(["scheme", "flow_id"])["rate_bps"].mean()
    # On the share s of 10 Gb/s that data has, x + sqrt(x) = 10 s in Gb/s.
    for scheme in ("ideal", "numfabric"):
        a, b = last[scheme].to_numpy() / 1e9
        assert a / b**2 == pytest.approx(1, rel=0.05), scheme
        assert 9 < a + b < 10.01


def test_a_scheme_without_utilities_of_ones_own_is_refused(tmp_path: Path) -> None:
    workload = {"kind": "permutation", "utility": [["1Gbps", 1], ["2Gbps", 0.5]]}
    (tmp_path / "spec.json").write_text(json.dumps(spec(workload, {"name": "dgd"})))
    with pytest.raises(subak.InputError) as told:
        subak.run(tmp_path / "spec.json", tmp_path / "out", progress=False)
    assert 'scheme "dgd" serves' in str(told.value)
    assert "numfabric" in str(told.value)


def test_a_workload_without_utility_is_refused_and_an_unused_one_warned_of(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(spec({"kind": "permutation"}, {"name": "ideal"})))
    with pytest.raises(subak.InputError, match="give the workload a utility"):
        subak.run(tmp_path / "spec.json", tmp_path / "out", progress=False)
    given = spec({"kind": "permutation", "utility": {"kind": "alpha-fair", "alpha": 2}}, {"name": "dctcp"})
    del given["policy"]
    results = run(tmp_path, given)
    said = [warning["text"] for warning in results.warnings]
    assert any("1 of the workloads have a utility" in text for text in said), said
