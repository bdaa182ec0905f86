"""The constraints that `subak fit --why` reports, against exhaustive search on tiny programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import Any

import fit_brute as brute
import pytest
from subak.pipeline import explain, program_file, switch_file
from subak.pipeline.packing import NeverFitsError, needs
from subak.pipeline.program import Program
from subak.pipeline.switch import Switch


def fits(made: Program, switch: Switch, depth: int) -> bool:
    return any(all(row.stage < depth for row in rows) for rows in brute.placements(made, switch))


def held_to(made: Program, switch: Switch, demands: Collection[Any]) -> tuple[Program, Switch]:
    """The program and switch with these constraints only. Blocks stay limited, since the search needs a bound."""
    tables = tuple(t if t.name in demands else replace(t, entries=1) for t in made.tables)
    kept = tuple(d for d in made.dependencies if d in demands)
    free = replace(
        switch,
        action_bits=switch.action_bits if "action crossbar" in demands else None,
        tables_per_stage=switch.tables_per_stage if "tables" in demands else None,
        fields_per_stage=switch.fields_per_stage if "fields" in demands else None,
        crossbars={k: c if "crossbar" in demands else replace(c, units=99) for k, c in switch.crossbars.items()},
    )
    return replace(made, tables=tables, dependencies=kept), free


def test_a_core_cannot_hold_together_and_any_one_fewer_can() -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        random = Random(seed)
        switch, made = brute.rmt_like(random), brute.program(random, 40, 12)
        try:
            asked = needs(made, switch)
        except NeverFitsError:
            continue
        for depth in (1, 2, 3):
            core = explain.core(made, switch, asked, depth, 20)
            assert fits(made, switch, depth) == (core == explain.HOLDS), (seed, depth)
            if not isinstance(core, explain.Core):
                continue
            assert core.minimal
            demands = {*core.sizes, *core.dependencies, *core.limits}
            if "blocks" in demands:
                assert not fits(*held_to(made, switch, demands), depth), (seed, depth)
            for one in demands - {"blocks"}:
                # Without a limit of blocks the exhaustive search would not end.
                if "blocks" in demands:
                    assert fits(*held_to(made, switch, demands - {one}), depth), (seed, depth, one)
                    seen[type(one).__name__] += 1
    assert seen["str"] > 20
    assert seen["Dependency"] > 5


def test_a_register_is_in_the_way_of_what_depends_on_it() -> None:
    """Two tables that share a register must be in one stage, which is impossible if one matches what the other
    writes."""
    register = [{"name": "seen", "width": 32, "cells": 100}]
    tables = [
        {"name": n, "match": [{"width": 8, "kind": "exact"}], "entries": 10, "registers": register} for n in ("a", "b")
    ]
    rmt = switch_file.load("rmt")
    alone = program_file.from_json({"tables": tables, "dependencies": {}}, None)
    assert explain.core(alone, rmt, needs(alone, rmt), 1, 20) == explain.HOLDS
    tied = program_file.from_json({"tables": tables, "dependencies": {"match": [["a", "b"]]}}, None)
    core = explain.core(tied, rmt, needs(tied, rmt), None, 20)
    assert isinstance(core, explain.Core)
    assert core.minimal
    assert core.limits == ("registers",)
    assert [d.kind for d in core.dependencies] == ["match"]
    assert "seen of a and b" in " ".join(explain.words(core, tied, rmt))


def test_what_the_time_did_not_tell_is_said() -> None:
    program = program_file.load("l2l3-complex", "rmt")
    rmt = switch_file.load("rmt")
    core = explain.core(program, rmt, needs(program, rmt), 15, 3)
    if isinstance(core, explain.Core):
        assert core.minimal or "not decided in the time" in " ".join(explain.words(core, program, rmt))
    else:
        assert core == explain.UNDECIDED


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_no_time_decides_nothing(seconds: float) -> None:
    program, rmt = program_file.load("l3dc"), switch_file.load("rmt")
    assert explain.core(program, rmt, needs(program, rmt), 6, seconds) == explain.UNDECIDED
