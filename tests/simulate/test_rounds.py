"""Control messages that are advanced step by step."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import subak
from subak.errors import InputError

GBPS = {"l20": 20, "l30": 30, "l12": 12}
PATHS = [["l20", "l30"], ["l30", "l12"]]
ROUND_NS = 50_000


def network(delay: str = "10us") -> subak.Network:
    return subak.Network.from_links([{"id": k, "capacity": g * 1e9, "delay": delay} for k, g in GBPS.items()])


def messages(scheme: str = "s-perc", **keys: Any) -> subak.Rounds:
    return subak.Rounds(network(), scheme, round=ROUND_NS, **keys)


def column(table: Any, name: str) -> list[Any]:
    return [row[name] for row in table]


@pytest.mark.parametrize("scheme", ["fair", "s-perc", "s-perc-star", "n-perc", "charny"])
def test_rates_become_exact(scheme: str) -> None:
    rounds = messages(scheme)
    assert list(rounds.add_all(PATHS)) == [0, 1]
    rounds.run("5ms")
    assert column(rounds.flows, "exact_bps") == [18e9, 12e9]
    np.testing.assert_allclose(column(rounds.flows, "rate_bps"), [18e9, 12e9], rtol=1e-9)
    assert rounds.last_wrong_ns is not None
    assert rounds.last_wrong_ns < 40 * ROUND_NS
    assert rounds.updates > 100
    assert rounds.drops == 0
    assert rounds.last_drop_ns is None
    assert len(rounds) == 2
    assert rounds.now_ns == 5_000_000


def test_flows_come_and_go_and_change_their_weights() -> None:
    rounds = messages()
    first = rounds.add(PATHS[0], weight=2)
    rounds.run("1ms")
    assert column(rounds.flows, "rate_bps") == [20e9]
    second = rounds.add(["l30"], start="1.5ms")
    rounds.run("3ms")
    np.testing.assert_allclose(column(rounds.flows, "rate_bps"), [20e9, 10e9])
    rounds.set_weight(second, 4)
    rounds.run("6ms")
    np.testing.assert_allclose(column(rounds.flows, "rate_bps"), [10e9, 20e9])
    assert column(rounds.flows, "exact_bps") == [10e9, 20e9]
    rounds.stop(first)
    rounds.run("9ms")
    rate, exact, stopped = (column(rounds.flows, name) for name in ("rate_bps", "exact_bps", "stopped"))
    assert rate[1] == pytest.approx(30e9)
    assert exact[1] == 30e9
    assert stopped == [True, False]


def test_steps_of_any_length_and_the_same_seed_give_the_same_results() -> None:
    def told(steps: list[int]) -> Any:
        rounds = messages(seed=3, drop=0.05, params={"rto": "200us"}, record=["rates", "updates"], scheme="s-perc-star")
        rounds.add_all(PATHS, [1, 3], ["100us", "170us"])
        for step in steps:
            rounds.run(step)
        tables = (rounds.flows, rounds.take_rates(), rounds.take_updates())
        return [table.to_arrow() for table in tables], rounds.drops, rounds.last_drop_ns

    assert told([4_000_000]) == told([1, 99_999, 100_000, 100_001, 777_777, 4_000_000])
    assert told([4_000_000])[1] > 0


def test_losses_end_and_rates_are_exact_again() -> None:
    rounds = messages("s-perc-star", drop=0.2, drop_until="2ms", params={"rto": "120us"})
    rounds.add_all(PATHS)
    rounds.run("6ms")
    assert rounds.drops > 10
    assert rounds.last_drop_ns is not None
    assert rounds.last_drop_ns < 2_000_000
    np.testing.assert_allclose(column(rounds.flows, "rate_bps"), [18e9, 12e9], rtol=1e-9)


def test_the_bound_is_that_of_theory() -> None:
    for scheme, k, rounds_a_level in (("fair", 1, 4), ("s-perc", 2, 6)):
        rounds = messages(scheme)
        assert rounds.bound_rounds is None
        rounds.add_all(PATHS)
        flows = [{"id": str(n), "path": path} for n, path in enumerate(PATHS)]
        depth = subak.structure(network(), k, flows=flows).depth
        assert rounds.bound_rounds == rounds_a_level * depth
    assert messages("n-perc").bound_rounds is None


def test_what_is_recorded_is_taken_once() -> None:
    rounds = messages(record="updates")
    rounds.add_all(PATHS)
    rounds.run("1ms")
    updates = rounds.take_updates()
    assert len(updates) == rounds.updates
    assert {"time_ns", "flow", "link", "e", "b", "a"} <= set(updates.column_names)
    assert len(rounds.take_updates()) == 0
    assert len(rounds.take_rates()) == 0
    rates = messages(record="rates")
    rates.add_all(PATHS)
    rates.run("1ms")
    last = {row["flow"]: row["rate_bps"] for row in rates.take_rates()}
    assert last == dict(enumerate(column(rates.flows, "rate_bps")))


def test_links_by_number_and_rows() -> None:
    rows = subak.Rows(np.array([0, 2, 4]), np.array([0, 1, 1, 2]), weight=np.array([1.0, 2.0]))
    first, second, third = messages(), messages(), messages()
    first.add_all(rows)
    second.add_all([[0, 1], [1, 2]], [1, 2])
    third.add_all(PATHS, [1, 2])
    for rounds in (first, second, third):
        rounds.run("1ms")
    assert first.flows.to_arrow() == second.flows.to_arrow() == third.flows.to_arrow()


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (lambda: messages("dctcp"), "scheme"),
        (lambda: messages("nothing"), "scheme"),
        (lambda: messages(params={"nothing": 1}), "params"),
        (lambda: messages(drop=2), "drop"),
        (lambda: messages(tolerance=2), "tolerance"),
        (lambda: messages(record="packets"), "record"),
        (lambda: subak.Rounds(network(), round=0), "round"),
        (lambda: messages().add(["l20", "nowhere"]), "links"),
        (lambda: messages().add(["l20"], weight=0), "weight"),
        (lambda: messages().add(["l20"], weight=1e12), "weight"),
        (lambda: messages().add([]), "path"),
        (lambda: messages().add([7]), "path"),
        (lambda: messages().add(["l20", "l20"]), "path"),
        (lambda: messages().stop(0), "flow"),
        (lambda: messages().set_weight(0, 1), "flow"),
        (lambda: subak.Rounds(network("0s"), round=1000, jitter=0).add(["l20"]), "path"),
        (lambda: subak.Rounds(network("1ms"), round=1000).add(["l20"]), "path"),
    ],
)
def test_what_cannot_be_used_is_refused(call: Any, place: str) -> None:
    with pytest.raises(InputError) as raised:
        call()
    assert place in str(raised.value)


def test_the_past_is_refused() -> None:
    rounds = messages()
    rounds.run("1ms")
    with pytest.raises(InputError, match="before the present"):
        rounds.run("0.5ms")
    with pytest.raises(InputError, match="before the present"):
        rounds.add(["l20"], start="0.5ms")
    flow = rounds.add(["l20"])
    rounds.stop(flow)
    with pytest.raises(InputError, match="was stopped"):
        rounds.stop(flow)


INTERRUPTED = """
import signal, threading
import subak

links = [{"id": f"l{k}", "capacity": 1e10, "delay": "10us"} for k in range(4)]
network = subak.Network.from_links(links)


def made():
    rounds = subak.Rounds(network, round="100us", seed=5)
    rounds.add_all([[k % 4, (k + 1) % 4] for k in range(40)])
    return rounds


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
assert stopped.flows.to_arrow() == whole.flows.to_arrow()
assert stopped.updates == whole.updates
print("the same")
"""


def test_an_interruption_leaves_messages_that_go_on() -> None:
    # Signals reach the main thread of a process, which a test need not have.
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("the same\n", "", 0)
