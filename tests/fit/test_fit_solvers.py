"""`subak fit`'s solvers on worked examples of the PERC thesis, and against exhaustive search on small programs."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import fit_brute as brute
import pytest
from subak import InputError
from subak.pipeline import explain, fit, graph, program_file, switch_file, violations
from subak.pipeline.fitting import GREEDY, value_of
from subak.pipeline.packing import needs

PROGRAMS = ("l2l3-complex", "l2l3-simple", "l2l3-mtag", "l3dc")
RMT = switch_file.load("rmt")
RELEASE = replace(RMT, power="release")
FLEXPIPE = switch_file.load("flexpipe")

# PERC thesis, tables 6.4 and 6.5: stages, latency (cycles), power (W).
PUBLISHED = {
    ("l2l3-complex", "ffd"): (22, 135, 4.98),
    ("l2l3-complex", "ffd-16"): (21, 135, 5.51),
    ("l2l3-complex", "ffl"): (19, 131, 5.61),
    ("l2l3-complex", "ffl-16"): (19, 131, 6.09),
    ("l2l3-complex", "ffl-exact16"): (17, 132, 4.61),
    ("l2l3-complex", "ffls"): (19, 130, 5.66),
    ("l2l3-complex", "ffls-16"): (19, 130, 6.42),
    ("l2l3-complex", "ffls-exact16"): (17, 131, 4.66),
    ("l2l3-simple", "ffd-exact16"): (21, 64, 7.54),
    ("l2l3-simple", "ffl-exact16"): (19, 55, 7.55),
    ("l2l3-mtag", "ffl-exact16"): (19, 66, 7.66),
    ("l3dc", "ffd-exact16"): (7, 88, 2.34),
    ("l3dc", "ffl-exact16"): (7, 88, 2.34),
    ("l3dc", "ffls-exact16"): (7, 88, 2.34),
}


@pytest.mark.parametrize(("name", "solver"), list(PUBLISHED))
def test_greedy_rows_come_out_as_published_with_the_reference_ties(name: str, solver: str) -> None:
    answer = fit(program_file.load(name, "rmt"), RELEASE, "stages", solver, reference=True)
    assert answer.measures
    stages, latency, power = PUBLISHED[name, solver]
    assert (answer.measures.stages, answer.measures.latency_cycles) == (stages, latency)
    assert round(answer.measures.power_w, 2) == power


@pytest.mark.parametrize("name", PROGRAMS)
def test_greedy_placements_are_valid_and_the_same_each_time(name: str) -> None:
    program = program_file.load(name, "rmt")
    for solver in GREEDY:
        first, second = (fit(program, RMT, "stages", solver) for _ in range(2))
        assert first.fits
        assert first.placement == second.placement


@pytest.mark.parametrize(("name", "stages"), list(zip(PROGRAMS, (16, 19, 19, 7), strict=True)))
def test_fewest_stages_are_proven(name: str, stages: int) -> None:
    answer = fit(program_file.load(name, "rmt"), RMT, "stages", workers=2)
    assert (answer.status, answer.value, answer.bound) == ("optimal", stages, stages)
    assert answer.fits


@pytest.mark.parametrize(("objective", "most"), [("latency", 63), ("power", 2.34)])
def test_other_objectives_are_proven_on_the_smallest(objective: str, most: float) -> None:
    answer = fit(program_file.load("l3dc"), RMT, objective, workers=2)
    assert answer.status == "optimal"
    assert answer.value is not None
    assert answer.value <= most
    assert answer.gap == 0


def test_tables_over_what_a_stage_matches_bound_the_stages() -> None:
    tables = [{"name": f"t{k}", "match": [{"width": 32, "kind": "exact"}], "entries": 100} for k in range(100)]
    answer = fit(program_file.from_json({"tables": tables, "dependencies": {}}, None), RMT, "stages", workers=1)
    assert (answer.status, answer.value, answer.bound) == ("optimal", 13, 13)


@pytest.mark.parametrize("objective", ["stages", "latency"])
def test_what_the_objective_leaves_open_is_small_too(objective: str) -> None:
    """A table of 256 entries uses one stage, even if the stages for a large table leave space in several."""
    rows = [("large", 128, "ternary", 30_000), ("small", 32, "exact", 256), ("other", 32, "exact", 256)]
    tables = [{"name": n, "match": [{"width": w, "kind": k}], "entries": e} for n, w, k, e in rows]
    told = {"tables": tables, "dependencies": {"match": [["small", "other"]]}}
    answer = fit(program_file.from_json(told, None), RMT, objective, workers=1)
    assert answer.placement
    assert [name for name, _ in answer.then] == [o for o in WANTED if o != objective]
    assert all(proven for _, proven in answer.then)
    assert len(answer.placement.stages_of["small"]) == len(answer.placement.stages_of["other"]) == 1
    assert answer.measures
    assert answer.measures.blocks == 60 + 2


def test_flexpipe_fits_simple_and_proves_that_mtag_cannot() -> None:
    # A busy machine needs longer for a first placement.
    answers = (
        fit(program_file.load("l2l3-simple", "flexpipe"), FLEXPIPE, workers=2, time_limit=limit_s)
        for limit_s in (3, 12, 48)
    )
    simple = next(answer for answer in answers if answer.fits)
    assert simple.value is not None
    assert simple.value <= 35
    assert fit(
        program_file.load("l2l3-simple", "flexpipe-release"), switch_file.load("flexpipe-release"), solver="mcf"
    ).fits
    mtag = program_file.load("l2l3-mtag", "flexpipe")
    assert fit(mtag, FLEXPIPE).status == "infeasible"
    shared = switch_file.load("flexpipe-release")
    core = explain.core(mtag, shared, needs(mtag, shared))
    assert isinstance(core, explain.Core)
    assert core.minimal
    assert core.chain == ("Routable", "Ipv6_Prefix", "Ipv6_Forwarding", "Dmac_Vlan", "EG_mTag_Check")
    assert any("alone is longer" in line for line in explain.words(core, mtag, shared))


TINY = int(os.environ.get("SUBAK_FIT_TINY", "60"))
WANTED = ("stages", "latency", "power", "blocks")


@pytest.mark.parametrize("batch", range(6))
def test_exact_answers_equal_trying_all(batch: int) -> None:
    """Every objective, and both power models; ``SUBAK_FIT_TINY=2000`` tries that number of programs."""
    fitting = tried = 0
    for seed in range(batch, TINY, 6):
        random = Random(seed)
        switch = brute.rmt_like(random)
        program = brute.spelled(random, as_json=bool(seed % 2))
        for model in ("text", "release"):
            of = replace(switch, power=model)
            least = brute.best_by(program, of, WANTED if model == "text" else ("power",))
            for objective, best in least.items():
                answer = fit(program, of, objective, workers=1)
                tried += 1
                if best is None:
                    assert answer.status == "infeasible", (seed, objective)
                    continue
                fitting += 1
                assert answer.status == "optimal", (seed, objective)
                assert answer.value == pytest.approx(best, abs=1e-5), (seed, objective, model)
                assert answer.placement
                assert not violations(program, of, answer.placement)
    assert tried // 5 < fitting < tried


@pytest.mark.parametrize("batch", range(2))
def test_exact_answers_equal_trying_all_of_shared_rows(batch: int) -> None:
    for k in range(25):
        random = Random(1000 * batch + k)
        switch, program = brute.flexpipe_like(random), brute.program(random, 4, 6)
        for objective, best in brute.best_by(program, switch, ("stages", "blocks")).items():
            answer = fit(program, switch, objective, workers=1)
            if best is None:
                assert answer.status == "infeasible", (batch, k)
                continue
            assert answer.status == "optimal", (batch, k)
            assert answer.value == best, (batch, k, objective)


def test_exact_is_never_worse_than_greedy() -> None:
    random = Random(5)
    for _ in range(20):
        switch, program = brute.rmt_like(random), brute.program(random, 60, 14)
        try:
            exact = fit(program, switch, "power", workers=1)
        except InputError:
            continue
        for solver in GREEDY:
            other = fit(program, switch, "power", solver)
            if other.measures:
                assert exact.value is not None
                assert exact.value <= value_of(other.measures, "power") + 1e-6


def test_counts_of_table_6_2() -> None:
    complex_ = program_file.load("l2l3-complex")
    assert list(complex_.counts().values())[:3] == [25, 2, 16]
    assert list(graph.reduced(complex_).counts().values())[:3] == [25, 2, 10]
    counted = {name: list(program_file.load(name).counts().values())[:3] for name in PROGRAMS[1:]}
    assert counted == {"l2l3-simple": [4, 0, 15], "l2l3-mtag": [6, 1, 16], "l3dc": [7, 3, 1]}


def test_a_core_names_what_stands_in_the_way_and_nothing_else() -> None:
    """Tables with 48 and 32 ternary blocks fill five stages of 16, which leaves no space for an entry of a third
    table."""
    rows = [("a", 96_000, 40), ("b", 32_000, 80), ("c", 32_000, 40), ("d", 100, 30)]
    told = {
        "tables": [{"name": n, "match": [{"width": w, "kind": "ternary"}], "entries": e} for n, e, w in rows],
        "dependencies": {"match": [["d", "a"]]},
    }
    program = program_file.from_json(told, None)
    core = explain.core(program, RMT, needs(program, RMT), 5, 60)
    assert isinstance(core, explain.Core)
    assert core.minimal
    assert core.sizes == ("a", "b")
    assert core.limits == ("blocks",)
    assert core.dependencies == ()
    assert explain.core(program, RMT, needs(program, RMT), 7, 60) == explain.HOLDS
    assert explain.core(program, RMT, needs(program, RMT), 5, 0.01) == explain.UNDECIDED


def test_a_chain_that_is_too_long_is_named() -> None:
    program = program_file.load("l3dc")
    core = explain.core(program, RMT, needs(program, RMT), 6, 60)
    assert isinstance(core, explain.Core)
    assert core.minimal
    assert len(core.chain) == 8
    assert [d.kind for d in core.dependencies].count("successor") == 1
    assert core.sizes == ()
