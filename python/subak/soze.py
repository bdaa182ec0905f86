"""The margin of stability of Soze's window."""

from __future__ import annotations

import math

from subak import _subak
from subak.errors import InputError


def soze_margin(
    rtt: float | str, p: float | str = "20us", *, m: float = 0.25, alpha_over_beta: float = 1000.0
) -> float:
    """The largest stable gain of Soze's window over its gain: rates converge above 1, and oscillate below.

    The gain is ``ln(alpha_over_beta) * rtt / p``. The largest stable one depends on ``m`` alone: 7.9 at 0.25. Near the
    equilibrium of one link, the deviation x of the logarithm of rates obeys
    x' = -(m / RTT) (x + (G - 1) x(t - RTT)).

    :param rtt: The RTT at the equilibrium, with the queueing delay of every link of the path and of the reverse path,
        seconds or text such as ``"16us"``.
    :param p: The parameter ``p`` of ``soze``, seconds or text. Where ``p`` is 0 the scheme chooses it: the larger of
        20 us and ``ln(alpha_over_beta) / 6`` base RTTs.
    :param m: The parameter ``m``, above 0 and below 2.
    :param alpha_over_beta: alpha over beta, by default the parameter ``unit_flows``.
    """
    rtt_ns, p_ns = _ns("rtt", rtt), _ns("p", p)
    if not 0 < m < 2:
        raise InputError(None, "m", f"{m} is not between 0 and 2", "give a value that lemma 3.1 allows, such as 0.25")
    if not 1 < alpha_over_beta < math.inf:
        raise InputError(None, "alpha_over_beta", f"{alpha_over_beta} is not above 1", "give a ratio such as 1000")
    return _largest_gain(m) / (math.log(alpha_over_beta) * rtt_ns / p_ns)


def _largest_gain(m: float) -> float:
    """Gain at which roots reach the imaginary axis: at w / RTT, where w cos w + m sin w is 0."""
    low, high = math.pi / 2, math.pi
    for _ in range(60):
        middle = (low + high) / 2
        if middle * math.cos(middle) + m * math.sin(middle) > 0:
            low = middle
        else:
            high = middle
    return 1 - 1 / math.cos(low)


def _ns(name: str, value: float | str) -> float:
    ns = float(_subak.nanoseconds(value)) if isinstance(value, str) else float(value) * 1e9
    if not 0 < ns < math.inf:
        raise InputError(None, name, f"{value} is no time above 0", 'give seconds, or text such as "20us"')
    return ns
