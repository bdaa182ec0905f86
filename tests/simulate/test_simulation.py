"""Simulations that are advanced step by step, beside runs and exact rates."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import subak
from conftest import ROOT

NETWORK = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}
PAIRS = [("h0", "h4"), ("h1", "h4"), ("h2", "h5"), ("h3", "h0"), ("h6", "h1"), ("h7", "h4")]


def spec(scheme: str, **sections: Any) -> dict[str, Any]:
    flows = [
        {"src": src, "dst": dst, "size": f"{100 + 37 * k}KB", "start": f"{13 * k}us"}
        for k, (src, dst) in enumerate(PAIRS)
    ]
    return {
        "network": NETWORK,
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": scheme}],
        "run": {"duration": "1ms"},
        **sections,
    }


def fcts(table: Any, column: str = "fct_ns") -> list[int]:
    return [int(value) for value in table.to_pandas().sort_values("flow")[column]]


def links_of(results: subak.Results, column: str) -> list[int]:
    return [int(v) for v in results.table("link", ["link", column]).to_pandas().sort_values("link")[column]]


@pytest.mark.parametrize("scheme", ["dctcp", "s-perc", "pfabric", "hpcc", "soze", "ideal"])
def test_steps_of_any_length_give_what_a_run_gives(scheme: str, tmp_path: Path) -> None:
    results = subak.run(spec(scheme), tmp_path / "run", progress=False)
    simulation = subak.Simulation.of_spec(spec(scheme))
    now_ns, ended = 0, []
    for step_ns in [1, 999, 12_345, 7, 100_000, 54_321, 2_000_000, 200_000_000]:
        now_ns += step_ns
        ended += simulation.run(now_ns)
        assert simulation.now_ns == now_ns
    assert sorted(ended) == list(range(len(PAIRS)))
    assert fcts(simulation.flows) == fcts(results.table("flow", ["flow", "fct_ns"]))


def test_flows_that_are_added_between_steps_finish_as_those_of_a_spec(tmp_path: Path) -> None:
    paths = [
        ["h0->leaf0", "leaf0->spine0", "spine0->leaf1", "leaf1->h4"],
        ["h1->leaf0", "leaf0->spine0", "spine0->leaf1", "leaf1->h4"],
    ]
    listed = [{"path": path, "size": "300KB", "start": start} for path, start in zip(paths, ["0", "50us"], strict=True)]
    wanted = {**spec("dctcp"), "workload": {"kind": "steps", "flows": listed}}
    results = subak.run(wanted, tmp_path / "run", progress=False)
    simulation = subak.Simulation(NETWORK, "dctcp")
    first = simulation.add(path=paths[0], size="300KB")
    simulation.run("50us")
    second = simulation.add(path=paths[1], size="300KB")
    assert (first, second) == (0, 1)
    simulation.run("20ms", stop_at="done")
    assert fcts(simulation.flows) == fcts(results.table("flow", ["flow", "fct_ns"]))
    assert simulation.now_ns < 20_000_000


@pytest.mark.parametrize("scheme", ["dctcp", "s-perc", "ideal"])
def test_a_link_fails_and_recovers_as_by_a_fault(scheme: str, tmp_path: Path) -> None:
    down, up = 101_237, 402_111
    fault = {"kind": "down", "link": "leaf0->spine0", "down": f"{down}ns", "up": f"{up}ns"}
    results = subak.run(spec(scheme, fault=[fault]), tmp_path / "run", progress=False)
    simulation = subak.Simulation.of_spec(spec(scheme))
    simulation.run(down)
    simulation.fail("leaf0->spine0")
    failed = simulation.links.to_pandas().set_index("link").capacity_bps
    assert failed["leaf0->spine0"] == failed["spine0->leaf0"] == 0
    simulation.run(up)
    simulation.recover("leaf0->spine0")
    simulation.run("1s", stop_at="done")
    assert fcts(simulation.flows) == fcts(results.table("flow", ["flow", "fct_ns"]))
    if scheme != "ideal":
        assert simulation.links.to_pandas().lost_packets.sum() == sum(links_of(results, "lost_packets")) > 0


def test_a_capacity_changes_as_by_a_fault(tmp_path: Path) -> None:
    fault = {"kind": "capacity", "link": "leaf1->h4", "capacity": "1Gbps", "at": "77777ns"}
    for scheme in ("dctcp", "rcp"):
        results = subak.run(spec(scheme, fault=[fault]), tmp_path / scheme, progress=False)
        simulation = subak.Simulation.of_spec(spec(scheme))
        simulation.run(77_777)
        simulation.set_capacity("leaf1->h4", "1Gbps")
        simulation.run("1s", stop_at="done")
        assert fcts(simulation.flows) == fcts(results.table("flow", ["flow", "fct_ns"])), scheme


def test_weights_stops_and_paths_reach_the_exact_rates_after_each_change() -> None:
    network = subak.Network.generate("leaf-spine", leaves=2, spines=2, hosts_per_leaf=4)
    simulation = subak.Simulation(network, "s-perc")
    weights = {"h0": 1.0, "h1": 3.0, "h2": 2.0}
    numbers = {src: simulation.add(src, "h4", weight=weight) for src, weight in weights.items()}

    def settled(at_ms: int) -> None:
        simulation.run(f"{at_ms}ms")
        case = [{"id": src, "src": src, "dst": "h4", "weight": weight} for src, weight in weights.items()]
        exact = subak.solve(network, flows=case).to_pandas().set_index("id").rate_bps
        rates = simulation.flows.to_pandas().set_index("flow").assigned_bps
        # Control messages and headroom take a tenth of a link.
        got = {src: rates[numbers[src]] for src in weights}
        share = sum(got.values()) / exact.sum()
        assert 0.85 < share <= 1
        for src in weights:
            assert got[src] == pytest.approx(share * exact[src], rel=0.01), (at_ms, src)

    settled(3)
    weights["h0"] = 5.0
    simulation.set_weight(numbers["h0"], 5.0)
    settled(6)
    simulation.stop(numbers["h1"])
    del weights["h1"]
    settled(9)
    spine = "spine1" if simulation.links.to_pandas().set_index("link").data_bytes["leaf0->spine0"] else "spine0"
    simulation.reroute(numbers["h2"], ["h2->leaf0", f"leaf0->{spine}", f"{spine}->leaf1", "leaf1->h4"])
    settled(12)


def test_a_flow_that_has_ended_is_not_changed() -> None:
    simulation = subak.Simulation(NETWORK, "s-perc")
    small, stopped = simulation.add("h0", "h4", size="1KB", id="a"), simulation.add("h1", "h5", id="b")
    assert simulation.run("5ms") == [small]
    simulation.stop(stopped)
    timed = simulation.add("h2", "h6", stop="6ms")
    simulation.run("7ms")
    for flow in (small, stopped, timed):
        for change in (lambda f=flow: simulation.set_weight(f, 2), lambda f=flow: simulation.stop(f)):
            with pytest.raises(subak.InputError, match="has ended"):
                change()
    with pytest.raises(subak.InputError, match="taken already"):
        simulation.add("h0", "h4", id="a")


def test_steps_end_at_the_first_finish() -> None:
    simulation = subak.Simulation(NETWORK, "dctcp")
    sizes = ["30KB", "90KB", "60KB"]
    simulation.add_all([{"src": f"h{k}", "dst": f"h{k + 4}", "size": size} for k, size in enumerate(sizes)])
    order = []
    while simulation.now_ns < 50_000_000:
        ended = simulation.run("50ms", stop_at="finish")
        order += ended
        if ended:
            assert simulation.flows.to_pandas().fct_ns[ended[-1]] == simulation.now_ns
    assert order == [0, 2, 1]


INTERRUPTED = """
import signal, threading
import subak

PAIRS = %r


def made():
    simulation = subak.Simulation(%r, "dctcp")
    simulation.add_all([{"src": src, "dst": dst} for src, dst in PAIRS])
    return simulation


stopped, whole = made(), made()
threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
try:
    stopped.run("2h")
    raise SystemExit("it was not interrupted")
except KeyboardInterrupt:
    pass
end_ns = stopped.now_ns + 1_000_000
assert stopped.now_ns < 7_200_000_000_000
stopped.run(end_ns)
whole.run(end_ns)
assert stopped.flows.to_pandas().equals(whole.flows.to_pandas())
assert stopped.links.to_pandas().equals(whole.links.to_pandas())
print("the same")
"""


def test_ctrl_c_leaves_a_simulation_that_goes_on() -> None:
    # Signals reach the main thread of a process, which a test need not have.
    program = INTERRUPTED % (PAIRS, NETWORK)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("the same\n", "", 0)


def test_a_spec_is_warned_of_as_by_a_run() -> None:
    late = spec("dctcp")
    late["workload"]["flows"] = [*late["workload"]["flows"], {"src": "h0", "dst": "h4", "size": 1, "start": "5ms"}]
    late["workload"]["flows"][0]["weight"] = 3
    with pytest.warns(subak.InputWarning) as said:
        subak.Simulation.of_spec(late)
    texts = " ".join(str(one.message) for one in said)
    assert "1 of 7 flows start at run.duration or later" in texts
    assert "weight" in texts


class Fixed(subak.Scheme):
    """Sends at a fixed rate."""

    params: ClassVar = {"rate": (2e9, "bit/s")}

    def source(self, flow: Any) -> Any:
        scheme = self

        class Sender(subak.Source):
            def on_start(self, io: Any) -> None:
                io.pace(rate=scheme.rate)

            def on_weight(self, io: Any, weight: float) -> None:
                io.pace(rate=weight * scheme.rate)

        return Sender()


def test_a_scheme_in_python_is_stepped(tmp_path: Path) -> None:
    simulation = subak.Simulation(NETWORK, Fixed, params={"rate": "1Gbps"})
    flow = simulation.add("h0", "h4")
    simulation.run("2ms")
    assert simulation.paces(flow).to_pandas().pace_bps[0] == 1e9
    assert simulation.flows.to_pandas().received_bytes[0] == pytest.approx(1e9 * 2e-3 / 8, rel=0.05)


class Broken(subak.Scheme):
    """Fails at its first acknowledgement."""

    def source(self, flow: Any) -> Any:
        class Sender(subak.Source):
            def on_start(self, io: Any) -> None:
                io.pace(window=1500)

            def on_ack(self, io: Any, ack: Any) -> None:
                raise RuntimeError("not today")

        return Sender()


def test_a_scheme_that_fails_ends_its_simulation_in_words() -> None:
    simulation = subak.Simulation(NETWORK, Broken)
    simulation.add("h0", "h4")
    for _ in range(2):
        with pytest.raises(subak.InputError, match="not today"):
            simulation.run("2ms")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.add("h0", "h99"), "unknown host"),
        (lambda s: s.add("h0", "h0"), "same host"),
        (lambda s: s.add("h0", "h1", weight=2), "has no weights"),
        (lambda s: s.add("h0", "h1", siez=2), 'did you mean "size"'),
        (lambda s: s.add("h0", "h1", after=["x"]), "flows\\[0\\].after"),
        (lambda s: s.add("h0", "h1", weights=[["1ms", 2]]), "set_weight"),
        (lambda s: s.add("h0", "h1", connections=2), "connections"),
        (lambda s: s.add("h0", "h1", deadline="1ms"), "edf"),
        (lambda s: s.add("h0", "h1", start="1us"), "later time"),
        (lambda s: s.run("1us"), "before the present"),
        (lambda s: s.run(2.5), "whole number of nanoseconds"),
        (lambda s: s.run(True), "whole number of nanoseconds"),
        (lambda s: s.run("3h"), "at most 2 hours"),
        (lambda s: s.run("1s", stop_at="end"), "stop_at"),
        (lambda s: s.recover("leaf0->spine0"), "is up"),
        (lambda s: s.fail("leaf0->spine9"), "unknown link"),
        (lambda s: s.set_capacity("leaf0->spine0", 0), "call fail"),
        (lambda s: s.set_weight(0, 2), "has no weights"),
        (lambda s: s.stop(5), "there is no flow 5"),
        (lambda s: s.reroute(0, ["h1->leaf0", "leaf0->h2"]), "other ends"),
        (lambda s: s.reroute(0), "0 paths for 1 subflows"),
        (lambda _: subak.Simulation(NETWORK, "dctcp", sections={"run": {}}), "sections.run"),
        (lambda _: subak.Simulation(NETWORK, "s-perc", policy={"kind": "alpha-fair", "alpha": 3}), "serves max-min"),
        (lambda _: subak.Simulation(NETWORK, "xwi/swift"), "alpha-fair"),
        (lambda _: subak.Simulation(NETWORK, {"name": "s-perc"}), "give a name"),
        (lambda s: s.add_all("h0"), "a list of dicts"),
        (
            lambda s: s.add_all([{"src": "h0", "dst": "h1", "id": "a"}, {"src": "h1", "dst": "h0", "id": "a"}]),
            "taken already",
        ),
        (lambda s: s.set_weight(-1, 2), "number that add returned"),
        (lambda _: subak.Simulation.of_spec({**spec("dctcp"), "run": {"duration": "1ms", "seeds": 2}}), "2 trials"),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(call: Any, said: str) -> None:
    simulation = subak.Simulation(NETWORK, "dctcp")
    simulation.add("h0", "h4")
    simulation.run("1ms")
    before = simulation.flows.to_pandas()
    with pytest.raises(subak.InputError, match=said):
        call(simulation)
    assert simulation.flows.to_pandas().equals(before)
    simulation.run("2ms")
    assert simulation.flows.to_pandas().received_bytes[0] > before.received_bytes[0]


def test_the_agent_of_the_example_learns() -> None:
    learn = runpy.run_path(str(ROOT / "examples/environment.py"))["learn"]
    returns = learn(300)
    # A policy at random misses most deadlines; the best weights cost about 20.
    assert sum(returns[-50:]) / 50 > sum(returns[:50]) / 50 + 30


def test_the_next_change_follows_when_rates_have_settled() -> None:
    example = runpy.run_path(str(ROOT / "examples/settled.py"))
    run, criterion = example["run"], example["Criterion"]
    times = run("s-perc-star", 6)
    assert all(time is not None and time < 100_000 for time in times), times
    assert times == run("s-perc-star", 6), "the same seed, the same times"
    # RCP's oscillate for longer than the longest wait; the next change follows all the same.
    assert run("rcp", 4, criterion(longest_ns=200_000)).count(None) >= 2
    changes = example["Changes"]("fair", criterion(), 1)
    for _ in range(8):
        changes.start()
    before_ns = changes.simulation.now_ns
    settled_ns = changes.settle()
    # The simulation stands at the end of the dwell time, and all samples of that time are near the goal.
    assert changes.simulation.now_ns == before_ns + settled_ns + criterion().hold_ns
