"""The HTML report of runs."""

from subak.report.page import build

__all__ = ["build"]
