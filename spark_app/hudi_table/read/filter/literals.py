"""Tests of a column against constants, which take the column's type.

What the type does not hold is compared exactly all the same: of whole numbers `n > 1.5` is `n > 1`,
and nothing is equal to 1.5. Floats take the constant that is nearest, as their own values were
taken; 0.0 and -0.0 are one, and nothing equals NaN.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.errors import InvalidOptionError
from hudi_table.read.filter.text import Digits

COMPARE: Final = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What each comparison does with expressions."""
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FAR: Final = Decimal("1e99")
"""Further than any number of a column: what a constant is cut to before its digits are made."""
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
"""Of a second behind the point."""
_DAYS: Final = ("Y", "M", "W", "D")
"""The units of numpy that are days, and more than a day."""
_FINER: Final = re.compile(r".{8}-?[^+-]*?[.,]\d{6}(\d+)")
"""What is finer than a microsecond in a moment of ISO 8601: behind the date and before the zone."""


def compared(column: pc.Expression, op: str, value: Any, kind: pa.DataType) -> pc.Expression:
    """The test of a column of type `kind` against `value`; null of a null. Raises
    InvalidOptionError for a value that does not compare with the type."""
    place = _place(value, kind)
    if isinstance(place, Decimal):
        op, place = _among_steps(op, place, kind)
    return COMPARE[op](column, pc.scalar(place))


def is_member(column: pc.Expression, values: Sequence[Any], kind: pa.DataType) -> pc.Expression:
    """Whether the column equals one of `values`; false of a null. Raises InvalidOptionError."""
    places = [_place(value, kind) for value in values]
    steps = [place for place in places if isinstance(place, Decimal)]
    members: list[Any] = [_at(int(step), kind) for step in steps if _is_held(step, kind)]
    plain = [place for place in places if isinstance(place, pa.Scalar) and place.type == kind]
    members += _equal_floats(plain) if pt.is_floating(kind) else plain
    return column.isin(pa.array(members, kind))


def like(column: pc.Expression, pattern: Any, kind: pa.DataType) -> pc.Expression:
    """Whether a text fits a pattern of SQL. Raises InvalidOptionError."""
    if not (pt.is_string(kind) and isinstance(pattern, str)):
        raise InvalidOptionError(
            f"filter: like compares string columns with a pattern in quotes, not {kind} with {pattern!r}"
        )
    try:
        return pc.match_like(column, pattern)
    except UnicodeEncodeError as error:
        raise InvalidOptionError(f"filter: the pattern {pattern!r} is no text of Unicode: {error}") from error


def _place(value: Any, kind: pa.DataType) -> pa.Scalar | Decimal:
    """Where `value` lies among those of the type: a number of its steps, if it has steps, else a
    scalar."""
    missing = value is None or (isinstance(value, pa.Scalar) and not value.is_valid)
    # NaT of numpy and of pandas is no moment, and not equal to itself.
    if missing or (isinstance(value, (datetime, np.datetime64)) and value != value):
        raise InvalidOptionError("filter: nothing equals null; ask for 'is null' or 'is not null'")
    if pt.is_nested(kind):
        raise InvalidOptionError(f"filter: a column of type {kind} cannot be compared; name a field in it")
    try:
        if pt.is_timestamp(kind) or pt.is_time(kind):
            return _in_time(value, kind)
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
        return _converted(plain.item() if isinstance(plain, np.number) else plain, kind)
    except (pa.ArrowNotImplementedError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidOptionError(f"filter: {value!r} does not compare with a column of type {kind}") from error


def _converted(value: Any, kind: pa.DataType) -> pa.Scalar | Decimal:
    if isinstance(value, bool) != pt.is_boolean(kind):
        raise ValueError("booleans compare with booleans only")
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return _number(value, kind)
    if isinstance(value, np.datetime64) and pt.is_date(kind) and np.datetime_data(value)[0] in _DAYS:
        return pa.scalar(int(value.astype("datetime64[D]").astype(np.int64)), kind)
    if isinstance(value, (datetime, np.datetime64)):
        raise ValueError("moments compare with timestamps only")
    if not isinstance(value, str):
        return pa.scalar(value, kind)
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return pa.scalar(value.encode(), kind)
    if pt.is_string(kind) or pt.is_large_string(kind):
        return pa.scalar(value, kind)
    if pt.is_date(kind):
        return pa.scalar(value).cast(kind)
    raise ValueError("text compares with text and dates only")


def _number(value: float | Decimal, kind: pa.DataType) -> pa.Scalar | Decimal:
    if pt.is_floating(kind):
        return _nearest(value, kind)
    if not (pt.is_decimal(kind) or pt.is_integer(kind)):
        raise ValueError("numbers compare with numbers only")
    # A float beside a decimal means the digits that it is written with.
    written = isinstance(value, float) and pt.is_decimal(kind)
    exact = Decimal(value.digits if isinstance(value, Digits) else float.__repr__(value) if written else value)
    if not exact.is_finite():
        raise ValueError("no number of these columns is infinite")
    steps = exact.scaleb(kind.scale if pt.is_decimal(kind) else 0, _EXACT)
    return min(max(steps, -_FAR), _FAR)


def _nearest(value: float | Decimal, kind: pa.DataType) -> pa.Scalar:
    number = float(value)
    if math.isinf(number) and Decimal(value.digits if isinstance(value, Digits) else value).is_finite():
        raise OverflowError("no float is so large")
    near = pa.scalar(number, kind)
    # Beyond the floats of the column its own infinity would be nearest, which is further still.
    return near if math.isinf(near.as_py()) == math.isinf(number) else pa.scalar(number, pa.float64())


def _equal_floats(places: Sequence[pa.Scalar]) -> list[float]:
    """The values that are equal to one of these: a set of Arrow's tells zeros apart and finds
    NaN."""
    numbers = [place.as_py() for place in places]
    found = [number for number in numbers if not math.isnan(number)]
    return [*found, 0.0, -0.0] if 0.0 in found else found


def _in_time(value: Any, kind: pa.DataType) -> Decimal:
    """A moment without a zone means the column's own; one with a zone is converted."""
    if pt.is_time(kind):
        return _scaled(_time_of_day(value), _DIGITS[kind.unit])
    seconds, has_zone = _moment(value)
    if has_zone and kind.tz is None:
        raise ValueError("the column has no zone, so the moment may have none")
    if not has_zone and kind.tz not in (None, "UTC"):
        whole = math.floor(seconds)
        there = pc.assume_timezone(pa.array([whole], pa.timestamp("s")), kind.tz)[0]
        seconds = _EXACT.add(seconds, Decimal(there.value - whole))
    return _scaled(seconds, _DIGITS[kind.unit])


def _time_of_day(value: Any) -> Decimal:
    """In seconds, to the last digit."""
    if isinstance(value, (pa.Time32Scalar, pa.Time64Scalar)):
        return _scaled(value.value, -_DIGITS[value.type.unit])
    if not isinstance(value, time):
        raise ValueError("times of day compare with times of day only")
    whole = (value.hour * 60 + value.minute) * 60 + value.second
    return _scaled(whole * 1_000_000 + value.microsecond, -_DIGITS["us"])


def _moment(value: Any) -> tuple[Decimal, bool]:
    """In seconds since 1970, to the last digit, and whether it has a zone."""
    if isinstance(value, pa.TimestampScalar):
        return _scaled(value.value, -_DIGITS[value.type.unit]), value.type.tz is not None
    if isinstance(value, pa.Scalar):
        return _moment(value.as_py())
    if isinstance(value, np.datetime64):
        unit = np.datetime_data(value)[0]
        unit = unit if unit in _DIGITS else "s"
        return _scaled(int(value.astype(f"datetime64[{unit}]").astype(np.int64)), -_DIGITS[unit]), False
    if isinstance(value, str):
        seconds, has_zone = _moment(datetime.fromisoformat(value))
        # Python drops what is finer than a microsecond.
        finer = _FINER.match(value)
        digits = finer[1] if finer else "0"
        return _EXACT.add(seconds, _scaled(int(digits), -_DIGITS["us"] - len(digits))), has_zone
    if not isinstance(value, datetime):
        raise ValueError("timestamps compare with moments only")
    if hasattr(value, "to_datetime64"):
        # What pandas adds to a datetime, its nanoseconds among it, only this method hands over.
        return _moment(value.to_datetime64())[0], value.tzinfo is not None
    since = value - datetime(1970, 1, 1, tzinfo=value.tzinfo and UTC)
    return _scaled(since // timedelta(microseconds=1), -_DIGITS["us"]), value.tzinfo is not None


def _scaled(number: int | Decimal, digits: int) -> Decimal:
    return Decimal(number).scaleb(digits, _EXACT)


def _among_steps(op: str, place: Decimal, kind: pa.DataType) -> tuple[str, pa.Scalar]:
    """The comparison with a value of the type that says the same as the one with `place`."""
    low, high = _ends(kind)
    if op in ("=", "!="):
        if _is_held(place, kind):
            return op, _at(int(place), kind)
        # No value is above the last one; in this form null stays null.
        return (">" if op == "=" else "<="), _at(high, kind)
    edge = math.floor(place) if op in (">", "<=") else math.ceil(place)
    if edge > high:
        return (">" if op.startswith(">") else "<="), _at(high, kind)
    if edge < low:
        return (">=" if op.startswith(">") else "<"), _at(low, kind)
    return op, _at(edge, kind)


def _is_held(place: Decimal, kind: pa.DataType) -> bool:
    low, high = _ends(kind)
    return low <= place <= high and place == place.to_integral_value(context=_EXACT)


def _ends(kind: pa.DataType) -> tuple[int, int]:
    """The first and last step of a type."""
    if pt.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    if pt.is_integer(kind) and not pt.is_signed_integer(kind):
        return 0, (1 << kind.bit_width) - 1
    return -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1


def _at(step: int, kind: pa.DataType) -> pa.Scalar:
    if pt.is_decimal(kind):
        return pa.scalar(Decimal(step).scaleb(-kind.scale, _EXACT), kind)
    return pa.array([step], pa.int64()).view(kind)[0] if pt.is_timestamp(kind) else pa.scalar(step, kind)
