"""``subak new`` and ``subak check``: schemes that users write."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from subak.progress import waiting


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as mine.py or mine.c.")],
    like: Annotated[str, typer.Option(help="The scheme to start from: dctcp, or rcp (Python only).")] = "dctcp",
) -> None:
    """Write a small scheme in Python or C to start from."""
    from subak.conformance import write_template

    written = " and ".join(map(str, write_template(file, like)))
    if file.suffix == ".c":
        library = file.with_suffix(".so")
        compiled = f"cc -O2 -shared -fPIC -o {library} {file}"
        print(f'wrote {written}; compile it and name it in a spec:\n\n{compiled}\n\n[[scheme]]\nlibrary = "{library}"')
    else:
        named = f'name = "{file.stem}"\npython = "{file}:{like.capitalize()}"'
        print(f"wrote {written}; name it in a spec:\n\n[[scheme]]\n{named}")


def check(
    scheme: Annotated[
        str,
        typer.Argument(metavar="SCHEME", help="FILE:CLASS in Python, a shared object (.so), or the name of a scheme."),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output.")] = False,
) -> None:
    """Check that a scheme delivers every byte once under each fault, reaches its goal, and repeats its results."""
    from subak import conformance

    found = []
    with waiting("checking"):
        for one in conformance.check(scheme):
            found.append(one)
            if not json:
                print(f"{'ok  ' if one.passed else 'FAIL'} {one.name:{conformance.NAME_WIDTH}}  {one.seen}", flush=True)
    if json:
        checks = [one._asdict() for one in found]
        print(json_module.dumps({"schema": 1, "scheme": scheme, "checks": checks}))
    raise typer.Exit(0 if all(one.passed for one in found) else 1)
