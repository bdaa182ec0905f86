"""Figure 2.10: FCTs on one link of 100 Gb/s with an RTT of 120 us."""

from subak.papers.perc.one_link import draw, measure

__all__ = ["draw", "measure"]
