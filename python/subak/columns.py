"""Flows in columns, of files and frames: what a million of them are handed over as, without a dict for each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from subak import tables
from subak.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from subak._subak import Answer

    Words = tuple[list[str], np.ndarray]
    """Those that occur, and the place of each cell's; `NO_WORD` where it is empty."""
    Columns = tuple[list[tuple[str, np.ndarray]], list[tuple[str, Words]], tuple[Words, np.ndarray] | None]
    """Columns of numbers (NaN where a cell is empty), of words, and the links of each flow with where they begin."""

NAMES = ("id", "src", "dst")
PLAIN = (*NAMES, "demand", "weight", "size", "deadline", "subflows", "path")
NO_WORD = 2**32 - 1


def is_name(name: str) -> bool:
    """Whether a file of this name holds columns."""
    return name.lower().endswith((".parquet", ".arrow", ".feather"))


def of_file(path: str | os.PathLike[str]) -> Columns:
    """The flows of a Parquet file or of one in Arrow's own format (also called Feather)."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    path = os.fspath(path)
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(None, "it is a directory")
        form = pa.parquet.read_table if path.lower().endswith(".parquet") else pa.feather.read_table
        return of_table(form(path))
    except FileNotFoundError:
        raise InputError(None, "", f"{path} there is no such file", "check the path") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise InputError(None, error.place, f"{path} {error.what}", error.mend) from None
        said = getattr(error, "strerror", None) or (str(error).splitlines() or ["it is damaged"])[0]
        what = f"{path} cannot be read as a table: {said}"
        raise InputError(None, "", what, "give a Parquet or Arrow file with a row for each flow") from None


def write(answer: Answer, path: Path) -> None:
    """Writes the flows of an answer to a Parquet or Arrow file; the rest stands in its metadata as JSON."""
    import pyarrow as pa
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
        if path.suffix.lower() == ".parquet":
            pa.parquet.write_table(flows, path)
        else:
            pa.feather.write_feather(flows, str(path))
    except OSError as error:
        raise InputError(
            str(path), "", f"it cannot be written: {error.strerror or error}", "name another file"
        ) from None


def are_plain(table: pa.Table) -> bool:
    """Whether its columns hold one path, names and numbers alone."""
    return all(key in PLAIN and _is_plain(key, field.type) for key, _, field in _fields(table))


def of_table(table: pa.Table) -> Columns:
    """The columns of a table of flows."""
    numbers, words, path = [], [], None
    for key, unit, field in _fields(table):
        column = table[field.name]
        if not _is_plain(key, field.type):
            mend = "give names, numbers, text such as 5Gbps, or of path a list of links"
            raise InputError(None, "", f'the column "{field.name}" holds {field.type}', mend)
        if key == "path":
            path = _lists(column)
        elif unit == "ns":
            words.append((key, _words(column, unit)))
        elif key in NAMES or _is_text(field.type):
            words.append((key, _words(column)))
        else:
            numbers.append((key, _numbers(column)))
    return numbers, words, path


def _fields(table: pa.Table) -> list[tuple[str, str, pa.Field]]:
    """Each column's key in a flow, the unit of its numbers where that is not the key's own, and what it is."""
    named = [(*tables.NS_AND_BYTES.get(field.name, (field.name, "")), field) for field in table.schema]
    return [(key, unit, field) for key, unit, field in named if not field.name.startswith("__index_level_")]


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_of(kind) for is_of in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_plain(key: str, kind: pa.DataType) -> bool:
    import pyarrow as pa

    if key == "path":
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        return is_list and _is_text(kind.value_type)
    if _is_text(kind) or pa.types.is_integer(kind):
        return True
    return key not in NAMES and (pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    import numpy as np
    import pyarrow as pa

    floats = column.cast(pa.float64(), safe=False).fill_null(float("nan"))
    return np.ascontiguousarray(floats.to_numpy(), dtype=np.float64)


def _words(column: pa.ChunkedArray | pa.Array, unit: str = "") -> Words:
    import numpy as np
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    places = encoded.indices.cast(pa.int64()).fill_null(NO_WORD).to_numpy(zero_copy_only=False)
    words = [f"{word}{unit}" for word in encoded.dictionary.to_pylist()]
    return words, np.ascontiguousarray(places, dtype=np.uint32)


def _lists(column: pa.ChunkedArray) -> tuple[Words, np.ndarray]:
    import numpy as np
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)])
    if begins[-1] >= NO_WORD:
        raise InputError(
            None, "path", "the paths have 2^32 links or more together", "give fewer flows or shorter paths"
        )
    return _words(pc.list_flatten(column)), np.ascontiguousarray(begins, dtype=np.uint32)
