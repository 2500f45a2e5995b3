"""Rows that a table has stored, in its schema of today: types that Hudi lets a column change to
(`conform` alone keeps every value).

Facts (measured on Hudi 0.15.0 and 1.1.1): whole numbers become the nearest floats; whole numbers,
days and decimals become the text that Java has of them. Of other values that text depends on the
release of Java, the calendar or the settings of Spark, or reading a file and writing it anew come
to different values. These are refused: 2e23 became 1.9999999999999998E23, 1.005 of a float 1.00 and
1.01, 1500-01-01 an error and 1499-12-23.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.conform import Data, conform, kept
from hudi_table.errors import UnsupportedTableError

_GREGORIAN, _LAST = -141_427, 2_932_896
"""1582-10-15, from which on there is one calendar, and 9999-12-31, as days since 1970."""

_DIGITS = 19
"""Of a whole number at most."""


def of_today(data: Data, schema: pa.Schema) -> Data:
    """`conform` for stored rows. Raises InvalidDataError for what Hudi would not have come to,
    UnsupportedTableError that names the column where it is not certain what Hudi makes of it."""
    return conform(data, schema, _promoted)


def _promoted(values: pa.Array, target: pa.DataType) -> pa.Array:
    kind = values.type
    if pt.is_integer(kind) and pt.is_floating(target):
        return values.cast(target, safe=False)
    if not _may_become(kind, target):
        return kept(values, target)
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    if pt.is_integer(kind):
        return _whole_decimals(values, target)
    texts = _certain_texts(values) if pt.is_string(target) else None
    if texts is None:
        raise _uncertain(kind, target)
    return texts


def _may_become(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether Hudi lets a column change so, where it takes more than Arrow's own cast."""
    if pt.is_floating(kind) or pt.is_string(kind):
        return bool(pt.is_decimal(target) or (pt.is_string(target) if pt.is_floating(kind) else pt.is_date(target)))
    return bool(pt.is_decimal(target) if pt.is_integer(kind) else pt.is_string(target) and _has_text(kind))


def _has_text(kind: pa.DataType) -> bool:
    return bool(pt.is_date32(kind) or pt.is_decimal(kind))


def _whole_decimals(values: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        # Arrow asks that the type holds every whole number, and of a wider one that it holds these.
        return values.cast(pa.decimal256(_DIGITS + target.scale, target.scale)).cast(target)
    except pa.ArrowInvalid as error:
        raise _uncertain(values.type, target) from error


def _certain_texts(values: pa.Array) -> pa.Array | None:
    """The texts of days and decimals, None where some have none that is certain: decimals that Java
    writes with an exponent, and Spark in its ANSI mode without."""
    if pt.is_date32(values.type):
        ends = pc.min_max(values.view(pa.int32()))
        return values.cast(pa.string()) if _GREGORIAN <= ends["min"].as_py() <= ends["max"].as_py() <= _LAST else None
    if not pt.is_decimal(values.type):
        return None
    texts = values.cast(pa.string())
    return None if pc.any(pc.match_substring(texts, "E")).as_py() else texts


def _uncertain(kind: pa.DataType, target: pa.DataType) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"was {kind} and is {target} today, and it is not certain what Hudi makes of some of the older values: leave the column out, or let Hudi "
        "write the older files anew"
    )
