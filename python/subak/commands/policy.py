"""The command ``subak policy``."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from subak.commands.plain import Group

policy = typer.Typer(
    no_args_is_help=True, cls=Group, rich_markup_mode=None, help="Find applications over their weight budget."
)


@policy.callback()
def _group() -> None:
    """Find applications over their weight budget."""


@policy.command(epilog="Example: subak policy check host1.csv host2.csv --policy policy.toml")
def check(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG", help="Logs as CSV: time_ns, 5-tuple, weight.")],
    policy: Annotated[Path, typer.Option(help="Policy as TOML: applications, their budgets and sources.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")] = False,
) -> None:
    """Find applications whose weights exceed their budget. The exit status is 1 if there are any."""
    from subak import policy as checker

    lost: dict[Path, int] = {}
    offences = checker.check(checker.read_policy(policy), checker.read_logs(logs, lost))
    missing = {str(path): count for path, count in lost.items() if count}
    for path, count in missing.items():
        print(f"subak: {path}: {count} weights are missing, which the host could not log", file=sys.stderr)
    if json:
        told = {"schema": 1, "offences": [asdict(one) for one in offences]}
        print(json_module.dumps(told | ({"missing": missing} if missing else {})))
    else:
        for one in offences:
            times = f"from {one.from_ns} ns to {one.until_ns} ns"
            if one.budget is None:
                print(f"{one.application}: no application has this source; its weights came to {one.most:g}, {times}")
            elif one.paid is not None:
                cost = f"payments came to {one.paid:g} of at most {one.pays:g}"
                print(f"{one.application}: {cost}, for weights of {one.most:g} of a budget of {one.budget:g}, {times}")
            else:
                print(f"{one.application}: weights came to {one.most:g} of a budget of {one.budget:g}, {times}")
        if not offences:
            print("no application is over its weight budget")
    raise typer.Exit(1 if offences else 0)


@policy.command(epilog="Example: subak policy log out/jobs --out out/log")
def log(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Result folder of a run with jobs.")],
    out: Annotated[Path, typer.Option(help="Folder of the logs and policies.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")] = False,
) -> None:
    """Write the weights of a run's jobs as logs, and their budgets as policies, for `policy check`."""
    from subak.policy.log import write
    from subak.results import Results

    files = [str(path) for path in write(Results(folder), out)]
    print(json_module.dumps({"schema": 1, "files": files}) if json else "\n".join(files))
