"""Figure 2.3 of the PERC thesis: the updates of Fair, one by one."""

from __future__ import annotations

from typing import Any

from subak.papers.perc.traces import B20, B30, W12, W30, draw, replay
from subak.repro.computed import Progress, Settings

__all__ = ["draw", "run"]


def run(settings: dict[str, Any], runs: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Replays the updates in the order of the figure."""
    Settings(settings)
    return replay("fair", [[B20, B30, W30, W12], [W30, W12, B20, B30]])
