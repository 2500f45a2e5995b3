"""Constants of a filter, given the type of the column beside them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hudi_table.errors import InvalidOptionError
from hudi_table.read.filter.text import Digits


def literal(value: Any, kind: pa.DataType, op: str) -> pa.Scalar:
    """`value` as a scalar that compares with a column of type `kind`. Raises InvalidOptionError if
    nothing fits."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if value is None:
        raise InvalidOptionError("filter: nothing equals null; ask for 'is null' or 'is not null'")
    if pa.types.is_nested(kind):
        raise InvalidOptionError(f"filter: a column of type {kind} cannot be compared; name a field in it")
    if op == "like" and not (pa.types.is_string(kind) and isinstance(value, str)):
        raise InvalidOptionError(
            f"filter: like compares string columns with a pattern in quotes, not {kind} with {value!r}"
        )
    try:
        return _convert(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError) as error:
        raise InvalidOptionError(f"filter: {value!r} does not compare with a column of type {kind}") from error


def _convert(value: Any, kind: pa.DataType) -> pa.Scalar:
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        raise ValueError("booleans compare with booleans only")
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return _number(value, kind)
    if not isinstance(value, str):
        return _moment(value, kind) if isinstance(value, datetime) else pa.scalar(value, kind)
    if pa.types.is_timestamp(kind):
        return _moment(datetime.fromisoformat(value), kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.scalar(value.encode(), kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.scalar(value, kind)
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.scalar(value).cast(kind)
    raise ValueError("text compares with text and dates only")


def _number(value: float | Decimal, kind: pa.DataType) -> pa.Scalar:
    """A number for a numeric column: exact in the column's type, else in the smallest type that
    compares exactly."""
    exact = Decimal(value.digits) if isinstance(value, Digits) else value
    if pa.types.is_floating(kind):
        return pa.scalar(float(exact), pa.float64())
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(repr(exact)) if isinstance(exact, float) else Decimal(exact))
    if pa.types.is_integer(kind):
        if exact == int(exact):
            return pa.scalar(int(exact), pa.int64())
        return pa.scalar(float(exact), pa.float64())
    raise ValueError("numbers compare with numbers only")


def _moment(value: datetime, kind: pa.DataType) -> pa.Scalar:
    """A moment without a zone means the column's own; one with a zone is converted."""
    if not pa.types.is_timestamp(kind):
        raise ValueError("moments compare with timestamps only")
    if value.tzinfo is None and kind.tz is not None:
        naive = pa.array([value], pa.timestamp("us"))
        return pa.compute.assume_timezone(naive, kind.tz)[0]
    if value.tzinfo is not None and kind.tz is None:
        raise ValueError("the column has no zone, so the moment may have none")
    return pa.scalar(value, pa.timestamp("us", tz=kind.tz))
