"""Figure 3.2 of the PERC thesis: the updates of n-PERC, one by one."""

from subak.papers.perc.traces import draw

__all__ = ["draw"]
