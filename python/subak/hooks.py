"""What a run calls back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Listener = Callable[[int, int, float], None]
"""Hears the trials that are done, the trials there are, and the share of the work that is done."""

Weigher = Callable[[dict[str, Any]], Sequence[float]]
"""Sets the weights of a job: see :doc:`the page on applications <applications>`."""
