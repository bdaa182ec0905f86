"""HTML representations of answers, networks and results for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from subak import units

if TYPE_CHECKING:
    from subak._subak import Answer, Network, Table

MOST_ROWS = 12


def answer(found: Answer) -> str:
    """HTML of an answer: the flows' rates, with the certificate below."""
    flows = _first(found.flows)
    rows = [
        (name, units.rate(rate), status or ", ".join(links))
        for name, rate, links, status in zip(
            flows["id"], flows["rate_bps"], flows["bottlenecks"], flows["status"], strict=True
        )
    ]
    said = ", ".join(f"{name.replace('_', ' ')} {value:.2g}" for name, value in found.certificate.items())
    caption = f"{found.status}: {said} ({found.solver}, {units.seconds(found.seconds)})"
    return _table(("Flow", "Rate", "Bottlenecks"), rows, len(found.flows), caption)


def table(given: Table) -> str:
    """HTML of the first rows of a table."""
    rows = [[str(cell) for cell in row] for row in zip(*_first(given).values(), strict=True)]
    return _table(given.column_names, rows, len(given), "")


def network(given: Network) -> str:
    """HTML of a network's links."""
    links = _first(given.links)
    rows = [
        (name, units.rate(bps), units.seconds(ns / 1e9))
        for name, bps, ns in zip(links["id"], links["capacity_bps"], links["delay_ns"], strict=True)
    ]
    return _table(("Link", "Capacity", "Delay"), rows, len(given.links), f"{len(given.hosts)} hosts")


def results(name: str, manifest: dict[str, Any], summary: dict[str, Any] | None) -> str:
    """HTML of the comparison of schemes; without a summary, of the name only."""
    from subak.metrics import COMPARED, shown_labels, sweep_point_of

    if summary is None:
        return f"<p>{escape(name)}</p>"
    labels = shown_labels(manifest)
    shown = [m for m in COMPARED if any(m.name in row["metrics"] for row in summary["rows"])]
    sweep_point = ("Sweep point",) if summary["axes"] else ()
    rows = [
        (
            *((sweep_point_of(row["axes"], summary["axes"]),) if sweep_point else ()),
            labels.get(row["scheme"], row["scheme"]),
            *(metric.text(row["metrics"].get(metric.name)) for metric in shown),
        )
        for row in summary["rows"]
    ]
    return _table((*sweep_point, "Scheme", *(m.title for m in shown)), rows, len(rows), name[1:-1], most=100)


def difference(identical: bool, compared: Iterable[Mapping[str, Any]]) -> str:
    """HTML of a comparison of two runs: one row for each scheme and metric that differs."""
    if identical:
        return "<p>The results are the same, byte for byte.</p>"
    rows = [
        (
            row["scheme"],
            row["sweep_point"],
            row["metric"],
            f"{row['first']:.5g}",
            f"{row['second']:.5g}",
            _p(row["p_value"]),
        )
        for row in compared
        if row["first"] != row["second"]
    ]
    return _table(("Scheme", "Sweep point", "Metric", "First", "Second", "p"), rows, len(rows), "", most=100)


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _first(table: Any) -> dict[str, list[Any]]:
    import pyarrow as pa

    rows: dict[str, list[Any]] = pa.table(table).slice(0, MOST_ROWS).to_pydict()
    return rows


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], count: int, caption: str, most: int = MOST_ROWS) -> str:
    listed = list(rows)[:most]
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in listed)
    more = f"<p>... and {count - len(listed)} more</p>" if count > len(listed) else ""
    return (
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{more}"
        f"{f'<p>{escape(caption)}</p>' if caption else ''}"
    )
