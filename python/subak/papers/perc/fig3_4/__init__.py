"""Figure 3.4: s-PERC, update by update."""

from subak.papers.perc.traces import draw

__all__ = ["draw"]
