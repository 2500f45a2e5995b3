"""The text that a key or partition value becomes: what Java's `toString` gives for it.

Measured on Hudi 0.15.0's upsert path: `true`/`false`; integers; `1.0E-5` for doubles; decimals as
`BigDecimal.toString` (`1.50`, `0E-10`); dates `yyyy-MM-dd`; timestamps as the integer that is
stored (microseconds since 1970). The row writer of its bulk_insert differs for timestamps
(`2024-02-29 12:34:56.789`), so Hudi's own upserts do not find such keys: we follow the upsert path
throughout.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from hudi_table.errors import InvalidSchemaError

_REFUSED = (
    (pt.is_struct, "a struct"),
    (pt.is_map, "a map"),
    (pt.is_nested, "a list"),
    (pt.is_binary, "binary"),
    (pt.is_large_binary, "binary"),
    (pt.is_fixed_size_binary, "binary"),
    (pt.is_binary_view, "binary"),
    (pt.is_duration, "a duration"),
    (pt.is_interval, "an interval"),
)


def column(rows: pa.Table | pa.RecordBatch, name: str) -> pa.Array:
    """One column in one piece. `a.b` is the field b of the struct a, unless a column has that very
    name.

    Raises InvalidSchemaError if there is none.
    """
    names = rows.schema.names
    head, _, rest = name.partition(".")
    if name in names:
        found = rows.column(names.index(name))
    elif rest and head in names and pt.is_struct(rows.schema.field(head).type):
        found = _nested(rows.column(names.index(head)), rest.split("."), name)
    else:
        raise InvalidSchemaError(f"the rows have no column '{name}', which the table's key or partitioning needs")
    return one_piece(found)


def _nested(parent: Any, path: list[str], name: str) -> Any:
    try:
        return pc.struct_field(parent, path)
    except pa.ArrowInvalid as error:
        raise InvalidSchemaError(
            f"the rows have no field '{name}', which the table's key or partitioning needs"
        ) from error


def one_piece(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values as one array."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks or [pa.array([], values.type)])


def refuse_type(kind: pa.DataType, name: str) -> None:
    """Raise InvalidSchemaError for a type that has no text of its own."""
    for matches, what in _REFUSED:
        if matches(kind):
            raise InvalidSchemaError(
                f"column '{name}' is {what} ({kind}): a record key or partition field is a string, number, date or timestamp"
            )


def java_text(values: pa.Array, name: str) -> pa.Array:
    """The values as a string array; null stays null."""
    kind = values.type
    if pt.is_dictionary(kind):
        return java_text(values.dictionary_decode(), name)
    refuse_type(kind, name)
    if pt.is_string(kind):
        return values
    if pt.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if pt.is_timestamp(kind):
        return pc.cast(pc.cast(values, pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()), pa.string())
    if pt.is_time(kind):
        return pc.cast(values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()), pa.string())
    if pt.is_date64(kind):
        return pc.cast(values.cast(pa.date32()), pa.string())
    if pt.is_floating(kind):
        return _by_distinct(values, lambda value: java_float(value, single=kind.bit_width < 64))
    if pt.is_decimal256(kind) and kind.precision > 38:
        return _by_distinct(values, str)
    return pc.cast(values, pa.string())


def _by_distinct(values: pa.Array, text: Any) -> pa.Array:
    """`text` of each distinct value: for types whose text Arrow writes otherwise."""
    encoded = values.dictionary_encode()
    texts = [None if value is None else text(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def java_float(value: float, *, single: bool) -> str:
    """`Double.toString` (or `Float.toString`) of a value, by the shortest digits, as Java 19 and
    newer print them.

    Older Java prints a digit too many for a few values (JDK-4511638): such keys are better kept as
    strings.
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = np.format_float_scientific(np.float32(value) if single else np.float64(value), unique=True, trim="-")
    match = re.fullmatch(r"(-?)(\d)(?:\.(\d*))?e([+-]\d+)", shortest)
    if match is None:
        raise ValueError(f"{shortest!r} is no number")
    sign, digits, exponent = match[1], match[2] + (match[3] or ""), int(match[4])
    if not digits.strip("0"):
        return f"{sign}0.0"
    if -3 <= exponent < 7:
        plain = f"{Decimal(int(digits)).scaleb(exponent - len(digits) + 1):f}"
        return f"{sign}{plain if '.' in plain else plain + '.0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
