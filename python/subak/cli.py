"""The ``subak`` command, one function for each subcommand. The modules of a subcommand are imported when it runs."""

from __future__ import annotations

import difflib
import json as json_module
import os
import signal
import sys
import warnings
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subak import extras, renamed, stdout
from subak._subak import __build__, __version__, generators
from subak.commands.allocator import allocator
from subak.commands.completion import scheme_names
from subak.commands.fit import fit
from subak.commands.own import check, new
from subak.commands.plain import Group
from subak.commands.policy import policy
from subak.commands.repro import repro
from subak.commands.testbed import testbed
from subak.errors import InputError, InputWarning
from subak.progress import waiting

if TYPE_CHECKING:
    from subak._subak import Spec, Watched
    from subak.cluster import Cluster

app = typer.Typer(
    name="subak",
    help="Datacenter bandwidth allocation: exact rates, schemes simulated packet by packet, and their comparison.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=Group,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")]
INTERRUPTED = 130
SETTLED = 1e-3
"""Largest relative error of any rate at which an iterative solver counts as converged."""


def main() -> None:
    """Runs the command line. Unusable input gives exit status 2 and one line with the place, the problem and a hint."""
    stdout.watch()
    warnings.showwarning = _show_warning
    try:
        try:
            app(renamed.options(sys.argv[1:]))
        finally:
            stdout.flush()
    except InputError as error:
        _say_error(error)
        sys.exit(2)
    except ModuleNotFoundError as error:
        name = extras.missing(error)
        if not name:
            raise
        _say_error(InputError(None, "", f"{name} is missing", f"install it: {extras.command(name)}"))
        sys.exit(2)
    except BrokenPipeError:
        stdout.drop()
        sys.exit(1)
    except UnicodeEncodeError:
        other = next((given for given in sys.argv if any("\udc80" <= c <= "\udcff" for c in given)), None)
        if other is None:
            raise
        shown = os.fsencode(other).decode(errors="backslashreplace")
        _say_error(InputError(shown, "", "the name has bytes that are not UTF-8", "rename the file"))
        sys.exit(2)


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Prints a warning about an input in the form of the command's messages; other warnings in Python's form."""
    if issubclass(category, InputWarning):
        print(f"subak: note: {message}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, *where[:2]), end="", file=sys.stderr)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"subak {__version__} ({__build__})")
        raise typer.Exit


@app.callback()
def _global(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def _with_networks(example: str) -> str:
    """An epilog with an example and the keys of every network generator."""
    kinds = []
    for one in json_module.loads(generators()):
        keys = [key["name"] + ("" if key["default"] == "required" else f" ({key['default']})") for key in one["keys"]]
        kinds.append(f"{one['kind']}: {', '.join(keys)}")
    networks = "\n\n".join(kinds)
    return (
        f"Example: {example}\n\nA network is a list of links, {{file = PATH}}, or one of these kinds, "
        f"with its keys and their defaults:\n\n{networks}"
    )


@app.command(epilog=_with_networks("subak solve examples/cases/two-flows.json"))
def solve(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case as JSON or TOML, or - for standard input.")],
    solver: Annotated[
        str,
        typer.Option(
            help="Solver: auto; clarabel, an independent method; or an iterative one, shown beside the exact answer: "
            "ned, accelerated, gradient, fgm, newton-like, newton."
        ),
    ] = "auto",
    iterations: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Iterations of an iterative solver, from prices of 1 (default: 1000)."),
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="Step size of an iterative solver (default: by solver).")] = None,
    structure: Annotated[
        str | None,
        typer.Option(metavar="K", help="Degree of WF^K for the order of max-min bottlenecks: 1, 2 or inf."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the graph of --structure to this file, as SVG.")
    ] = None,
    upgrades: Annotated[
        bool, typer.Option("--upgrades", help="Rank links by the gain from doubling their capacity.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File of the JSON answer; as .csv, .parquet or .arrow, of its flows."),
    ] = None,
    json: Json = False,
) -> None:
    """Compute exact rates, bottlenecks and prices of an allocation problem, with a certificate."""
    from subak import columns, inputs
    from subak.api import case_of
    from subak.doubling import rank
    from subak.structures import Structure

    inputs.check_ending("--output", output, ".json", ".csv", *columns.ENDINGS)
    inputs.check_ending("--picture", picture, ".svg")
    if picture and not structure:
        raise InputError(None, "--picture", "there is no structure to draw", "add --structure K")
    _end_at_ctrl_c()
    with waiting("solving"):
        problem = case_of(case)
        answer = problem.solve(solver, iterations, gamma)
        exact = problem.solve("auto") if solver not in ("auto", "clarabel") else None
        found = Structure(problem, structure) if structure else None
        ranked = rank(problem, answer) if upgrades else None
    if picture and found:
        _write(picture, found.to_svg())
    for said in answer.warnings:
        print(f"subak: note: {said}", file=sys.stderr)
    in_columns = output is not None and output.suffix.lower() in (".csv", *columns.ENDINGS)
    document = answer.to_json() if json or (output and not in_columns) else ""
    if found and document:
        document = json_module.dumps(json_module.loads(document) | {"structure": found.to_dict()})
    if ranked is not None and document:
        document = json_module.dumps(json_module.loads(document) | {"upgrades": ranked.to_pylist()})
    off_by = answer.off_by(exact) if exact else 0.0
    if exact and document:
        beside = {"off_by": off_by, "exact": json_module.loads(exact.to_json())}
        document = json_module.dumps(json_module.loads(document) | beside)
    if output and in_columns:
        columns.write(answer, output)
    elif output:
        _write(output, document + "\n")
    if json:
        print(document)
    else:
        from subak import show

        if exact:
            show.beside(answer, exact, off_by)
        else:
            show.answer(answer)
        if found:
            show.structure(found)
        if ranked is not None:
            show.upgrades(ranked)
    raise typer.Exit(0 if answer.status == "optimal" or (exact and off_by <= SETTLED) else 1)


@app.command(epilog="Example: subak converge examples/cases/chain.toml --scheme s-perc")
def converge(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case as JSON or TOML, or - for standard input.")],
    scheme: Annotated[str, typer.Option(help="Scheme that runs on control messages alone, such as s-perc.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of starts, delays and losses.")] = 1,
    drop: Annotated[float, typer.Option(metavar="P", help="Loss probability of a message at a link.")] = 0.0,
    max_rounds: Annotated[float, typer.Option(help="Maximum number of rounds.")] = 600.0,
    order: Annotated[Path | None, typer.Option(help="JSON file of updates to replay.")] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the scheme; repeatable.")
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Include every update at every link in the answer.")] = False,
    json: Json = False,
) -> None:
    """Run a scheme's control messages on a fixed set of flows until its rates are exact, and count the rounds."""
    from subak import inputs
    from subak._subak import converge as run_rounds

    _end_at_ctrl_c()
    options: dict[str, Any] = {"seed": seed, "drop": drop, "max_rounds": max_rounds, "trace": trace}
    options["params"] = dict(map(_parameter, param or []))
    if order:
        options["order"] = inputs.read_json(order)
    data, name = inputs.read(case)
    asked = (inputs.format_of(name, data), name, inputs.folder_of(name), scheme, inputs.to_json(options))
    with waiting("exchanging control messages"):
        answer = run_rounds(data, *asked)
    converged = json_module.loads(answer)
    for said in converged["warnings"]:
        print(f"subak: note: {said}", file=sys.stderr)
    if json:
        print(answer)
    else:
        from subak import show

        show.convergence(converged)
    raise typer.Exit(0 if converged["converged"] else 1)


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(None, "--param", f'"{text}" has no value', "write NAME=VALUE, such as headroom=0.05")
    try:
        return name, json_module.loads(value)
    except ValueError:
        return name, value


def _end_at_ctrl_c() -> None:
    """Makes Ctrl-C end the process at once, even while the Rust core runs: these commands leave no partial results."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@app.command(epilog=_with_networks("subak run examples/demo.toml --out out/demo --jobs 2"))
def run(
    specs: Annotated[list[str], typer.Argument(metavar="SPEC", help="Specs as TOML (or JSON) files.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the results; with several specs, one subfolder for each."),
    ] = None,
    trial: Annotated[int | None, typer.Option(min=0, help="Number of the only trial to run.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of parallel trials (default: number of processors).")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=255,
            help="Threads of one trial; results are the same for any number. Default: 1; without --jobs, trials with "
            "64 hosts or more share the idle processors.",
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            help="Backend of all schemes, in place of the spec's: packet, fluid, or testbed (real TCP between "
            "namespaces of this machine, as root)."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler whose workers run the trials, tcp://HOST:PORT; or local:N, N workers here.",
        ),
    ] = None,
    print_trials: Annotated[
        bool, typer.Option("--print-trials", help="List the trials with an estimate of their cost, and run nothing.")
    ] = False,
    print_paths: Annotated[
        bool, typer.Option("--print-paths", help="List the flows of a trial (--trial, or the first) with their paths.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove earlier results in the folder, and start over.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the runs on a live page of this machine, and print its address.")
    ] = False,
    json: Json = False,
) -> None:
    """Run all trials of a spec: every sweep point, scheme and seed. The same command resumes an interrupted run."""
    from subak import runs

    loaded = [runs.load(spec, backend) for spec in specs]
    if print_trials:
        _print_trials([(spec.name, json_module.loads(spec.trials())) for spec in loaded], json)
        return
    if print_paths:
        _print_paths([(spec.name, json_module.loads(spec.paths(trial or 0))) for spec in loaded], json)
        return
    folders = _folders(specs, out)
    if overwrite and trial is not None:
        raise InputError(None, "--overwrite", "cannot be combined with --trial", "omit one of the two")
    for spec, folder in zip(loaded, folders, strict=True) if overwrite else ():
        runs.remove_results(folder, spec.name)
    if cluster is not None:
        runs.not_with_cluster(
            {"jobs": jobs, "threads": threads, "trial": trial is not None, "watch": watch}, "--cluster"
        )
    with ExitStack() as stack:
        workers = None
        if cluster is not None:
            from subak.cluster import opened

            workers = stack.enter_context(opened(cluster))
        watched = None
        if watch:
            from subak.watching import Page

            watched = stack.enter_context(Page()).watched
        ended = [
            _run_one(spec, folder, jobs, threads, trial, watched, workers)
            for spec, folder in zip(loaded, folders, strict=True)
        ]
    if json:
        _print_json({"schema": 1, "runs": ended})
    else:
        from subak import show

        for one in ended:
            show.outcome(one)
    raise typer.Exit(1 if any(_went_wrong(one) for one in ended) else 0)


def _went_wrong(ended: dict[str, Any]) -> bool:
    """Whether a trial failed, or no flow of a trial finished."""
    return bool(ended["failed"]) or any(w["kind"] == "nothing-finished" for w in ended["warnings"])


def _folders(specs: list[str], out: Path | None) -> list[Path]:
    if out is None:
        raise InputError(None, "--out", "missing", "set the folder of the results: --out DIR")
    if len(specs) == 1:
        return [out]
    folders = [out / Path(spec).stem for spec in specs]
    if len(set(folders)) < len(folders):
        raise InputError(None, "SPEC", "two specs have one file name", "run them apart: folders are named by it")
    return folders


def _run_one(
    spec: Spec,
    folder: Path,
    jobs: int | None,
    threads: int | None,
    trial: int | None,
    watched: Watched | None,
    cluster: Cluster | None,
) -> dict[str, Any]:
    from subak._subak import summary
    from subak.progress import Reporter
    from subak.runs import carry_out

    try:
        with Reporter(spec.name, lambda: cluster.workers if cluster else None) as reporter:
            if cluster:
                cluster.tell = reporter.say
            outcome = carry_out(spec, folder, jobs, threads, trial, reporter, watched=watched, cluster=cluster)
    except KeyboardInterrupt:
        print(f"subak: interrupted; complete trials are in {folder}: the same command resumes", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    compared = json_module.loads(summary(folder)) if outcome["merged"] else None
    return {"out": str(folder), "name": spec.name, **outcome, "summary": compared}


def _only(folders: list[Path]) -> Path:
    if len(folders) > 1:
        raise InputError(None, "DIR", "a movie is of one run", "name one folder")
    return folders[0]


def _print_trials(listed: list[tuple[str, list[dict[str, Any]]]], json: bool) -> None:
    if json:
        _print_json({"schema": 1, "runs": [{"name": name, "trials": trials} for name, trials in listed]})
        return
    from subak import show

    for name, trials in listed:
        show.trials(name, trials)


def _print_paths(listed: list[tuple[str, list[dict[str, Any]]]], json: bool) -> None:
    if json:
        _print_json({"schema": 1, "runs": [{"name": name, "flows": flows} for name, flows in listed]})
        return
    from subak import show

    for name, flows in listed:
        show.paths(name, flows)


@app.command(epilog="Example: subak report out/demo --output report.html")
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Result folders of `subak run`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file.")] = Path("report.html"),
    movie: Annotated[
        bool,
        typer.Option("--movie", help="Write an animation of the network instead: loads, queues and rates over time."),
    ] = False,
    sweep_point: Annotated[str | None, typer.Option(help='Sweep point of the movie, such as "load 0.6".')] = None,
    json: Json = False,
) -> None:
    """Write an HTML report of a run, or of several in the same charts, readable offline."""
    from subak import inputs
    from subak.runs import movie as write_movie
    from subak.runs import report as write_report

    inputs.check_ending("--output", output, ".html", ".htm")
    if sweep_point is not None and not movie:
        raise InputError(None, "--sweep-point", "requires --movie", "add --movie, or omit --sweep-point")
    with waiting("reading results"):
        if movie:
            write_movie(_only(folders), output=output, sweep_point=sweep_point)
        else:
            write_report(*folders, output=output)
    if json:
        _print_json({"schema": 1, "report": str(output), "bytes": output.stat().st_size})
    else:
        print(f"The report is in {output}")


@app.command(epilog="Example: subak plot out/demo --what cdf --format pdf --output cdf.pdf")
def plot(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Result folders of `subak run`.")],
    what: Annotated[
        str,
        typer.Option(
            help="Kind of figure: slowdown (by size), cdf, sweep, rates, fairness, waits, queues, convergence, jobs; "
            "or table, the comparison as LaTeX."
        ),
    ] = "slowdown",
    sweep_point: Annotated[str | None, typer.Option(help='Sweep point, such as "load 0.6".')] = None,
    chart: Annotated[str | None, typer.Option(help="Part of the titles of the charts to draw.")] = None,
    against: Annotated[str | None, typer.Option(metavar="KEY", help='Swept key of the axis, such as "buffer".')] = None,
    curves: Annotated[
        str | None, typer.Option(metavar="KEY", help="Swept key whose values are curves of one chart.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric of the table, by its name in a summary; repeatable.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="svg, pdf, pgf or png (default: by the output file).")
    ] = None,
    font_size: Annotated[float, typer.Option(min=1, max=100, help="Font size, points.")] = 8.0,
    width: Annotated[float, typer.Option(min=50, max=2000, help="Width of the figure, points.")] = 241.0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Output file (default: WHAT.FORMAT).")] = None,
    json: Json = False,
) -> None:
    """Draw the report's charts as figures for a paper, or write its comparison as a LaTeX table."""
    from subak import inputs
    from subak.reporting import figures

    if what != "table" and metric:
        raise InputError(None, "--metric", "requires --what table", "use --what table, or --chart for a chart")
    if what == "table":
        of_charts = {"--sweep-point": sweep_point, "--chart": chart, "--against": against, "--curves": curves}
        for name in (name for name, value in of_charts.items() if value is not None):
            raise InputError(None, name, "not valid with --what table", "omit it, or use another --what")
        kind = form or (output.suffix[1:] if output else "tex")
        if kind != "tex":
            raise InputError(
                None, "--format", f'a table is LaTeX, and "{kind}" is not', "name a file that ends with .tex"
            )
        text = figures.latex(folders, metric or [])
        if output is None and not json:
            print(text, end="")
            return
        inputs.check_ending("--output", output, ".tex")
        path = output or Path("table.tex")
        _write(path, text)
    else:
        form = form or (output.suffix[1:] if output and output.suffix else "svg")
        inputs.check_ending("--output", output, f".{form}")
        path = output or Path(f"{what}.{form}")
        with waiting("drawing"):
            shown = figures.charts(folders, what, sweep_point, chart, against=against, curves=curves)
            figures.save(shown, path, form=form, font_size=font_size, width_pt=width)
    if json:
        _print_json({"schema": 1, "figure": str(path)})
    else:
        print(f"The figure is in {path}")


@app.command(epilog="Example: subak export out/demo --kind flow --output flows.csv")
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Result folder of `subak run`.")],
    kind: Annotated[str | None, typer.Option(help="Kind of rows (default: all): flow, rate, queue, link, ...")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file (default: standard output).")
    ] = None,
    pcapng: Annotated[
        bool, typer.Option("--pcapng", help="Write recorded packets as a capture for Wireshark.")
    ] = False,
    trial: Annotated[int | None, typer.Option(min=0, help="Trial of --pcapng, if several have packets.")] = None,
    link: Annotated[
        list[str] | None, typer.Option(help="Link whose packets --pcapng writes (default: all); repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Write results as CSV, or recorded packets as a capture."""
    from subak import inputs
    from subak._subak import capture as write_capture
    from subak._subak import export as write_csv
    from subak.results import Results

    inputs.check_ending("--output", output, ".pcapng" if pcapng else ".csv")

    if pcapng:
        if kind is not None:
            raise InputError(None, "--kind", "a capture has no kinds of row", "omit --kind or --pcapng")
        if output is None:
            raise InputError(None, "--output", "a capture is no text", "name a file: --output FILE.pcapng")
        with waiting("writing frames"):
            captured = json_module.loads(write_capture(folder, trial, link or [], output))
        if json:
            _print_json({"schema": 1, "output": str(output), **captured})
        return
    if trial is not None or link:
        place = "--trial" if trial is not None else "--link"
        raise InputError(None, place, "requires --pcapng", f"add --pcapng, or omit {place}")
    if json and output is None:
        raise InputError(None, "--json", "CSV and JSON would both go to standard output", "name a file: --output FILE")
    with waiting("writing rows") if output else nullcontext():
        rows = write_csv(folder, kind, output)
    Results(folder).warn_of_lacking()
    if json:
        _print_json({"schema": 1, "output": str(output), "rows": rows})


@app.command(epilog="Example: subak diff out/before out/after")
def diff(
    first: Annotated[Path, typer.Argument(metavar="DIR", help="Result folder of the first run.")],
    second: Annotated[Path, typer.Argument(metavar="DIR", help="Result folder of the second run.")],
    json: Json = False,
) -> None:
    """Compare two runs, metric by metric."""
    from subak._subak import diff as compare
    from subak.results import Results

    with waiting("reading results"):
        difference = json_module.loads(compare(first, second))
    for folder in (first, second):
        Results(folder).warn_of_lacking()
    if json:
        _print_json({"schema": 1, **difference})
    else:
        from subak import show

        show.difference(difference)


@app.command(epilog="Example: subak schema spec > spec.schema.json")
def schema(
    kind: Annotated[str, typer.Argument(metavar="case|spec", help="Kind of document.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file (default: standard output).")
    ] = None,
) -> None:
    """Print the JSON Schema of cases or specs, for completion and checks in editors."""
    from subak import inputs
    from subak.schemas import schema as of

    inputs.check_ending("--output", output, ".json")
    text = json_module.dumps(of(kind), indent=2)
    if output:
        _write(output, text + "\n")
    else:
        print(text)


@app.command(epilog="Example: subak schemes s-perc")
def schemes(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Scheme, optimizer, transport, or pair OPTIMIZER/TRANSPORT to show with its parameters.",
            autocompletion=scheme_names,
        ),
    ] = None,
    all_pairs: Annotated[
        bool,
        typer.Option("--pairs", help="List every optimizer over every transport, with the policies that it serves."),
    ] = False,
    json: Json = False,
) -> None:
    """List schemes, optimizers and transports, or show one with parameters, units and paper."""
    from subak import show
    from subak._subak import pairs, parts
    from subak._subak import schemes as all_schemes

    listed, halves, made = all_schemes(), parts(), pairs()
    if name is not None:
        known = [one["name"] for one in listed + halves]
        listed = [one for one in listed + made if one["name"] == name]
        halves = [one for one in halves if one["name"] == name]
        made = []
        if not listed and not halves:
            near = difflib.get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"choose one of: {', '.join(dict.fromkeys(known))}"
            raise InputError(None, "NAME", f'there is no scheme, optimizer or transport "{name}"', hint)
    if json:
        by_role = {role: [one for one in halves if one["role"] == role] for role in ("optimizer", "transport")}
        made_of = {"optimizers": by_role["optimizer"], "transports": by_role["transport"], "pairs": made}
        _print_json({"schema": 1, "schemes": listed, **made_of})
    elif all_pairs:
        show.pairs(halves, made)
    elif name is None:
        show.schemes(listed, halves)
    else:
        show.scheme(listed, halves)


@app.command(epilog="Example: subak doctor")
def doctor(json: Json = False) -> None:
    """Check what this machine can run, and list missing requirements."""
    from subak import doctor as machine

    if json:
        _print_json(machine.as_json())
    else:
        from subak import show

        show.checks(machine.checks())


app.command(epilog="Example: subak repro perc-fig3.5")(repro)
app.command(epilog="Example: subak fit l2l3-complex --switch rmt --objective stages")(fit)
app.command(epilog="Example: subak new mine.py --like dctcp")(new)
app.command(epilog="Example: subak check mine.py:Dctcp")(check)
app.add_typer(policy, name="policy")
app.add_typer(testbed, name="testbed")
app.add_typer(allocator, name="allocator")


def _print_json(value: Any) -> None:
    print(json_module.dumps(value))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), "", f"cannot be written: {error.strerror}", "name another file") from None


def _say_error(error: InputError) -> None:
    if "--json" in sys.argv and not sys.stderr.isatty():
        faults = [{"file": e.file, "place": e.place, "what": e.what, "hint": e.hint} for e in error.each()]
        said = {"event": "error", "message": str(error), **faults[0], "faults": faults}
        print(json_module.dumps(said), file=sys.stderr)
    else:
        for fault in error.each():
            print(f"subak: {fault.line()}", file=sys.stderr)


if __name__ == "__main__":
    main()
