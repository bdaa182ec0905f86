"""The report's charts as figures for papers, drawn by matplotlib, and its comparison as a LaTeX table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.errors import InputError
from subak.metrics import COMPARED, compared, sweep_point_of
from subak.reporting import over_time, sections, sweeps
from subak.reporting.charts import Block, Chart, scale
from subak.reporting.data import RunData, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHAT: Mapping[str, Callable[[View], Block]] = {
    "slowdown": sections.slowdown,
    "cdf": sections.completion,
    "sweep": sweeps.curves,
    "rates": over_time.rates,
    "fairness": over_time.fairness,
    "waits": sections.waits,
    "queues": over_time.queues,
    "convergence": sections.convergence,
    "jobs": sections.jobs,
}
"""Sections of the report that have charts, by the name of the figure."""
FORMATS = ("svg", "pdf", "pgf", "png")
INCH_PT = 72.0
COLUMN_PT = 241.0
"""Width of a column of a two-column paper, points."""
HIGH = 0.68
"""Ratio of height to width of a chart."""
COLOURS = ("#0b6cb3", "#c24a00", "#007a58", "#a8488a", "#7d6100", "#6a45b0", "#3f4a54", "#006f86")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)), (0, (1, 1.5)))
MARKERS = "os^Dvp*X"
MOST_MARKED = 24
MOST_LETTERS = 40


def charts(
    folders: Sequence[Path],
    what: str,
    sweep_point: str | None = None,
    chart: str | None = None,
    *,
    against: str | None = None,
    curves: str | None = None,
) -> list[Chart]:
    """The charts of the figure ``what``, optionally of one ``sweep_point``, or with ``chart`` in their titles.

    For a sweep, ``against`` is the key of the x axis, and ``curves`` the key whose values become curves.
    """
    if what not in WHAT:
        raise InputError(None, "what", f'there is no figure "{what}"', f"choose one of: {', '.join(WHAT)}, table")
    runs = [RunData(folder, f"run{i}") for i, folder in enumerate(folders)]
    for name, given in (("--against", against), ("--curves", curves)):
        if given is not None and what != "sweep":
            raise InputError(None, name, f"it is of a sweep, and this is {what}", "take --what sweep")
    view = View(runs)
    block = sweeps.curves(view, against, curves) if what == "sweep" else WHAT[what](view)
    if not block.charts:
        hint = "see which rows the run has: subak export DIR, or the report"
        raise InputError(str(folders[0]), "", block.said or f"the run has nothing to draw as {what}", hint)
    every = [(name, one) for name, some in block.charts.items() for one in some]
    kept = [one for name, one in every if sweep_point is None or name == sweep_point]
    if not kept:
        raise InputError(
            None, "sweep_point", f'there is none called "{sweep_point}"', f"choose one of: {_listed(block.charts)}"
        )
    found = [one for one in kept if chart is None or chart.lower() in f"{one.title}, {one.choice}".lower()]
    if not found:
        names = dict.fromkeys(", ".join(filter(None, (one.title, one.choice))) for one in kept)
        raise InputError(None, "chart", f'no title has "{chart}"', f"choose from: {_listed(names)}")
    return found


def _listed(names: Mapping[str, Any] | Sequence[str]) -> str:
    return "; ".join(f'"{name}"' for name in names)


def save(
    shown: Sequence[Chart], path: Path, *, form: str, font_size: float = 8.0, width_pt: float = COLUMN_PT
) -> Figure:
    """Writes the charts in one column with one legend on top; ``width_pt`` is the figure's width in points."""
    if form not in FORMATS:
        raise InputError(None, "format", f'"{form}" is none', f"choose one of: {', '.join(FORMATS)}")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        hint = 'install it: pip install "subak[plot]"'
        raise InputError(None, "plot", "matplotlib is missing", hint) from None
    style: dict[Any, Any] = {
        "font.size": font_size,
        "axes.titlesize": font_size,
        "axes.labelsize": font_size,
        "xtick.labelsize": 0.9 * font_size,
        "ytick.labelsize": 0.9 * font_size,
        "legend.fontsize": 0.9 * font_size,
        "axes.linewidth": 0.6,
        "svg.hashsalt": "subak",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "pgf.rcfonts": False,
    }
    with mpl.rc_context(style):
        width = width_pt / INCH_PT
        figure = Figure(figsize=(width, width * HIGH * len(shown)), layout="constrained")
        panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        for panel, chart in zip(panels, shown, strict=True):
            _draw(panel, chart, titled=len(shown) > 1)
        named = {
            line.get_label(): line for panel in panels for line in panel.lines if not line.get_label().startswith("_")
        }
        figure.legend(
            named.values(),
            named.keys(),
            loc="outside upper center",
            ncols=1 if max(map(len, named), default=0) > 20 else 2,
            frameon=False,
        )
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        try:
            if form == "pgf":
                _save_pgf(figure, path)
            else:
                figure.savefig(path, format=form, metadata=dates.get(form))
        except OSError as error:
            raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "name another file") from None
    return figure


def _short(name: str) -> str:
    """A shorter name that fits in a legend."""
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def _save_pgf(figure: Figure, path: Path) -> None:
    """Writes a PGF file. Matplotlib runs TeX to measure text; a missing TeX becomes an ``InputError``."""
    try:
        figure.savefig(path, format="pgf", backend="pgf")
    except (RuntimeError, FileNotFoundError) as error:
        hint = "install TeX (xelatex), or take --format pdf"
        raise InputError(None, "format", f"pgf wants TeX, which is not here: {error}", hint) from None


def _draw(axes: Axes, chart: Chart, titled: bool) -> None:
    for span in chart.spans:
        axes.axvspan(
            span.start, min(span.end, max(float(s.x[-1]) for s in chart.series)), color="#8a4b00", alpha=0.15, lw=0
        )
    for series in chart.series:
        look = {"color": COLOURS[series.slot % len(COLOURS)], "ls": DASHES[series.slot % len(DASHES)], "lw": 1.1}
        points = chart.line(series)
        xs, ys = [x for x, _ in points], [y for _, y in points]
        marker = MARKERS[series.slot % len(MARKERS)] if len(series.x) <= MOST_MARKED and not chart.step else ""
        axes.plot(xs, ys, marker=marker, ms=3, label=_short(series.name), **look)
        if len(series.low):
            axes.vlines(series.x, series.low, series.high, color=look["color"], lw=0.7, alpha=0.7)
    axes.set_xlabel(chart.x.label)
    axes.set_ylabel(chart.y.label)
    if titled:
        axes.set_title(", ".join(filter(None, (chart.title, chart.choice))))
    # The report's own ticks: Matplotlib would format numbers by the range of the axis.
    x = scale(chart.x, (v for one in chart.series for v in one.x), 0, 1)
    y = scale(chart.y, (v for one in chart.series for v in (*one.y, *one.low, *one.high)), 0, 1)
    for of, set_scale, set_ends, set_ticks in (
        (x, axes.set_xscale, axes.set_xlim, axes.set_xticks),
        (y, axes.set_yscale, axes.set_ylim, axes.set_yticks),
    ):
        set_scale("log" if of.axis.log else "linear")
        set_ends(of.low, of.high)
        set_ticks([], minor=True)
        places, names = zip(*of.ticks(), strict=True)
        set_ticks(places, names)
    axes.grid(axis="y", lw=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def latex(folders: Sequence[Path], metrics: Sequence[str] = ()) -> str:
    """The comparison of the runs as a LaTeX table with booktabs rules; ``metrics`` are keys of a summary."""
    known = {metric.name: metric for metric in COMPARED}
    if strange := [name for name in metrics if name not in known]:
        raise InputError(None, "metric", f'there is no metric "{strange[0]}"', f"choose from: {', '.join(known)}")
    runs = [RunData(folder, "") for folder in folders]
    rows = [(run, row) for run in runs for row in run.summary["rows"]]
    shown = [known[name] for name in metrics] or compared([row for _, row in rows])
    swept = any(run.summary["axes"] for run in runs)
    head = [*(["Sweep point"] if swept else []), "Scheme", *(metric.title for metric in shown)]
    lines = [f"\\begin{{tabular}}{{{'l' * (1 + swept)}{'r' * len(shown)}}}", "\\toprule", _row(head), "\\midrule"]
    for run, row in rows:
        name = run.shown(row["scheme"])
        sweep_point = [sweep_point_of(row["axes"], run.summary["axes"])] if swept else []
        lines.append(_row([*sweep_point, name, *(metric.in_row(row) for metric in shown)]))
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


def _escaped(text: str) -> str:
    signs = {
        "±": r"$\pm$",
        "≥": r"$\ge$",
        "%": r"\%",
        "_": r"\_",
        "&": r"\&",
        "#": r"\#",
        "$": r"\$",
        "{": r"\{",
        "}": r"\}",
    }
    signs |= {"^": r"\^{}", "~": r"\~{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}"}
    return "".join(signs.get(sign, sign) for sign in text)
