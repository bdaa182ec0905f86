"""Utility functions as points, for the policy ``utility``."""

from __future__ import annotations

import math
from collections.abc import Callable

from subak import inputs
from subak.errors import InputError


@inputs.keywords
def utility(
    marginal: Callable[[float], float],
    *,
    least: float = 1e6,
    most: float = 1e12,
    points: int = 61,
) -> list[list[float]]:
    """Samples a marginal utility into points for a flow's ``utility``.

    ``marginal`` is U'(x), where x is a rate in bit/s: positive, and decreasing. The ``points`` rates lie between
    ``least`` and ``most``, bit/s, at equal ratios. ln U' is interpolated linearly in ln x, so that two points make
    an alpha-fair utility exact. The unit of U' is that of the other flows' utilities.

    >>> subak.utility(lambda x: 1 / x, least=1e9, most=4e9, points=3)
    [[1000000000.0, 1e-09], [2000000000.0, 5e-10], [4000000000.0, 2.5e-10]]
    """
    for name, rate in (("least", least), ("most", most)):
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
            raise InputError(None, name, f"the rate is {rate!r}", "give a number above 0, in bit/s")
    if most <= least:
        raise InputError(None, "most", f"{most} is not above least ({least})", "give a larger rate")
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points <= 10_000:
        raise InputError(None, "points", f"{points!r} is no number of points", "give a whole number from 2 to 10,000")
    rates = [least * (most / least) ** (k / (points - 1)) for k in range(points - 1)] + [float(most)]
    sampled = [[rate, float(marginal(rate))] for rate in rates]
    before = math.inf
    for rate, value in sampled:
        if not 0 < value < before:
            what = f"U' is {value:g} at {rate:g} bit/s, after {before:g}"
            raise InputError(None, "marginal", what, "give U' of a concave utility, positive and decreasing")
        before = value
    return sampled
