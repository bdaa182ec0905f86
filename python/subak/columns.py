"""Flows of files and frames as columns: a million flows reach the core without a dict for each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from subak import inputs, tables
from subak.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from subak._subak import Answer

    Words = tuple[list[str], np.ndarray]
    """Distinct texts of a column, and for each cell the index of its text; `NO_WORD` for an empty cell."""
    Paths = tuple[Words, np.ndarray, np.ndarray]
    """Link ids of all paths in sequence, the index at which each flow's path starts, and the flows without a path."""
    Columns = tuple[list[tuple[str, np.ndarray]], list[tuple[str, Words]], Paths | None]
    """Columns of numbers (NaN for an empty cell), columns of text, and the paths."""

NAMES = ("id", "src", "dst")
PLAIN = (*NAMES, "demand", "weight", "size", "deadline", "subflows", "path")
NO_WORD = 2**32 - 1
MOST_ROWS = 20_000_000
MOST_LINKS = 6 * MOST_ROWS
MOST_BYTES = 1 << 32
LONGEST_NAME = 200

ENDINGS = (".parquet", ".arrow", ".feather")


def is_name(name: str) -> bool:
    """Whether a file of this name has columns."""
    return name.lower().endswith(ENDINGS)


def of_file(path: str | os.PathLike[str]) -> Columns:
    """The flows of a Parquet file or of an Arrow file (also called Feather)."""
    import pyarrow as pa

    name = os.fspath(path)
    shown = name if name.isprintable() and len(name) < LONGEST_NAME else ascii(name)[:LONGEST_NAME]
    try:
        inputs.check_file(name)
        return of_table(tables.with_times(tables.with_index(tables.with_ranges(_read(name)), ""), ""))
    except InputError as error:
        raise InputError(None, error.place, f"{shown} {error.what}", error.hint) from None
    except (OSError, ValueError, pa.ArrowException) as error:
        said = getattr(error, "strerror", None) or (str(error).splitlines() or ["it is damaged"])[0]
        what = f"{shown} cannot be read as a table: {said}"
        raise InputError(None, "", what, "give a Parquet or Arrow file with a row for each flow") from None


def _read(name: str) -> pa.Table:
    """Reads the table of a file. Sizes and offsets in the file are checked before use."""
    import pyarrow as pa
    import pyarrow.parquet

    with pa.OSFile(name) as source:
        if name.lower().endswith(".parquet"):
            file = pa.parquet.ParquetFile(source)
            kinds = [file.schema.column(i) for i in range(len(file.schema))]
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            cells = (group.column(i).num_values for group in groups for i, kind in enumerate(kinds) if "." in kind.path)
            _check_size(file.metadata.num_rows, sum(cells), sum(group.total_byte_size for group in groups))
            # Text with few distinct values is kept as a dictionary.
            texts = [kind.path for kind in kinds if kind.physical_type == "BYTE_ARRAY"]
            words = [path for path in texts if path != "id" and "." not in path]
            return pa.parquet.ParquetFile(source, read_dictionary=words).read()
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        read, batches, rows = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source), [], 0
        for batch in (read.get_batch(i) for i in range(read.num_record_batches)) if is_file else read:
            rows += batch.num_rows
            _check_size(rows, 0, 0)
            # Without this check, offsets beyond the file's bytes would be followed.
            batch.validate(full=True)
            batches.append(batch)
        return pa.Table.from_batches(batches, read.schema)


def _check_size(rows: int, links: int, unpacked_bytes: int) -> None:
    if rows > MOST_ROWS:
        what = f"it has {rows if rows < NO_WORD else 'billions of'} rows"
        raise InputError(None, "", what, f"give at most {MOST_ROWS} flows")
    if links > MOST_LINKS:
        raise InputError(None, "", f"its lists hold {links} cells", f"give at most {MOST_LINKS} links in all paths")
    if unpacked_bytes > MOST_BYTES:
        what = "it holds more than 4 GiB once it is unpacked"
        raise InputError(None, "", what, "omit columns that flows do not have")


def write(answer: Answer, path: Path) -> None:
    """Writes the flows of an answer to a CSV, Parquet or Arrow file; the latter have the rest as JSON metadata."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    told = {
        "status": answer.status,
        "solver": answer.solver,
        "iterations": answer.iterations,
        "seconds": answer.seconds,
    }
    flows = tables.to_arrow(answer.flows)
    flows = flows.replace_schema_metadata({"subak": json.dumps({**told, "certificate": answer.certificate})})
    try:
        if path.name.lower().endswith(".parquet"):
            pa.parquet.write_table(flows, path)
        elif path.name.lower().endswith(".csv"):
            pa.csv.write_csv(_flat(flows), path)
        else:
            pa.feather.write_feather(flows, str(path))
    except OSError as error:
        raise InputError(
            str(path), "", f"it cannot be written: {error.strerror or error}", "name another file"
        ) from None


def _flat(table: pa.Table) -> pa.Table:
    """The table with its lists as JSON text, for CSV."""
    import pyarrow as pa

    for k, field in enumerate(table.schema):
        if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            told = [None if value is None else json.dumps(value) for value in table[field.name].to_pylist()]
            table = table.set_column(k, field.name, pa.array(told, pa.string()))
    return table


def are_plain(table: pa.Table) -> bool:
    """Whether the columns have only names, numbers and one path per flow."""
    return all(key in PLAIN and _is_plain(key, field.type) for key, _, field in _fields(table))


def of_table(table: pa.Table) -> Columns:
    """The columns of a table of flows."""
    numbers, words, paths = [], [], None
    fields = _fields(table)
    for key, _, field in fields:
        if sum(key == other for other, _, _ in fields) > 1:
            raise InputError(None, "", f'the column "{key}" is there twice', "leave one of them away")
        if not _is_plain(key, field.type):
            hint = "give names, numbers, text such as 5Gbps, or of path a list of links"
            raise InputError(None, "", f'the column "{field.name}" holds {field.type}', hint)
    for key, unit, field in fields:
        column = table[field.name]
        if key == "path":
            paths = _lists(column)
        elif unit == "ns":
            words.append((key, _words(column, unit)))
        elif key in NAMES or _is_text(field.type):
            words.append((key, _words(column)))
        else:
            numbers.append((key, _numbers(column)))
    return numbers, words, paths


def _fields(table: pa.Table) -> list[tuple[str, str, pa.Field]]:
    """For each column: its key in a flow, the unit of its numbers if not the key's default, and its type."""
    return [(*tables.NS_AND_BYTES.get(field.name, (field.name, "")), field) for field in table.schema]


def _inner(kind: pa.DataType) -> pa.DataType:
    """Type of the values of a dictionary-encoded column; otherwise the type itself."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_of(_inner(kind)) for is_of in is_text)


def _is_plain(key: str, kind: pa.DataType) -> bool:
    import pyarrow as pa

    if key == "path":
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        return is_list and _is_text(kind.value_type)
    if _is_text(kind) or pa.types.is_null(kind):
        return True
    kind = _inner(kind)
    is_number = pa.types.is_integer(kind) or (key not in NAMES and pa.types.is_floating(kind))
    return is_number or (key not in NAMES and pa.types.is_decimal(kind))


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    import numpy as np
    import pyarrow as pa

    floats = column.cast(pa.float64(), safe=False).fill_null(float("nan"))
    return np.ascontiguousarray(floats.to_numpy(), dtype=np.float64)


def _words(column: pa.ChunkedArray, unit: str = "") -> Words:
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()) if pa.types.is_null(column.type) else column
        column = column.dictionary_encode()
    # Chunks may have different dictionaries.
    known: dict[str, int] = {}
    places = []
    for chunk in column.chunks:
        said = [None if word is None else f"{word}{unit}" for word in chunk.dictionary.to_pylist()]
        here = [NO_WORD if word is None else known.setdefault(word, len(known)) for word in said]
        of = chunk.indices.cast(pa.int64()).fill_null(len(here)).to_numpy(zero_copy_only=False)
        places.append(np.array([*here, NO_WORD], dtype=np.uint32)[of])
    return list(known), np.concatenate([np.zeros(0, np.uint32), *places])


def _lists(column: pa.ChunkedArray) -> Paths:
    import numpy as np
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)])
    if begins[-1] >= NO_WORD:
        what = "the paths have 2^32 links or more together"
        raise InputError(None, "path", what, "give fewer flows or shorter paths")
    missing = np.flatnonzero(column.is_null().to_numpy())
    return _words(pc.list_flatten(column)), begins.astype(np.uint32), missing.astype(np.uint32)
