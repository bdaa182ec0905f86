"""``subak.soze_margin`` beside packets: the queue of one link at RTTs on both sides of the margin."""

from __future__ import annotations

import cmath
import math
from pathlib import Path

import pytest
import subak
from subak.soze import _largest_gain

P_US, RATIO = 20.0, 1000.0
FLOWS = 4
QUEUE_US = 3 + P_US * math.log(FLOWS) / math.log(RATIO)
"""The target delay of a quarter of the link."""
LAST_NS = 7_000_000


def swing(base_us: float, m: float, folder: Path) -> float:
    """Standard deviation of the queue over its mean, in the last of 8 ms."""
    # A data packet crosses two links in 0.17 us, its ACK in 0.01.
    delay = f"{(base_us - 0.18) / 4 * 1000:.0f}ns"
    flows = [{"id": f"f{k}", "src": f"h{k}", "dst": "h4", "start": f"{3 * k}us"} for k in range(FLOWS)]
    spec = {
        "network": {"kind": "star", "hosts": FLOWS + 1, "rate": "100Gbps", "link_delay": delay},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "soze", "params": {"p": f"{P_US:g}us", "m": m}}],
        "measure": {"fct": False, "queues": "1us"},
        "packets": {"mtu": 1048, "header": 48, "ack": 64},
        "run": {"duration": "8ms"},
    }
    rows = subak.run(spec, folder, progress=False).table("queue", ["link", "time_ns", "queued_bytes"]).to_pandas()
    late = rows[(rows.link == "switch0->h4") & (rows.time_ns > LAST_NS)].queued_bytes
    return float(late.std() / late.mean())


@pytest.mark.parametrize("m", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("margin", [1.3, 1.05, 0.85, 0.75])
def test_queues_settle_above_the_margin_and_swing_below(m: float, margin: float, tmp_path: Path) -> None:
    rtt_us = _largest_gain(m) / margin * P_US / math.log(RATIO)
    assert subak.soze_margin(f"{rtt_us * 1000:.0f}ns", "20us", m=m) == pytest.approx(margin, rel=1e-3)
    seen = swing(rtt_us - QUEUE_US, m, tmp_path)
    assert seen < 0.03 if margin > 1 else seen > 0.2, seen


@pytest.mark.parametrize("m", [0.01, 0.25, 1.0, 1.99])
def test_the_largest_gain_has_roots_on_the_imaginary_axis(m: float) -> None:
    """At a gain 1% above, Newton's method from that root ends right of the axis, and at 1% below left of it."""
    gain = _largest_gain(m)

    def root(gain: float) -> complex:
        at = complex(0, math.acos(-1 / (_largest_gain(m) - 1)))
        for _ in range(50):
            value = at + m * (1 + (gain - 1) * cmath.exp(-at))
            at -= value / (1 - m * (gain - 1) * cmath.exp(-at))
        return at

    assert root(1.01 * gain).real > 1e-6 > -1e-6 > root(0.99 * gain).real
    assert abs(root(gain).real) < 1e-9


def test_the_papers_margin() -> None:
    assert _largest_gain(0.25) == pytest.approx(7.93, abs=0.005)
    # Figure 2: an RTT of 4.2 us without queues, and 9.7 us of queue.
    assert subak.soze_margin(13.9e-6) == pytest.approx(1.65, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("0us",), "rtt"),
        ((1e-5, -1.0), "p"),
        ((float("nan"),), "rtt"),
        ((1e-5, 2e-5, 2.0), "m"),
        ((1e-5, 2e-5, 0.25, 1.0), "alpha_over_beta"),
    ],
)
def test_what_has_no_margin_is_refused(arguments: tuple[float, ...], place: str) -> None:
    names = ("rtt", "p", "m", "alpha_over_beta")
    with pytest.raises(subak.InputError) as refused:
        subak.soze_margin(**dict(zip(names, arguments, strict=False)))
    assert refused.value.place == place
