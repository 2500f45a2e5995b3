"""What an expression gives for the values of a column, exactly as Spark computes it for Hudi.

A function is here only where every value is known: texts are changed by the letters that Unicode
has had since version 3.2, for some releases of Java alone know the later ones; instants are
taken apart in UTC, as a session in UTC does. Numbers overflow as Java's do. Names and options are
those of Hudi's `CREATE INDEX` (read in public source).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.metadata.expression_index.formats import DEFAULT_FORMAT, Format, day_parts
from hudi_table.model import digits

Values = Callable[[pa.Array], pa.Array]
_SECOND, _DAY = 1_000_000, 86_400_000_000
_INT_MAX = (1 << 31) - 1
_DAYS_MOST = (1 << 63) // _DAY - 1
_OLD = unicodedata.ucd_3_2_0
_UNASSIGNED = ("Cn", "Cs")


class UnknownValueError(ValueError):
    """A value, function or type of which it is not known what Spark makes of it; the message says
    which, and ends a sentence that begins with the index."""

    internal = True


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one column: the options that it takes beside `expr`, and what it gives. `of`:
    the type of its results and how they are computed, for a column of a type; raises
    UnknownValueError."""

    options: frozenset[str]
    of: Callable[[pa.DataType, Mapping[str, str]], tuple[pa.DataType, Values]]


def bound_function(name: str, options: Mapping[str, str], kind: pa.DataType) -> tuple[pa.DataType, Values]:
    """The type of the results of a function over a column of this type, and what computes them:
    nulls stay. Raises UnknownValueError, as what it returns does."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise UnknownValueError(f"is of {name}(…); an index is kept of {', '.join(sorted(FUNCTIONS))}")
    more = sorted(options.keys() - function.options)
    if more:
        raise UnknownValueError(f"has the option {more[0]}, which {name}(…) does not take here")
    return function.of(kind, options)


def _text(kind: pa.DataType, name: str) -> None:
    if not (pt.is_string(kind) or pt.is_large_string(kind)):
        raise UnknownValueError(f"is of {name}(…) over a column of type {kind}; it is kept of strings")


def _of_text(name: str, compute: Values, result: pa.DataType | None = None) -> Function:
    def of(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
        del options
        _text(kind, name)
        return result or pa.string(), compute

    return Function(frozenset(), of)


def _trimming(name: str, trim: Callable[..., pa.Array]) -> Function:
    def of(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
        _text(kind, name)
        characters = options.get("trimString", " ")
        if not characters:
            raise UnknownValueError(f"is of {name}(…) with an empty trimString")
        return pa.string(), lambda values: trim(values, characters=characters)

    return Function(frozenset({"trimString"}), of)


def _substring(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
    _text(kind, "substring")
    ends = substring_ends(options)
    if ends is None:
        return pa.string(), lambda values: pc.if_else(values.is_valid(), "", values)
    return pa.string(), lambda values: pc.utf8_slice_codeunits(values, *ends)


def substring_ends(options: Mapping[str, str]) -> tuple[int, int | None] | None:
    """(start, stop) of a substring, as Arrow counts them; None of one that is always empty. Raises
    UnknownValueError."""
    place, length = whole_option(options, "pos"), whole_option(options, "len")
    start = place - 1 if place > 0 else place
    stop = start + length if place >= 0 or start + length < 0 else None
    return (start, stop) if length > 0 else None


def whole_option(options: Mapping[str, str], name: str) -> int:
    """A whole number as Java's `Integer.parseInt` reads it. Raises UnknownValueError."""
    text = options.get(name, "")
    number = digits.whole(text[1:] if text[:1] in ("+", "-") else text)
    if number is None or number > _INT_MAX:
        raise UnknownValueError(f"needs a whole number as option {name}, and has {text!r}")
    return -number if text.startswith("-") else number


def _cased(change: Callable[[str], str], plain: Callable[[pa.Array], pa.Array], refused: str) -> Values:
    """Texts in another case. ASCII by Arrow; other texts once each, joined to one, for a letter may
    become several."""

    def compute(values: pa.Array) -> pa.Array:
        values = values.cast(pa.string())
        ascii_alone = pc.string_is_ascii(values)
        if pc.all(ascii_alone, min_count=0).as_py():
            return plain(values)
        words = values.dictionary_encode()
        letters = "\0".join(words.dictionary.to_pylist())
        parts = change(letters).split("\0")
        if len(parts) != len(words.dictionary):
            raise UnknownValueError("meets a text with a NUL beside letters that are not ASCII")
        _refuse_new_letters(letters, change, refused)
        return pa.array(parts, pa.string()).take(words.indices)

    return compute


def _refuse_new_letters(text: str, change: Callable[[str], str], refused: str) -> None:
    """Raise UnknownValueError for letters whose other case not every release of Java knows."""
    for letter in sorted(set(text)):
        other = change(letter)
        told = letter not in refused and _category(letter) not in _UNASSIGNED
        if told and (other == letter or all(_OLD.category(each) not in _UNASSIGNED for each in (letter, *other))):
            continue
        raise UnknownValueError(
            f"meets the character U+{ord(letter):04X}, whose other case depends on the release of Java"
        )


def _category(letter: str) -> str:
    return unicodedata.category(letter)


def _days(kind: pa.DataType, name: str) -> Values:
    """Dates as days since 1970, and instants as the days in UTC that they lie in; int64."""
    if pt.is_date32(kind):
        return lambda values: values.cast(pa.int32()).cast(pa.int64())
    if pt.is_timestamp(kind) and kind.tz is not None:
        return lambda values: floor_divide(_micros(values), _DAY)
    raise UnknownValueError(f"is of {name}(…) over a column of type {kind}; it is kept of dates and timestamps")


def _micros(values: pa.Array) -> pa.Array:
    return values.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def floor_divide(values: pa.Array, by: int) -> pa.Array:
    """Whole numbers divided, down to the next whole one."""
    return over(values, lambda numbers: numbers // by)


def over(values: pa.Array, compute: Callable[[np.ndarray], np.ndarray]) -> pa.Array:
    """What numpy computes of int64; nulls stay."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        found = compute(numbers)
    return pa.array(found, mask=np.asarray(values.is_null()))


def _part_of_day(name: str, place: int) -> Function:
    def of(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
        del options
        days = _days(kind, name)
        return pa.int32(), lambda values: over(days(values), lambda found: day_parts(found)[place].astype(np.int32))

    return Function(frozenset(), of)


def _hour(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
    del options
    if not (pt.is_timestamp(kind) and kind.tz is not None):
        raise UnknownValueError(f"is of hour(…) over a column of type {kind}; it is kept of timestamps")
    return pa.int32(), lambda values: over(
        _micros(values), lambda found: (found % _DAY // (3600 * _SECOND)).astype(np.int32)
    )


def _moved(name: str, sign: int) -> Function:
    def of(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
        days, by = _days(kind, name), sign * whole_option(options, "days")

        def compute(values: pa.Array) -> pa.Array:
            # A sum beyond an int begins anew at the other end, as Java's does.
            return over(days(values), lambda found: (found + by).astype(np.int32)).view(pa.date32())

        return pa.date32(), compute

    return Function(frozenset({"days"}), of)


def _to_date(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
    del options
    days = _days(kind, "to_date")
    return pa.date32(), lambda values: days(values).cast(pa.int32()).view(pa.date32())


def _format(options: Mapping[str, str], default: str | None) -> Format:
    text = options.get("format", default)
    found = None if text is None else Format.parse(text)
    if found is None:
        raise UnknownValueError(
            f"has the format {text!r}; it is kept of yyyy, MM, dd, HH, mm, ss and signs between them"
        )
    return found


def _from_unixtime(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
    form = _format(options, DEFAULT_FORMAT)
    if not (pt.is_int32(kind) or pt.is_int64(kind)):
        raise UnknownValueError(f"is of from_unixtime(…) over a column of type {kind}; it is kept of ints and bigints")
    # Seconds whose microseconds are beyond a long begin anew at the other end, as Java's do.
    return pa.string(), lambda values: form.texts(over(values.cast(pa.int64()), lambda found: found * _SECOND))


def _date_format(kind: pa.DataType, options: Mapping[str, str]) -> tuple[pa.DataType, Values]:
    form = _format(options, None)
    if pt.is_date32(kind):
        days = _days(kind, "date_format")

        def compute(values: pa.Array) -> pa.Array:
            # Spark fails on a date whose microseconds are beyond a long.
            furthest = pc.max(pc.abs(days(values))).as_py()
            if furthest is not None and furthest > _DAYS_MOST:
                raise UnknownValueError("meets a date of which Spark cannot make an instant")
            return form.texts(over(days(values), lambda found: found * _DAY))

        return pa.string(), compute
    if pt.is_timestamp(kind) and kind.tz is not None:
        return pa.string(), lambda values: form.texts(_micros(values))
    raise UnknownValueError(f"is of date_format(…) over a column of type {kind}; it is kept of dates and timestamps")


def _length(values: pa.Array) -> pa.Array:
    return pc.utf8_length(values).cast(pa.int32())


_FORMAT = frozenset({"format"})
FUNCTIONS: Mapping[str, Function] = {
    # A sigma's small form depends on its place in a word, which Java sees otherwise.
    "lower": _of_text("lower", _cased(str.lower, pc.ascii_lower, "Σ")),
    "upper": _of_text("upper", _cased(str.upper, pc.ascii_upper, "")),
    "length": _of_text("length", _length, pa.int32()),
    "trim": _trimming("trim", pc.utf8_trim),
    "ltrim": _trimming("ltrim", pc.utf8_ltrim),
    "rtrim": _trimming("rtrim", pc.utf8_rtrim),
    "substring": Function(frozenset({"pos", "len"}), _substring),
    "year": _part_of_day("year", 0),
    "month": _part_of_day("month", 1),
    "day": _part_of_day("day", 2),
    "hour": Function(frozenset(), _hour),
    "date_add": _moved("date_add", 1),
    "date_sub": _moved("date_sub", -1),
    "to_date": Function(frozenset(), _to_date),
    "from_unixtime": Function(_FORMAT, _from_unixtime),
    "date_format": Function(_FORMAT, _date_format),
}
