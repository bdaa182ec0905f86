"""Figure 2.3 of the PERC thesis: the updates of Fair, one by one."""

from subak.papers.perc.traces import draw

__all__ = ["draw"]
