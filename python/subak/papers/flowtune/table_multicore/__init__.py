"""Time of an iteration of NED at the seven sizes in Flowtune's table of multicore times."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from subak.repro import RawResults, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    ("f32_us", "one core, f32"),
    ("f64_us", "one core, f64"),
    ("f_norm_us", "f32 with F-NORM"),
    ("straight_us", "straight loop, f32"),
    ("threads_us", "threads, f32"),
)


def draw(raw: RawResults) -> Figure:
    """Time of an iteration by size, us, one line per implementation."""
    figure, (plot,) = figures.axes(width=7, height=4)
    rows = raw.rows("times")
    sizes = list(dict.fromkeys((row["nodes"], row["flows"]) for row in rows))
    for column, label in COLUMNS:
        times = [median(row[column] for row in rows if (row["nodes"], row["flows"]) == size) for size in sizes]
        plot.plot(range(len(sizes)), times, marker="o", label=label)
    plot.set_xticks(range(len(sizes)), [f"{nodes}\n{flows}" for nodes, flows in sizes])
    plot.set(yscale="log", xlabel="nodes, flows", ylabel="an iteration, us")
    plot.legend(fontsize="small")
    return figure
