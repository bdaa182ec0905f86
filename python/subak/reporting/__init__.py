"""The HTML report of runs."""

from subak.reporting.page import build

__all__ = ["build"]
