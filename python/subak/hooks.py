"""Types of callbacks of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Listener = Callable[[int, int, float], None]
"""Callback for progress: finished trials, all trials, and fraction of the work done."""

Weigher = Callable[[dict[str, Any]], Sequence[float]]
"""Callback that sets the weights of a job: see :doc:`the page on applications <applications>`."""
