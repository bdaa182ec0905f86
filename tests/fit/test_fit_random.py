"""Dependency graphs of random programs with every supported construct, against enumeration of every path.

``SUBAK_FIT_PROGRAMS=3000 pytest tests/fit/test_fit_random.py`` tries more programs.
"""

from __future__ import annotations

import json
import os

import pytest
from p4_random import Maker, Paths
from p4_spelled import P4, Json
from subak.pipeline import program_file
from subak.pipeline.program import Program

PROGRAMS = int(os.environ.get("SUBAK_FIT_PROGRAMS", "200"))
BATCHES = 4


def found(program: Program) -> set[tuple[str, str, str]]:
    return {(d.before, d.after, d.kind) for d in program.dependencies}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_dependencies_are_those_of_every_path(batch: int) -> None:
    as_json = edges = 0
    for seed in range(batch, PROGRAMS, BATCHES):
        made = Maker(seed)
        spelled = P4(made)
        paths = Paths(made.flows)
        expected = paths.dependencies()
        program = program_file.read(spelled.text.encode(), f"{seed}.p4")
        assert {t.name for t in program.tables} == paths.nodes.keys(), seed
        assert found(program) == expected, (seed, found(program) ^ expected)
        edges += len(expected)
        if made.json_too:
            as_json += 1
            told = json.dumps(Json(made, old=bool(seed % 2)).told).encode()
            assert found(program_file.read(told, f"{seed}.json")) == expected, seed
    assert as_json > PROGRAMS / BATCHES / 10
    assert edges > PROGRAMS
