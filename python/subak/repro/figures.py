"""Style of the experiments' figures, with colours that colour-blind readers can distinguish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette without yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), "-")


@contextmanager
def style() -> Iterator[None]:
    """Applies the common style to figures that are created in the ``with`` block."""
    import matplotlib as mpl
    from cycler import cycler

    mpl.use("agg")
    settings: dict[Any, Any] = {
        "axes.grid": True,
        "axes.prop_cycle": cycler(color=COLOURS) + cycler(linestyle=DASHES),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": "medium",
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "grid.alpha": 0.3,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
    }
    with mpl.rc_context(settings):
        yield


def axes(rows: int = 1, columns: int = 1, width: float = 4.6, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """A figure of ``rows`` times ``columns`` plots, each of that size in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows))
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, list(grid.flat)


def cdf(plot: Axes, values: Iterable[float], label: str) -> None:
    """The empirical distribution of ``values`` as steps."""
    ordered = sorted(values)
    if not ordered:
        return
    shares = [k / len(ordered) for k in range(len(ordered) + 1)]
    plot.step([ordered[0], *ordered], shares, where="post", label=label)
    plot.set_ylim(0, 1.02)
    plot.set_ylabel("share of runs")


def log_x(plot: Axes) -> None:
    """A logarithmic x axis with plain numbers, even if it spans less than a decade."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    plot.set_xscale("log")
    plot.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plot.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    plot.xaxis.set_minor_formatter(NullFormatter())


def save(figure: Figure, path: Path) -> None:
    """Saves the figure as PNG without metadata, so that equal figures are equal byte for byte."""
    figure.savefig(path, dpi=130, metadata={"Software": None})
