"""``subak fit``: places a packet program in a switch pipeline."""

from __future__ import annotations

import json as json_module
import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subak.errors import InputError
from subak.pipeline.switch import POWER_MODELS
from subak.progress import waiting
from subak.stdout import STDOUT

if TYPE_CHECKING:
    from subak.pipeline.fitting import Answer

TIES = ("program", "reference")


def fit(
    program: Annotated[
        str,
        typer.Argument(metavar="PROGRAM", help="Program of the package, such as l2l3-complex, or a file: JSON or P4."),
    ],
    define: Annotated[
        list[str] | None,
        typer.Option("-D", "--define", metavar="NAME[=VALUE]", help="Define a macro of a P4 program; repeatable."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "-I", "--include", metavar="DIR", help="Search DIR for files that a P4 program includes; repeatable."
        ),
    ] = None,
    switch: Annotated[str, typer.Option(help="Switch: rmt, flexpipe, flexpipe-release, or a TOML file.")] = "rmt",
    objective: Annotated[
        str | None, typer.Option(help="Objective to minimize: stages, latency, power or blocks.")
    ] = None,
    solver: Annotated[
        str, typer.Option(help="Solver: cp-sat, or a greedy one: ffl, ffd, ffls, mcf, each also as -16 and -exact16.")
    ] = "cp-sat",
    power_model: Annotated[
        str,
        typer.Option(
            help="Power model: text (all assigned blocks, equation 6.6), or release (as in the published figures)."
        ),
    ] = "text",
    time_limit: Annotated[
        float, typer.Option(min=0.1, metavar="S", help="Time limit for building, solving and explaining, seconds.")
    ] = 60.0,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Threads of the solver (default: number of processors, at most 8)."),
    ] = None,
    ties: Annotated[
        str, typer.Option(help="Tie-breaking of greedy solvers: program order, or reference, as in the thesis.")
    ] = "program",
    check: Annotated[
        Path | None, typer.Option(metavar="PLACEMENT", help="Placement (JSON) to validate, without solving.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Run every greedy solver too, for comparison.")] = False,
    why: Annotated[
        bool, typer.Option("--why", help="Also explain why a program that fits needs its number of stages.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="SVG file of the map of stages and blocks.")
    ] = None,
    graph: Annotated[Path | None, typer.Option(metavar="FILE", help="SVG file of the table dependency graph.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="HTML file of a report.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File of the JSON answer.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")] = False,
) -> None:
    """Place a packet program's tables in a switch pipeline, with minimum stages, latency, power or blocks.

    The exit status is 0 if the program fits, 1 if it does not (with the reason), 2 for invalid input. With --json
    an input error is a document too.
    """
    with _errors_told(json):
        code = _fit(
            program,
            _defines(define or []),
            include or [],
            switch,
            objective,
            solver,
            power_model,
            time_limit,
            workers,
            ties,
            check,
            compare,
            why,
            picture,
            graph,
            report,
            output,
            json,
        )
    raise typer.Exit(code)


@contextmanager
def _errors_told(json: bool) -> Iterator[None]:
    """Prints an input error as JSON too, if ``--json`` is given."""
    try:
        yield
    except InputError as error:
        if json and error.place != STDOUT:
            told: dict[str, Any] = {"file": error.file, "place": error.place, "what": error.what, "hint": error.hint}
            if found := re.match(r"line (\d+)(?:, column (\d+))?", error.place):
                told |= {"line": int(found[1]), "column": int(found[2]) if found[2] else None}
            print(json_module.dumps({"schema": 1, "status": "unusable", "error": told}))
        raise


def _defines(given: list[str]) -> dict[str, str]:
    """Macros by name, from NAME or NAME=VALUE. A macro without a value is 1, as in C preprocessors."""
    found: dict[str, str] = {}
    for name, equals, value in (one.partition("=") for one in given):
        told = value if equals else "1"
        if found.setdefault(name, told) != told:
            raise InputError(None, "-D", f'"{name}" is defined as {found[name]} and as {told}', "define it once")
    return found


def _fit(
    program: str,
    defines: dict[str, str],
    folders: list[str],
    switch: str,
    objective: str | None,
    solver: str,
    power_model: str,
    time_limit: float,
    workers: int | None,
    ties: str,
    check: Path | None,
    compare: bool,
    why: bool,
    picture: Path | None,
    graph: Path | None,
    report: Path | None,
    output: Path | None,
    json: bool,
) -> int:
    from subak import inputs
    from subak.pipeline import graph_svg, map_svg, program_file, show, switch_file
    from subak.pipeline import report as html

    inputs.check_ending("--output", output, ".json")
    inputs.check_ending("--picture", picture, ".svg")
    inputs.check_ending("--graph", graph, ".svg")
    inputs.check_ending("--report", report, ".html", ".htm")
    if ties not in TIES:
        raise InputError(None, "--ties", f'"{ties}" is none', f"choose one of: {', '.join(TIES)}")
    if workers is not None and (check or solver != "cp-sat") and not (compare or why):
        unused = "a placement is checked" if check else f"{solver} has one thread"
        raise InputError(None, "--workers", f"it has no effect: {unused}", "leave it away, or take --solver cp-sat")
    if check and objective is not None:
        raise InputError(None, "--objective", "it has no effect: a placement is checked", "leave it away")
    if power_model not in POWER_MODELS:
        hint = f"choose one of: {', '.join(POWER_MODELS)}"
        raise InputError(None, "--power-model", f'"{power_model}" is none', hint)
    until = time.monotonic() + time_limit
    target = replace(switch_file.load(switch), power=power_model)
    source = program_file.load(program, target.name, defines, folders)
    if graph:
        _write(graph, graph_svg.draw(source, target))
    with waiting("placing tables"):
        if check:
            found = _checked(source, target, check)
        else:
            found = _solved(source, target, objective, solver, until, workers, ties)
        others = _others(found, until) if compare else []
        core, words = _why(found, until) if (why or not found.fits) and not check else (None, [])
    if picture and found.placement:
        _write(picture, map_svg.draw(source, target, found.placement))
    if report:
        _write(report, html.page(found, others, words))
    document = _document(found, others, core, words) if json or output else {}
    if output:
        _write(output, json_module.dumps(document, indent=1) + "\n")
    if json:
        print(json_module.dumps(document))
    else:
        show.answer(found, others, words)
    return 0 if found.fits else 1


def _solved(
    source: Any,
    target: Any,
    objective: str | None,
    solver: str,
    until: float,
    workers: int | None,
    ties: str,
) -> Answer:
    from subak.pipeline.fitting import fit

    reference = ties == "reference"
    if reference and solver == "cp-sat":
        raise InputError(None, "--ties", "cp-sat has no ties", "name a greedy solver, such as --solver ffl")
    left = max(until - time.monotonic(), 0.1)
    return fit(source, target, objective, solver, time_limit=left, workers=workers, reference=reference)


def _checked(source: Any, target: Any, path: Path) -> Answer:
    from subak import inputs
    from subak.pipeline.fitting import Answer
    from subak.pipeline.placement import measure, read_placement
    from subak.pipeline.reading import Node
    from subak.pipeline.validate import violations

    told = inputs.read_json(path)
    placement = read_placement(Node(told, str(path)))
    wrong = violations(source, target, placement)
    unknown = any(v.constraint == "names" for v in wrong)
    measures = None if unknown else measure(source, target, placement)
    objective = "blocks" if target.shares else "stages"
    found = Answer(source, target, "check", objective, "feasible", placement, measures)
    answered = told if isinstance(told, dict) else {}
    return replace(found, wrong=(*map(str, wrong), *_untrue(answered, found.to_dict())))


def _untrue(told: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """One line for each value of a placement file that differs from the value computed from the placement."""
    keys = ["program", "switch", "stages", "latency_cycles", "blocks"]
    if told.get("power_model", found["power_model"]) == found["power_model"]:
        keys.append("power_w")
    given = [key for key in keys if key in told and found[key] is not None]
    return [
        f"{key}: the answer says {json_module.dumps(told[key])[:60]}, it is {json_module.dumps(found[key])} (answer)"
        for key in given
        if not _same(told[key], found[key])
    ]


def _same(told: Any, found: Any) -> bool:
    if isinstance(told, float) and isinstance(found, float):
        return math.isclose(told, found, rel_tol=1e-9, abs_tol=1e-12)
    return bool(told == found) and not isinstance(told, bool)


def _others(found: Answer, until: float) -> list[Answer]:
    from subak.pipeline.fitting import GREEDY, fit

    names = [name for name in GREEDY if name != found.solver]
    answers = []
    for name in names:
        left = max(until - time.monotonic(), 0.1)
        answers.append(fit(found.program, found.switch, found.objective, name, time_limit=left))
    return answers


def _why(found: Answer, until: float) -> tuple[dict[str, Any] | None, list[str]]:
    """Why the program does not fit; or, for ``--why`` of one that fits, why not in one stage less.

    Data and sentences.
    """
    from subak.pipeline import explain
    from subak.pipeline.packing import NeverFitsError, needs

    if found.fits and not (found.objective == "stages" and found.value and found.value > 1):
        return None, []
    depth = int(found.value) - 1 if found.fits and found.value else None
    try:
        asked = needs(found.program, found.switch)
    except NeverFitsError:
        return None, []
    core = explain.core(found.program, found.switch, asked, depth, until - time.monotonic())
    fewer = "fewer stages" if found.fits else "it"
    if isinstance(core, explain.Core):
        return core.to_dict(), explain.words(core, found.program, found.switch)
    if core == explain.UNDECIDED:
        return None, [f"Whether {fewer} {'do' if found.fits else 'fits'} was not decided in the time."]
    return None, [f"A placement in {depth} stages exists." if found.fits else "Another solver can place it."]


def _document(
    found: Answer, others: Sequence[Answer], core: dict[str, Any] | None, words: Sequence[str]
) -> dict[str, Any]:
    from subak.pipeline.graph_svg import critical_path

    path = critical_path(found.program, found.switch)
    document = found.to_dict()
    document["critical_path"] = {"tables": list(path.tables), "length": path.length}
    document["dependencies"] = [
        {"before": d.before, "after": d.after, "kind": d.kind, "fields": list(d.fields)}
        for d in found.program.dependencies
    ]
    if core or words:
        document["blocking"] = {**(core or {}), "words": list(words)}
    if others:
        document["others"] = [{k: v for k, v in one.to_dict().items() if k != "placement"} for one in others]
    return document


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), "", f"cannot be written: {error.strerror}", "name another file") from None
