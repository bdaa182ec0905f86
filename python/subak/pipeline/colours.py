"""One colour and one number per table; numbers distinguish neighbours for colour-blind readers."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

ACTION = "#222222"
"""Colour of action data, statistics and registers."""
KINDS = {"match": "#0072B2", "action": "#D55E00", "successor": "#777777", "reverse-match": "#009E73"}


def of_tables(names: Sequence[str]) -> dict[str, str]:
    """A colour for each table: hues by the golden angle, and a different lightness for neighbours in the list."""
    found = {}
    for i, name in enumerate(names):
        light = (0.62, 0.78, 0.70)[i % 3]
        red, green, blue = colorsys.hls_to_rgb(i * 0.618034 % 1.0, light, 0.62)
        found[name] = f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
    return found
