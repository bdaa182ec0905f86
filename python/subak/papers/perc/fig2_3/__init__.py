"""Figure 2.3: Fair, update by update."""

from subak.papers.perc.traces import draw

__all__ = ["draw"]
