"""Figure 3.2: n-PERC, update by update."""

from subak.papers.perc.traces import draw

__all__ = ["draw"]
