"""``subak new`` and ``subak check``: schemes that users write."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from subak.progress import waiting


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as mine.py.")],
    like: Annotated[str, typer.Option(help="The scheme to begin with: dctcp or rcp.")] = "dctcp",
) -> None:
    """Write a first scheme of your own in Python, a copy of one of ours."""
    from subak.conformance import write_template

    write_template(file, like)
    name = like.capitalize()
    print(f'wrote {file}; name it in a spec:\n\n[[scheme]]\nname = "{file.stem}"\npython = "{file}:{name}"')


def check(
    scheme: Annotated[
        str,
        typer.Argument(metavar="SCHEME", help="FILE:CLASS in Python, a shared object (.so), or the name of a scheme."),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")] = False,
) -> None:
    """Check what every scheme has to keep: every byte once under each fault, and the same bytes twice."""
    from subak import conformance

    with waiting("checking"):
        found = list(conformance.check(scheme))
    if json:
        checks = [one._asdict() for one in found]
        print(json_module.dumps({"schema": 1, "scheme": scheme, "checks": checks}))
    else:
        width = max(len(one.name) for one in found)
        for one in found:
            print(f"{'ok  ' if one.passed else 'FAIL'} {one.name:{width}}  {one.seen}")
    raise typer.Exit(0 if all(one.passed for one in found) else 1)
