"""Quantities for people to read."""

from __future__ import annotations


def rate(bps: float) -> str:
    """``12 Gb/s``."""
    return _scaled(bps, "b/s")


def size(count: float) -> str:
    """``1.5 MB``."""
    return _scaled(count, "B")


def seconds(value: float) -> str:
    """``12.3 us``, ``2.5 min``, ``30 h``."""
    if value == 0:
        return "0 s"
    for factor, unit in ((3600.0, "h"), (60.0, "min")):
        if abs(value) >= 2 * factor:
            return f"{value / factor:.3g} {unit}"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.4g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _scaled(value: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.99995:
            return f"{value / factor:.5g} {prefix}{unit}"
    return f"{value:.5g} {unit}"
