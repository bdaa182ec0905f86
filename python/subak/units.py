"""Formats of numbers and quantities for people. All output uses them, so that numbers of digits are decided here."""

from __future__ import annotations

import math

DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float, digits: int = 4) -> str:
    """``1.493``, ``12,000``, ``∞``, ``none``: with up to ``digits`` significant digits."""
    if math.isnan(value):
        return "none"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if isinstance(value, int) or (abs(value) >= 10**digits and abs(value) < 1e9):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def short(value: float) -> str:
    """A number with an SI prefix for axis labels: ``1.5k``, ``20M``, ``0.05``."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    factor, prefix = prefix_of(value, 0.9995)
    if prefix:
        return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.0e}"


def figure(value: float) -> str:
    """A mean without its interval: no decimals from 100 on, otherwise three digits, and one digit below 0.01."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 0.01 else f"{value:.1g}"


def with_interval(mean: float, half: float) -> tuple[str, str]:
    """A mean and half its confidence interval: two digits of the latter, and the mean to the same decimal place."""
    if not half > 0 or not math.isfinite(half):
        return figure(mean), f"{half:g}"
    places = 1 - math.floor(math.log10(float(f"{half:.1e}")))
    return tuple(f"{round(value, places):.{max(places, 0)}f}" for value in (mean, half))  # type: ignore[return-value]


def rate(bps: float) -> str:
    """A rate, such as ``12 Gb/s``."""
    return _scaled(bps, "b/s")


def size(count: float) -> str:
    """A size, such as ``1.5 MB``."""
    return _scaled(count, "B")


def seconds(value: float) -> str:
    """A duration, such as ``12.3 us``, ``2.5 min`` or ``30 h``."""
    if value == 0:
        return "0 s"
    for factor, unit in ((3600.0, "h"), (60.0, "min")):
        if abs(value) >= 2 * factor:
            return f"{value / factor:.3g} {unit}"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.4g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def prefix_of(value: float, least: float = 1.0) -> tuple[float, str]:
    """The largest decimal prefix in which ``value`` is at least ``least``, and its factor."""
    return next(((f, p) for f, p in DECIMAL if abs(value) >= f * least), (1.0, ""))


def _scaled(value: float, unit: str) -> str:
    factor, prefix = prefix_of(value, 0.99995)
    return f"{value / factor:.5g} {prefix}{unit}"
