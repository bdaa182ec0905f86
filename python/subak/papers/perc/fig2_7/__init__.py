"""Figure 2.7 of the PERC thesis: FCTs on one link of 10 Gb/s with an RTT of 12 us."""

from subak.papers.perc.one_link import draw, measure

__all__ = ["draw", "measure"]
