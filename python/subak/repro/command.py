"""``subak repro``: one experiment, or the list of them."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subak.errors import InputError

if TYPE_CHECKING:
    from subak.repro.catalogue import Experiment
    from subak.repro.reproduce import Verdict

INTERRUPTED = 130


def repro(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="An experiment, such as perc-fig3.5.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments, and run nothing.")] = False,
    scale: Annotated[str, typer.Option(help="smoke: seconds; paper: the paper's size.")] = "smoke",
    runs: Annotated[int | None, typer.Option(help="Repetitions, in place of the scale's own number.")] = None,
    seed: Annotated[int, typer.Option(help="The first run's seed.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of results, figure and verdict: out/repro/NAME-SCALE.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Threads; as many as processors if not given.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Run one experiment of the papers and hold what it measures against what was published.

    Ends with 0 if everything holds that must, 1 if not. What is complete is kept: the same command resumes.
    """
    from subak.repro.catalogue import catalogue

    if listed:
        _print_list(list(catalogue().values()), json)
        return
    if name is None:
        raise InputError(None, "NAME", "it is missing", "name an experiment, or see them all with --list")
    verdict = _reproduce(name, scale, runs, seed, out, jobs)
    if json:
        print(json_module.dumps(verdict.to_dict(), ensure_ascii=False))
    else:
        show(verdict)
    raise typer.Exit(0 if verdict.met else 1)


def _reproduce(name: str, scale: str, runs: int | None, seed: int, out: Path | None, jobs: int | None) -> Verdict:
    from subak.progress import Reporter
    from subak.repro.reproduce import CellFailedError, reproduce

    try:
        with Reporter(name) as reporter:
            return reproduce(name, scale=scale, runs=runs, seed=seed, out=out, jobs=jobs, progress=reporter)
    except CellFailedError as error:
        print(f"subak: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("subak: interrupted; complete cells of specs are kept: the same command resumes", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def show(verdict: Verdict) -> None:
    """The table of published against measured."""
    from subak.show import console, table

    experiment = verdict.experiment
    out = console()
    out.print(
        f"{experiment.name}: {experiment.title} ({experiment.figure}), {verdict.scale} scale, runs: {verdict.runs}"
    )
    rows = table(None, "", "Published", "Measured", "Must show", "Verdict", justify="left")
    marks = {True: "met", False: "NOT MET", None: ""}
    for finding in verdict.findings:
        rows.add_row(finding.what, finding.published, finding.text, finding.must_show, marks[finding.met])
    out.print(rows)
    for note in verdict.notes:
        out.print(f"Note: {note}")
    words = "met" if verdict.met else "not met"
    out.print(f"Verdict: {words}. Results, figure and verdict.json are in {verdict.folder}")
    if not verdict.ran:
        out.print("The results were there already; remove the folder to run the experiment again.")


def _print_list(experiments: list[Experiment], json: bool) -> None:
    if json:
        print(json_module.dumps({"schema": 1, "experiments": [_listed(e) for e in experiments]}, ensure_ascii=False))
        return
    from subak import units
    from subak.show import console, table

    rows = table(None, "Experiment", "Figure", "Shows", "Smoke", "Paper", justify="left")
    for e in experiments:
        rows.add_row(e.name, e.figure, e.shows, *(units.seconds(s.seconds) for s in e.sizes.values()))
    console().print(rows)


def _listed(e: Experiment) -> dict[str, Any]:
    sizes = {scale: {"runs": s.runs, "seconds": s.seconds} for scale, s in e.sizes.items()}
    return {"name": e.name, "paper": e.paper, "figure": e.figure, "title": e.title, "shows": e.shows, "scales": sizes}
