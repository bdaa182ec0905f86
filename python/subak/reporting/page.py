"""The report as an HTML page: description of the run, comparison, and charts of each measured quantity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from subak import units
from subak._subak import __version__
from subak.errors import InputError
from subak.metrics import (
    CLASSES,
    CONVERGED,
    JOBS,
    Metric,
    classes_of,
    compared,
    of_class,
    sweep_point_of,
    warning_texts,
)
from subak.reporting import over_time, sections, sweeps
from subak.reporting.charts import Block
from subak.reporting.data import RunData, View
from subak.reporting.links import links
from subak.reporting.picture import network
from subak.reporting.svg import block

SWEPT = ("Sweep", "All runs: sweeps")
"""Sections whose charts show all sweep points."""


def build(folders: Sequence[Path]) -> str:
    """A self-contained HTML document of the runs in `folders`."""
    runs = [RunData(Path(folder), f"run{i}") for i, folder in enumerate(folders)]
    if not runs:
        raise InputError(None, "DIR", "no run is named", "name a folder that `subak run` filled")
    _tell_apart(runs)
    title = runs[0].name if len(runs) == 1 else f"{len(runs)} runs"
    css, script = (
        files("subak.reporting").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    body = "".join(_run(run) for run in runs)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - Subak</title><style>{css}</style></head>"
        f"<body><main>{_together(runs)}{body}</main><script>{script}</script></body></html>\n"
    )


def _tell_apart(runs: Sequence[RunData]) -> None:
    """Adds the folder to the names of runs that have the same name."""
    names = [run.name for run in runs]
    for run, name in zip(runs, names, strict=True):
        if names.count(name) > 1:
            run.apart = f" ({run.folder})"
    ends = [run.folder.name for run in runs]
    for run in runs:
        if run.apart:
            run.tag = run.folder.name if ends.count(run.folder.name) == 1 else str(run.folder)


def _together(runs: Sequence[RunData]) -> str:
    """Section with several runs in the same charts; empty for one run."""
    if len(runs) == 1:
        return ""
    items = "".join(f'<li><a href="#{run.anchor}">{escape(run.name)}</a></li>' for run in runs)
    view = View(runs)
    parts: list[tuple[str, str | Block]] = [
        ("All runs: sweeps", sweeps.curves(view)),
        ("All runs: slowdown by size", sections.slowdown(view)),
        ("All runs: completion times", sections.completion(view)),
        ("All runs: queueing delay", sections.waits(view)),
        ("All runs: queues", over_time.queues(view)),
    ]
    return f"<h1>{len(runs)} runs</h1><ul>{items}</ul>{_sections(view, parts)}"


def _run(run: RunData) -> str:
    heading = f'<h1 id="{run.anchor}">{escape(run.name)}</h1>'
    view = View([run])
    parts: list[tuple[str, str | Block]] = [
        ("Comparison", _comparison(run)),
        ("Sweep", sweeps.curves(view)),
        ("Network", network(run)),
        ("Job times", sections.jobs(view)),
        ("Slowdown by size", sections.slowdown(view)),
        ("Completion times", sections.completion(view)),
        ("Rates", over_time.rates(view)),
        ("Fairness", over_time.fairness(view)),
        ("Queueing delay", sections.waits(view)),
        ("Queues", over_time.queues(view)),
        ("Links", links(run)),
        ("Convergence", sections.convergence(view)),
        ("What was run", _about(run)),
    ]
    return heading + _lead(run) + _sections(view, parts)


def _sections(view: View, parts: Sequence[tuple[str, str | Block]]) -> str:
    """The non-empty sections; on wide pages, two sections with one chart each share a row.

    In sections of a sweep, only the charts of the last sweep point are unfolded.
    """
    out = []
    for title, part in parts:
        if part:
            folded = isinstance(part, Block) and len(part.charts) > 2 and sweeps.numeric_axis(view) is not None
            body = part if isinstance(part, str) else block(part, folded and title not in SWEPT)
            half = title not in ("Comparison", "What was run") and body.count("<figure") <= 1
            kind = ' class="half"' if half else ""
            out.append(f"<section{kind}><h2>{title}</h2>{body}</section>")
    return f'<div class="sections">{"".join(out)}</div>'


def _lead(run: RunData) -> str:
    manifest = run.manifest
    seeds = len(manifest["seeds"])
    schemes = ", ".join(map(run.shown, run.schemes))
    said = f"{schemes}; {seeds} seed{'s' * (seeds > 1)} each; subak {manifest['version']}."
    failed = run.results.failed
    warning = f'<p class="warn">{len(failed)} of {len(run.trials)} trials failed.</p>' if failed else ""
    if lacking := run.results.lacking():
        read = f"this is of {run.results.trials_read()} of {len(run.trials)} trials"
        warning += f'<p class="warn">The run is not complete: {read}. {escape(lacking)}.</p>'
    return f'<p class="quiet">{escape(said)}</p>{warning}{_warnings(run.results.warnings)}'


def _warnings(warnings: Sequence[Mapping[str, Any]]) -> str:
    """Warnings of a run at the top of the page; if there are many, the rest is folded."""
    items = [f"<li>{escape(text)}</li>" for text in warning_texts(warnings)]
    if not items:
        return ""
    rest = f"<details><summary>{len(items) - 8} more</summary><ul>{''.join(items[8:])}</ul></details>"
    return f'<div class="warn warnings"><ul>{"".join(items[:8])}</ul>{rest if len(items) > 8 else ""}</div>'


def _comparison(run: RunData) -> str:
    rows, axes = run.summary["rows"], run.summary["axes"]
    shown = compared(rows)
    if not shown:
        return '<p class="quiet">Nothing was measured.</p>'
    head = '<th class="name">Sweep point</th>' if axes else ""
    head += '<th class="name">Scheme</th>' + "".join(f"<th>{escape(m.title)}</th>" for m in shown)
    body = "".join(_compared(run, row, axes, shown) for row in rows)
    interval = any(row["seeds"] > 1 for row in rows)
    note = "± is half the 95% confidence interval over the seeds. " if interval else "One seed: no intervals. "
    meanings = "".join(f"<dt>{escape(m.title)}</dt><dd>{escape(m.about)}</dd>" for m in shown)
    return (
        f'<div class="scroll"><table class="cards"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<p class="quiet">{note}</p><details><summary>What the columns mean</summary><dl>{meanings}</dl></details>'
        f"{_classes(run, rows, axes)}{_jobs(run, rows, axes)}{_criteria(rows, axes)}"
    )


def _classes(run: RunData, rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> str:
    """The metrics of each class of flows, if the workloads have names."""
    found = [(name, row, mine) for name in classes_of(rows) for row in rows if (mine := of_class(row, name))]
    listed = [(name, run.shown(mine["scheme"]), row, mine) for name, row, mine in found]
    return _listed("Class", listed, axes, [(m.title, m) for m in CLASSES])


def _jobs(run: RunData, rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> str:
    """Each job's time, if there are several jobs, and few enough to list."""
    names = dict.fromkeys(job["id"] for row in rows for job in row.get("jobs", ()))
    if len(names) < 2:
        return ""
    jobs = [(row, job) for row in rows for job in row.get("jobs", ())]
    listed = [(name, run.shown(row["scheme"]), row, job) for name in names for row, job in jobs if job["id"] == name]
    return _listed("Job", listed, axes, [(m.title.removeprefix("Mean ").capitalize(), m) for m in JOBS])


def _listed(
    what: str,
    listed: Sequence[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]],
    axes: Sequence[str],
    metrics: Sequence[tuple[str, Metric]],
) -> str:
    """A table of parts of runs: name, scheme, row of the comparison and values of each."""
    if not listed:
        return ""
    titles = (what, "Scheme", *(["Sweep point"] if axes else []))
    head = "".join(f'<th class="name">{title}</th>' for title in titles)
    head += "".join(f"<th>{escape(title)}</th>" for title, _ in metrics)
    body = ""
    for name, scheme, row, values in listed:
        texts = (name, scheme, *([sweep_point_of(row["axes"], axes)] if axes else []))
        first = "".join(f'<td class="name">{escape(text)}</td>' for text in texts)
        body += f"<tr>{first}{''.join(_cell(title, metric.in_row(values)) for title, metric in metrics)}</tr>"
    return f'<div class="scroll"><table class="cards"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _criteria(rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> str:
    """Convergence by each criterion, if there are several."""
    if not any(len(row["convergence"]) > 1 for row in rows):
        return ""
    head = "".join(f"<th>{escape(title)}</th>" for title in ("Criterion", *(m.title for m in CONVERGED)))
    body = ""
    for row in rows:
        name = escape(" ".join(filter(None, (row["scheme"], sweep_point_of(row["axes"], axes)))))
        for one in row["convergence"]:
            values = "".join(f"<td>{escape(m.text(one['metrics'].get(m.name)))}</td>" for m in CONVERGED)
            body += f'<tr><td class="name">{name}</td><td>{one["criterion"]}</td>{values}</tr>'
    table = f'<table><thead><tr><th class="name">Scheme</th>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _compared(run: RunData, row: Mapping[str, Any], axes: Sequence[str], shown: Sequence[Metric]) -> str:
    first = f'<td class="name">{escape(sweep_point_of(row["axes"], axes))}</td>' if axes else ""
    cells = "".join(_cell(metric.title, metric.in_row(row)) for metric in shown)
    return f'<tr>{first}<td class="name">{escape(run.shown(row["scheme"]))}</td>{cells}</tr>'


def _cell(title: str, text: str) -> str:
    """A value, with its interval in a line of its own."""
    mean, _, interval = text.partition(" ± ")
    behind = f" <small>± {escape(interval)}</small>" if interval else ""
    return f'<td data-label="{escape(title)}">{escape(mean)}{behind}</td>'


def _spent(trials: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Cost of the trials: wall-clock time, and processor time except in older manifests, which lack it."""
    wall = {"Time of the trials on the clock": units.seconds(sum(c.get("wall_s", 0.0) for c in trials))}
    if any("cpu_s" not in c for c in trials if "wall_s" in c):
        return wall
    return wall | {"Processor time": units.seconds(sum(c.get("cpu_s", 0.0) for c in trials))}


def _about(run: RunData) -> str:
    manifest = run.manifest
    machine = manifest.get("machine", {})
    facts = {
        "Spec": f"{manifest['name']} (SHA-256 {manifest['spec_sha256'][:16]}...)",
        "Version": f"subak {manifest['version']}; this report: subak {__version__}",
        "Seeds": ", ".join(map(str, manifest["seeds"])),
        "Trials": f"{len(run.trials)}",
        "Swept": ", ".join(manifest["axes"]) or "nothing",
        "Events": f"{sum(c.get('events', 0) for c in manifest['trials']):,}",
        "Packet-hops": f"{sum(c.get('packet_hops', 0) for c in manifest['trials']):,}",
        **_spent(manifest["trials"]),
        "Machine": f"{machine.get('os')}, {machine.get('arch')}, {machine.get('processors')} processors",
        "Folder": str(run.folder),
    }
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    failed = "".join(f'<p class="warn">Trial {c} failed: {escape(e)}</p>' for c, e in run.results.failed.items())
    return f"<dl>{listed}</dl>{failed}<details><summary>The spec</summary><pre>{escape(_spec(run))}</pre></details>"


def _spec(run: RunData) -> str:
    try:
        return (run.folder / "spec.toml").read_text(encoding="utf-8")
    except OSError:
        return json.dumps(run.manifest["spec"], indent=2)
