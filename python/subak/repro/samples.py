"""Samples from which an experiment's values were computed, in the file ``samples.parquet`` beside the values.

A row is one number of a sample. ``variant`` is empty for the experiment itself. ``part`` is an index if a check has
several values. ``by``, ``paired``, ``low``, ``high``, ``signed`` and ``of`` are attributes of ``values.Sample``, and
``own`` is its attribute ``value``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.errors import InputError
from subak.repro import stats
from subak.repro.values import Measured, Sample, Value, as_json

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "samples.parquet"
Key = tuple[str, str]
"""Name of a variant, and key of a check."""


def write(path: Path, values: Mapping[Key, Value]) -> None:
    """Writes the samples of ``values``; exact values have none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [row for (variant, key), value in values.items() for row in _rows(variant, key, value)]
    table = pa.Table.from_pylist(rows, schema=_schema())
    part = path.with_name(f"{path.name}.part")
    try:
        pq.write_table(table, part, compression="zstd")
        part.replace(path)
    except OSError as error:
        raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "choose another --out") from None


def read(path: Path) -> dict[Key, dict[int, Sample]]:
    """The samples of each value, by the value's index; empty if there is no file.

    Raises ``InputError`` for a table with other columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        return {}
    hint = "record the experiment anew"
    try:
        table = pq.read_table(path)
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise InputError(str(path), "", f"it cannot be read: {error}", hint) from None
    if table.column_names != _schema().names:
        raise InputError(str(path), "", f"its columns are {', '.join(table.column_names)}", hint)
    found: dict[Key, dict[int, Sample]] = {}
    for (variant, key, part), rows in _by_place(table).items():
        found.setdefault((variant, key), {})[part] = _sample(rows)
    return found


def _by_place(table: pa.Table) -> dict[tuple[str, str, int], dict[tuple[Any, ...], list[float]]]:
    """For each value, the numbers of each side of its sample, by the data about the sample in the other columns."""
    import pyarrow as pa

    names = [name for name in table.column_names if name != "value"]
    plain = pa.table({name: _plain(table.column(name)) for name in table.column_names})
    groups = plain.group_by(names, use_threads=False).aggregate([("value", "list")])
    held: dict[tuple[str, str, int], dict[tuple[Any, ...], list[float]]] = {}
    for *place, numbers in zip(*(groups.column(name).to_pylist() for name in [*names, "value_list"]), strict=True):
        told = dict(zip(names, place, strict=True))
        key = told.pop("variant"), told.pop("key"), told.pop("part")
        held.setdefault(key, {})[tuple(told.values())] = numbers
    return held


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _sample(rows: dict[tuple[Any, ...], list[float]]) -> Sample:
    """One sample. If its rows have conflicting data, its statistic is ``several``, which is unknown to ``stats``."""
    by, paired, value, low, high, signed, of, _ = next(iter(rows))
    sides = {str(told[-1]): numbers for told, numbers in rows.items()}
    alike = len({told[:-1] for told in rows}) == 1
    return Sample(str(by) if alike else "several", sides, bool(paired), value, low, high, bool(signed), str(of))


def differing(values: Mapping[Key, Value], held: Mapping[Key, Mapping[int, Sample]]) -> list[str]:
    """Keys of values that differ from what the present code computes from their sample, or lack a sample."""
    return [
        f"{key} ({variant})" if variant else key
        for (variant, key), value in values.items()
        if not all(_follows(one, held.get((variant, key), {}).get(part)) for part, one in _parts(value))
    ]


def _follows(value: Any, sample: Sample | None) -> bool:
    if not isinstance(value, Measured):
        return sample is None
    if sample is None:
        return value.interval is None
    try:
        found = stats.again(sample)
    except (KeyError, IndexError, ValueError, TypeError):
        return False
    # Compared as JSON, in which NaN is text: as a number, NaN differs from itself.
    return bool(json.dumps(as_json(replace(found, note=value.note))) == json.dumps(as_json(value)))


def _parts(value: Value) -> Iterable[tuple[int, Any]]:
    return enumerate(_flat(value))


def _flat(value: Any) -> list[Any]:
    return [one for inner in value for one in _flat(inner)] if isinstance(value, list) else [value]


def _rows(variant: str, key: str, value: Value) -> Iterable[dict[str, Any]]:
    for part, one in _parts(value):
        if isinstance(one, Measured) and one.sample is not None:
            sample = one.sample
            told = {"variant": variant, "key": key, "part": part, "by": sample.by, "paired": sample.paired}
            told |= {"own": sample.value, "low": sample.low, "high": sample.high}
            told |= {"signed": sample.signed, "of": sample.of}
            for side, numbers in sample.sides.items():
                yield from ({**told, "side": side, "value": number} for number in numbers)


def _schema() -> pa.Schema:
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("variant", text),
            ("key", text),
            ("part", pa.int32()),
            ("by", text),
            ("paired", pa.bool_()),
            ("own", pa.float64()),
            ("low", pa.float64()),
            ("high", pa.float64()),
            ("signed", pa.bool_()),
            ("of", text),
            ("side", text),
            ("value", pa.float64()),
        ]
    )
