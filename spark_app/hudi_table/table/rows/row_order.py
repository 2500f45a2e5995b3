"""In which order rows lie in their files: by columns, along a space-filling curve through them, or
as they come.

A curve needs coordinates of one scale, so each column's values are ranked against a sample of the
rows: equally many rows fall into each interval, whatever the values are. Sample and ranks follow
from the rows and their order alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.curves import Coordinates, coordinate_bits, hilbert, z_order
from hudi_table.errors import InvalidOptionError
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.rows.spill import Codes

SORT = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
SAMPLE_ROWS = 1 << 16
_PREFIX_BYTES = 8
_CURVE = "curve"
_PLACE = "place"

Columns = dict[str, pa.ChunkedArray | pa.Array]


class Layout(StrEnum):
    """Hudi's names of `hoodie.layout.optimize.strategy`."""

    LINEAR = "linear"
    Z_ORDER = "z-order"
    HILBERT = "hilbert"


class RowSample:
    """Every n-th row of a stream, n doubling as it grows: between `limit` and twice as many rows of
    a long one."""

    def __init__(self, columns: Sequence[str], limit: int = SAMPLE_ROWS) -> None:
        self._columns = columns
        self._limit = limit
        self._stride = 1
        self._seen = 0
        self._kept: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Take what falls to the sample of the next rows of the stream."""
        taken = np.arange(-self._seen % self._stride, len(rows), self._stride)
        place = pa.array(taken + self._seen, pa.int64())
        self._seen += len(rows)
        if len(taken):
            columns = {name: _plain(rows.column(name).take(pa.array(taken))) for name in self._columns}
            self._kept.append(_placed(columns, place))
            self._rows += len(taken)
        while self._rows > 2 * self._limit:
            self._stride *= 2
            table = self.table()
            self._kept = [table.take(pa.array(np.arange(0, len(table), 2)))]
            self._rows = len(self._kept[0])

    def table(self) -> pa.Table:
        """The sampled rows in their order, and in the last column their places in the stream."""
        return (
            pa.concat_tables(self._kept).combine_chunks()
            if self._kept
            else pa.table({_PLACE: pa.array([], pa.int64())})
        )


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order by `columns`; none leaves rows as they come. A single column has no curve: it is its
    own order."""

    columns: tuple[str, ...] = ()
    layout: Layout = Layout.LINEAR

    def fitted(self, sample: pa.Table) -> FittedOrder:
        """The order with its scales, from a sample that holds the columns and the places."""
        if self.layout is Layout.LINEAR or len(self.columns) < 2:
            return FittedOrder(self.columns)
        scales = tuple(_Scale.of(sample.column(name)) for name in self.columns) if len(sample) else ()
        return FittedOrder(self.columns, self.layout, scales)


@dataclass(frozen=True, slots=True)
class FittedOrder:
    """How rows compare: by `keys`, and by their place in the stream where those are equal. Nulls
    come last."""

    columns: tuple[str, ...]
    layout: Layout = Layout.LINEAR
    scales: tuple[_Scale, ...] = ()

    def keys(self, rows: pa.Table) -> Columns:
        """The columns that order the rows."""
        if not self.scales:
            return {name: _plain(rows.column(name)) for name in self.columns}
        bits = coordinate_bits(len(self.columns))
        points = [
            scale.coordinates(_plain(rows.column(name)), bits)
            for name, scale in zip(self.columns, self.scales, strict=True)
        ]
        curve = hilbert if self.layout is Layout.HILBERT else z_order
        return {_CURVE: pa.array(curve(points, bits))}

    def order(self, rows: pa.Table) -> npt.NDArray[np.int64] | None:
        """The rows' places in sorted order; None if they are in order as they are."""
        keys = self.keys(rows)
        return sorted_places(pa.table(keys)) if keys else None

    def boundaries(self, sample: pa.Table, parts: int) -> pa.Table:
        """`parts` - 1 rows that cut the sample, and so about every row, into equal parts."""
        keys = _placed(self.keys(sample), sample.column(_PLACE))
        ranked = sorted_places(keys)
        return keys.take(pa.array(ranked[[len(ranked) * part // parts for part in range(1, parts)]]))

    def parts(self, rows: pa.Table, first: int, boundaries: pa.Table) -> Codes:
        """The part of each row; `first` is the place of the first one in the stream."""
        places = pa.array(np.arange(first, first + len(rows)), pa.int64())
        keys = _placed(self.keys(rows), places)
        ranked = sorted_places(pa.concat_tables([boundaries, keys.cast(boundaries.schema)]))
        cuts = len(boundaries)
        passed = np.cumsum(ranked < cuts, dtype=np.int32)
        codes = np.empty(len(ranked), dtype=np.int32)
        codes[ranked] = passed
        return codes[cuts:]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pt.is_dictionary(column.type) else column


def _placed(columns: Columns, places: pa.Array | pa.ChunkedArray) -> pa.Table:
    return pa.table({**columns, _PLACE: places})


def sorted_places(keys: pa.Table) -> npt.NDArray[np.int64]:
    """Row numbers in the order of all columns, equal rows in the order that they have."""
    if keys.num_columns == 1:
        column = one_chunk(keys.column(0))
        if pt.is_uint64(column.type):
            return np.argsort(np.asarray(column), kind="stable").astype(np.int64)
        return np.asarray(pc.array_sort_indices(column)).astype(np.int64)
    names = [(name, "ascending") for name in keys.column_names]
    return np.asarray(pc.sort_indices(keys, sort_keys=names)).astype(np.int64)


def sortable(kind: pa.DataType) -> bool:
    """Whether rows can be ordered by a column of this type."""
    return _numbers_of(kind) is not None


@dataclass(frozen=True, slots=True)
class _Scale:
    """One column's values → coordinates: `values` ascend, `shares` say which part of the rows lies
    before each."""

    skipped: int
    values: npt.NDArray[Any] = field(repr=False)
    shares: npt.NDArray[np.float64] = field(repr=False)

    @classmethod
    def of(cls, sample: pa.ChunkedArray) -> _Scale:
        present = one_chunk(sample.drop_null())
        skipped = _common_prefix(present)
        ranked = np.sort(_numbers(present, skipped))
        values, first = np.unique(ranked, return_index=True)
        return cls(skipped, values, first / max(1, len(ranked)))

    def coordinates(self, column: pa.ChunkedArray, bits: int) -> Coordinates:
        """From 0 to 2**bits - 1, which nulls have."""
        array = one_chunk(column)
        if not len(self.values):
            return np.zeros(len(array), dtype=np.uint32)
        numbers = _numbers(array, self.skipped)
        at = np.maximum(np.searchsorted(self.values, numbers, side="right") - 1, 0)
        top = (1 << bits) - 1
        # A share is below one, so that the highest coordinate is left to nulls.
        found: Coordinates = (self.shares * top).astype(np.uint32)[at]
        if array.null_count:
            found[np.asarray(array.is_null())] = top
        return found


def _numbers(array: pa.Array, skipped: int) -> npt.NDArray[Any]:
    """Values as numbers of the same order; texts by eight bytes behind those that all share. Nulls
    give anything."""
    convert = _numbers_of(array.type)
    assert convert is not None
    return convert(array, skipped)


def _numbers_of(kind: pa.DataType) -> Callable[[pa.Array, int], npt.NDArray[Any]] | None:
    if pt.is_string(kind) or pt.is_binary(kind):
        return _text_numbers
    if pt.is_boolean(kind) or pt.is_integer(kind):
        return lambda array, _: np.asarray(pc.fill_null(array.cast(pa.uint8() if pt.is_boolean(kind) else kind), 0))
    if pt.is_floating(kind) or pt.is_decimal(kind):
        return lambda array, _: np.nan_to_num(
            np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0)), nan=np.inf, posinf=None
        )
    if pt.is_temporal(kind) and not pt.is_interval(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return lambda array, _: np.asarray(pc.fill_null(array.view(width), 0))
    return None


def _text_numbers(array: pa.Array, skipped: int) -> npt.NDArray[np.uint64]:
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    data = np.zeros(1, np.uint8) if not len(data) else data
    found = np.zeros(len(array), dtype=np.uint64)
    for number in range(_PREFIX_BYTES):
        at = offsets[:-1] + (skipped + number)
        byte = np.where(at < offsets[1:], data[np.minimum(at, len(data) - 1)], 0).astype(np.uint64)
        found = (found << np.uint64(8)) | byte
    return found


def _common_prefix(array: pa.Array) -> int:
    """Bytes that all texts begin with: those that the least and the greatest share."""
    if not (pt.is_string(array.type) or pt.is_binary(array.type)) or not len(array):
        return 0
    limits = pc.min_max(array.cast(pa.binary()))
    low, high = limits["min"].as_py(), limits["max"].as_py()
    return next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))


def order_of(options: Mapping[str, str]) -> RowOrder:
    """The order that options, or a plan's parameters, ask for. Raises InvalidOptionError that names
    the layout."""
    columns = tuple(name.strip() for name in options.get(SORT, "").split(",") if name.strip())
    text = options.get(LAYOUT, Layout.LINEAR)
    name = text.strip().upper().replace("-", "").replace("_", "")
    names = {layout.name.replace("_", ""): layout for layout in Layout}
    if name not in names:
        raise InvalidOptionError(f"{LAYOUT} is {text!r}; use one of {', '.join(Layout)}")
    return RowOrder(columns, names[name])


def check_columns(columns: Sequence[str], schema: pa.Schema) -> str | None:
    """What is wrong with these columns as an order, in words; None if nothing is."""
    for name in columns:
        if name not in schema.names:
            return f"{name!r} is no column of the table"
        if not sortable(schema.field(name).type):
            return f"{name!r} is {schema.field(name).type}, which has no order"
    return None
