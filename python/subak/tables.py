"""Conversion of tables: pandas and polars frames, Arrow tables and dicts of columns to rows, and back."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from subak.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@runtime_checkable
class ArrowTable(Protocol):
    """Protocol of objects with an Arrow C stream: pandas and polars frames, Arrow tables, Subak's tables."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame = ArrowTable | Mapping[str, Sequence[Any]]
"""A table with named columns."""

NS_AND_BYTES = {"start_ns": ("start", "ns"), "size_bytes": ("size", "B"), "deadline_ns": ("deadline", "ns")}
"""Columns of results that are flows' keys of a spec under another name: the key, and the unit of its numbers."""
UNNAMED = "__index_level_"
"""Beginning of the names that pandas gives the columns of an index without a name."""
ENDS = ("src", "dst", "from", "to")


def is_frame(given: object) -> bool:
    """Whether the value is a table with named columns instead of a list of rows."""
    if isinstance(given, Mapping):
        return bool(given) and all(_is_column(column) for column in given.values())
    return isinstance(given, ArrowTable)


def _is_column(value: object) -> bool:
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return listed or (hasattr(value, "__len__") and hasattr(value, "dtype"))


def rows_of(given: Any, what: str, known: Iterable[str]) -> list[dict[str, Any]]:
    """Rows of a table or of a list of dicts. Missing values are omitted, and names of nodes are converted to text.

    A column that is not ``known`` is reported once, not for each row.
    """
    if not is_frame(given):
        return [_named(row) for row in given]
    return [_named(dict(_given(row))) for row in checked(given, what, known).to_pylist()]


def checked(given: Frame, what: str, known: Iterable[str]) -> pa.Table:
    """Converts to an Arrow table; raises an error unless all columns are ``known`` and unique."""
    known = list(known)
    table = with_index(_arrow(given, what), what, numbered=what != "links")
    names = dict(zip(table.column_names, _keys(table.column_names), strict=True))
    if twice := [name for name, times in Counter(_keys(table.column_names)).items() if times > 1]:
        raise InputError(None, what, f'the column "{twice[0]}" is there twice', "leave one of them away")
    strange = [name for name, key in names.items() if key not in known]
    if strange:
        said = ", ".join(f'"{name}"' for name in strange)
        near = [difflib.get_close_matches(name, known, 1) for name in strange]
        meant = [
            f'did you mean "{found[0]}" for "{name}"? ' for found, name in zip(near, strange, strict=True) if found
        ]
        hint = f"{''.join(meant)}remove what is not read; known columns: {', '.join(known)}"
        raise InputError(None, what, f"unknown column{'s' if len(strange) > 1 else ''} {said}", hint)
    return table


def _keys(names: Sequence[str]) -> list[str]:
    """Flow keys of the columns: `size_bytes`, for example, is the key `size`."""
    return [NS_AND_BYTES.get(name, (name, ""))[0] for name in names]


def _given(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if value is not None and value == value:  # Missing values are null or NaN.
            key, unit = NS_AND_BYTES.get(name, (name, ""))
            # Pandas converts integers to floats if a cell of the column is empty.
            whole = key == "subflows" and isinstance(value, float) and value.is_integer()
            yield key, f"{value}{unit}" if unit else int(value) if whole else value


def _named(row: Any) -> Any:
    """A row with node names converted by ``str``: networkx often uses integers."""
    if not isinstance(row, Mapping):
        return row
    numbers = {key: str(row[key]) for key in ENDS if key in row and _is_whole(row[key])}
    return {**row, **numbers}


def _is_whole(value: object) -> bool:
    return not isinstance(value, bool | str) and hasattr(value, "__index__")


def _arrow(given: Any, what: str) -> pa.Table:
    import pyarrow as pa

    try:
        return with_times(with_ranges(pa.table(dict(given) if isinstance(given, Mapping) else given)), what)
    except InputError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as error:
        hint = "give columns of one length, each of numbers, of text or of lists"
        raise InputError(None, what, f"it is no table: {error}", hint) from None


def with_ranges(table: pa.Table) -> pa.Table:
    """The table, with range indices of pandas as columns: pandas stores such an index in the metadata only.

    An unnamed range that counts the rows from 0 is no index of its own, and left out.
    """
    import pyarrow as pa

    held = (table.schema.pandas_metadata or {}).get("index_columns", [])
    for level, one in enumerate(held):
        if isinstance(one, dict) and one.get("kind") == "range":
            numbers = range(one["start"], one["stop"], one["step"])
            counts = numbers == range(table.num_rows)
            if len(numbers) == table.num_rows and not (one.get("name") is None and counts):
                name = f"{UNNAMED}{level}__" if one.get("name") is None else str(one["name"])
                table = table.append_column(name, pa.array(numbers, pa.int64()))
    return table


def with_times(table: pa.Table, what: str) -> pa.Table:
    """The table with differences of times as text with their unit; a column ``X_ns`` holds whole numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for k, field in enumerate(table.schema):
        if field.name.startswith(UNNAMED):
            continue
        place = f"{what}.{field.name}" if what else field.name
        if pa.types.is_temporal(field.type) and not pa.types.is_duration(field.type):
            hint = "give times from the start of the run, such as the difference from the first"
            raise InputError(None, place, f"the column holds dates ({field.type})", hint)
        if pa.types.is_duration(field.type):
            numbers = table[field.name].cast(pa.duration("ns")).cast(pa.int64())
            is_ns = NS_AND_BYTES.get(field.name, ("", ""))[1] == "ns"
            column = numbers if is_ns else pc.binary_join_element_wise(numbers.cast(pa.string()), "ns", "")
            table = table.set_column(k, field.name, column)
    return table


def with_index(table: pa.Table, what: str, numbered: bool = True) -> pa.Table:
    """The table, with an unnamed index of pandas as the column ``id`` of the rows, if they have none.

    Numbers are left out where the rows have ids, or are not ``numbered``: pandas keeps them when it selects rows.
    """
    import pyarrow as pa

    unnamed = [name for name in table.column_names if name.startswith(UNNAMED)]
    if not unnamed:
        return table
    hint = 'name it as a column, such as frame.rename_axis("id"), or drop it: frame.reset_index(drop=True)'
    if len(unnamed) > 1:
        raise InputError(None, what, f"the frame has an index of {len(unnamed)} levels without names", hint)
    column = table[unnamed[0]]
    numbers = pa.types.is_integer(column.type)
    if numbers and ("id" in table.column_names or not numbered):
        return table.drop_columns(unnamed)
    if "id" in table.column_names:
        raise InputError(None, what, "the frame has an index without a name", hint)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (numbers or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(None, what, f"the frame has an index of {kind} without a name", hint)
    if column.null_count:
        raise InputError(None, what, "the frame has an index without a name, and some of it is missing", hint)
    counts = column.value_counts().to_pylist()
    twice = [entry["values"] for entry in counts if entry["counts"] > 1]
    if twice and numbers:
        # As after joining frames: numbers that repeat name no rows.
        return table.drop_columns(unnamed)
    if twice:
        said = f"the frame's index names its rows, and {twice[0]!r} is there twice"
        raise InputError(None, what, said, "drop it: frame.reset_index(drop=True)")
    return table.append_column("id", column.cast(pa.string())).drop_columns(unnamed)


def to_arrow(table: ArrowTable) -> pa.Table:
    """An Arrow table of the columns, without copying them."""
    import pyarrow as pa

    return pa.table(table)


def to_pandas(table: ArrowTable) -> pd.DataFrame:
    """A pandas frame. Dictionary-encoded ids become text."""
    return to_arrow(_plain(table)).to_pandas()


def to_polars(table: ArrowTable) -> pl.DataFrame:
    """A polars frame; columns are shared, not copied."""
    import polars as pl

    return cast("pl.DataFrame", pl.from_arrow(_plain(table)))


def to_numpy(table: ArrowTable) -> dict[str, np.ndarray]:
    """A dict of numpy arrays, one per column; lists and text are objects."""
    plain = to_arrow(_plain(table))
    return {name: plain[name].to_numpy(zero_copy_only=False) for name in plain.column_names}


def to_rows(table: ArrowTable) -> Iterator[dict[str, Any]]:
    """A dict for each row, converted in batches."""
    for batch in to_arrow(table).to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def interchange(table: ArrowTable, nan_as_null: bool, allow_copy: bool) -> object:
    """Object of the dataframe interchange protocol."""
    return to_arrow(table).__dataframe__(nan_as_null, allow_copy)


def _plain(table: ArrowTable) -> pa.Table:
    """The table without dictionary encoding, which not every reader supports inside lists."""
    import pyarrow as pa

    arrow = to_arrow(table)
    for i, field in enumerate(arrow.schema):
        plain = _decoded(field.type)
        if plain != field.type:
            columns = [_decode(chunk, plain) for chunk in arrow[field.name].chunks]
            arrow = arrow.set_column(i, field.name, pa.chunked_array(columns, type=plain))
    return arrow


def _decoded(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.list_(_decoded(kind.value_type))
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _decode(array: pa.Array, plain: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if isinstance(array, pa.ListArray):
        return pa.ListArray.from_arrays(array.offsets, _decode(array.values, plain.value_type), type=plain)
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
