"""What figures of slowdowns share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def log_y(plot: Axes) -> None:
    """A logarithmic y axis with plain numbers, even if it spans less than a decade."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    plot.set_yscale("log")
    plot.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    plot.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    plot.yaxis.set_minor_formatter(NullFormatter())


def legend_right(plot: Axes) -> None:
    """The legend beside the plot."""
    plot.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
