"""NUMFabric's explicit weight inference over an ideal transport, run step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from subak import _subak, inputs
from subak.api import Flows, Problem, Rows, case_of
from subak.errors import InputError
from subak.ned import ALPHA_FAIR, _array, _count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Xwi(_subak.Xwi):
    """xWI as an iteration: prices from rates, weights from prices, and rates from weights by exact weighted max-min.

    Prices start at 0. ``iterations`` is the number of steps so far.

    :param problem: As in ``solve``.
    :param flows: As in ``solve``.
    :param policy: As in ``solve``; alpha-fair with alpha 1 by default.
    :param beta: Weight of the old price in the average (equation 11).
    :param eta: Factor of a link's idle fraction (equation 10).
    :param diminish_after: The new price's share is divided by 1 + t / ``diminish_after`` after t steps; constant by
        default, as in the paper.

    Nagaraj et al., "NUMFabric: Fast and Flexible Bandwidth Allocation in Datacenters", SIGCOMM 2016, equations 7 to 11.
    """

    @inputs.keywords
    def __new__(
        cls,
        problem: Problem,
        *,
        flows: Flows | Rows | None = None,
        policy: str | Mapping[str, Any] | None = None,
        beta: float = 0.5,
        eta: float = 5.0,
        diminish_after: float = math.inf,
    ) -> Self:
        """The iteration before its first step."""
        for name, value, most in (("beta", beta, 1.0), ("eta", eta, math.inf)):
            if not 0 <= value < most:
                raise InputError(None, name, f"it is {value}", f"give a number of at least 0, below {most:g}")
        if not diminish_after > 0:
            raise InputError(None, "diminish_after", f"it is {diminish_after}", "give a number of steps above 0")
        if policy is None and isinstance(problem, _subak.Network):
            policy = ALPHA_FAIR
        return super().__new__(cls, case_of(problem, flows, policy), beta, eta, diminish_after)

    @inputs.keywords
    def step(self, n: int = 1) -> None:
        """Runs ``n`` steps. Other Python threads run meanwhile."""
        self.steps(_count(n))

    @property
    def rates(self) -> NDArray[np.float64]:
        """The rate of each flow, bit/s."""
        return _array(self.rates_table())

    @property
    def prices(self) -> NDArray[np.float64]:
        """The price of each link, in utility per bit/s."""
        return _array(self.prices_table())

    def __repr__(self) -> str:
        """The numbers of flows and steps."""
        return f"<subak.Xwi: {len(self)} flows, {self.iterations} iterations>"
