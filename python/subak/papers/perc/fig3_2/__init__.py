"""Figure 3.2 of the PERC thesis: the updates of n-PERC, one by one."""

from __future__ import annotations

from typing import Any

from subak.papers.perc.traces import THREE_ROUNDS, draw, replay
from subak.repro.computed import Progress, Settings

__all__ = ["draw", "run"]


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Replays the updates in the order of the figure."""
    Settings(settings)
    return replay("n-perc", THREE_ROUNDS, ("state",))
