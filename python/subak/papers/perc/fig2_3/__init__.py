"""Figure 2.3: the updates of Fair, one by one."""

from subak.papers.perc.traces import draw

__all__ = ["draw"]
