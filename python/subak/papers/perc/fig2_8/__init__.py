"""Figure 2.8: completion times on one link of 100 Gb/s with a round trip of 12 us."""

from subak.papers.perc.one_link import draw, measure

__all__ = ["draw", "measure"]
