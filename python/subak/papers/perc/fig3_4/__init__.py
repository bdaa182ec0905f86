"""Figure 3.4 of the PERC thesis: the updates of s-PERC, one by one."""

from subak.papers.perc.traces import draw

__all__ = ["draw"]
