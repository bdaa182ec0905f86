"""Pictures of results for notebooks; they need matplotlib, which comes with ``pip install "subak[plot]"``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.errors import InputError
from subak.metrics import COMPARED, setting_of, shown_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "os^Dvp*X"


def plot(folder: Path, manifest: dict[str, Any], summary: dict[str, Any], metric: str, ax: Axes | None) -> Axes:
    """A metric against what is swept, else slowdown by size of flow or a bar for each scheme."""
    known = {one.name: one for one in COMPARED}
    if metric not in known:
        raise InputError(None, "metric", f'there is no metric "{metric}"', f"choose one of: {', '.join(known)}")
    axes = ax if ax is not None else _new_axes()
    labels = shown_labels(manifest)
    rows = [row for row in summary["rows"] if metric in row["metrics"]]
    swept = _numeric(rows, summary["axes"])
    if not rows:
        raise InputError(str(folder), "", f"the run did not measure {metric}", "see Results.summary()")
    title = known[metric].title
    if swept:
        _against(axes, rows, summary["axes"], swept, metric, labels)
        axes.set_xlabel(swept.split(".")[-1])
    elif metric.startswith("slowdown") and any(row["sizes"] for row in rows):
        _by_size(axes, rows, summary["axes"], metric, labels)
        axes.set_xlabel("size of the flow, bytes, up to")
    else:
        names = [_name(row, summary["axes"], labels) for row in rows]
        stats = [row["metrics"][metric] for row in rows]
        axes.bar(names, [s["mean"] for s in stats], yerr=[s["ci95"] or 0.0 for s in stats])
    axes.set_ylabel(title)
    if axes.get_legend_handles_labels()[1]:
        axes.legend()
    return axes


def _new_axes() -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError:
        mend = 'install it: pip install "subak[plot]"'
        raise InputError(None, "plot", "matplotlib is missing", mend) from None
    axes: Axes = pyplot.subplots(layout="constrained")[1]
    return axes


def _numeric(rows: list[Any], keys: list[str]) -> str | None:
    for key in keys:
        values = {row["axes"].get(key) for row in rows}
        if len(values) > 1 and all(isinstance(v, int | float) for v in values):
            return key
    return None


def _name(row: Any, keys: list[str], labels: dict[str, str]) -> str:
    setting = setting_of(row["axes"], keys)
    scheme = labels.get(row["scheme"], row["scheme"])
    return f"{scheme}, {setting}" if setting else scheme


def _against(axes: Axes, rows: list[Any], keys: list[str], swept: str, metric: str, labels: dict[str, str]) -> None:
    others = [key for key in keys if key != swept]
    lines: dict[str, list[Any]] = {}
    for row in rows:
        lines.setdefault(_name(row, others, labels), []).append(row)
    for i, (name, mine) in enumerate(lines.items()):
        mine.sort(key=lambda row: row["axes"][swept])
        stats = [row["metrics"][metric] for row in mine]
        axes.errorbar(
            [row["axes"][swept] for row in mine],
            [s["mean"] for s in stats],
            yerr=[s["ci95"] or 0.0 for s in stats],
            marker=MARKERS[i % len(MARKERS)],
            capsize=2,
            label=name,
        )


def _by_size(axes: Axes, rows: list[Any], keys: list[str], metric: str, labels: dict[str, str]) -> None:
    tops = sorted({b["above_bytes"] for row in rows for b in row["sizes"]})
    ends = {b["above_bytes"]: b["up_to_bytes"] for row in rows for b in row["sizes"]}
    axes.set_xticks(range(len(tops)), [f"{ends[top]:.0e}" if ends[top] else "more" for top in tops])
    for i, row in enumerate(rows):
        bins = [b for b in row["sizes"] if metric in b["metrics"]]
        axes.errorbar(
            [tops.index(b["above_bytes"]) for b in bins],
            [b["metrics"][metric]["mean"] for b in bins],
            yerr=[b["metrics"][metric]["ci95"] or 0.0 for b in bins],
            marker=MARKERS[i % len(MARKERS)],
            capsize=2,
            label=_name(row, keys, labels),
        )
    axes.set_yscale("log")
