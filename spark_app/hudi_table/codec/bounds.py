"""The smallest or largest value of a column, of any type: a wrapped value of Avro as one Arrow
type.

Facts (measured on Hudi 0.15.0 and 1.1.1): a value is a record with the field `value`, named after
its Java class, in a union whose first branch is null. Dates are days, timestamps microseconds as a
plain long, decimals two's complement at scale 15. Hudi 1.x appends two wrappers, of local dates (an
int) and of lists of wrappers.

A bound is a struct: `wrapper`, the number of the branch; one of `number` (booleans, integers,
dates, times), `real` (float, double) and `bytes` (texts, bytes, decimals). A list of wrappers keeps
nothing but its number: no column of one value has it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.avro.decode import Cursor, MalformedError
from hudi_table.codec.avro.encode import encode_flat, join
from hudi_table.codec.avro.types import AvroField
from hudi_table.errors import InvariantError, UnsupportedTableError

BOUND: Final = pa.struct(
    [
        pa.field("wrapper", pa.int8(), False),
        pa.field("number", pa.int64()),
        pa.field("real", pa.float64()),
        pa.field("bytes", pa.binary()),
    ]
)
_VALUES: Final = {
    "BooleanWrapper": AvroField("value", "boolean", pa.bool_()),
    "IntWrapper": AvroField("value", "int", pa.int32()),
    "LongWrapper": AvroField("value", "long", pa.int64()),
    "FloatWrapper": AvroField("value", "float", pa.float32()),
    "DoubleWrapper": AvroField("value", "double", pa.float64()),
    "BytesWrapper": AvroField("value", "bytes", pa.binary()),
    "StringWrapper": AvroField("value", "bytes", pa.binary()),
    "DateWrapper": AvroField("value", "int", pa.int32()),
    "DecimalWrapper": AvroField("value", "bytes", pa.binary()),
    "TimeMicrosWrapper": AvroField("value", "long", pa.int64()),
    "TimestampMicrosWrapper": AvroField("value", "long", pa.int64()),
    "LocalDateWrapper": AvroField("value", "int", pa.int32()),
}
WRAPPERS: Final = {name: number for number, name in enumerate(_VALUES, start=1)}
"""Branch of each wrapper in Hudi 0.15.0 and 1.1.1, which agree on those that both have."""

ARRAY_WRAPPER: Final = len(_VALUES) + 1
_NAMES: Final = {number: name for name, number in WRAPPERS.items()}
_WRITTEN_LAST: Final = WRAPPERS["TimestampMicrosWrapper"]
_KEPT: Final = (("number", pa.int64()), ("real", pa.float64()), ("bytes", pa.binary()))
DECIMAL_SCALE: Final = 15
"""The scale of decimals in a bound, whatever the column's."""

_WIDE_BYTES: Final = 32
_OF_KINDS: Final = (
    (pt.is_boolean, ("BooleanWrapper",)),
    (pt.is_int32, ("IntWrapper",)),
    (pt.is_int64, ("LongWrapper", "IntWrapper")),
    (pt.is_float32, ("FloatWrapper",)),
    (pt.is_float64, ("DoubleWrapper", "FloatWrapper")),
    (pt.is_string, ("StringWrapper",)),
    (pt.is_binary, ("BytesWrapper",)),
    (pt.is_date32, ("DateWrapper", "LocalDateWrapper", "IntWrapper")),
    (pt.is_decimal, ("DecimalWrapper",)),
    (lambda kind: pt.is_timestamp(kind) and kind.unit == "us", ("LongWrapper", "TimestampMicrosWrapper")),
)
"""By the type of a column the wrappers of its bounds."""


@dataclass(frozen=True, slots=True)
class Union:
    """The union of wrappers that a schema has: their names by branch, and the union itself for what
    is only passed over."""

    names: dict[int, str]
    parsed: Any

    @classmethod
    def of(cls, fields: list[dict[str, Any]]) -> Union:
        """From the fields of column statistics. Raises MalformedError."""
        field = next((field for field in fields if field["name"] == "minValue"), {"type": None})
        union = field["type"]
        if not isinstance(union, list) or union[0] != "null":
            raise MalformedError("field minValue is no union that begins with null")
        names = (branch["name"] if isinstance(branch, dict) else branch for branch in union[1:])
        short = {number: name.rpartition(".")[2] or name for number, name in enumerate(names, start=1)}
        return cls(short, fastavro.parse_schema(json.loads(json.dumps(union))))


def read_bounds(cursor: Cursor, rows: int, union: Union) -> pa.Array:
    """The bound of each of `rows` records, null where there is none. Raises MalformedError."""
    branches = (cursor.branches() // 2).astype(np.int64)
    parts: dict[str, list[pa.Array]] = {"number": [], "real": [], "bytes": []}
    order: list[npt.NDArray[np.int64]] = []
    wrappers = np.zeros(rows, np.int64)
    for branch in np.unique(branches[branches > 0]).tolist():
        some = np.flatnonzero(branches == branch)
        inside = cursor.some(some)
        name = union.names.get(branch)
        if name is None:
            raise MalformedError(f"a bound is of branch {branch}, which its union has not")
        if name in _VALUES:
            field = _VALUES[name]
            values = inside.column(field, True)
        else:
            # Lists of wrappers: no column that can be compared has them.
            field, values = _VALUES["BytesWrapper"], None
            inside.at -= 1
            inside.pass_over(union.parsed)
        wrappers[some] = WRAPPERS.get(name, ARRAY_WRAPPER)
        cursor.moved(some, inside)
        order.append(some)
        for kept, kind in _KEPT:
            own = values is not None and kept == _kept(field)
            parts[kept].append(pc.cast(values, kind) if own else pa.nulls(len(some), kind))
    if not order:
        return pa.nulls(rows, BOUND)
    places = np.full(rows, -1, np.int64)
    where = np.concatenate(order)
    places[where] = np.arange(len(where))
    columns = [pa.concat_arrays(parts[kept]) for kept, _ in _KEPT]
    bounds = pa.StructArray.from_arrays([pa.array(wrappers[where].astype(np.int8)), *columns], fields=list(BOUND))
    return bounds.take(pa.array(places, mask=places < 0))


def written_bounds(bounds: pa.StructArray) -> pa.Array:
    """The Avro bytes of each bound, one large_binary each. Raises InvariantError for a wrapper that
    is not of Hudi 0.15.0."""
    wrappers = np.where(np.asarray(bounds.is_valid()), np.asarray(bounds.field("wrapper").fill_null(0)), 0)
    columns = dict(zip((kept for kept, _ in _KEPT), bounds.flatten()[1:], strict=True))
    parts = [pa.array([b"\0"], pa.large_binary())]
    places, taken = np.zeros(len(bounds), np.int64), 1
    for wrapper in np.unique(wrappers[wrappers > 0]).tolist():
        name = _NAMES.get(wrapper, "")
        if wrapper > _WRITTEN_LAST:
            raise InvariantError(f"a bound of wrapper {wrapper} {name} is not of those that Hudi 0.15.0 knows")
        some = np.flatnonzero(wrappers == wrapper)
        field = _VALUES[name]
        values = columns[_kept(field)].take(pa.array(some))
        if values.null_count:
            raise InvariantError(f"a bound of wrapper {name} has no value")
        branch = pa.scalar(bytes([2 * wrapper]), pa.large_binary())
        parts.append(join(branch, encode_flat(pa.table({"value": values.cast(field.type)}), (field,))))
        places[some] = np.arange(taken, taken + len(some))
        taken += len(some)
    return pa.concat_arrays(parts).take(pa.array(places))


def bounds_of(values: pa.Array, *, plain: bool = False) -> pa.Array:
    """Bounds that hold these values, of a column type that Hudi wraps; null where a value is null.
    `plain`: each as the plain value that it is stored as, where `kind_of` tells the type beside it.

    Raises InvariantError for types that Hudi keeps no statistics of.
    """
    wrapper, stored = _plain(values) if plain else _wrapped(values)
    kept = _kept(_VALUES[wrapper])
    columns = [stored.cast(kind) if name == kept else pa.nulls(len(values), kind) for name, kind in _KEPT]
    branch = pa.repeat(pa.scalar(WRAPPERS[wrapper], pa.int8()), len(values))
    return pa.StructArray.from_arrays([branch, *columns], fields=list(BOUND), mask=values.is_null())


def values_of(bounds: pa.StructArray, kind: pa.DataType, kinds: pa.StructArray | None = None) -> pa.Array:
    """The bounds as values of a column of type `kind`, so that they compare as the column's do
    (decimals with scale 15). `kinds`: what `kind_of` tells beside plain ones.

    Null where a bound is not of a wrapper that such a column has, or had before it became wider.
    """
    if kinds is not None and pt.is_decimal(kind):
        return _plain_decimals(bounds, kinds)
    names = next((names for test, names in _OF_KINDS if test(kind)), ())
    fits = pc.is_in(bounds.field("wrapper"), value_set=pa.array([WRAPPERS[name] for name in names], pa.int8()))
    number, real, data = (pc.if_else(fits, part, pa.scalar(None, part.type)) for part in bounds.flatten()[1:])
    if not names:
        return pa.nulls(len(bounds), kind)
    if pt.is_decimal(kind):
        return _decimals(data)
    if pt.is_date32(kind):
        return number.cast(pa.int32()).view(kind)
    if pt.is_timestamp(kind):
        return number.view(kind)
    return {"number": number, "real": real, "bytes": data}[_kept(_VALUES[names[0]])].cast(kind)


def least_of(
    bounds: pa.StructArray, kinds: pa.StructArray, group: npt.NDArray[np.int64], *, greatest: bool = False
) -> pa.StructArray:
    """The least bound of each group, or the greatest: `group[i]` is the number of bound i, none is
    left out below the last; null where a group has none. `kinds`: as `kind_of` tells them, null
    beside wrappers that tell it.

    Raises UnsupportedTableError for bounds of one group that do not compare.
    """
    total = int(group[-1]) + 1 if len(group) else 0
    known = np.flatnonzero(np.asarray(bounds.is_valid()))
    if not len(known):
        return pa.nulls(total, BOUND)
    own, number = bounds.take(pa.array(known)), group[known]
    wrapper, parts = own.field("wrapper").to_numpy(), own.flatten()[1:]
    part = np.select([np.asarray(each.is_valid()) for each in parts], [0, 1, 2], 3)
    scale = _scales(wrapper, kinds.take(pa.array(known)))
    least, most, mark = np.full(total, 1 << 20), np.full(total, -1), part * _SCALES + scale
    np.minimum.at(least, number, mark)
    np.maximum.at(most, number, mark)
    if (least < most).any():
        raise UnsupportedTableError("statistics of one column have bounds of several types, which do not compare")
    texts = pc.if_else(pa.array(scale > 0), _in_order(pc.if_else(pa.array(scale > 0), parts[2], None)), parts[2])
    table = pa.table({"group": number, "0": parts[0], "1": parts[1], "2": texts})
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in ("group", "0", "1", "2")]).to_numpy()
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    picked = np.append(starts[1:], len(order)) - 1 if greatest else starts
    places = np.full(total, -1)
    places[number[order][picked]] = known[order[picked]]
    return bounds.take(pa.array(places, mask=places < 0))


def _scales(wrapper: npt.NDArray[np.int8], kinds: pa.StructArray) -> npt.NDArray[np.int64]:
    """One more than the scale of each decimal, 0 of what is none."""
    texts = kinds.field("info").dictionary_encode()
    told = [int(text.partition(",")[2] or 0) + 1 for text in texts.dictionary.to_pylist()]
    of_kind = pa.array(told, pa.int64()).take(texts.indices).fill_null(0).to_numpy(zero_copy_only=False)
    decimal = np.asarray(pc.equal(kinds.field("ordinal"), _DECIMAL).fill_null(False))
    found = np.where(decimal, of_kind, 0)
    return np.where(wrapper == WRAPPERS["DecimalWrapper"], DECIMAL_SCALE + 1, found)


_SCALES: Final = 128
"""More than the scale of any decimal."""


def _in_order(data: pa.Array) -> pa.Array:
    """Big-endian two's complement of any length as bytes whose order is that of the numbers; null
    where a value is wider than a decimal can be."""
    fits, raw = _sign_extended(data)
    turned = raw[:, ::-1].copy()
    turned[:, 0] ^= 0x80
    wide = pa.Array.from_buffers(pa.binary(_WIDE_BYTES), len(turned), [None, pa.py_buffer(turned.tobytes())])
    return _spread(wide.cast(pa.binary()), fits)


def _plain_decimals(bounds: pa.StructArray, kinds: pa.StructArray) -> pa.Array:
    """Decimals of scale 15, of bounds in either form; null where they have more digits behind the
    point."""
    wrapper = np.asarray(bounds.field("wrapper").fill_null(0))
    data = bounds.flatten()[3]
    scales = _scales(wrapper, kinds) - 1
    found = pa.nulls(len(bounds), pa.decimal256(76, DECIMAL_SCALE))
    for scale in np.unique(scales[(scales >= 0) & (scales <= DECIMAL_SCALE)]).tolist():
        mine = pa.array(scales == scale)
        found = pc.if_else(mine, _decimals(pc.if_else(mine, data, None), scale).cast(found.type), found)
    return found


def _kept(field: AvroField) -> str:
    """Which part of a bound holds a value of this Avro type."""
    return {"float": "real", "double": "real", "bytes": "bytes"}.get(field.wire, "number")


def _wrapped(values: pa.Array) -> tuple[str, pa.Array]:
    """(wrapper, values as it holds them), as Hudi 0.15.0 and 1.1.1 choose it from the type of a
    base file's column."""
    kind = values.type
    if pt.is_boolean(kind):
        return "BooleanWrapper", values.cast(pa.int8())
    if pt.is_int64(kind):
        return "LongWrapper", values
    if pt.is_integer(kind):
        return "IntWrapper", values
    if pt.is_timestamp(kind) or pt.is_time64(kind):
        return "LongWrapper", values.view(pa.int64())
    if pt.is_date32(kind):
        return "DateWrapper", values.view(pa.int32())
    if pt.is_float32(kind) or pt.is_float64(kind):
        return ("FloatWrapper" if pt.is_float32(kind) else "DoubleWrapper"), values
    if pt.is_string(kind) or pt.is_large_string(kind):
        return "StringWrapper", values.cast(pa.large_string()).cast(pa.large_binary())
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return "BytesWrapper", values
    if pt.is_decimal(kind):
        return "DecimalWrapper", _decimal_bytes(values)
    raise InvariantError(f"columns of type {kind} have no statistics")


def _plain(values: pa.Array) -> tuple[str, pa.Array]:
    """The same as Hudi 1.1.1 chooses it on table version 9: days are an integer, decimals bytes at
    the scale of the column."""
    if pt.is_date32(values.type):
        return "IntWrapper", values.view(pa.int32())
    if pt.is_decimal(values.type):
        return "BytesWrapper", _decimal_bytes(values, values.type.scale)
    return _wrapped(values)


def kind_of(kind: pa.DataType) -> tuple[int, str | None]:
    """(number, what it needs beside) of a column type in statistics of Hudi 1.1.1 (read in public
    source, `ValueType`). Raises InvariantError for types that Hudi keeps no statistics of."""
    if pt.is_decimal(kind):
        return _DECIMAL, f"{kind.precision},{kind.scale}"
    if pt.is_timestamp(kind):
        return (_TIMESTAMP if kind.tz else _LOCAL_TIMESTAMP), None
    for test, number in _KINDS:
        if test(kind):
            return number, None
    raise InvariantError(f"columns of type {kind} have no statistics")


NULL_KIND: Final = 1
"""Of a column whose type is not known, for all its values are null."""
_DECIMAL, _TIMESTAMP, _LOCAL_TIMESTAMP = 10, 16, 19
_KINDS: Final = (
    (pt.is_boolean, 2),
    (pt.is_int64, 4),
    (pt.is_integer, 3),
    (pt.is_float32, 5),
    (pt.is_float64, 6),
    (pt.is_string, 7),
    (pt.is_binary, 8),
    (pt.is_date32, 12),
)


def _decimal_bytes(values: pa.Array, scale: int = DECIMAL_SCALE) -> pa.Array:
    """The values at a scale as the shortest big-endian two's complement, as Java writes it."""
    wide = values.cast(pa.decimal256(76, scale))
    raw = np.frombuffer(wide.buffers()[1], np.uint8).reshape(-1, _WIDE_BYTES)[wide.offset : wide.offset + len(wide)]
    turned = raw[:, ::-1]
    # A leading byte is left out if it only repeats the sign of the byte after it.
    sign = np.where(turned[:, 1:] & 0x80, 0xFF, 0)
    needless = np.logical_and.accumulate(turned[:, :-1] == sign, axis=1)
    kept = np.hstack([~needless, np.ones((len(turned), 1), bool)])
    places = np.zeros(len(turned) + 1, np.int32)
    np.cumsum(kept.sum(axis=1), out=places[1:])
    data = pa.py_buffer(np.ascontiguousarray(turned[kept]))
    found = pa.Array.from_buffers(pa.binary(), len(turned), [None, pa.py_buffer(places), data])
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.binary()))


def _decimals(data: pa.Array, scale: int = DECIMAL_SCALE) -> pa.Array:
    """Big-endian two's complement of any length as decimals of a scale; null where a value is wider
    than they can be."""
    fits, raw = _sign_extended(data)
    wide = pa.Array.from_buffers(pa.decimal256(76, scale), len(raw), [None, pa.py_buffer(raw.tobytes())])
    return _spread(wide, fits)


def _spread(values: pa.Array, fits: npt.NDArray[np.bool_]) -> pa.Array:
    """The values where `fits`, one after the other, and nulls elsewhere."""
    return values.take(pa.array(np.maximum(np.cumsum(fits) - 1, 0), mask=~fits))


def _sign_extended(data: pa.Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8]]:
    """Which values of big-endian two's complement a decimal can hold, and those in little-endian
    order, all of one width."""
    lengths = np.asarray(pc.binary_length(data).fill_null(0), np.int64)
    fits = np.asarray(data.is_valid()) & (lengths > 0) & (lengths <= _WIDE_BYTES)
    fitting = data.filter(pa.array(fits))
    sizes = lengths[fits]
    ends = np.cumsum(sizes)
    joined = np.frombuffer(b"".join(fitting.to_pylist()), np.uint8)
    index = ends[:, None] - 1 - np.arange(_WIDE_BYTES)
    inside = np.arange(_WIDE_BYTES) < sizes[:, None]
    rows = joined[np.where(inside, index, 0)] if len(joined) else np.zeros((0, _WIDE_BYTES), np.uint8)
    signs = np.where(joined[ends - sizes] & 0x80, 0xFF, 0).astype(np.uint8) if len(joined) else np.zeros(0, np.uint8)
    return fits, np.where(inside, rows, signs[:, None])
