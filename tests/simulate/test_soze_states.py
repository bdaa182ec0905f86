"""The setups of soze-states are those of the figures' own specs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import subak
from subak.papers.soze import states

PAPERS = Path(subak.__file__).parent / "papers/soze"
SPECS = {
    "2": "fig2/spec.toml",
    "3": "fig3/spec.toml",
    "14": "fig14/spec.toml",
    "17": "fig17/spec.toml",
    "18b": "fig18/spec-weights.toml",
    "18c": "fig18/spec-connections.toml",
}


def normal(spec: dict[str, Any]) -> Any:
    """Links by their ends, and flows without the defaults that one of the two writes out."""
    network = spec["network"]
    network = {"links": network} if isinstance(network, list) else dict(network)
    if "links" in network:
        network["links"] = {(a["from"], a["to"]): (a["capacity"], a["delay"]) for a in network["links"]}
    flows = [{k: v for k, v in f.items() if (k, v) != ("start", "0ms")} for f in spec["workload"]["flows"]]
    return network, flows, spec["workload"]["jitter"], spec["packets"], spec["run"]["duration"]


@pytest.mark.parametrize("figure", states.FIGURES)
def test_a_setup_is_the_figures_own(figure: str) -> None:
    assert normal(states.FIGURES[figure]()) == normal(tomllib.loads((PAPERS / SPECS[figure]).read_text()))


def test_phases_lie_between_changes() -> None:
    counts = {name: len(states._phases(build())) for name, build in states.FIGURES.items()}
    assert counts == {"2": 2, "3": 2, "14": 7, "17": 5, "18b": 6, "18c": 4}
