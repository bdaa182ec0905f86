"""Multipath cases against an independent model, written without knowledge of the solver.

Max-min and bandwidth functions are solved by a simplex method in exact fractions, utilities by an interior-point method
with numbers of 500 to 1500 bits. `floor_bps` is the smallest rate by which an error is divided, for starved flows.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import subak
from conftest import ROOT

CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/data/pooled.json").read_text())

# Known deviations: how the solve ends, and the largest relative error. In the first case a flow keeps a thousandth of
# a bit/s that no other flow gets. In the second a demand equals the link's capacity, so that the price is arbitrary,
# and the error is that of a flow with 1e-12 of the utility. In the third a flow of 82 bit/s shares 10 Gb/s.
KNOWN = {"bf-certificate": ("inaccurate", 1e-6), "alpha2-demand": ("optimal", 2e-3), "srpt-eps-05": ("stalled", 0.1)}


@pytest.mark.parametrize("given", CASES, ids=[case["name"] for case in CASES])
def test_rates_are_those_of_the_outside_model(given: dict[str, Any]) -> None:
    answer = json.loads(subak.solve(given["case"]).to_json())
    status, tolerance = KNOWN.get(given["name"], ("optimal", given["tolerance"]))
    assert answer["status"] == status, answer["certificate"]
    floor = given.get("floor_bps", 0.0)
    for flow, right in zip(answer["flows"], given["rates_bps"], strict=True):
        assert abs(flow["rate"] - right) <= tolerance * max(right, floor), (flow["id"], flow["rate"], right)
