"""What a filter says of the values of an expression of a column, so that an index of the expression
can be asked.

A test of the column itself says something of any expression where it names values, for equal values
have equal results; and where it names ends, of expressions that keep the order. A test of the
expression, as an Arrow filter may have one, says it outright. Whatever is not understood says
nothing.

What hangs on the time zone of the session in which Hudi wrote an entry is known to within the
furthest zone: instants are taken as `_FURTHEST` apart from themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from hudi_table.metadata.expression_index.entries import Expression
from hudi_table.metadata.expression_index.formats import DEFAULT_FORMAT, YEARS_OF_FOUR_DIGITS, Format
from hudi_table.metadata.expression_index.functions import UnknownValueError, substring_ends, whole_option
from hudi_table.read.filter.expression_tree import Call, Constant, Part, Reference
from hudi_table.read.pruning.column_ranges import FLIPPED

_AND, _OR = ("and", "and_kleene"), ("or", "or_kleene")
_FURTHEST: Final = 18 * 3600
"""Seconds between UTC and a time zone of Java's, at most."""
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY: Final = 86_400
_LONG_MICROS: Final = ((1 << 63) - 1) // 1_000_000
"""Seconds whose microseconds a long holds, before and after 1970."""
_PLUS_ENDS, _MINUS_ENDS = pa.scalar(","), pa.scalar(".")
"""What is greater than all texts that begin with the sign of a year, and less than all others."""
_MEMBERS_MAX: Final = 64
_SHORT_MAX: Final = (1 << 15) - 2


@dataclass(frozen=True, slots=True)
class Between:
    """A value from `low` to `high`, both among them; None: no end."""

    low: pa.Scalar | None
    high: pa.Scalar | None


@dataclass(frozen=True, slots=True)
class Several:
    """All of several, or one of them."""

    every: bool
    parts: tuple[Wanted, ...]


Wanted: TypeAlias = Between | Several
_BEYOND_SHORT: Final = (
    Between(None, pa.scalar(-_SHORT_MAX, pa.int32())),
    Between(pa.scalar(_SHORT_MAX, pa.int32()), None),
)
"""Years that Arrow takes for others."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Values of the column: whole numbers, as it stores them, or texts."""

    low: Any
    high: Any

    def within(self, other: _Span) -> _Span:
        lows = [each for each in (self.low, other.low) if each is not None]
        highs = [each for each in (self.high, other.high) if each is not None]
        return _Span(max(lows, default=None), min(highs, default=None))


def implied(part: Part, of: Expression) -> Wanted | None:
    """Values that the expression has in every row for which `part` is true; None where any may
    be."""
    if not isinstance(part, Call):
        return None
    if part.function in _OR:
        each = [implied(inside, of) for inside in part.parts]
        known = tuple(one for one in each if one is not None)
        return Several(every=False, parts=known) if len(known) == len(each) else None
    if part.function in _AND:
        return _all_of(list(_conjuncts(part)), of)
    try:
        return _test(part, of)
    except (UnknownValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, KeyError):
        return None


def _conjuncts(part: Part) -> Iterator[Part]:
    if isinstance(part, Call) and part.function in _AND:
        for inside in part.parts:
            yield from _conjuncts(inside)
    else:
        yield part


def _all_of(parts: Sequence[Part], of: Expression) -> Wanted | None:
    """Ends of the column are put together before the expression is taken of them."""
    spans = [span for span in (_span(part, of) for part in parts) if span is not None]
    whole = _Span(None, None)
    for span in spans:
        whole = whole.within(span)
    found = [implied(part, of) for part in parts if _span(part, of) is None]
    if spans and (whole.low is None or whole.high is None or whole.low <= whole.high):
        found.append(_tried(whole, of))
    known = tuple(each for each in found if each is not None)
    return Several(every=True, parts=known) if known else None


def _tried(span: _Span, of: Expression) -> Wanted | None:
    try:
        return _image(span, of)
    except (UnknownValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        return None


def _test(call: Call, of: Expression) -> Wanted | None:
    span = _span(call, of)
    if span is not None:
        return _image(span, of)
    if call.function == "is_in" and len(call.parts) == 1 and isinstance(call.options, pa.StructScalar):
        (inside,), values = call.parts, call.options["value_set"].values
        if values.null_count or not 0 < len(values) <= _MEMBERS_MAX:
            return None
        tests = [Call("equal", (inside, Constant(value))) for value in values]
        each = [_test(test, of) for test in tests]
        known = tuple(one for one in each if one is not None)
        return Several(every=False, parts=known) if len(known) == len(each) else None
    return _of_call(call, of)


def _sides(call: Call) -> tuple[str, Part, pa.Scalar] | None:
    """A comparison with a constant: its name, as if that stood behind it, what is before it, and
    the constant."""
    if call.function not in FLIPPED or len(call.parts) != 2:
        return None
    first, second = call.parts
    name = call.function
    if isinstance(first, Constant):
        name, first, second = FLIPPED[name], second, first
    if not isinstance(second, Constant) or not second.value.is_valid:
        return None
    return name, first, second.value


def _span(part: Part, of: Expression) -> _Span | None:
    """The values that a test of the column itself leaves."""
    sides = _sides(part) if isinstance(part, Call) else None
    if sides is None or not isinstance(sides[1], Reference) or sides[1].name != of.note.column:
        return None
    value = _stored(sides[2], of.stored)
    if value is None or sides[0] == "not_equal":
        return None
    beside = int(sides[0] in ("less", "greater") and not isinstance(value, str))
    if sides[0].startswith("less"):
        return _Span(None, value - beside if beside else value)
    return _Span(value + beside if beside else value, None if sides[0].startswith("greater") else value)


def _stored(value: pa.Scalar, kind: pa.DataType) -> Any:
    """The constant as the column stores it: a whole number, or a text; None where it has no such
    value."""
    if _is_text(kind):
        return value.as_py() if _is_text(value.type) else None
    same = (pt.is_integer, pt.is_date32, lambda each: pt.is_timestamp(each) and each.tz is not None)
    if not any(test(kind) and test(value.type) for test in same):
        return None
    try:
        found = value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return found.as_py() if pt.is_integer(kind) else found.value


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _image(span: _Span, of: Expression) -> Wanted | None:
    """What the expression gives for values of the span."""
    if _is_zoned(of):
        span = _widened(span, of.stored)
    if span.low is not None and span.low == span.high:
        (value,) = _results(of, [span.low])
        return Between(value, value)
    order = _ORDERS.get(of.note.function)
    return None if order is None else order(span, of)


def _is_zoned(of: Expression) -> bool:
    return bool(pt.is_timestamp(of.stored)) or of.note.function == "from_unixtime"


def _per_second(kind: pa.DataType) -> int:
    return _PER_SECOND[kind.unit] if pt.is_timestamp(kind) else 1


def _limits(kind: pa.DataType) -> tuple[int, int]:
    bits = 31 if pt.is_date32(kind) or pt.is_int32(kind) else 63
    return -(1 << bits), (1 << bits) - 1


def _widened(span: _Span, kind: pa.DataType) -> _Span:
    """The span with the instants that a clock of another zone may show for one of it."""
    by, (least, most) = _FURTHEST * _per_second(kind), _limits(kind)
    low = None if span.low is None or span.low - by < least else span.low - by
    high = None if span.high is None or span.high + by > most else span.high + by
    return _Span(low, high)


def _results(of: Expression, values: Sequence[Any]) -> list[pa.Scalar]:
    """The expression of values of the column. Raises UnknownValueError, ArrowInvalid."""
    if pt.is_timestamp(of.stored):
        return list(of.values(pa.array(values, pa.int64()).view(of.stored)))
    if pt.is_date32(of.stored):
        return list(of.values(pa.array(values, pa.int32()).view(of.stored)))
    return list(of.values(pa.array(values, of.stored)))


def _result(of: Expression, value: Any) -> pa.Scalar | None:
    return None if value is None else _results(of, [value])[0]


def _in_order(span: _Span, of: Expression) -> Wanted | None:
    return Between(_result(of, span.low), _result(of, span.high))


def _in_a_ring(span: _Span, of: Expression) -> Wanted | None:
    """Of sums that begin anew at the other end, once."""
    least, most = _limits(of.stored)
    low, high = _results(of, [least if span.low is None else span.low, most if span.high is None else span.high])
    if low.value <= high.value:
        return Between(low, high)
    return Several(every=False, parts=(Between(low, None), Between(None, high)))


def _as_texts(span: _Span, of: Expression) -> Wanted | None:
    """Of instants as texts, whose order is theirs in years of four digits. Other years have a sign
    before them."""
    form = Format.parse(of.note.options.get("format", DEFAULT_FORMAT))
    if form is None or not form.keeps_order:
        return None
    if pt.is_int64(of.stored) and any(each is None or abs(each) > _LONG_MICROS for each in (span.low, span.high)):
        # What lies beyond shows the time of another moment.
        return None
    low, high = span.low, span.high
    first, last = (_edge(each, of.stored) for each in YEARS_OF_FOUR_DIGITS)
    if low is not None and low >= last:
        return Between(None, _PLUS_ENDS)
    if high is not None and high < first:
        return Between(None, _MINUS_ENDS)
    before, after = low is None or low < first, high is None or high >= last
    if before:
        return None if after else Between(None, _result(of, high))
    main = Between(_result(of, low), None if after else _result(of, high))
    return Several(every=False, parts=(main, Between(None, _PLUS_ENDS))) if after else main


def _edge(seconds: int, kind: pa.DataType) -> int:
    return seconds // _DAY if pt.is_date32(kind) else seconds * _per_second(kind)


def _beginnings(span: _Span, of: Expression) -> Wanted | None:
    """Of the first characters of a text."""
    return _in_order(span, of) if whole_option(of.note.options, "pos") in (0, 1) else None


_ORDERS: Mapping[str, Callable[[_Span, Expression], Wanted | None]] = {
    "year": _in_order,
    "to_date": _in_order,
    "date_add": _in_a_ring,
    "date_sub": _in_a_ring,
    "from_unixtime": _as_texts,
    "date_format": _as_texts,
    "substring": _beginnings,
}


def _of_call(call: Call, of: Expression) -> Wanted | None:
    """What a test of a function of the column says, where Arrow's function is that of the index."""
    sides = _sides(call)
    if sides is None:
        return None
    name, inner, constant = sides
    if not isinstance(inner, Call) or name == "not_equal":
        return None
    same = _CALLS.get(inner.function)
    if same is None or same[0] != of.note.function or list(inner.parts) != [Reference(of.note.column)]:
        return None
    apart = same[1](inner, of)
    if apart is None:
        return None
    if of.note.function in ("upper", "lower"):
        return _of_case(constant, inner.function) if name == "equal" else None
    value = constant.cast(of.kind)
    low, high = (value, value) if not apart else (_moved(value, -apart), _moved(value, apart))
    found = Between(None if name.startswith("less") else low, None if name.startswith("greater") else high)
    return Several(every=False, parts=(found, *_BEYOND_SHORT)) if of.note.function == "year" else found


def _of_case(constant: pa.Scalar, function: str) -> Wanted | None:
    """Arrow changes letters one by one, Java some to several. Of those that become ASCII by Arrow
    only the dotted capital I differs, which is `i` and a dot above in Java."""
    text = constant.as_py() if _is_text(constant.type) else None
    if text is None or not text.isascii():
        return None
    dotted = text.replace("i", "i\u0307") if function == "utf8_lower" else text
    return Between(pa.scalar(text), pa.scalar(dotted))


def _moved(value: pa.Scalar, by: int) -> pa.Scalar:
    if pt.is_date32(value.type):
        return pa.array([value.value + by], pa.int32()).view(value.type)[0]
    return pa.scalar(value.as_py() + by, value.type)


_Apart: TypeAlias = Callable[[Call, Expression], int | None]
"""How far values of Arrow's function may be from those of the index; None: it is not the same."""


def _exact(call: Call, of: Expression) -> int | None:
    del call, of
    return 0


def _trims(call: Call, of: Expression) -> int | None:
    return 0 if _option(call, "characters") == of.note.options.get("trimString", " ") else None


def _slices(call: Call, of: Expression) -> int | None:
    ends = substring_ends(of.note.options)
    if ends is None or _option(call, "step") != 1 or _option(call, "start") != ends[0]:
        return None
    stop = _option(call, "stop")
    return 0 if stop == ends[1] or (ends[1] is None and stop >= _limits(pa.int64())[1]) else None


def _years(call: Call, of: Expression) -> int | None:
    del call
    return 0 if pt.is_date32(of.stored) else 1


def _casts(call: Call, of: Expression) -> int | None:
    if not isinstance(call.options, pa.StructScalar) or not pt.is_date32(call.options["to_type"].type):
        return None
    return 1 if pt.is_timestamp(of.stored) else None


def _option(call: Call, name: str) -> Any:
    return call.options[name].as_py() if isinstance(call.options, pa.StructScalar) else None


_CALLS: Mapping[str, tuple[str, _Apart]] = {
    "utf8_upper": ("upper", _exact),
    "ascii_upper": ("upper", _exact),
    "utf8_lower": ("lower", _exact),
    "ascii_lower": ("lower", _exact),
    "utf8_length": ("length", _exact),
    "utf8_trim": ("trim", _trims),
    "utf8_ltrim": ("ltrim", _trims),
    "utf8_rtrim": ("rtrim", _trims),
    "utf8_slice_codeunits": ("substring", _slices),
    "year": ("year", _years),
    "cast": ("to_date", _casts),
}
"""Arrow's functions that are those of an index. `month` and `day` are not: of years beyond a short
integer Arrow gives others."""
