"""The validator accepts the solvers' placements, and rejects placements that violate any single constraint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from subak.pipeline import Placed, Placement, fit, program_file, switch_file, violations
from subak.pipeline.placement import ACTION_USE, MATCH_USE, REGISTER_USE, STATISTICS_USE

RMT = switch_file.load("rmt")
FLEXPIPE = switch_file.load("flexpipe-release")
PROGRAM = program_file.from_json(
    {
        "tables": [
            {"name": "first", "match": [{"width": 32, "kind": "exact"}], "entries": 2000, "action_width": 40},
            {"name": "second", "match": [{"width": 30, "kind": "ternary"}], "entries": 2000, "statistics_width": 64},
            {
                "name": "third",
                "match": [{"width": 16, "kind": "exact"}],
                "entries": 100,
                "modifies": ["a", "b"],
                "action_width": 8,
                "registers": [{"name": "r", "width": 32, "cells": 4000}],
            },
        ],
        "dependencies": {"match": [["first", "second"]], "successor": [["second", "third"]]},
    },
    None,
)
GOOD = (
    Placed("first", 0, "sram", MATCH_USE, 1, 2000, 1),
    Placed("first", 0, "sram", ACTION_USE, 1, 2000, 1),
    Placed("second", 1, "tcam", MATCH_USE, 1, 2000, 1),
    Placed("second", 1, "sram", STATISTICS_USE, 2, 2000, 1),
    Placed("third", 1, "sram", MATCH_USE, 1, 1000, 1),
    Placed("third", 1, "sram", ACTION_USE, 1, 10000, 1),
    Placed("third", 1, "sram", REGISTER_USE, 2, 4000),
)
Change = Callable[[tuple[Placed, ...]], tuple[Placed, ...]]


def test_the_placement_that_is_broken_below_is_good() -> None:
    assert violations(PROGRAM, RMT, Placement(GOOD)) == []


def changed(number: int, **values: object) -> Change:
    def change(rows: tuple[Placed, ...]) -> tuple[Placed, ...]:
        return (*rows[:number], replace(rows[number], **values), *rows[number + 1 :])

    return change


def without(number: int) -> Change:
    return lambda rows: rows[:number] + rows[number + 1 :]


def added(*more: Placed) -> Change:
    return lambda rows: rows + more


BROKEN: dict[str, Change] = {
    "names": changed(0, table="nobody"),
    "match kind": changed(2, memory="sram"),
    "overhead memory": changed(1, memory="tcam"),
    "entries": changed(0, entries=1999),
    "one format": added(Placed("first", 0, "sram", MATCH_USE, 2, 4000, 2)),
    "units": changed(0, unit=2),
    "capacity": changed(0, entries=2001),
    "formats": changed(0, blocks=9, unit=9),
    "action memory": without(1),
    "statistics memory": changed(3, entries=1000),
    "registers": changed(6, blocks=1),
    "blocks": changed(0, blocks=106, entries=2000),
    "match dependency": lambda rows: tuple(replace(r, stage=1) if r.table == "first" else r for r in rows),
    "successor dependency": lambda rows: tuple(replace(r, stage=0) if r.table == "third" else r for r in rows),
}


@pytest.mark.parametrize("constraint", list(BROKEN))
def test_each_broken_placement_is_rejected_for_its_constraint(constraint: str) -> None:
    found = violations(PROGRAM, RMT, Placement(BROKEN[constraint](GOOD)))
    assert constraint in {v.constraint for v in found}


def test_registers_keep_a_table_in_one_stage() -> None:
    split = (
        *GOOD,
        Placed("third", 2, "sram", MATCH_USE, 1, 1000, 1),
        Placed("third", 2, "sram", ACTION_USE, 1, 10000, 1),
    )
    assert {v.constraint for v in violations(PROGRAM, RMT, Placement(split))} == {"registers"}


def many(count: int, width: int, **more: object) -> tuple[object, Placement]:
    """``count`` tables in the first stage."""
    told = {
        "tables": [
            {"name": f"t{k}", "match": [{"width": width, "kind": "exact"}], "entries": 1, **more} for k in range(count)
        ],
        "dependencies": {},
    }
    units = -(-width // 80)
    action = int(str(more.get("action_width", 0)))
    rows = [Placed(f"t{k}", 0, "sram", MATCH_USE, units, 1000, units) for k in range(min(count, 5))]
    rows += [Placed(f"t{k}", 0, "tcam", MATCH_USE, 1, 2000, 1) for k in range(5, count)]
    if action:
        unit = -(-action // 80)
        rows += [Placed(f"t{k}", 0, "sram", ACTION_USE, unit, 1000, unit) for k in range(count)]
    return program_file.from_json(told, None), Placement(tuple(rows))


@pytest.mark.parametrize(
    ("constraint", "count", "width", "more"),
    [
        ("tables", 9, 40, {}),
        ("crossbar", 5, 100, {}),
        ("action crossbar", 4, 40, {"action_width": 400}),
        ("fields", 3, 40, {"action_width": 1, "modifies": ["x", "y", "z"]}),
    ],
)
def test_limits_of_a_stage_are_checked(constraint: str, count: int, width: int, more: dict[str, object]) -> None:
    program, placement = many(count, width, **more)
    assert {v.constraint for v in violations(program, RMT, placement)} == {constraint}  # type: ignore[arg-type]
    program, placement = many(2, width, **more)
    assert violations(program, RMT, placement) == []  # type: ignore[arg-type]


SHARED = program_file.from_json(
    {
        "tables": [
            {"name": n, "match": [{"width": w, "kind": k}], "entries": e}
            for n, w, k, e in (("a", 60, "ternary", 400), ("b", 30, "ternary", 600), ("c", 70, "exact", 100))
        ],
        "dependencies": {"match": [["a", "c"]]},
    },
    None,
)
SHARED_GOOD = (
    Placed("a", 1, "ffu", MATCH_USE, 2, 400, 2, 0, 0),
    Placed("b", 1, "ffu", MATCH_USE, 1, 600, 1, 0, 400),
    Placed("c", 4, "hash", MATCH_USE, 1, 100, 1, 0, 0),
)
SHARED_BROKEN: dict[str, Change] = {
    "row ranges": changed(1, first_row=399),
    "blocks": changed(0, first_block=11),
    "capacity": changed(0, blocks=1),
    "match kind": changed(0, memory="hash", stage=4),
    "match dependency": lambda rows: (
        rows[0],
        rows[1],
        replace(rows[2], stage=1, memory="ffu", blocks=2, first_block=4),
    ),
    "tables a block": lambda rows: (
        *rows,
        *(Placed("b", 4, "hash", MATCH_USE, 1, 1, 1, 0, 200 + k) for k in range(1)),
    ),
}


def test_shared_rows_are_checked() -> None:
    assert violations(SHARED, FLEXPIPE, Placement(SHARED_GOOD)) == []
    for constraint, change in SHARED_BROKEN.items():
        switch = FLEXPIPE
        if constraint == "tables a block":
            one = tuple(replace(m, tables_per_block=1) for m in FLEXPIPE.memories)
            switch = replace(FLEXPIPE, memories=one)
        found = {v.constraint for v in violations(SHARED, switch, Placement(change(SHARED_GOOD)))}
        assert constraint in found, constraint


def test_two_stages_side_by_side_are_no_before_and_after() -> None:
    rows = (
        Placed("a", 2, "ffu", MATCH_USE, 2, 400, 2, 0, 0),
        Placed("b", 2, "ffu", MATCH_USE, 1, 600, 1, 3, 0),
        Placed("c", 3, "bst", MATCH_USE, 2, 100, 2, 0, 0),
    )
    assert {v.constraint for v in violations(SHARED, FLEXPIPE, Placement(rows))} == {"match dependency"}


def test_exclusive_sharing_wants_tables_that_no_packet_meets_both_of() -> None:
    memories = tuple(replace(m, exclusive=True) for m in FLEXPIPE.memories)
    switch = replace(FLEXPIPE, memories=memories)
    tables = [
        {
            "name": n,
            "match": [{"field": f"{n}.key", "width": 30, "kind": "ternary"}],
            "entries": 400,
            "next": {"default": after},
        }
        for n, after in (("a", "b"), ("b", "end"))
    ]
    program = program_file.from_json({"tables": tables}, None)
    rows = (Placed("a", 1, "ffu", MATCH_USE, 1, 400, 1, 0, 0), Placed("b", 1, "ffu", MATCH_USE, 1, 400, 1, 0, 400))
    assert {v.constraint for v in violations(program, switch, Placement(rows))} == {"exclusive sharing"}
    answer = fit(program, switch, workers=1)
    assert answer.fits
    assert answer.value == 2
    assert fit(program, FLEXPIPE, workers=1).value == 1
