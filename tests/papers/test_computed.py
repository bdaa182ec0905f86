"""Experiments that their own code computes, at small sizes: their values agree with theory."""

from __future__ import annotations

import math
from typing import Any

import pytest
from subak.errors import InputError
from subak.papers.flowtune.scale import knowledge, telling
from subak.papers.soze import fig18a, networks, settles
from subak.repro import catalogue, computed

Report = dict[str, Any]


def run(name: str, runs: int = 1, seed: int = 1, **settings: Any) -> Report:
    """The report of an experiment; its tables have their columns, and its progress ends where it said."""
    told = [(1, 1)]
    report: Report = catalogue()[name].module.run(settings, runs, seed, lambda done, of, share: told.append((done, of)))
    assert told[-1][0] == told[-1][1]
    assert report["values"]
    for table in report["tables"].values():
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    return report


def all_hit(report: Report, key: str) -> bool:
    share = report["values"][key]
    return bool(share["hits"] == share["count"] > 0)


def test_the_worked_examples() -> None:
    for scheme in ("fair", "s-perc"):
        told = ["RTT 1: B 15", "RTT 1: C 10", "RTT 2: A 55", "RTT 2: B 20", "RTT 3: A 50"]
        assert run("perc-fig1.3")["values"][f"{scheme} C"] == told
    assert run("perc-fig2.3")["values"]["update 8"] == [20, 18, 18]
    assert run("perc-fig3.2")["values"]["update 1"] == ["inf", 20, 20, "B"]
    assert run("perc-fig3.4")["values"]["update 3"] == ["inf", 10, 10, "B", True]
    assert run("perc-wfk")["values"]["2.4 WF2 rates"] == [3, 5, 5, 7]


def test_random_setups_converge_within_the_bound() -> None:
    report = run("perc-fig3.5", 24, large=200, n_perc=4)
    assert all_hit(report, "s-perc_unweighted_within")
    assert all_hit(report, "fair_unweighted_within")
    assert report["values"]["n_perc_max"] > report["values"]["s_perc_max"]
    report = run("perc-rounds", 20)
    assert all_hit(report, "exact")
    assert len(report["values"]["median"]["data"]) == 20


def test_losses_are_made_up_for_and_the_timeout_of_sources_is_heard() -> None:
    report = run("perc-drops", 4, flows=100, rounds=20)
    assert all_hit(report, "within_0.01")
    assert run("perc-drops", 4, flows=100, rounds=20, rto_us=360)["values"] != report["values"]


def test_approximate_division_and_xwi_converge() -> None:
    assert all_hit(run("perc-fig4.5", 3, rtts=300), "within_30_52")
    assert all_hit(run("numfabric-xwi-ideal", 4), "in 500 1")
    assert all_hit(run("numfabric-xwi-ideal", 4, diminishing=1), "for good 4")


def test_flowtunes_optimizer_alone() -> None:
    report = run("flowtune-gamma", most_a_host=1, steps=40, warmup=20)
    assert report["values"]["unsettled"] == 0, "every gamma that is surely safe is"
    assert run("flowtune-fig17", steps=60, warmup=20)["values"]["overload"] <= 1e-6
    assert run("flowtune-fig16", steps=60, warmup=20, interval_us=1, steps_each=2)["values"]["overload"] <= 1e-6
    assert run("flowtune-table-multicore", seconds=0.001, rows=1)["values"]["same bits"] is True


def test_knowing_the_hosts_links_alone_costs_nothing_where_the_core_never_fills() -> None:
    loss = knowledge.big_switch(4000e9, 2, 1)
    assert loss.throughput == pytest.approx(100, abs=0.1)
    assert abs(loss.points) < 1e-3
    assert loss.overload < 0.1
    # With a quarter of the core's capacity the rates lose utility, and the core is overloaded.
    loss = knowledge.big_switch(10e9, 2, 1)
    assert loss.points < -0.05
    assert loss.overload > 10


def test_pods_that_keep_to_themselves_lose_nothing() -> None:
    loss = knowledge.pods(4, 1.0, 4, 1)
    assert loss.throughput == pytest.approx(100, abs=0.1)
    assert abs(loss.points) < 1e-3
    assert knowledge.pods(4, 0.0, 4, 1).points < -1e-3


def test_bundles_cost_an_allocators_link_less_and_rates_stay() -> None:
    direct, over = (telling.run(1, group, 100, 100) for group in (1, 16))
    assert over.servers_a_nic > 1.5 * direct.servers_a_nic
    assert min(direct.of_optimum, over.of_optimum) > 50


def test_soze_in_packets_and_on_recurrences() -> None:
    report = run("soze-params", exponents=1)
    for key in ("m inside settles", "p above settles", "delayed: above settles"):
        assert report["values"][key] is True
    for key in ("m outside settles", "p below settles", "delayed: below settles"):
        assert report["values"][key] is False
    assert all_hit(report, "all cures: settles")
    for missing in ("but what waits", "but no filter", "but p", "but exact senders"):
        assert report["values"][f"all cures {missing}: settles"]["hits"] == 0, "each of these is needed"
    report = run("soze-settles", 3, several=1)
    assert all_hit(report, "soze-virtual one hop: settles, full, queues")
    assert all_hit(report, "soze-virtual several hops: settles, full, queues")
    assert report["values"]["soze-virtual several hops: peak"]["data"][0] < 30, "nobody overshoots the start's delay"
    assert all_hit(report, "soze-virtual one hop: settles after weights change")
    assert report["values"]["soze one hop: settles"]["hits"] == 0, "the paper's parameters leave out the feedback delay"


def test_soze_as_a_fluid_is_about_as_fast_as_in_packets() -> None:
    values = run("soze-fig19", ports=4, flows=100, packet_ports=4, flows_by_size=100)["values"]
    assert min(values["size near"], values["few packets near"]) >= 95
    packets, fluid = (values[f"few {model} 4 rtts"]["data"][0] for model in ("packets", "fluid"))
    # Rates in packets are averaged over 10 RTTs.
    assert fluid - 15 < packets < fluid + 30


def test_many_goals_are_below_a_packet_a_round_trip_and_first_rates_are_many_times_the_link() -> None:
    """The documentation's statement on the minimum and initial rates of the published senders."""
    for hops, least_share, least_start in ((networks.ONE, 0.5, 30), (networks.SEVERAL, 0.0, 3)):
        seen = [settles.out_of_reach(networks.draw(hops, seed)) for seed in range(1, 201)]
        assert sum(one[0] > 0 for one in seen) / len(seen) >= least_share
        assert computed.quantile([one[2] for one in seen], 0.5) >= least_start


def test_a_coflows_connections() -> None:
    values = run("soze-fig18a", scale=0.0005)["values"]
    coarse, fine = values["soze-virtual connections"], values["soze-virtual"]
    assert fine["data"][0] < coarse["data"][0], "weights are finer than connections"
    sizes = [1.0, 2.9, 1.2, 2.8, 1.4, 2.6, 1.6, 2.4, 1.8, 2.0]
    made = fig18a.connections(sizes, fig18a.PHYSICAL)
    queues = [[flow for flow, *_ in made[q :: fig18a.QUEUES]] for q in range(fig18a.QUEUES)]
    assert queues == [[1, 3, 5], [7, 9, 8], [6, 4], [2, 0]]
    assert [made[q][2] for q in (0, 3)] == pytest.approx([8.3, 2.2])
    assert [len(fig18a.connections([gb], fig18a.CONNECTIONS)) for gb in (2.4, 2.6, 1.2)] == [2, 3, 1]


def test_unknown_settings_are_refused_and_the_known_ones_listed() -> None:
    with pytest.raises(InputError) as raised:
        run("perc-drops", rto=3)
    assert raised.value.place == "settings.rto"
    assert "rto_us" in raised.value.hint
    for wrong in (-3, "400", True):
        with pytest.raises(InputError, match=r"settings\.rto_us"):
            run("perc-drops", rto_us=wrong)


def test_any_number_of_threads_gives_the_same_report() -> None:
    reports = []
    for threads in (1, 2, 5):
        token = computed.THREADS.set(threads)
        reports.append(run("perc-rounds", 10))
        computed.THREADS.reset(token)
    assert reports[0] == reports[1] == reports[2]


def test_jobs_are_done_in_order_and_an_error_ends_them() -> None:
    told: list[tuple[int, int, float]] = []
    jobs = computed.Jobs(6, lambda *done: told.append(done))
    assert jobs.each([1, 2, 3], lambda n: n * n) == [1, 4, 9]
    assert jobs.each([4, 5, 6], str) == ["4", "5", "6"]
    assert told == [(k, 6, k / 6) for k in range(1, 7)]
    with pytest.raises(ZeroDivisionError):
        jobs.each([1, 0, 2], lambda n: 1 / n)


def test_the_values_of_reports() -> None:
    assert computed.quantile([3, 1, 2], 0.5) == 2
    assert math.isnan(computed.quantile([], 0.5))
    assert [computed.rounded(x) for x in (0.5, 1.5, 2.4, -0.5)] == [1, 2, 2, -1]
    assert computed.total([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1
    assert computed.sample("median", "runs", [1, math.inf])["data"] == [1, None]
    assert computed.largest([]) == 0
