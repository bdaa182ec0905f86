"""Samples: what each measured value of an experiment was computed from, as ``samples.parquet`` beside its values.

A row is one number of a sample. ``variant`` is empty for the experiment as it is set up; ``part`` counts the values of
a check that has several; ``by``, ``paired``, ``low`` and ``high`` are those of ``values.Sample``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.errors import InputError
from subak.repro import stats
from subak.repro.values import Measured, Sample, Value, as_json

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "samples.parquet"
Key = tuple[str, str]
"""A variant's name, and a check's key."""


def write(path: Path, values: Mapping[Key, Value]) -> None:
    """Writes the samples of ``values``; values that are exact have none."""
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
    """The samples of each value, by its place in the value; none where there is no file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        return {}
    try:
        rows = pq.read_table(path, schema=_schema()).to_pylist()
        held: dict[tuple[str, str, int], Sample] = {}
        for row in rows:
            place = row["variant"], row["key"], row["part"]
            one = held.setdefault(place, Sample(row["by"], {}, row["paired"], row["low"], row["high"]))
            one.sides.setdefault(row["side"], []).append(row["value"])
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise InputError(str(path), "", f"it cannot be read: {error}", "record the experiment anew") from None
    found: dict[Key, dict[int, Sample]] = {}
    for (variant, key, part), sample in held.items():
        found.setdefault((variant, key), {})[part] = sample
    return found


def differing(values: Mapping[Key, Value], held: Mapping[Key, Mapping[int, Sample]]) -> list[str]:
    """What does not follow from its sample by today's statistics, and intervals without a sample."""
    return [
        f"{key} ({variant})" if variant else key
        for (variant, key), value in values.items()
        if not all(_follows(one, held.get((variant, key), {}).get(part)) for part, one in _parts(value))
    ]


def _follows(value: Any, sample: Sample | None) -> bool:
    if not isinstance(value, Measured):
        return True
    if sample is None:
        return value.interval is None
    try:
        found = stats.again(value, sample)
    except (KeyError, IndexError, ValueError):
        return False
    # As JSON, where what is not finite is text and thus equals itself.
    return bool(json.dumps(as_json(found)) == json.dumps(as_json(value)))


def _parts(value: Value) -> Iterable[tuple[int, Any]]:
    return enumerate(_flat(value))


def _flat(value: Any) -> list[Any]:
    return [one for inner in value for one in _flat(inner)] if isinstance(value, list) else [value]


def _rows(variant: str, key: str, value: Value) -> Iterable[dict[str, Any]]:
    for part, one in _parts(value):
        if isinstance(one, Measured) and one.sample is not None:
            sample = one.sample
            told = {"variant": variant, "key": key, "part": part, "by": sample.by, "paired": sample.paired}
            told |= {"low": sample.low, "high": sample.high}
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
            ("low", pa.float64()),
            ("high", pa.float64()),
            ("side", text),
            ("value", pa.float64()),
        ]
    )
