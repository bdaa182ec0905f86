"""Help as plain text: without rich, which takes as long to import as the rest of the command."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Group(TyperGroup):
    """A group whose help has the whole first sentence of each command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes name and first sentence of each command."""
        shown = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=1000)) for name, command in shown if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
