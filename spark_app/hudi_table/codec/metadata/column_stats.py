"""Statistics of the columns of a file, as the metadata table keeps them: from a base file's footer,
or from rows.

Facts (measured on Hudi 0.15.0 and 1.1.1): columns of one value alone, none that are nested;
`value_count` counts nulls too; sizes are those of the column's chunks, 0 for a log file; a column
that is null throughout has no smallest and largest value. 0.15.0 keeps all five meta columns, as
here, 1.1.1 commit time, record key and partition path. 1.1.1 keeps nothing of decimals of more than
15 digits before or behind the point, as here; 0.15.0 does.

A reader of 0.15.0 takes a column that a file has no statistics of for one that is null throughout,
if the file has those of another column in the filter (measured: rows are lost). So a file tells of
all its flat columns or of none. Nested ones have none in Hudi's tables either.

Parquet files say nothing of NaN and keep no bounds of very long texts. Both are looked up in the
column itself: a reader takes a bound that is absent for one that no row has. NaN is the largest
value, as Spark orders it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_table.codec.bounds import BOUND, NULL_KIND, WRAPPERS, bounds_of, kind_of, least_of
from hudi_table.codec.metadata.records import KIND_TYPE, STATS_TYPE, stats_with
from hudi_table.codec.parquet import whole_batches
from hudi_table.model.names import COMMIT_SEQNO, FILE_NAME, OPERATION_COLUMN

META_OF_015_ALONE: Final = (COMMIT_SEQNO, FILE_NAME)
"""Meta columns of which 1.1.1 keeps nothing."""
_PLAIN: Final = (pt.is_boolean, pt.is_int32, pt.is_int64, pt.is_string, pt.is_binary, pt.is_date32)
_WIDER: Final = [kind_of(kind)[0] for kind in (pa.int32(), pa.int64(), pa.float32(), pa.float64())]
"""Types of numbers, each a wider one than those before it; so are their ordinals."""
_DECIMAL_DIGITS: Final = 15
"""Before and behind the point: a bound is a decimal of 30 digits, 15 of them behind it."""


def indexed_columns(schema: pa.Schema) -> list[str]:
    """The columns of a file that get statistics, in its order: all that are flat, or none if there
    is one that has none. Not that of the operation, of which Hudi has none either."""
    flat = [field for field in schema if not pt.is_nested(field.type) and field.name != OPERATION_COLUMN]
    return [field.name for field in flat] if all(has_stats(field.type) for field in flat) else []


def has_stats(kind: pa.DataType) -> bool:
    """Whether columns of this type get statistics: those of one value, but no times of day, no
    instants beside microseconds and no decimals that a bound cannot hold."""
    if pt.is_decimal128(kind):
        return bool(kind.scale <= _DECIMAL_DIGITS >= kind.precision - kind.scale)
    micros = pt.is_timestamp(kind) and kind.unit == "us"
    return bool(micros or pt.is_float32(kind) or pt.is_float64(kind) or any(test(kind) for test in _PLAIN))


def stats_of_file(
    file: pq.ParquetFile, file_name: str, columns: Sequence[str], *, plain: bool = False
) -> pa.StructArray:
    """One STATS_TYPE value for each of `columns` that the base file has. Reads floating point
    columns, and those that lack bounds. `plain`: bounds are plain values, with their type beside
    them."""
    metadata, schema = file.metadata, file.schema_arrow
    places = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    rows = []
    for name in columns:
        if name not in places or not has_stats(schema.field(name).type):
            continue
        chunks = [metadata.row_group(group).column(places[name]) for group in range(metadata.num_row_groups)]
        rows.append(_of_chunks(file, name, chunks))
    return _stats(file_name, rows, plain=plain)


def stats_of_rows(rows: pa.Table, file_name: str, columns: Sequence[str], *, plain: bool = False) -> pa.StructArray:
    """The same of rows that a log file holds."""
    found = []
    for name in columns:
        if name in rows.schema.names and has_stats(rows.schema.field(name).type):
            column = rows.column(name)
            found.append((name, _extremes([column], column.type), len(column), column.null_count, 0, 0))
    return _stats(file_name, found, plain=plain)


def stats_of_values(
    parts: Iterable[pa.Array], kind: pa.DataType, column: str, file_name: str, size: int, *, plain: bool
) -> pa.StructArray:
    """One STATS_TYPE value for what an expression of a column gives for the rows of a file of so
    many bytes, in pieces of type `kind`; none for a file without rows.

    Facts (measured on Hudi 1.0.2 and 1.1.1): `value_count` does not count nulls, the sizes are that
    of the file, and twice that.
    """
    rows = nulls = 0

    def counted() -> Iterator[pa.Array]:
        nonlocal rows, nulls
        for part in parts:
            rows, nulls = rows + len(part), nulls + part.null_count
            yield part

    ends = _extremes(counted(), kind)
    found = [(column, ends, rows - nulls, nulls, size, 2 * size)] if rows else []
    return _stats(file_name, found, plain=plain)


def stats_of_nulls(columns: Sequence[str], file_name: str, rows: int, *, plain: bool) -> pa.StructArray:
    """Those of columns that a file with so many rows lacks: every row has a null there."""
    count = len(columns)
    kind = {"ordinal": NULL_KIND, "info": None} if plain else None
    values = {
        "file_name": pa.array([file_name] * count, pa.string()),
        "column": pa.array(columns, pa.string()),
        "value_count": pa.array([rows] * count, pa.int64()),
        "null_count": pa.array([rows] * count, pa.int64()),
        "kind": pa.array([kind] * count, KIND_TYPE),
    }
    return stats_with(values, count)


def combined(stats: pa.StructArray, begins: npt.NDArray[np.int64]) -> pa.StructArray:
    """STATS_TYPE values put together, those of one column in one row: the rows from one of `begins`
    to the next. Bounds are tight if all of them were and no other is beside.

    Raises UnsupportedTableError for bounds of one row that do not compare.
    """
    if not len(stats):
        return stats
    sizes = np.diff(np.append(begins, len(stats)))
    last, group = begins + sizes - 1, np.repeat(np.arange(len(begins)), sizes)
    whole = dict(zip((child.name for child in STATS_TYPE), stats.take(pa.array(last)).flatten(), strict=True))
    for name in ("value_count", "null_count", "total_size", "total_uncompressed_size"):
        numbers = np.asarray(stats.field(name).fill_null(0))
        whole[name] = pa.array(np.add.reduceat(numbers, begins))
    ordinals = np.asarray(stats.field("kind").field("ordinal").fill_null(0))
    # Of a file without the column the type is not known; of a number that became wider it is the widest.
    rank = np.where(np.isin(ordinals, _WIDER), ordinals, 0) * len(stats)
    best = np.maximum.reduceat(np.where(ordinals > NULL_KIND, rank + np.arange(len(stats)), -1), begins)
    whole["kind"] = stats.field("kind").take(pa.array(np.where(best < 0, last, best % len(stats))))
    for name, greatest in (("min", False), ("max", True)):
        bounds = _alike(stats.field(name), group, greatest=greatest)
        whole[name] = least_of(bounds, stats.field("kind"), group, greatest=greatest)
    whole["tight"] = pc.and_(whole["tight"].fill_null(False), pa.array(sizes == 1))
    return pa.StructArray.from_arrays([whole[child.name] for child in STATS_TYPE], fields=list(STATS_TYPE))


def _alike(bounds: pa.StructArray, group: npt.NDArray[np.int64], *, greatest: bool) -> pa.StructArray:
    """Bounds of whole numbers beside such of reals, of a column that became wider, as reals too:
    rounded outwards where one of the group is of single precision."""
    wrapper = np.where(np.asarray(bounds.is_valid()), np.asarray(bounds.field("wrapper").fill_null(0)), 0)

    def beside(name: str) -> npt.NDArray[np.bool_]:
        found = np.zeros(int(group[-1]) + 1, bool)
        found[group[wrapper == WRAPPERS[name]]] = True
        return found[group]

    single, double = beside("FloatWrapper"), beside("DoubleWrapper")
    turned = np.isin(wrapper, [WRAPPERS["IntWrapper"], WRAPPERS["LongWrapper"]]) & (single | double)
    if not turned.any():
        return bounds
    _, number, real, data = bounds.flatten()
    whole = np.asarray(number.fill_null(0))
    outwards = np.nextafter(whole.astype(np.float32), np.float32(np.inf if greatest else -np.inf)).astype(np.float64)
    reals = pa.array(np.where(single, outwards, whole.astype(np.float64)))
    real_wrapper = np.where(double, WRAPPERS["DoubleWrapper"], WRAPPERS["FloatWrapper"])
    columns = [
        pa.array(np.where(turned, real_wrapper, wrapper).astype(np.int8)),
        pc.if_else(pa.array(turned), pa.scalar(None, number.type), number),
        pc.if_else(pa.array(turned), reals, real),
        data,
    ]
    return pa.StructArray.from_arrays(columns, fields=list(BOUND), mask=bounds.is_null())


def _of_chunks(file: pq.ParquetFile, name: str, chunks: Sequence[Any]) -> tuple[Any, ...]:
    kind = file.schema_arrow.field(name).type
    known = [chunk.statistics for chunk in chunks]
    values = sum(chunk.num_values for chunk in chunks)
    sizes = (sum(c.total_compressed_size for c in chunks), sum(c.total_uncompressed_size for c in chunks))
    if not pt.is_floating(kind) and all(_is_whole(chunk) for chunk in chunks):
        nulls = sum(statistics.null_count for statistics in known)
        raw = [side for s in known if s.has_min_max for side in (s.min_raw, s.max_raw)]
        return name, _extremes([_of_raw(raw, kind)], kind), values, nulls, *sizes
    read = [batch.column(0) for batch in whole_batches(file, [name])]
    return name, _extremes(read, kind), values, sum(part.null_count for part in read), *sizes


def _is_whole(chunk: Any) -> bool:
    """Whether a chunk's statistics are whole: its nulls, and the bounds of what is not null."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return False
    return bool(statistics.has_min_max or statistics.null_count == chunk.num_values)


def _of_raw(raw: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Stored values in the column's type."""
    if pt.is_decimal(kind):
        numbers = [int.from_bytes(n, "big", signed=True) if isinstance(n, bytes) else n for n in raw]
        data = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
        return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(data)])
    if pt.is_timestamp(kind) or pt.is_date(kind):
        return pa.array(raw, pa.int32() if pt.is_date32(kind) else pa.int64()).view(kind)
    return pa.array(raw, kind) if not pt.is_string(kind) else pa.array(raw, pa.binary()).cast(kind)


def _extremes(parts: Iterable[pa.Array | pa.ChunkedArray], kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """(smallest, largest) of all parts, null if nothing is in them."""
    found = [_extremes_of(part) for part in parts if part.null_count < len(part)]
    if not found:
        return pa.scalar(None, kind), pa.scalar(None, kind)
    low, high = (pa.chunked_array([pa.repeat(pair[side], 1).cast(kind) for pair in found]) for side in (0, 1))
    return _extremes_of(low)[0], _extremes_of(high)[1]


def _extremes_of(values: pa.Array | pa.ChunkedArray) -> tuple[pa.Scalar, pa.Scalar]:
    if pt.is_floating(values.type):
        numbers = np.asarray(values.drop_null())
        # numpy's ends are NaN where there is one; as the smallest it stands only if there is nothing else.
        return pa.scalar(np.fmin.reduce(numbers), values.type), pa.scalar(np.max(numbers), values.type)
    ends = pc.min_max(values)
    return ends["min"], ends["max"]


def _stats(file_name: str, rows: Sequence[tuple[Any, ...]], *, plain: bool) -> pa.StructArray:
    sides = [_bounds([row[1][side] for row in rows], plain=plain) for side in (0, 1)]
    counts = [pa.array([row[place] for row in rows], pa.int64()) for place in range(2, 6)]
    names = pa.array([row[0] for row in rows], pa.string())
    file = pa.array([file_name] * len(rows), pa.string())
    flags = [pa.array([False] * len(rows), pa.bool_())] * 2
    kinds = [dict(zip(("ordinal", "info"), kind_of(row[1][0].type), strict=True)) if plain else None for row in rows]
    arrays = [file, names, *sides, *counts, *flags, pa.array(kinds, KIND_TYPE)]
    return pa.StructArray.from_arrays(arrays, fields=list(STATS_TYPE))


def _bounds(values: Sequence[pa.Scalar], *, plain: bool) -> pa.Array:
    found = [bounds_of(pa.repeat(value, 1), plain=plain) for value in values]
    return pa.concat_arrays(found) if found else pa.array([], BOUND)
