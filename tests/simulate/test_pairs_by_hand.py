"""Cases of a reader who had not seen the code: rates of pairs beside exact rates that were worked out by hand."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import subak

OTHERS = (1 / (1 + 2 * 2**-0.2)) * 10
"""Rate of the two short flows of the parking lot at alpha 5, Gb/s; the long one of weight 2 has the rest of a link."""


def chain(rates: list[str], host: str) -> dict[str, Any]:
    return {"kind": "chain", "rates": rates, "host_rate": host}


def star(rates: dict[str, str]) -> subak.Network:
    ends = [(a, b, rate) for host, rate in rates.items() for a, b in ((host, "s"), ("s", host))]
    links = [{"id": f"{a}->{b}", "from": a, "to": b, "capacity": rate, "delay": "1us"} for a, b, rate in ends]
    return subak.Network.from_links(links)


def up_and_down(src: int, dst: int, side: int, core: int) -> list[str]:
    """The path between two pods of a fat-tree of 4 ports over one of its cores."""
    up, down = src // 4 * 2 + side, dst // 4 * 2 + side
    nodes = [f"h{src}", f"leaf{src // 2}", f"agg{up}", f"core{core}", f"agg{down}", f"leaf{dst // 2}", f"h{dst}"]
    return [f"{a}->{b}" for a, b in pairwise(nodes)]


def over(src: int, dst: int, spine: int) -> list[str]:
    nodes = [f"h{src}", f"leaf{src // 3}", f"spine{spine}", f"leaf{dst // 3}", f"h{dst}"]
    return [f"{a}->{b}" for a, b in pairwise(nodes)]


def alpha(value: float) -> dict[str, Any]:
    return {"kind": "alpha-fair", "alpha": value}


def pair(src: str, dst: str, weight: float = 1) -> dict[str, Any]:
    return {"src": src, "dst": dst} if weight == 1 else {"src": src, "dst": dst, "weight": weight}


LONG_PATH = (chain(["4Gbps"] + 4 * ["10Gbps"], "10Gbps"), [pair("h0", "h5"), pair("h0", "h1")], [2, 2])
PARKING_LOT = (
    chain(2 * ["10Gbps"], "10Gbps"),
    [pair("h0", "h1"), pair("h0", "h2", 2), pair("h1", "h2")],
    [OTHERS, 10 - OTHERS, OTHERS],
)
SLOW_NIC = (
    star({"a": "1Gbps", "b": "40Gbps", "c": "10Gbps", "d": "10Gbps", "ctl": "10Gbps"}),
    [pair("a", "c"), pair("a", "d"), pair("b", "c"), pair("b", "d")],
    [0.5, 0.5, 9.5, 9.5],
)
SEVEN_HOPS = (
    chain(6 * ["10Gbps"] + ["4Gbps"], "40Gbps"),
    [pair("h0", "h7"), *(pair(f"h{i}", f"h{i + 1}") for i in range(6) for _ in range(2)), *2 * [pair("h6", "h7")]],
    [4 / 3, *12 * [13 / 3], *2 * [4 / 3]],
)
SHARED_SUBFLOWS = (
    {"kind": "fat-tree", "k": 4, "rate": "10Gbps"},
    [
        {"paths": [up_and_down(0, 8, 0, 0), up_and_down(0, 8, 0, 1)]},
        {"paths": [up_and_down(1, 9, 0, 0), up_and_down(1, 9, 1, 2)]},
    ],
    [10, 10],
)
TWO_SPINES = (
    {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 3, "host_rate": "10Gbps", "spine_rate": "7Gbps"},
    [
        {"paths": [over(src, dst, 0), over(src, dst, 1)], "weight": weight}
        for src, dst, weight in ((4, 6, 4), (1, 7, 2), (0, 7, 2))
    ],
    [7, 3.5, 3.5],
)
UNLIKE_NICS = (
    star({"a": "1Gbps", "b": "1Gbps", "c": "40Gbps", "d": "10Gbps", "e": "10Gbps"}),
    [pair("a", "d", 4), pair("b", "e"), pair("c", "d", 2), pair("c", "e")],
    [1, 1, 9, 9],
)
ON_ONE_LINK = star(dict.fromkeys(("a", "b", "c", "ctl"), "10Gbps"))
TOPS = (
    ON_ONE_LINK,
    [
        {"src": "a", "dst": "c", "bandwidth_function": [[0, 0], [1, 1e9], [2, 2e9]]},
        {"src": "b", "dst": "c", "bandwidth_function": [[0, 0], [1, 1e9], [20, 20e9]]},
    ],
    [2, 8],
)
"""The first flow's function ends at 2 Gb/s, below an equal share."""
HUGE = (ON_ONE_LINK, [pair("a", "c") | {"size": 10**13}, pair("b", "c") | {"size": 6 * 10**13}], [10, 6e-6])
"""Weights under fct are sizes to the power -8: below 1e-100 here."""
FAST_NICS = (
    star({"a": "10Gbps", "b": "25Gbps", "c": "10Gbps", "d": "25Gbps", "e": "10Gbps"}),
    [
        pair("a", "d"),
        pair("b", "d"),
        pair("a", "d", 2),
        pair("c", "d"),
        pair("c", "e", 2),
        pair("b", "e"),
        pair("b", "e"),
    ],
    [10 / 3, 10, 20 / 3, 5, 5, 2.5, 2.5],
)
"""RTTs of 5 us, shorter than the time over which Swift averages rates."""
NED = ("ned/levels", "ned/paced", "ned/s-perc", "ned/soze-virtual", "ned/swift")
RIGHT = [
    ("long path", LONG_PATH, alpha(0.5), ("dgd", "numfabric", "xwi-s-perc", *NED)),
    ("parking lot", PARKING_LOT, alpha(5), ("rcp-star", "numfabric", "xwi-s-perc", "xwi-soze", *NED)),
    ("slow NIC", SLOW_NIC, alpha(5), ("numfabric", "xwi-s-perc", "xwi-soze", *NED)),
    ("slow NIC, alpha 2", SLOW_NIC, alpha(2), ("numfabric", "xwi-s-perc")),
    ("slow NIC, alpha 1", SLOW_NIC, alpha(1), ("numfabric", "xwi-s-perc", "xwi/levels")),
    ("fast NICs", FAST_NICS, alpha(5), ("rcp-star/swift", "rcp-star/s-perc", "ned/swift")),
    ("unlike NICs", UNLIKE_NICS, alpha(2), ("numfabric", "xwi-s-perc", "xwi-soze")),
    ("seven hops", SEVEN_HOPS, {"kind": "max-min"}, ("given/levels", "given/s-perc", "soze-virtual", "s-perc-star")),
    ("shared subflows", SHARED_SUBFLOWS, alpha(1), ("xwi-soze", "xwi-s-perc", "numfabric", "rcp-star/s-perc", *NED)),
    (
        "two spines",
        TWO_SPINES,
        alpha(1),
        ("xwi/levels", "xwi-soze", "xwi-s-perc", "numfabric", "dgd", "dgd/swift", "rcp-star", *NED),
    ),
]
CENTRAL = [
    ("slow NIC", SLOW_NIC, alpha(5), "ctl", ("exact-central/s-perc",)),
    (
        "two spines",
        ({**TWO_SPINES[0], "controller_rate": "10Gbps"}, *TWO_SPINES[1:]),
        alpha(1),
        "controller",
        ("exact-central/levels", "exact-central/swift", "ned-central/levels", "ned-central/paced", "flowtune"),
    ),
    (
        "shared subflows",
        ({**SHARED_SUBFLOWS[0], "controller_rate": "10Gbps"}, *SHARED_SUBFLOWS[1:]),
        alpha(1),
        "controller",
        ("ned-central/paced",),
    ),
]


BOUNDED = ("xwi-s-perc", "xwi-soze", "numfabric", *NED)
CENTRAL_BOUNDED = tuple(f"exact-central/{over}" for over in ("levels", "paced", "s-perc", "soze-virtual", "swift"))
FUNCTIONS = {"kind": "bandwidth-function"}


@pytest.mark.parametrize("scheme", [*BOUNDED, *CENTRAL_BOUNDED])
def test_no_flow_exceeds_the_end_of_its_bandwidth_function(scheme: str) -> None:
    network, flows, _ = TOPS
    sections = {"controller": {"at": "ctl"}} if "central" in scheme else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", subak.InputWarning)
        simulation = subak.Simulation(network, scheme, policy=FUNCTIONS, sections=sections)
    simulation.add_all(flows)
    simulation.run("50ms")
    before = simulation.flows.to_numpy()["received_bytes"].astype(float)
    simulation.run("60ms")
    first, second = (simulation.flows.to_numpy()["received_bytes"] - before) * 8 / 10e6
    # Payload, and transports that leave a tenth of the link to messages.
    assert 1.75 < first < 2
    assert 6.4 < second < 8


@pytest.mark.parametrize("transport", ["levels", "paced", "s-perc", "soze-virtual", "swift"])
def test_weights_of_huge_flows_do_not_become_equal(transport: str) -> None:
    """One common factor for both flows: what a transport leaves free, and the longer flow has next to nothing."""
    network, flows, _ = HUGE
    simulation = subak.Simulation(
        network, f"ned-central/{transport}", policy={"kind": "fct"}, sections={"controller": {"at": "ctl"}}
    )
    simulation.add_all(flows)
    simulation.run("40ms")
    first, second = simulation.flows.to_numpy()["received_bytes"]
    assert first > 30 * second


def told(scheme: str, network: Any, policy: Any = "max-min") -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        subak.Simulation(network, scheme, policy=policy)
    return " ".join(str(one.message) for one in said)


def worst(
    case: Any,
    scheme: str,
    policy: dict[str, Any],
    controller: str | None = None,
    params: dict[str, Any] | None = None,
) -> float:
    """Largest relative error of a rate from 60 to 80 ms, after the common factor for which it is smallest."""
    network, flows, exact = case
    sections = {"controller": {"at": controller}} if controller else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", subak.InputWarning)
        simulation = subak.Simulation(network, scheme, params=params, policy=policy, sections=sections)
    simulation.add_all(flows)
    simulation.run("60ms")
    before = simulation.flows.to_numpy()["received_bytes"].astype(float)
    simulation.run("80ms")
    ratios = (simulation.flows.to_numpy()["received_bytes"] - before) * 8 / 20e6 / np.array(exact)
    return float(abs(ratios / ((ratios.max() + ratios.min()) / 2) - 1).max())


@pytest.mark.parametrize(
    ("case", "policy", "scheme"),
    [
        pytest.param(case, policy, scheme, id=f"{name}, {scheme}")
        for name, case, policy, all_ in RIGHT
        for scheme in all_
    ],
)
def test_a_pair_is_within_five_percent(case: Any, policy: dict[str, Any], scheme: str) -> None:
    assert worst(case, scheme, policy) < 0.05


@pytest.mark.parametrize(
    ("case", "policy", "at", "scheme"),
    [
        pytest.param(c, policy, at, scheme, id=f"{name}, {scheme}")
        for name, c, policy, at, all_ in CENTRAL
        for scheme in all_
    ],
)
def test_a_central_pair_is_within_five_percent(case: Any, policy: dict[str, Any], at: str, scheme: str) -> None:
    assert worst(case, scheme, policy, at) < 0.05


@pytest.mark.parametrize(
    ("case", "policy", "schemes"),
    [
        (LONG_PATH, alpha(0.5), ("rcp-star", "rcp-star/levels", "rcp-star/s-perc", "rcp-star/swift")),
        (PARKING_LOT, alpha(5), ("dgd", "dgd/levels", "dgd/s-perc", "dgd/swift")),
        (PARKING_LOT, alpha(2), ("dgd", "dgd/levels", "dgd/s-perc", "dgd/swift")),
        (LONG_PATH, alpha(0.5), ("xwi/levels",)),
    ],
)
def test_where_a_pair_is_far_off_a_warning_says_so(case: Any, policy: dict[str, Any], schemes: tuple[str, ...]) -> None:
    for scheme in schemes:
        with pytest.warns(subak.InputWarning, match="more than 15% off the policy's optimum"):
            subak.Simulation(case[0], scheme, policy=policy)


@pytest.mark.parametrize("kind", ["fct", "srpt", "edf", "bandwidth-function"])
def test_numfabric_is_warned_of_where_flows_rank(kind: str) -> None:
    assert "may stay more than 15% off the policy's optimum on some networks" in told("numfabric", PARKING_LOT[0], kind)
    assert "on some networks" not in told("numfabric", PARKING_LOT[0], alpha(2))


def test_swift_is_warned_of_where_its_windows_are_too_small() -> None:
    """Seven full links give a flow 0.96 of its 1.33 Gb/s; two flows of a NIC of 1 Gb/s stay equal."""
    assert "take dt =" in told("numfabric-swift", SEVEN_HOPS[0])
    assert worst(SEVEN_HOPS, "numfabric-swift", {"kind": "max-min"}) > 0.15
    assert worst(SEVEN_HOPS, "numfabric-swift", {"kind": "max-min"}, params={"dt": "24us"}) < 0.05
    assert "take dt =" not in told("numfabric-swift", chain(5 * ["10Gbps"], "10Gbps"))
    # Four links, one of them slow: rates were up to 38% off under rcp-star, 9% under max-min.
    assert "take dt =" in told("rcp-star/swift", chain(["2.5Gbps", "5Gbps", "5Gbps", "10Gbps"], "20Gbps"), alpha(1))

    weighted = (SLOW_NIC[0], [pair("a", "c"), pair("a", "d", 2)], [1 / 3, 2 / 3])
    assert "windows of one packet fill it" in told("numfabric", SLOW_NIC[0], alpha(2))
    assert worst(weighted, "numfabric", alpha(2)) > 0.15
    assert worst(weighted, "ned/paced", alpha(2)) < 0.05
    assert "windows of one packet fill it" not in told("numfabric", PARKING_LOT[0], alpha(2))


def test_a_simulation_warns_as_a_run_does() -> None:
    slow = {"kind": "star", "hosts": 4, "rate": "1Gbps"}
    with pytest.warns(subak.InputWarning, match="suits line rates near 10 Gb/s"):
        subak.Simulation(slow, "dgd", policy=alpha(1))


def test_numfabric_is_warned_of_where_its_steps_are_short() -> None:
    """Alpha 5 and NICs of 1 and 40 Gb/s, with a price interval for alpha 1."""
    assert "take params.time_scale = 2" in told("numfabric", UNLIKE_NICS[0], alpha(5))
    assert "take params.time_scale = 2" not in told("numfabric", UNLIKE_NICS[0], alpha(2))
    assert "take params.time_scale = 2" not in told("numfabric", ON_ONE_LINK, alpha(5))


def test_dgd_is_warned_of_where_some_host_is_fast() -> None:
    """Its gain suits one rate: with NICs of 10, 25 and 100 Gb/s rates were up to 39% off, which oscillated."""
    unlike = star({"a": "10Gbps", "b": "100Gbps", "c": "25Gbps"})
    assert "the hosts' go from 10 to 100 Gb/s" in told("dgd", unlike, alpha(1))
    assert "line rates" not in told("dgd", ON_ONE_LINK, alpha(1))
