"""The rule of xwi-beta on networks that its record does not have."""

from __future__ import annotations

import numpy as np
import pytest
import subak
from subak.papers.numfabric import xwi_beta, xwi_ideal


@pytest.mark.parametrize("seed", [70003, 70004, 70007])
def test_a_beta_by_the_rule_or_above_converges(seed: int) -> None:
    network, paths = xwi_ideal.draw_network(seed, equal=False)
    lengths, links = [len(path) for path in paths], np.array([link for path in paths for link in path])
    flows, policy = subak.Rows(np.cumsum([0, *lengths]), links), {"kind": "alpha-fair", "alpha": 1}
    answer = subak.solve(network, flows=flows, policy=policy, tolerance=1e-10)
    rates, prices = answer.flows.to_numpy()["rate_bps"], np.asarray(answer.links.to_numpy()["price"])
    gain = float(np.median(xwi_beta.gains(links, lengths, rates, prices)))
    # Below 2 any beta keeps the rule, and the record has none of these networks.
    for product in (2, 1) if gain >= 2 else (gain,):
        xwi = subak.Xwi(network, flows=flows, policy=policy, beta=1 - product / gain)
        settled, _ = xwi_beta._settle(xwi, rates, max(1.0, 0.1 * gain / product))
        assert settled is not None, (gain, product)
