"""NED from Python and in ``subak solve``: flows start and end by number, arrays are not copied, rates are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import subak as sb
from conftest import ROOT, Subak

LINKS = [{"id": "a", "capacity": 12e9}, {"id": "b", "capacity": 20e9}, {"id": "c", "capacity": 30e9}]
PATHS = [["a", "c"], ["b", "c"], ["c"]]


def three_links() -> sb.Network:
    return sb.Network.from_links(LINKS)


def exact(network: sb.Network, paths: list[list[str]], **keys: Any) -> list[float]:
    weights = keys.pop("weight", [1] * len(paths))
    flows = [{"id": str(i), "path": p, "weight": w} for i, (p, w) in enumerate(zip(paths, weights, strict=True))]
    answer = sb.solve(network, flows=flows, policy={"kind": "alpha-fair", "alpha": 1, **keys})
    rates: list[float] = pa.table(answer.flows)["rate_bps"].to_pylist()
    return rates


def test_algorithm_1_by_hand() -> None:
    ned = sb.Ned(sb.Network.from_links([{"id": "l", "capacity": "10Gbps"}]), gamma=0.4, normalizer="none")
    assert ned.add([["l"], ["l"]]).tolist() == [0, 1]
    assert ned.rates == pytest.approx([10e9, 10e9], rel=1e-12), "at price 1 each has the line, before any step"
    ned.step()
    assert ned.prices * 10e9 == pytest.approx([1.2])
    ned.step()
    assert ned.rates == pytest.approx([10e9 / 1.2] * 2)
    assert ned.loads == pytest.approx([20e9 / 1.2])
    ned.normalizer = "uniform"
    assert ned.rates == pytest.approx([5e9, 5e9])


@pytest.mark.parametrize("method", ["ned", "accelerated", "gradient", "fgm", "newton-like", "newton"])
@pytest.mark.parametrize("precision", ["double", "single", "approximate"])
def test_every_method_finds_the_optimum(method: Any, precision: Any) -> None:
    ned = sb.Ned(three_links(), method=method, precision=precision)
    ned.add(PATHS, [1, 2, 3])
    ned.step(5000)
    assert ned.rates.dtype == (np.float64 if precision == "double" else np.float32)
    assert ned.rates == pytest.approx(exact(three_links(), PATHS, weight=[1, 2, 3]), rel=2e-3)
    assert ned.iterations == 5000


@pytest.mark.parametrize("precision", ["double", "single"])
def test_threads_change_no_bit_while_flows_come_and_go(precision: Any) -> None:
    hosts, rng = 1024, np.random.default_rng(5)
    network = sb.Network.from_links([{"id": f"{k}", "capacity": "10Gbps"} for k in range(2 * hosts)])
    one, several = (sb.Ned(network, precision=precision, threads=threads) for threads in (1, 3))
    numbers = np.zeros(0, dtype=np.uint32)
    for _ in range(6):
        count = int(rng.integers(1000, 6000))
        ends = np.stack([rng.integers(0, hosts, count), rng.integers(hosts, 2 * hosts, count)], axis=1)
        rows = sb.Rows(np.arange(0, 2 * count + 1, 2), ends.ravel(), weight=rng.uniform(1, 16, count))
        added = one.add(rows)
        assert several.add(rows).tolist() == added.tolist()
        numbers = rng.permutation(np.concatenate([numbers, added]))
        gone, numbers = numbers[: len(numbers) // 3], numbers[len(numbers) // 3 :]
        for ned in (one, several):
            ned.remove(gone)
            ned.step(5)
        assert several.rates.tobytes() == one.rates.tobytes()
        assert several.prices.tobytes() == one.prices.tobytes()


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_a_wrong_number_of_threads_is_refused(threads: int) -> None:
    with pytest.raises(sb.InputError, match="threads") as refused:
        sb.Ned(three_links(), threads=threads)
    assert refused.value.place == "threads"


def test_flows_come_and_go() -> None:
    ned = sb.Ned(three_links())
    assert (ned.rates.shape, len(ned)) == ((0,), 0)
    first = ned.add(sb.Rows([0, 2, 4], [0, 2, 1, 2], weight=[1, 2]))
    ned.step(500)
    before = ned.rates
    ned.remove(first[0])
    assert (len(ned), 0 in ned, 1 in ned) == (1, False, True)
    assert ned.rates[0] == 0
    ned.step(500)
    assert ned.rates[1] == pytest.approx(20e9, rel=1e-6)
    assert before[0] > 1e9, "an array that is kept stays as it is"
    assert ned.add([["a"]]).tolist() == [0], "a number that is free is given anew"
    ned.set_weight(1, 5)
    ned.set_capacity("b", 0)
    assert ned.rates[1] == 0, "a link that failed carries nothing from then on"
    assert np.isinf(ned.prices[1])
    ned.set_capacity("b", "20Gbps")
    ned.step(500)
    assert ned.rates == pytest.approx([12e9, 20e9], rel=1e-6)


def test_arrays_are_not_copied_and_cannot_be_written() -> None:
    ned = sb.Ned(three_links())
    ned.add(PATHS)
    for array in (ned.rates, ned.prices, ned.loads):
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_other_utilities_demands_and_prices() -> None:
    network = sb.Network.from_links([{"id": "l", "capacity": 10e9}])
    ned = sb.Ned(network, policy={"kind": "alpha-fair", "alpha": 2})
    ned.add([["l"]] * 2, weight=[1, 3], demand_bps=[1e9, np.inf])
    ned.step(2000)
    assert ned.rates == pytest.approx([1e9, 9e9], rel=1e-3)
    flows = [{"id": "s", "path": ["l"], "size": 1000}, {"id": "b", "path": ["l"], "size": 2000}]
    answer = sb.solve(network, flows=flows, policy={"kind": "fct", "epsilon": 0.5})
    ned = sb.Ned(network, policy={"kind": "fct", "epsilon": 0.5})
    ned.add([["l"]] * 2, size_bytes=[1000, 2000])
    ned.step(3000)
    wanted = pa.table(answer.flows)["rate_bps"].to_pylist()
    assert ned.rates == pytest.approx(wanted, rel=1e-3)
    ned.prices = ned.prices * 2
    assert ned.rates.sum() == pytest.approx(10e9, rel=1e-6), "F-NORM keeps to the capacity; it does not fill"


@pytest.mark.parametrize(
    ("does", "place"),
    [
        (lambda ned: ned.add([["d"]]), "links"),
        (lambda ned: ned.add([["a", 0]]), "paths"),
        (lambda ned: ned.add([[0, 1], [7]]), "flows[1].path"),
        (lambda ned: ned.add([[]]), "flows[0].path"),
        (lambda ned: ned.add([["a"]], weight=-1), "flows[0].weight"),
        (lambda ned: ned.add([["a"]], weight=[1, 2]), "weight"),
        (lambda ned: ned.add(sb.Rows([0, 3], [0]), None), "link_ptr"),
        (lambda ned: ned.add(sb.Rows([0, 1], [0]), 2.0), "weight"),
        (lambda ned: ned.remove([0, 0]), "numbers"),
        (lambda ned: ned.remove(9), "numbers"),
        (lambda ned: ned.set_weight(9, 1), "flow"),
        (lambda ned: ned.set_capacity("z", 1), "link"),
        (lambda ned: ned.set_capacity("a", "fast"), "capacity"),
        (lambda ned: ned.step(-1), "n"),
        (lambda ned: setattr(ned, "prices", [1.0]), "prices"),
        (lambda ned: (setattr(ned, "normalizer", "f-norm"), ned.rates), "normalizer"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(does: Any, place: str) -> None:
    ned = sb.Ned(three_links())
    ned.add([["a"]])
    with pytest.raises(sb.InputError) as caught:
        does(ned)
    assert caught.value.place == place
    assert len(ned) == 1


@pytest.mark.parametrize("of_rows", [False, True])
def test_a_path_whose_links_do_not_join_is_refused(of_rows: bool) -> None:
    network = sb.Network.generate("leaf-spine", leaves=2, spines=1, hosts_per_leaf=1)
    ids = pa.table(network.links)["id"].to_pylist()
    sound, broken = ["h0->leaf0", "leaf0->spine0", "spine0->leaf1"], ["h0->leaf0", "spine0->leaf1"]
    ned = sb.Ned(network)
    ned.add([sound])
    numbers = [ids.index(link) for link in [*sound, *broken]]
    rows = sb.Rows([0, 3, 5], numbers)
    with pytest.raises(sb.InputError, match='link "spine0->leaf1" leaves "spine0", but "h0->leaf0" leads to') as caught:
        ned.add(rows if of_rows else [sound, broken])
    assert caught.value.place == "flows[1].path[1]"
    assert len(ned) == 1
    with pytest.raises(sb.InputError, match='link "spine0->leaf1" leaves "spine0"'):
        sb.solve(network, flows=rows)


def test_what_it_cannot_do_is_refused() -> None:
    for keys, place in [
        ({"policy": "max-min"}, "policy.kind"),
        ({"policy": {"kind": "alpha-fair", "alpha": 0}}, "alpha"),
        ({"method": "simplex"}, "method"),
        ({"gamma": -1.0}, "gamma"),
        ({"method": "fgm", "gamma": 1.0}, "gamma"),
        ({"precision": "half"}, "precision"),
    ]:
        with pytest.raises(sb.InputError) as caught:
            sb.Ned(three_links(), **keys)  # type: ignore[arg-type]
        assert caught.value.place == place
    with pytest.raises(sb.InputError) as caught:
        sb.Ned(three_links(), policy={"kind": "fct", "epsilon": 0.125}).add([["a"]])
    assert caught.value.place == "flows[0].size"


def proportional(tmp_path: Path) -> Path:
    case = tmp_path / "case.toml"
    text = (ROOT / "examples/cases/chain.toml").read_text().replace('"max-min"', '"alpha-fair"\nalpha = 1')
    case.write_text(text)
    return case


def test_solve_beside_the_exact_answer(subak: Subak, tmp_path: Path) -> None:
    case = proportional(tmp_path)
    ended = subak("solve", case, "--solver", "ned", "--iterations", "2000")
    assert ended.code == 0, ended
    assert "2000 iterations" in ended.out
    assert "Exact" in ended.out
    answer = subak("solve", case, "--solver", "ned", "--iterations", "2000", "--json").json
    assert answer["solver"] == "ned"
    assert answer["off_by"] < 1e-3
    rates = [[flow["rate"] for flow in one["flows"]] for one in (answer, answer["exact"])]
    assert rates[0] == pytest.approx(rates[1], rel=1e-3)
    far = subak("solve", case, "--solver", "gradient", "--iterations", "1", "--json")
    assert (far.code, far.json["status"]) == (1, "inaccurate"), "it ran, and has not settled"


def test_solve_refuses_what_ned_cannot_do(subak: Subak) -> None:
    for arguments, said in [
        (("examples/cases/chain.toml", "--solver", "ned"), "policy.kind"),
        (("examples/cases/chain.toml", "--solver", "nde"), "ned"),
        (("examples/cases/chain.toml", "--iterations", "5"), "iterations"),
    ]:
        ended = subak("solve", ROOT / arguments[0], *arguments[1:])
        assert ended.code == 2
        assert said in ended.err


@pytest.mark.parametrize("normalizer", ["none", "uniform", "flow"])
def test_normalized_rates_are_at_most_the_demands(normalizer: str) -> None:
    network = sb.Network.from_links([{"id": "l", "capacity": 10e9}, {"id": "m", "capacity": 10e9}])
    ned = sb.Ned(network, normalizer=normalizer)
    ned.add([["l"], ["l"], ["m"]], demand_bps=[1e9, 2e9, np.inf])
    ned.step(500)
    assert ned.rates == pytest.approx([1e9, 2e9, 10e9], rel=1e-3)
