"""Figure 4.2 of the PERC thesis: FCTs of RCP, s-PERC*, pFabric and an ideal allocation."""

from subak.papers.perc.datacenter import draw, measure

__all__ = ["draw", "measure"]
