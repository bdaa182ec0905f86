"""Plots of results for notebooks; require matplotlib, which ``pip install "subak[plot]"`` installs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak import swept
from subak.errors import InputError
from subak.metrics import CLASSES, COMPARED, classes_of, of_class, shown_labels, sweep_point_of
from subak.swept import Point, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "os^Dvp*X"
MOST_INSIDE = 8
"""Number of legend entries above which the legend is placed outside the plot."""
MOST_ROWS = 25


def plot(
    folder: Path,
    manifest: dict[str, Any],
    summary: dict[str, Any],
    metric: str,
    ax: Axes | None,
    against: str | None = None,
    class_: str | None = None,
) -> Axes:
    """Plots a metric against the swept key; without a sweep, slowdown by flow size or a bar for each scheme."""
    known = {one.name: one for one in (*COMPARED, *CLASSES)}
    if metric not in known:
        raise InputError(None, "metric", f'there is no metric "{metric}"', f"choose one of: {', '.join(known)}")
    axes = ax if ax is not None else _new_axes()
    labels = shown_labels(manifest)
    rows = [row for row in _rows(summary["rows"], class_) if metric in row["metrics"]]
    if not rows:
        raise InputError(str(folder), "", f"the run did not measure {metric}", "see Results.summary()")
    title = known[metric].title
    some = points(manifest, rows)
    numeric = swept.axes(some)
    key = swept.find(against, some, "against") if against else numeric[0] if numeric else None
    if key:
        _against(axes, some, key, metric, labels)
        axes.set_xlabel(swept.label(key, some))
    elif metric.startswith("slowdown") and any(row["sizes"] for row in rows):
        _by_size(axes, rows, summary["axes"], metric, labels)
        axes.set_xlabel("size of the flow, bytes, up to")
    else:
        names = [_name(row, summary["axes"], labels) for row in rows]
        stats = [row["metrics"][metric] for row in rows]
        axes.bar(names, [s["mean"] for s in stats], yerr=_bars(stats, metric))
    axes.set_ylabel(title)
    named = len(axes.get_legend_handles_labels()[1])
    if named > MOST_INSIDE:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="x-small", ncols=-(-named // MOST_ROWS))
    elif named:
        axes.legend()
    return axes


def _rows(rows: list[Any], class_: str | None) -> list[Any]:
    """The rows of a comparison; with ``class_``, for the flows of that class alone."""
    if class_ is None:
        return rows
    names = classes_of(rows)
    if class_ not in names:
        hint = f"choose one of: {', '.join(names)}" if names else "name the workloads of the spec"
        raise InputError(None, "class_", f'no flows are of a class "{class_}"', hint)
    return [mine for row in rows if (mine := of_class(row, class_))]


def _new_axes() -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError:
        hint = 'install it: pip install "subak[plot]"'
        raise InputError(None, "plot", "matplotlib is missing", hint) from None
    axes: Axes = pyplot.subplots(layout="constrained")[1]
    return axes


def _name(row: Any, keys: list[str], labels: dict[str, str]) -> str:
    sweep_point = sweep_point_of(row["axes"], keys)
    scheme = labels.get(row["scheme"], row["scheme"])
    return f"{scheme}, {sweep_point}" if sweep_point else scheme


def _against(axes: Axes, some: list[Point], key: str, metric: str, labels: dict[str, str]) -> None:
    """A line for each scheme and combination of other swept values; constant for a scheme without the parameter."""
    lines: dict[str, list[Point]] = {}
    for point in some:
        others = [other for other in point.values if other != key]
        name = labels.get(point.scheme, point.scheme)
        lines.setdefault(", ".join(filter(None, (name, point.said(others)))), []).append(point)
    every = [point.numbers[key] for point in some if key in point.numbers]
    for i, (name, mine) in enumerate(lines.items()):
        placed = [
            (x, point.row["metrics"][metric])
            for point in mine
            for x in ([point.numbers[key]] if key in point.numbers else [min(every), max(every)])
        ]
        placed.sort(key=lambda pair: pair[0])
        stats = [stat for _, stat in placed]
        axes.errorbar(
            [x for x, _ in placed],
            [s["mean"] for s in stats],
            yerr=_bars(stats, metric),
            marker=MARKERS[i % len(MARKERS)],
            capsize=2,
            label=name,
        )


def _bars(stats: Sequence[Any], metric: str) -> list[list[float]]:
    """Lower and upper error bars; lower ones end at the smallest possible value: 1 for a slowdown, otherwise 0."""
    least = 1.0 if "slowdown" in metric else 0.0
    halves = [s["ci95"] or 0.0 for s in stats]
    below = [max(0.0, min(half, s["mean"] - least)) for s, half in zip(stats, halves, strict=True)]
    return [below, halves]


def _by_size(axes: Axes, rows: list[Any], keys: list[str], metric: str, labels: dict[str, str]) -> None:
    tops = sorted({b["above_bytes"] for row in rows for b in row["sizes"]})
    ends = {b["above_bytes"]: b["up_to_bytes"] for row in rows for b in row["sizes"]}
    axes.set_xticks(range(len(tops)), [f"{ends[top]:.0e}" if ends[top] else "more" for top in tops])
    for i, row in enumerate(rows):
        bins = [b for b in row["sizes"] if metric in b["metrics"]]
        axes.errorbar(
            [tops.index(b["above_bytes"]) for b in bins],
            [b["metrics"][metric]["mean"] for b in bins],
            yerr=_bars([b["metrics"][metric] for b in bins], metric),
            marker=MARKERS[i % len(MARKERS)],
            capsize=2,
            label=_name(row, keys, labels),
        )
    axes.set_yscale("log")
