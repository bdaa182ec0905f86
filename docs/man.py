"""Generates the manual page of ``subak`` from the command's own help texts: ``python docs/man.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from subak import __version__
from subak.cli import app

PAGE = Path(__file__).parents[1] / "packages/wheel/data/share/man/man1/subak.1"


def page() -> str:
    """The manual page in troff's man macros."""
    top = typer.main.get_command(app)
    lines = [f'.TH SUBAK 1 "" "subak {__version__}" "Subak"', ".SH NAME", f"subak \\- {_text(top.help or '')}"]
    lines += [".SH SYNOPSIS", ".B subak", '.RI [ OPTIONS ] " COMMAND " [ ARGS ...]', ".SH OPTIONS", *_options(top)]
    lines.append(".SH COMMANDS")
    for words, command in _commands(top):
        arguments = " ".join(map(_named, _shown(command, "argument")))
        lines += [f'.SS "subak {" ".join(words)}{" " if arguments else ""}{_quoted(arguments)}"']
        lines += [*_paragraphs(command.help), *_options(command), *_paragraphs(command.epilog)]
    lines += [".SH EXIT STATUS", *_paragraphs(EXIT)]
    return "\n".join(lines) + "\n"


EXIT = "0 on success, 1 if the work ran and the answer is a failure, 2 for invalid input, 130 after Ctrl-C."


def _commands(top: Any) -> Iterator[tuple[list[str], Any]]:
    for name, command in sorted(top.commands.items()):
        inner = getattr(command, "commands", None)
        if inner is None:
            yield [name], command
        else:
            yield from (([name, one], inner[one]) for one in sorted(inner))


def _shown(command: Any, kind: str) -> list[Any]:
    return [one for one in command.params if one.param_type_name == kind and not getattr(one, "hidden", False)]


def _named(param: Any) -> str:
    return (param.metavar or param.name.upper()) + ("..." if param.nargs == -1 else "")


def _options(command: Any) -> list[str]:
    lines = []
    for one in _shown(command, "argument") + _shown(command, "option"):
        names = ", ".join([*one.opts, *one.secondary_opts]) if one.param_type_name == "option" else ""
        takes_value = names and not getattr(one, "is_flag", False)
        value = _named(one) if takes_value or not names else ""
        default = f" [{one.default}]" if takes_value and isinstance(one.default, str | int | float) else ""
        said = getattr(one, "help", None) or ""
        head = " ".join(f"\\f{font}{_text(word)}\\fR" for font, word in (("B", names), ("I", value)) if word)
        lines += [".TP", head, *_lines(_text(said + default))]
    return lines


def _paragraphs(text: str | None) -> list[str]:
    paragraphs = re.split(r"\n\s*\n", text.strip()) if text else []
    return [line for paragraph in paragraphs for line in (".PP", *_lines(_text(paragraph)))]


def _text(text: str) -> str:
    """The text in one line, with troff's special characters escaped."""
    return " ".join(text.replace("\b", "").split()).replace("\\", "\\e").replace("-", "\\-")


def _lines(text: str) -> list[str]:
    # troff reads a line that begins with a dot or an apostrophe as a macro.
    return [f"\\&{text}" if text[:1] in (".", "'") else text] if text else []


def _quoted(text: str) -> str:
    return _text(text).replace('"', '""')


if __name__ == "__main__":
    PAGE.write_text(page())
