"""The timestamp-based key generator: instants in many notations to path text, by Java date
patterns.

Measured on Hudi 0.15.0, which formats with Joda: null is the instant 0; text is parsed in the input
zone; without any zone in the table's settings instants are formatted in the zone of Hudi's own
process (taken as UTC here), and text that names an offset keeps that offset; microseconds are cut
towards zero. Date and timestamp columns reach Hudi as plain numbers, so that only `SCALAR` with
unit days or microseconds reads them rightly: any other input is refused for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from hudi_table.errors import InvalidDataError, InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.model.options.values import zone_name
from hudi_table.model.table.config import PartitionField
from hudi_table.table.keys.java_text import refuse_type
from hudi_table.write.keygen.later_years import fixed_zone, later_offsets

_MILLIS = {
    "nanoseconds": (1, 1_000_000),
    "microseconds": (1, 1_000),
    "milliseconds": (1, 1),
    "seconds": (1_000, 1),
    "minutes": (60_000, 1),
    "hours": (3_600_000, 1),
    "days": (86_400_000, 1),
}
_UNITS = {"EPOCHMILLISECONDS": "milliseconds", "UNIX_TIMESTAMP": "seconds", "EPOCHMICROSECONDS": "microseconds"}
_ZONES_FIXED_FROM = 78_000_000_000
"""June 1972, in milliseconds."""
_INPUTS = (*_UNITS, "SCALAR", "DATE_STRING", "MIXED")
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z']+)")
_QUOTED = re.compile(r"'[^']*'")
_STRFTIME = re.compile(r"%[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a pattern: a run of `width` equal letters, or literal text (`letter` is '')."""

    letter: str
    width: int
    text: str = ""


def parse_pattern(pattern: str) -> tuple[Piece, ...]:
    """The pieces of a Java date pattern. Raises InvalidOptionError for an unbalanced quote."""
    pieces: list[Piece] = []
    position = 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None:
            raise InvalidOptionError(f"the date pattern {pattern!r} has an unbalanced quote at position {position}")
        quoted, letter, other = match.groups()
        if letter:
            pieces.append(Piece(letter, len(match[0])))
        else:
            pieces.append(Piece("", 0, other if quoted is None else quoted.replace("''", "'") or "'"))
        position = match.end()
    return tuple(pieces)


def refuse_strftime(field: PartitionField) -> None:
    """Refuse a format in Python's notation for a table that is being created: Java's would take
    `%Y` for a text and a year. Raises InvalidOptionError."""
    if found := _STRFTIME.search(_QUOTED.sub("''", field.format or "")):
        raise InvalidOptionError(
            f"partition field '{field.field}' has the format {field.format!r}, where {found[0]!r} is Python's notation: "
            "write Java's, e.g. yyyy/MM/dd"
        )


def default_input(kind: pa.DataType, field: PartitionField) -> PartitionField:
    """The field with `input` (and `unit`) as a column of this type needs it, where it was not
    given.

    Raises InvalidOptionError if only the user can tell, or if what was given would misread the
    column.
    """
    from dataclasses import replace

    if pt.is_dictionary(kind):
        kind = kind.value_type
    refuse_type(kind, field.field)
    if not field.format:
        raise InvalidOptionError(
            f"partition field '{field.field}' is of type Timestamp: give its format, e.g. yyyy/MM/dd"
        )
    if field.input is not None and field.input.upper() not in _INPUTS:
        raise InvalidOptionError(
            f"partition field '{field.field}' has input {field.input!r}: use one of {', '.join(_INPUTS)}"
        )
    if pt.is_date(kind) or pt.is_timestamp(kind):
        wanted = "days" if pt.is_date(kind) else "microseconds"
        if field.input is None:
            return (
                replace(field, input="SCALAR", unit=wanted)
                if wanted == "days"
                else replace(field, input="EPOCHMICROSECONDS")
            )
        if unit_of(field) != wanted:
            name = "SCALAR with unit days" if wanted == "days" else "EPOCHMICROSECONDS"
            raise InvalidOptionError(
                f"partition field '{field.field}' is a {kind} column, which Hudi hands on in {wanted}: "
                f"input {field.input} would misread it; leave it out or use {name}"
            )
        return field
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        if field.input_format and (field.input or "DATE_STRING").upper() in ("DATE_STRING", "MIXED"):
            return replace(field, input=field.input or "DATE_STRING")
        raise InvalidOptionError(
            f"partition field '{field.field}' is text: give input DATE_STRING and an input format such as yyyy-MM-dd"
        )
    if pt.is_null(kind):
        return replace(field, input=field.input or "EPOCHMILLISECONDS")
    if unit_of(field) is None:
        raise InvalidOptionError(
            f"partition field '{field.field}' is a {kind} column: say what it counts by input EPOCHMILLISECONDS, "
            "UNIX_TIMESTAMP, EPOCHMICROSECONDS, or SCALAR with a unit (hoodie.keygen.timebased.timestamp.type)"
        )
    return field


def unit_of(field: PartitionField) -> str | None:
    """What numbers of the field count, e.g. `milliseconds`; None if that is not told. Raises
    InvalidOptionError."""
    input_type = (field.input or "").upper()
    if input_type in _UNITS:
        return _UNITS[input_type]
    unit = field.unit.lower()
    if unit and unit not in _MILLIS:
        raise InvalidOptionError(
            f"partition field '{field.field}' has unit {field.unit!r}: use one of {', '.join(_MILLIS)}"
        )
    return unit or None


def path_texts(values: pa.Array, field: PartitionField) -> pa.DictionaryArray:
    """The partition text of each value: indices into texts, which may repeat (null values are the
    instant 0).

    Raises InvalidDataError for text that does not fit the input format, InvalidOptionError for
    unknown patterns.
    """
    field = default_input(values.type, field)
    zone, pattern = zone_name(field.timezone or "UTC"), field.format or ""
    if pt.is_string(values.type) or pt.is_large_string(values.type) or pt.is_string_view(values.type):
        instants, offsets = _parse(pc.cast(values, pa.string()), field)
        if offsets is not None and not field.timezone:
            instants, zone = pc.add(instants, offsets), "UTC"
    else:
        instants = _to_millis(values, unit_of(field) or "milliseconds")
    encoded = _coarsened(instants, pattern).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, format_instants(encoded.dictionary, pattern, zone))


def _coarsened(millis: pa.Array, pattern: str) -> pa.Array:
    """Instants that differ only by what the pattern does not show, as one: so that few have to be
    formatted.

    Since mid-1972 the offset of every time zone is a multiple of 15 minutes; earlier ones had
    seconds.
    """
    letters = {piece.letter for piece in parse_pattern(pattern)}
    if "S" in letters:
        return millis
    step = 1_000 if "s" in letters else 60_000 if "m" in letters else 900_000
    floor = pc.multiply(pc.divide(millis, step), step)
    return pc.if_else(pc.greater_equal(millis, _ZONES_FIXED_FROM), floor, millis)


def _to_millis(values: pa.Array, unit: str) -> pa.Array:
    kind = values.type
    if pt.is_timestamp(kind):
        numbers = pc.cast(pc.cast(values, pa.timestamp("us", kind.tz), safe=False), pa.int64())
    elif pt.is_date(kind):
        numbers = values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    elif pt.is_floating(kind) or pt.is_decimal(kind):
        numbers = pc.cast(pc.trunc(values), pa.int64(), safe=False)
    else:
        numbers = values.cast(pa.int64())
    times, over = _MILLIS[unit]
    return pc.fill_null(pc.divide(pc.multiply(numbers, times), over), 0)


def check_settings(field: PartitionField) -> None:
    """Raise InvalidOptionError for a zone or a pattern by which no row could be placed."""
    zone_name(field.input_timezone or "UTC")
    format_instants(pa.array([0], pa.int64()), field.format or "", zone_name(field.timezone or "UTC"))
    for pattern in filter(None, map(str.strip, (field.input_format or "").split(","))):
        _regex(parse_pattern(pattern), pattern)


def format_instants(millis: pa.Array, pattern: str, zone: str) -> pa.Array:
    """Text of instants (int64 milliseconds since 1970) in a zone, by a Java pattern."""
    pieces = parse_pattern(pattern)
    if not pieces:
        raise InvalidOptionError("the date pattern is empty")
    texts = _formatted(millis, pieces, pattern, zone)
    for minutes, some in later_offsets(millis, zone):
        texts = pc.replace_with_mask(texts, some, _formatted(millis.filter(some), pieces, pattern, fixed_zone(minutes)))
    return texts


def _formatted(millis: pa.Array, pieces: tuple[Piece, ...], pattern: str, zone: str) -> pa.Array:
    moments = pc.cast(millis, pa.timestamp("ms")).cast(pa.timestamp("ms", zone))
    parts = [_render(piece, moments, pattern) for piece in pieces]
    if all(isinstance(part, str) for part in parts):
        return pa.array(["".join(parts)] * len(millis), pa.string())
    return pc.binary_join_element_wise(*[pa.scalar(p) if isinstance(p, str) else p for p in parts], "")


def _render(piece: Piece, moments: pa.Array, pattern: str) -> Any:
    letter, width = piece.letter, piece.width
    if not letter:
        return piece.text
    if letter == "M" and width > 2:
        return pc.strftime(moments, format="%b" if width == 3 else "%B", locale="C")
    if letter == "E":
        return pc.strftime(moments, format="%a" if width <= 3 else "%A", locale="C")
    if letter == "a":
        return pc.if_else(pc.less(pc.hour(moments), 12), "AM", "PM")
    if letter == "S":
        return pc.utf8_slice_codeunits(pc.utf8_rpad(_padded(pc.millisecond(moments), 3), width, "0"), 0, width)
    if letter == "Z" and width <= 2:
        text = pc.strftime(moments, format="%z", locale="C")
        return text if width == 1 else pc.replace_substring_regex(text, r"(\d\d)(\d\d)$", r"\1:\2")
    return _padded(_number(letter, width, moments, pattern), width)


def _number(letter: str, width: int, moments: pa.Array, pattern: str) -> pa.Array:
    if letter in "yYx":
        year = pc.iso_year(moments) if letter == "x" else pc.year(moments)
        return pc.subtract(year, pc.multiply(pc.divide(year, 100), 100)) if width == 2 else year
    simple = {
        "M": pc.month,
        "d": pc.day,
        "D": pc.day_of_year,
        "H": pc.hour,
        "m": pc.minute,
        "s": pc.second,
        "w": pc.iso_week,
    }
    if letter in simple:
        return simple[letter](moments)
    if letter == "e":
        return pc.day_of_week(moments, count_from_zero=False, week_start=1)
    if letter in "hkK":
        hour = pc.hour(moments)
        half = pc.subtract(hour, pc.multiply(pc.divide(hour, 12), 12))
        if letter == "K":
            return half
        wrapped, top = (half, 12) if letter == "h" else (hour, 24)
        return pc.if_else(pc.equal(wrapped, 0), top, wrapped)
    raise InvalidOptionError(f"the date pattern {pattern!r} has the letter {letter * width!r}, which is not supported")


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(pc.cast(numbers, pa.string()), width, "0")


def _parse(texts: pa.Array, field: PartitionField) -> tuple[pa.Array, pa.Array | None]:
    """(instants in milliseconds, the offsets that the texts named, or None). Null is the instant
    0."""
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary
    zone = zone_name(field.input_timezone or field.timezone or "UTC")
    instants: Any = pa.nulls(len(distinct), pa.int64())
    offsets: Any = None
    for pattern in (field.input_format or "").split(","):
        found, named = _parse_one(distinct, parse_pattern(pattern.strip()), pattern, zone)
        if named is not None:
            offsets = pc.if_else(pc.is_null(instants), named, 0 if offsets is None else offsets)
        instants = pc.coalesce(instants, found)
    bad = pc.indices_nonzero(pc.is_null(instants))
    if len(bad):
        example = distinct[bad[0].as_py()].as_py()
        rows = pc.indices_nonzero(pc.is_in(encoded.indices, bad.cast(encoded.indices.type)))
        raise InvalidDataError(
            f"partition field '{field.field}' has text that does not fit {field.input_format!r} in {counted(len(rows), 'row')}, "
            f"the first at row {rows[0].as_py()}: {example!r}"
        )
    filled = pc.fill_null(instants.take(encoded.indices), 0)
    return filled, None if offsets is None else pc.fill_null(offsets.take(encoded.indices), 0)


def _parse_one(texts: pa.Array, pieces: tuple[Piece, ...], pattern: str, zone: str) -> tuple[pa.Array, pa.Array | None]:
    regex, letters = _regex(pieces, pattern)
    fields = pc.extract_regex(texts, regex)

    def number(letter: str, default: int) -> Any:
        if letter not in letters:
            return default
        return pc.cast(pc.struct_field(fields, letter), pa.int64())

    year, month, day = number("y", 1970), number("M", 1), number("d", 1)
    days = _days(year, month, day, len(texts))
    hour = number("H", 0) if "h" not in letters else _half_day(fields, letters)
    millis: Any = pc.multiply(
        pc.add(pc.multiply(pc.add(pc.multiply(hour, 60), number("m", 0)), 60), number("s", 0)), 1000
    )
    if "S" in letters:
        fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(fields, "S"), 3, "0"), 0, 3)
        millis = pc.add(millis, pc.cast(fraction, pa.int64()))
    local = pc.add(pc.multiply(days, 86_400_000), millis)
    local = pc.if_else(pc.is_valid(fields), local, None)
    if "Z" in letters:
        named = _offset_millis(pc.struct_field(fields, "Z"))
        return pc.subtract(local, named), named
    moments = pc.assume_timezone(local.cast(pa.timestamp("ms")), zone, ambiguous="earliest", nonexistent="latest")
    instants: Any = moments.cast(pa.int64())
    for minutes, some in later_offsets(local, zone, local=True):
        instants = pc.if_else(some, pc.subtract(local, minutes * 60_000), instants)
    return instants, None


def _regex(pieces: tuple[Piece, ...], pattern: str) -> tuple[str, set[str]]:
    shapes = {"y": r"\d{4}", "S": r"\d+", "a": "[AaPp][Mm]", "Z": r"Z|[+-]\d{2}:?\d{2}"}
    parts, letters = ["^"], set()
    for position, piece in enumerate(pieces):
        if not piece.letter:
            parts.append(re.escape(piece.text).replace("/", "/"))
            continue
        neighbours = pieces[position - 1 : position] + pieces[position + 1 : position + 2]
        adjacent = any(other.letter for other in neighbours)
        exact = f"{{{piece.width}}}" if adjacent or piece.letter == "S" else "{1,2}"
        if piece.letter not in "yMdHhmsSaZ" or (piece.letter == "M" and piece.width > 2) or piece.letter in letters:
            raise InvalidOptionError(
                f"the input date pattern {pattern!r} uses {piece.letter * piece.width!r}, which is not supported"
            )
        letters.add(piece.letter)
        shape = rf"\d{exact}" if piece.letter in "MdHhmsS" else shapes[piece.letter]
        parts.append(f"(?P<{piece.letter}>{shape})")
    return "".join(parts) + "$", letters


def _half_day(fields: pa.Array, letters: set[str]) -> pa.Array:
    hour = pc.cast(pc.struct_field(fields, "h"), pa.int64())
    hour = pc.if_else(pc.equal(hour, 12), 0, hour)
    if "a" not in letters:
        return hour
    afternoon = pc.equal(pc.utf8_lower(pc.struct_field(fields, "a")), "pm")
    return pc.add(hour, pc.if_else(afternoon, 12, 0))


def _offset_millis(text: pa.Array) -> pa.Array:
    plain = pc.if_else(pc.equal(text, "Z"), "+0000", pc.replace_substring(text, ":", ""))
    minutes = pc.add(
        pc.multiply(pc.cast(pc.utf8_slice_codeunits(plain, 1, 3), pa.int64()), 60),
        pc.cast(pc.utf8_slice_codeunits(plain, 3, 5), pa.int64()),
    )
    sign = pc.if_else(pc.equal(pc.utf8_slice_codeunits(plain, 0, 1), "-"), -1, 1)
    return pc.multiply(pc.multiply(minutes, sign), 60_000)


def _days(year: Any, month: Any, day: Any, length: int) -> pa.Array:
    """Days since 1970; null where there is no such day."""

    def numbers(values: Any) -> Any:
        if isinstance(values, int):
            return np.full(length, values, dtype=np.int64)
        return pc.fill_null(values, -1).to_numpy(zero_copy_only=False)

    years, months, days = numbers(year), numbers(month), numbers(day)
    valid = (years >= 0) & (months >= 1) & (months <= 12) & (days >= 1)
    first = ((years - 1970) * 12 + np.where(valid, months - 1, 0)).astype("datetime64[M]")
    count = first.astype("datetime64[D]").astype(np.int64) + days - 1
    valid &= count < (first + 1).astype("datetime64[D]").astype(np.int64)
    return pa.array(count, mask=~valid)
