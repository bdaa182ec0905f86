"""Figure 2.9: completion times on one link of 10 Gb/s with a round trip of 120 us."""

from subak.papers.perc.one_link import draw, measure

__all__ = ["draw", "measure"]
