"""``subak repro``: runs an experiment, or lists them."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subak.commands.completion import experiment_names
from subak.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from subak.repro.experiment import Experiment
    from subak.repro.reproduce import Verdict

INTERRUPTED = 130


def repro(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Experiment, such as perc-fig3.5.", autocompletion=experiment_names),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the experiments with their verdicts; run nothing.")
    ] = False,
    scale: Annotated[str, typer.Option(help="Scale: smoke (seconds), or paper (the paper's size).")] = "smoke",
    runs: Annotated[int | None, typer.Option(help="Number of repetitions (default: by scale).")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the first run (default: 1 at smoke scale, 1001 at paper scale).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of results, figure and verdict (default: out/repro/NAME-SCALE)."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of threads (default: number of processors).")] = None,
    variants: Annotated[
        bool | None,
        typer.Option("--variants/--no-variants", help="Run the variants too (default: at paper scale)."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler whose workers run the specs' trials, tcp://HOST:PORT; or local:N, N workers here.",
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            help="Where it runs: sim, or testbed (experiments on real hosts, as root); default: the experiment's own."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")] = False,
) -> None:
    """Run one experiment of the papers and compare the measured values with the published ones.

    A smoke run checks that the experiment works, and prints the verdict recorded at paper scale. Its exit status is
    0 if the values are in the range expected at this scale. At paper scale each claim is judged by its whole
    confidence interval: 0 if all are met, 1 if not. The same command resumes an interrupted run.

    Example: subak repro perc-fig2.12 --scale paper --variants
    """
    from subak.repro.catalogue import catalogue

    if listed:
        _print_list(list(catalogue().values()), json)
        return
    if name is None:
        raise InputError(None, "NAME", "missing", "name an experiment; --list shows them")
    options = {"scale": scale, "runs": runs, "seed": seed, "out": out, "jobs": jobs, "variants": variants, "on": on}
    verdict = _reproduce(name, options, cluster)
    if not verdict.figures:
        hint = 'pip install "subak[plot]", and the same command draws it'
        print(f"subak: the picture is missing, for matplotlib is; {hint}", file=sys.stderr)
    if json:
        print(json_module.dumps(verdict.to_dict(), ensure_ascii=False))
    else:
        show(verdict)
    raise typer.Exit(0 if verdict.fine else 1)


def _reproduce(name: str, options: dict[str, Any], where: str | None) -> Verdict:
    from subak.progress import Reporter
    from subak.repro.reproduce import TrialFailedError, reproduce
    from subak.runs import not_with_cluster

    try:
        if where is None:
            with Reporter(name) as reporter:
                return reproduce(name, **options, progress=reporter)
        from subak.cluster import opened

        not_with_cluster({"jobs": options["jobs"]}, "--cluster")
        with opened(where) as cluster, Reporter(name, lambda: cluster.workers) as reporter:
            cluster.tell = reporter.say
            return reproduce(name, **options, progress=reporter, cluster=cluster)
    except TrialFailedError as error:
        print(f"subak: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("subak: interrupted; complete trials of specs are kept: the same command resumes", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def show(verdict: Verdict) -> None:
    """Prints the table of published and measured values, and that of the variants."""
    from subak.repro import records
    from subak.show import console, table

    experiment, told = verdict.experiment, verdict.to_dict()
    out = console()
    out.print(
        f"{experiment.name}: {experiment.title} ({experiment.figure}), {verdict.scale} scale, runs: {verdict.main.runs}"
    )
    out.print(f"Claimed: {experiment.claim}.")
    judged = ["Verdict"] if verdict.scale == "paper" else []
    rows = table(None, "", "Published", "Measured", "Must show at paper scale", *judged, justify="left")
    for check in told["checks"]:
        marked = [mark(check)] if judged else []
        rows.add_row(check["what"], check["published"], check["text"], check["must_show"], *marked)
    out.print(rows)
    _show_variants(out, told)
    for changed in told["changed"]:
        without = f" Without ({changed['without']}): {changed['comes_out']}." if changed["without"] else ""
        out.print(f"Changed: {changed['what']}; {changed['why']}.{without}")
    for note in told["notes"]:
        out.print(f"Note: {note}")
    if verdict.scale == "paper":
        for one in told["unasked"]:
            out.print(f"Not judged: {one}.")
        out.print(f"Verdict: {verdict.word}.")
    else:
        for finding in verdict.broken:
            out.print(f"A run of this size should show otherwise: {finding.check.what}: {finding.text}.")
        out.print(f"Smoke run: {verdict.word}; recorded at paper scale: {records.dated(experiment)}.")
    out.print(f"Results{', figure' if verdict.figures else ''} and verdict.json are in {verdict.folder}")
    if not any(o.ran for o in (verdict.main, *verdict.variants)):
        out.print("The results were there already; remove the folder to run the experiment again.")


def mark(check: dict[str, Any]) -> str:
    """Outcome of a check for tables. Failures are in capitals; an undecided check has the runs that would decide it."""
    outcome = check["outcome"]
    if outcome is not None and check["part"] != "claim":
        return f"{check['part']}: {'holds' if check['leans'] else 'does not hold'}"
    if outcome in (None, "met"):
        return outcome or ""
    return f"undecided: {check['needs']}" if outcome == "undecided" else outcome.upper()


def side_by_side(told: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Checked values of the experiment and of each variant: columns, and one row per value."""
    judged = told["scale"] == "paper"
    outcomes = [{c["key"]: _beside(c, judged) for c in one["checks"]} for one in told["variants"]]
    checked = [c for c in told["checks"] if c["outcome"]]
    rows = [[c["what"], _beside(c, judged), *(o.get(c["key"], "") for o in outcomes)] for c in checked]
    return ["", "as set up", *(one["name"] for one in told["variants"])], rows


def _beside(check: dict[str, Any], judged: bool) -> str:
    counts = judged and check["outcome"] and check["part"] == "claim"
    return f"{check['text']}, {check['outcome']}" if counts else str(check["text"])


def _show_variants(out: Console, told: dict[str, Any]) -> None:
    from subak.show import table

    if not told["variants"]:
        return
    columns, rows = side_by_side(told)
    made = table("Variants", *columns, justify="left")
    for row in rows:
        made.add_row(*row)
    out.print(made)
    for one in told["variants"]:
        said = f": {one['verdict']}" if told["scale"] == "paper" else ""
        out.print(f"{one['name']}: {one['changed']} (runs: {one['runs']}){said}")


def _print_list(experiments: list[Experiment], json: bool) -> None:
    from subak.repro import records

    if json:
        print(json_module.dumps({"schema": 2, "experiments": [_listed(e) for e in experiments]}, ensure_ascii=False))
        return
    from subak import units
    from subak.show import console, table

    rows = table(None, "Experiment", "Figure", "Claim", "Smoke", "Paper", "Verdict at paper scale", justify="left")
    for e in experiments:
        rows.add_row(e.name, e.figure, e.claim, *(units.seconds(s.seconds) for s in e.sizes.values()), records.dated(e))
    out = console()
    out.print(rows)
    out.print(f"{records.tally(experiments)} {records.ages(experiments)}")


def _listed(e: Experiment) -> dict[str, Any]:
    from subak.repro import records

    sizes = {scale: {"runs": s.runs, "seconds": s.seconds} for scale, s in e.sizes.items()}
    return {
        "name": e.name,
        "paper": e.paper,
        "figure": e.figure,
        "title": e.title,
        "claim": e.claim,
        "kind": e.kind,
        "scales": sizes,
        "variants": [v.name for v in e.variants],
        **records.state(e),
    }
