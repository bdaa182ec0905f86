"""`ideal` with repaired rates beside exact ones, on a fat-tree under web search, with a link that fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import subak as package

SPEC = {
    "network": {"kind": "fat-tree", "k": 8, "rate": "10Gbps"},
    "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.6},
    "scheme": [
        {"name": "ideal", "label": "exact"},
        {"name": "ideal", "label": "near", "params": {"tolerance": 0.01}},
        {"name": "ideal", "label": "nearer", "params": {"tolerance": 1e-6}},
    ],
    "fault": [{"kind": "down", "link": "leaf0->agg0", "down": "3ms", "up": "5ms"}],
    "routing": {"reroute": "500us"},
    "run": {"duration": "8ms"},
}


def test_repaired_rates_give_the_completions_of_exact_ones(tmp_path: Path) -> None:
    results = package.run(SPEC, tmp_path / "out")
    flows = results.table("flow", columns=["scheme", "flow", "fct_ns"]).to_pandas()
    fct = flows.pivot(index="flow", columns="scheme", values="fct_ns").dropna()
    assert len(fct) > 400
    for label, most in (("near", 0.02), ("nearer", 1e-4)):
        off = np.abs(fct[label] / fct["exact"] - 1)
        assert off.mean() < most / 2, (label, off.describe())
        assert abs(fct[label].mean() / fct["exact"].mean() - 1) < most / 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": {"kind": "alpha-fair", "alpha": 1}}, "under max-min alone"),
        ({"routing": {"kind": "spray"}}, "over single paths alone"),
    ],
)
def test_what_is_not_repaired_is_refused_in_words(tmp_path: Path, change: dict, said: str) -> None:
    spec = {**SPEC, "fault": [], "routing": {}, "run": {"duration": "1ms"}, "scheme": [SPEC["scheme"][1]], **change}
    results = package.run(spec, tmp_path / "out")
    assert said in results.failed[0]
