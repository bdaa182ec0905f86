"""The ``subak`` command: one function a subcommand; what a command needs is imported when it runs."""

from __future__ import annotations

import json as json_module
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from subak.errors import InputError

app = typer.Typer(
    name="subak",
    help="Datacenter bandwidth allocation: exact rates, schemes simulated packet by packet, and their comparison.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
INTERRUPTED = 130


def main() -> None:
    """Runs the command line; an unusable input ends it with 2 and one line that says where and why."""
    try:
        app()
    except InputError as error:
        _say_error(error)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


@app.callback()
def _global(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from subak import __version__

        print(f"subak {__version__}")
        raise typer.Exit


@app.command(epilog="Example: [bold]subak solve examples/cases/two-flows.json[/]")
def solve(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case as JSON or TOML, or - for standard input.")],
    solver: Annotated[str, typer.Option(help="auto, or clarabel for the independent second opinion.")] = "auto",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the JSON answer to this file.")] = None,
    json: Json = False,
) -> None:
    """Rates, bottlenecks and prices of one allocation problem, with a certificate."""
    from subak.api import solve as solve_case

    answer = solve_case(case, solver=solver)
    if output:
        _write(output, answer.to_json() + "\n")
    if json:
        print(answer.to_json())
    else:
        from subak import show

        show.answer(answer)
    raise typer.Exit(0 if answer.status == "optimal" else 1)


def _print_json(value: Any) -> None:
    print(json_module.dumps(value))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "name another file") from None


def _say_error(error: InputError) -> None:
    if "--json" in sys.argv and not sys.stderr.isatty():
        parts = {"file": error.file, "place": error.place, "what": error.what, "mend": error.mend}
        print(json_module.dumps({"event": "error", "message": str(error), **parts}), file=sys.stderr)
    else:
        print(f"subak: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
