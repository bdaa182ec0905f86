"""Random streams, published sizes, routes, and the options by which programs repeat what simulations draw."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
import subak
from subak.errors import InputError

FABRIC = {"kind": "leaf-spine", "leaves": 3, "hosts_per_leaf": 4, "spines": 2}


def test_a_stream_is_the_same_for_a_seed_and_a_name() -> None:
    first = [subak.Stream(7, "a").unit() for _ in range(2)]
    assert first[0] == first[1] != subak.Stream(7, "b").unit() != subak.Stream(8, "a").unit()
    # These numbers hold on every machine and under every version.
    stream = subak.Stream(1, "setup")
    assert [stream.below(100) for _ in range(5)] == [73, 49, 84, 88, 41]


def test_the_draws_of_a_stream_have_their_distributions() -> None:
    stream = subak.Stream(3, "distributions")
    units = [stream.unit() for _ in range(4000)]
    assert min(units) >= 0
    assert max(units) < 1
    assert mean(units) == pytest.approx(0.5, abs=0.03)
    assert mean(stream.exponential(2.0) for _ in range(4000)) == pytest.approx(2, rel=0.1)
    assert {stream.below(3) for _ in range(100)} == {0, 1, 2}
    items = list(range(50))
    stream.shuffle(items)
    assert items != sorted(items) == list(range(50))
    with pytest.raises(InputError):
        stream.below(0)


def test_sizes_are_those_that_a_workload_draws() -> None:
    sizes = subak.Sizes("facebook-web")
    stream = subak.Stream(1, "sizes")
    drawn = sorted(sizes.draw(stream) for _ in range(20_000))
    assert drawn[10_000] == pytest.approx(sizes.quantile(0.5), rel=0.1)
    assert mean(drawn) == pytest.approx(sizes.mean_bytes, rel=0.2)
    assert "web-search" in subak.Sizes.names()
    with pytest.raises(InputError, match="web-search"):
        subak.Sizes("nothing")


def test_routes_are_shortest_paths_and_spread_by_key() -> None:
    network = subak.Network.generate(**FABRIC)
    router = subak.Router(network, seed=1)
    links = network.links.to_arrow().to_pylist()
    paths = {tuple(router.path("h0", "h11", key)) for key in range(30)}
    assert len(paths) == 2
    assert all(len(path) == 4 for path in paths)
    for path in paths:
        assert links[path[0]]["from"] == "h0"
        assert links[path[-1]]["to"] == "h11"
        assert all(links[a]["to"] == links[b]["from"] for a, b in pairwise(path))
    there, back = (subak.Router(network, symmetric=True).path(*ends, 5) for ends in (("h0", "h11"), ("h11", "h0")))
    assert [links[a]["from"] for a in there] == [links[b]["to"] for b in reversed(back)]
    with pytest.raises(InputError, match="no node"):
        router.path("h0", "nowhere")


def test_a_looser_tolerance_and_known_prices_save_iterations() -> None:
    network = subak.Network.generate(**FABRIC)
    router, stream = subak.Router(network), subak.Stream(1, "flows")
    hosts = network.hosts
    paths = [router.path(*(hosts[k] for k in _two(stream, len(hosts))), f) for f in range(200)]
    flows = subak.Rows(np.cumsum([0, *map(len, paths)]), np.array([link for path in paths for link in path]))
    policy = {"kind": "alpha-fair", "alpha": 1}
    exact = subak.solve(network, flows=flows, policy=policy)
    loose = subak.solve(network, flows=flows, policy=policy, tolerance=1e-3)
    prices = exact.links.to_numpy()["price"]
    warm = subak.solve(network, flows=flows, policy=policy, prices=prices)
    assert loose.iterations < exact.iterations
    assert warm.iterations < exact.iterations
    assert warm.off_by(exact) < 1e-6
    assert loose.off_by(exact) < 0.05
    for keys in ({"tolerance": 1}, {"prices": [1.0]}, {"tolerance": 1e-6, "solver": "ned"}):
        with pytest.raises(InputError):
            subak.solve(network, flows=flows, policy=policy, **keys)


def _two(stream: subak.Stream, n: int) -> tuple[int, int]:
    src = stream.below(n)
    return src, (src + 1 + stream.below(n - 1)) % n


@pytest.mark.parametrize("alpha", [0.5, 1, 2])
def test_xwi_comes_to_the_optimum_step_by_step(alpha: float) -> None:
    case = {
        "network": {"links": [{"id": "a", "capacity": "10Gbps"}, {"id": "b", "capacity": "4Gbps"}]},
        "flows": [{"id": "f", "path": ["a", "b"]}, {"id": "g", "path": ["a"]}, {"id": "h", "path": ["b"], "weight": 2}],
        "policy": {"kind": "alpha-fair", "alpha": alpha},
    }
    want = [flow["rate_bps"] for flow in subak.solve(case)]
    xwi = subak.Xwi(case)
    assert len(xwi) == 3
    assert xwi.iterations == 0
    xwi.step(500)
    np.testing.assert_allclose(xwi.rates, want, rtol=1e-6)
    assert xwi.iterations == 500
    assert (xwi.prices > 0).all()
    once = subak.Xwi(case)
    for _ in range(500):
        once.step()
    assert (once.rates == xwi.rates).all()
    assert (once.prices == xwi.prices).all()
    slow = subak.Xwi(case, beta=0.9, diminish_after=10)
    slow.step(50)
    assert (slow.rates != xwi.rates).any()
    for keys in ({"beta": 1}, {"eta": -1}, {"diminish_after": 0}):
        with pytest.raises(InputError):
            subak.Xwi(case, **keys)


def test_ned_in_double_precision_within_bounds() -> None:
    network = subak.Network.from_links([{"id": "a", "capacity": "10Gbps"}, {"id": "b", "capacity": "40Gbps"}])
    ned = subak.Ned(network, precision="single", normalizer="none", most_lines=100)
    numbers = ned.add([["a", "b"], ["b"], ["b"]])
    assert (ned.rates > 10e9).any(), "prices of 1 are too low, and the line does not bound these rates"
    assert (subak.Ned(network).rates <= 10e9).all()
    ned.step(300)
    rates = ned.rates_of(numbers)
    np.testing.assert_allclose(rates, ned.rates[numbers], rtol=1e-6)
    assert rates.dtype == np.float64
    once, twice = (ned.rates_of(numbers[::-1], normalizer="flow", passes=passes) for passes in (1, 2))
    assert (twice >= once * (1 - 1e-6)).all()
    with pytest.raises(InputError):
        ned.rates_of(numbers, passes=2)
    with pytest.raises(InputError):
        ned.rates_of([99])
    with pytest.raises(InputError):
        subak.Ned(network, method="gradient", bounded=True)
    with pytest.raises(InputError):
        subak.Ned(network, most_lines=0.5)
    bounded = subak.Ned(network, bounded=True)
    bounded.add([["a"]])
    before = bounded.prices.copy()
    bounded.step()
    assert (bounded.prices >= 0.25 * before).all()


def test_samples_are_what_steps_see() -> None:
    network = {"kind": "star", "hosts": 4, "rate": "10Gbps"}
    by_step, at_once = (subak.Simulation(network, "dctcp", seed=2) for _ in range(2))
    for simulation in (by_step, at_once):
        simulation.add_all([{"src": f"h{k}", "dst": "h3"} for k in range(3)])
    times = [10_000 * k for k in range(1, 40)]
    want: list[tuple[int, int, Any]] = []
    for time in times:
        by_step.run(time)
        want += [(time, row["flow"], row["assigned_bps"]) for row in by_step.flows]
    rows = [tuple(row.values()) for row in at_once.sample(times)]
    assert rows == want
    assert at_once.now_ns == times[-1]
    peak = max(row["peak_queued_bytes"] for row in at_once.links)
    at_once.restart_peaks()
    at_once.run(times[-1])
    assert peak > 0
    assert max(row["peak_queued_bytes"] for row in at_once.links) < peak
    with pytest.raises(InputError, match="before the present"):
        at_once.sample([1])


def test_infinite_numbers_and_paths_of_files_are_no_times(tmp_path: Path) -> None:
    simulation = subak.Simulation({"kind": "star", "hosts": 2}, "dctcp")
    for time in (math.inf, -1, str(tmp_path)):
        with pytest.raises(InputError):
            simulation.sample([time])  # type: ignore[list-item]


def _served(ned: subak.Ned, **keys: Any) -> dict[str, Any]:
    network = subak.Network.generate(**FABRIC)
    flows = subak.Router(network, seed=1).poisson(subak.Stream(1, "mine"), subak.Sizes("facebook-web"), 1e-5, 2e-3)
    table = flows.to_arrow()
    path = table["path"].combine_chunks()
    rows = subak.Rows(path.offsets.to_numpy(), path.values.to_numpy())
    keys = {"interval_s": 1e-5, "intervals": 200} | keys
    return ned.serve(rows, table["start_s"], table["size_bytes"], **keys).to_numpy()


def test_flows_of_a_poisson_process() -> None:
    network = subak.Network.generate(**FABRIC)
    router, sizes = subak.Router(network, seed=1), subak.Sizes("facebook-web")
    rows = router.poisson(subak.Stream(1, "mine"), sizes, 1e-5, 2e-2).to_arrow().to_pylist()
    starts = [row["start_s"] for row in rows]
    assert starts == sorted(starts)
    assert starts[-1] < 2e-2
    assert len(rows) == pytest.approx(2000, rel=0.1)
    # The same draws, one by one.
    stream, again = subak.Stream(1, "mine"), subak.Router(network, seed=1)
    next_s = stream.exponential(1e-5)
    for key, row in enumerate(rows[:50]):
        src, dst = (network.hosts[k] for k in _two(stream, len(network.hosts)))
        assert (row["start_s"], row["path"]) == (next_s, again.path(src, dst, key))
        assert row["size_bytes"] == sizes.draw(stream)
        next_s += stream.exponential(1e-5)
    for gap, until in ((0, 1), (1, math.inf), (1e-12, 1e3)):
        with pytest.raises(InputError):
            router.poisson(stream, sizes, gap, until)


@pytest.mark.parametrize(("precision", "within"), [("double", 1e-12), ("approximate", 1e-5)])
def test_ned_serves_flows_that_start_and_end(precision: Any, within: float) -> None:
    network = subak.Network.generate(**FABRIC)
    ned = subak.Ned(network, precision=precision)
    rows = _served(ned, compare_from=100, compare_every=10)
    looks = ~np.isnan(rows["optimum_bps"])
    assert looks.sum() == 10
    assert looks[100]
    assert not looks[:100].any()
    assert rows["flows"].max() > 3
    assert len(ned) == 0
    assert (rows["overload"] <= 1e-6).all()
    shares = rows["rate_bps"][looks] / rows["optimum_bps"][looks]
    assert shares.mean() > 0.8
    assert (rows["uniform_bps"][looks] <= rows["rate_bps"][looks] * (1 + 1e-6)).all()
    # Step by step, with the calls that programs have.
    other = subak.Ned(network, precision=precision)
    table = (
        subak.Router(network, seed=1)
        .poisson(subak.Stream(1, "mine"), subak.Sizes("facebook-web"), 1e-5, 2e-3)
        .to_arrow()
        .to_pylist()
    )
    active: dict[int, float] = {}
    for interval in range(200):
        while table and table[0]["start_s"] < interval * 1e-5:
            flow = table.pop(0)
            active[int(other.add([flow["path"]])[0])] = 8.0 * flow["size_bytes"]
        other.step()
        rates = other.rates_of(list(active))
        assert len(active) == rows["flows"][interval]
        np.testing.assert_allclose(rates.sum(), rows["rate_bps"][interval], rtol=within)
        for number, rate in zip(list(active), rates, strict=True):
            active[number] -= rate * 1e-5
            if active[number] <= 0:
                del active[number]
                other.remove(number)
    np.testing.assert_allclose(other.prices, ned.prices, rtol=within, atol=1e-20)


def test_what_cannot_be_served_is_refused() -> None:
    network = subak.Network.generate(**FABRIC)
    busy = subak.Ned(network)
    busy.add([["h0->leaf0"]])
    for ned, keys in (
        (busy, {}),
        (subak.Ned(network, policy="srpt"), {}),
        (subak.Ned(network), {"interval_s": 0}),
        (subak.Ned(network), {"passes": 0}),
        (subak.Ned(network), {"intervals": -1}),
    ):
        with pytest.raises(InputError):
            _served(ned, **keys)
    ned = subak.Ned(network)
    for starts, sizes in (([1.0, 0.5], [1, 1]), ([0.0], [1, 1]), ([0.0, 1.0], [1.5, 1])):
        with pytest.raises(InputError):
            ned.serve([["h0->leaf0"], ["h0->leaf0"]], starts, sizes, interval_s=1, intervals=2)
    assert len(ned) == 0


def test_errors_are_those_after_each_step() -> None:
    network = subak.Network.generate(**FABRIC)
    paths = [["h0->leaf0", "leaf0->h1"], ["h2->leaf0", "leaf0->h1"]]
    fair = {"kind": "alpha-fair", "alpha": 1}
    want = [flow["rate_bps"] for flow in subak.solve(network, flows=[{"path": p} for p in paths], policy=fair)]
    one, many = subak.Ned(network), subak.Ned(network)
    numbers = one.add(paths)
    assert (many.add(paths) == numbers).all()
    single = [float(one.errors(want, numbers)[0]) for _ in range(200)]
    errors = many.errors(want, numbers, 200)
    assert errors.tolist() == single
    assert errors[-1] < 1e-6
    assert many.iterations == 200
    with pytest.raises(InputError):
        many.errors([1.0], numbers)


def test_removed_numbers_are_used_again_in_their_order() -> None:
    network = subak.Network.from_links([{"id": "a", "capacity": "10Gbps"}])
    ned = subak.Ned(network)
    first = ned.add([["a"]] * 3)
    ned.remove(first[[2, 0]])
    assert ned.add([["a"]] * 2).tolist() == [first[0], first[2]]


def test_times_of_ned_on_this_machine() -> None:
    network = subak.Network.generate("leaf-spine", leaves=2, hosts_per_leaf=4, spines=2)
    router, stream = subak.Router(network), subak.Stream(1, "paths")
    paths = [router.path(*(network.hosts[k] for k in _two(stream, 8)), f) for f in range(100)]
    times = subak.ned_times(network, paths, seconds=0.002, compare=True)
    assert times.pop("same_bits") is True
    assert set(times) == {f"{name}_us" for name in ("single", "double", "normalized", "straight", "blocks", "threads")}
    assert all(0 < us < 1e5 for us in times.values())
    for keys in ({"seconds": 0}, {"threads": 0}, {"groups": 0}):
        with pytest.raises(InputError):
            subak.ned_times(network, paths, **keys)
    with pytest.raises(InputError):
        subak.ned_times(network, [[99]], seconds=0.001)


def test_the_allocator_serves_flows_of_its_endpoints() -> None:
    network = subak.Network.generate(**FABRIC)
    src, dst = [0, 1, 2], [8, 8, 9]
    sizes = [10**9, 10**9, 20_000]
    rows = subak.allocate(network, src, dst, [0.0, 0.0, 1e-3], sizes, ticks=400, compare_every=50).to_numpy()
    assert rows["flows"].max() == 3
    assert rows["flows"][-1] == 2, "the short one has ended"
    looks = ~np.isnan(rows["optimum_bps"])
    assert looks.sum() == 7, "there is no flow at first"
    np.testing.assert_allclose(rows["rate_bps"][-50:][looks[-50:]], rows["optimum_bps"][-50:][looks[-50:]], rtol=0.02)
    assert rows["rates"].sum() >= 3
    assert (rows["bytes"] >= 84 * rows["datagrams"]).all()
    bundled = subak.allocate(network, src, dst, [0.0, 0.0, 1e-3], sizes, ticks=400, group=4).to_numpy()
    assert bundled["bytes"].sum() <= rows["bytes"].sum()
    for keys in ({"src": [0, 1, 99]}, {"dst": [0, 1, 2]}, {"start_s": [1.0, 0.0, 0.0]}, {"group": 0}, {"ticks": -1}):
        given = {"src": src, "dst": dst, "start_s": [0.0] * 3, "size_bytes": sizes, "ticks": 1} | keys
        with pytest.raises(InputError):
            subak.allocate(network, **given)


def test_soze_as_a_fluid_comes_to_weighted_max_min() -> None:
    links = [{"id": name, "capacity": "100Gbps"} for name in ("up0", "up1", "up2", "core")]
    network = subak.Network.from_links(links)
    paths, weights = [[f"up{k}", "core"] for k in range(3)], [1.0, 2.0, 4.0]
    fluid = subak.SozeFluid(network, paths, 10_000, weights)
    assert (len(fluid), fluid.iterations, fluid.step_ns) == (3, 0, 2500)
    fluid.step(4000)
    exact = [98e9 * weight / 7 for weight in weights]
    np.testing.assert_allclose(fluid.rates, exact, rtol=0.01)
    assert fluid.near(exact, 0.01) == 1
    assert fluid.near(exact, 1e-15) < 1
    assert fluid.peak_ns >= 0
    rows = subak.Rows([0, 2, 4, 6], [0, 3, 1, 3, 2, 3], weights)
    again = subak.SozeFluid(network, rows, [10_000] * 3)
    for _ in range(4000):
        again.step()
    assert (again.rates == fluid.rates).all()
    for given in (
        ([[]], 10_000),
        ([["up0"]], 0),
        ([["up0"]], [1.5]),
        ([["up0"]], [10, 10]),
        ([["up0"], ["up1"]], [10]),
    ):
        with pytest.raises(InputError):
            subak.SozeFluid(network, *given)
    with pytest.raises(InputError):
        subak.SozeFluid(network, [["up0"]], 10, weight=-1)
    with pytest.raises(InputError):
        fluid.near([1.0], 0.1)
