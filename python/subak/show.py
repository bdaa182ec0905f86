"""What the commands print for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from subak import units

if TYPE_CHECKING:
    from subak._subak import Answer

MOST_ROWS = 40


def console() -> Console:
    """Standard output; tables keep their columns when it is a pipe."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = 200
    return out


def table(title: str | None, *columns: str) -> Table:
    """An empty table whose first column is a name and whose others are figures, aligned to the right."""
    made = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for i, column in enumerate(columns):
        made.add_column(column, justify="left" if i == 0 else "right", no_wrap=i == 0)
    return made


def answer(solved: Answer) -> None:
    """A table of the flows, one of the links that are full, and the certificate."""
    import pyarrow as pa
    import pyarrow.compute as pc

    out = console()
    flows = pa.table(solved.flows)
    rows = table(None, "Flow", "Rate", "Paths", "Bottlenecks")
    for row in flows.slice(0, MOST_ROWS).to_pylist():
        paths = row["path_rates_bps"]
        split = " + ".join(units.rate(r) for r in paths) if len(paths) > 1 else ""
        rows.add_row(row["id"], units.rate(row["rate_bps"]), split, ", ".join(row["bottlenecks"]))
    out.print(rows)
    _more(out, flows.num_rows, "flows")

    links = pa.table(solved.links)
    busy = links.filter(pc.greater(links["price"], 0)) if links.num_rows else links
    if busy.num_rows:
        rows = table(None, "Bottleneck", "Load", "Capacity", "Price")
        for row in busy.slice(0, MOST_ROWS).to_pylist():
            load, capacity = units.rate(row["load_bps"]), units.rate(row["capacity_bps"])
            rows.add_row(row["id"], load, capacity, f"{row['price']:.4g}")
        out.print(rows)
        _more(out, busy.num_rows, "links")
    said = ", ".join(f"{name} {value:.2g}" for name, value in solved.certificate.items())
    out.print(f"{solved.status}: {said} ({solved.solver}, {units.seconds(solved.seconds)})")


def _more(out: Console, count: int, what: str) -> None:
    if count > MOST_ROWS:
        out.print(f"... and {count - MOST_ROWS} more {what}: --json or --output for all of them")
