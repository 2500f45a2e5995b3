"""Values as Kafka Connect writes them, a column at a time: base64, decimals, dates, times, moments
of ISO 8601.

Facts (Debezium 3.3.1 on PostgreSQL, default modes; samples in `tests/data/debezium`): a decimal is
its unscaled number, the greatest byte first; dates are days, times and timestamps microseconds or
milliseconds; with a zone they are ISO 8601 text; infinite dates are numbers beyond any year, or the
text `infinity`. In JSON bytes are base64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.avro.decode import DECIMAL_BYTES, unscaled
from hudi_table.sources.formats.decoder import first_bad

DECIMAL_PRECISION_MAX = 38
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ((date.min - _EPOCH.date()).days, (date.max - _EPOCH.date()).days)
_MICROS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
_INFINITE = pa.array(["infinity", "-infinity"])
_SURE = DECIMAL_BYTES - 1
"""Bytes of a decimal of Arrow, and those of a number that surely has no more digits than it may
have."""
_SIX = np.full(256, 255, np.uint8)
_SIX[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)] = np.arange(64)
_PAD = ord("=")
Reader = Callable[[pa.Array, bool], pa.Array]
"""From a raw column to its values; whether what is infinite becomes null. Raises BadValueError."""


class BadValueError(ValueError):
    """The value of row `row` is none of its type, and `why`."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row
        self.why = why


@dataclass(frozen=True, slots=True)
class Bytes:
    """Values of bytes: where each begins in `data`, and how long it is."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


def refuse(bad: pa.Array, raw: pa.Array, words: str) -> None:
    """Raise BadValueError for the first row that is bad. `words` hold `{}` for its value."""
    row = bad.index(pa.scalar(True)).as_py()
    if row >= 0:
        raise BadValueError(row, words.replace("{}", repr(raw[row].as_py())))


def cast(raw: pa.Array, kind: pa.DataType) -> pa.Array:
    """Raw values in another type of Arrow. Raises BadValueError where one does not fit."""
    return _located(raw, lambda some: some.cast(kind))


def _located(
    raw: pa.Array, read: Callable[[pa.Array], pa.Array], words: Callable[[Any, str], str] | None = None
) -> pa.Array:
    """What a kernel makes of a column; where it fails, of which row, in its own words or in `words`
    of the value and these."""

    def fails(some: Any) -> str:
        try:
            read(some)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            return str(error)
        return ""

    try:
        return read(raw)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        row, why = first_bad(raw, fails)
        raise BadValueError(row, why if words is None else words(raw[row].as_py(), why)) from None


def bytes_of(raw: pa.Array) -> Bytes:
    """Of a column of bytes, or of one of base64. Nulls are empty. Raises BadValueError."""
    is_text = pt.is_string(raw.type)
    full = raw.fill_null("" if is_text else b"") if raw.null_count else raw
    ends = np.frombuffer(full.buffers()[1], np.int32)[full.offset : full.offset + len(full) + 1].astype(np.int64)
    held = full.buffers()[2]
    data = np.frombuffer(held if held is not None else b"", np.uint8)[int(ends[0]) : int(ends[-1])]
    ends -= ends[0]
    starts, sizes = ends[:-1], np.diff(ends)
    return _unbased(raw, data, starts, sizes) if is_text else Bytes(data, starts, sizes)


def _unbased(
    raw: pa.Array, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> Bytes:
    """Base64 stands in groups of four, so that all values are one text."""
    words = "{} is no base64"
    refuse(pa.array(sizes % 4 != 0), raw, words)
    some = np.flatnonzero(sizes)
    last = (starts + sizes)[some] - 1
    one = data[last] == _PAD
    two = one & (data[last - 1] == _PAD)
    six = _SIX[data]
    six[last[one]] = 0
    six[last[two] - 1] = 0
    wrong = np.flatnonzero(six == 255)
    if len(wrong):
        row = int(np.searchsorted(starts + sizes, wrong[0], side="right"))
        raise BadValueError(row, words.replace("{}", repr(raw[row].as_py())))
    four = six.reshape(-1, 4)
    three = np.empty((len(four), 3), np.uint8)
    three[:, 0] = four[:, 0] << 2 | four[:, 1] >> 4
    three[:, 1] = four[:, 1] << 4 | four[:, 2] >> 2
    three[:, 2] = four[:, 2] << 6 | four[:, 3]
    lengths = sizes // 4 * 3
    lengths[some] -= one.astype(np.int64) + two
    return Bytes(three.reshape(-1), starts // 4 * 3, lengths)


def cut(
    data: pa.Buffer,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    nulls: npt.NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Parts of a buffer, in its order, as a column of bytes. Nothing else of it is copied."""
    # The parts and the gaps between them are one array over the buffer; every other element is taken.
    bounds = np.zeros(2 * len(starts) + 1, np.int64)
    bounds[:-1:2] = starts
    bounds[1::2] = ends
    bounds[-1] = ends[-1] if len(ends) else 0
    whole = pa.Array.from_buffers(pa.large_binary(), 2 * len(starts), [None, pa.py_buffer(bounds), data])
    return whole.take(pa.array(np.arange(0, 2 * len(starts), 2), mask=nulls))


def binary(raw: pa.Array, null_infinite: bool) -> pa.Array:
    """Bytes."""
    del null_infinite
    if not pt.is_string(raw.type):
        return raw
    found = bytes_of(raw)
    nulls = raw.is_null().to_numpy(zero_copy_only=False)
    return cut(pa.py_buffer(found.data), found.starts, found.starts + found.sizes, nulls).cast(pa.binary())


def _numbers(found: Bytes, valid: pa.Array, kind: pa.DataType) -> pa.Array:
    """Unscaled numbers of up to 16 bytes as decimals; nothing is checked."""
    wide = unscaled(found.data, found.starts, found.sizes)
    return pa.Array.from_buffers(kind, len(valid), [valid.buffers()[1], pa.py_buffer(wide)])


def decimals(kind: pa.DataType) -> Reader:
    """Unscaled numbers, of this precision and scale."""

    def read(raw: pa.Array, null_infinite: bool) -> pa.Array:
        del null_infinite
        if pt.is_decimal(raw.type):
            return cast(raw, kind)
        found = bytes_of(raw)
        refuse(pa.array(found.sizes > DECIMAL_BYTES), raw, f"{{}} has more digits than {kind} holds")
        values = _numbers(found, raw.is_valid(), kind)

        def checked(some: pa.Array) -> pa.Array:
            some.validate(full=True)
            return some

        return _located(values, checked)

    return read


def variable_decimals(raw: pa.Array, null_infinite: bool) -> pa.Array:
    """Decimals of any scale, a struct of both: their text, for no column has a scale of its own for
    each row."""
    del null_infinite
    fields = fields_of(raw)
    scales, unscaled = fields["scale"], fields["value"]
    refuse(
        pc.and_(raw.is_valid(), pc.or_(scales.is_null(), unscaled.is_null())), raw, "{} is no decimal with its scale"
    )
    found = bytes_of(unscaled)
    short = Bytes(found.data, found.starts, np.where(found.sizes > _SURE, 0, found.sizes))
    digits = _numbers(short, unscaled.is_valid(), pa.decimal128(DECIMAL_PRECISION_MAX, 0)).cast(pa.string())
    long = found.sizes > _SURE
    if long.any():
        # Python's numbers alone are as wide: these few are read one by one.
        rows = np.flatnonzero(long).tolist()
        parts = [found.data[found.starts[row] : found.starts[row] + found.sizes[row]].tobytes() for row in rows]
        texts = [str(int.from_bytes(part, "big", signed=True)) for part in parts]
        digits = pc.replace_with_mask(digits, pa.array(long), pa.array(texts, pa.string()))
    for scale in scales.unique().drop_null().to_pylist():
        if scale:
            those = pc.equal(scales, scale)
            digits = pc.if_else(those, _with_point(digits, scale), digits)
    return digits


def _with_point(digits: pa.Array, scale: int) -> pa.Array:
    if scale < 0:
        return pc.if_else(pc.equal(digits, "0"), digits, pc.binary_join_element_wise(digits, "0" * -scale, ""))
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    whole, part = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, whole, ""), part, ".")


def fields_of(rows: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of structs by their names, null where the structs are."""
    return dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))


def _bounded(raw: pa.Array, least: int, most: int, null_infinite: bool, words: str) -> pa.Array:
    """The numbers, of which those beyond the bounds are infinite."""
    beyond = pc.or_(pc.less(raw, least), pc.greater(raw, most))
    return _finite(raw, beyond, null_infinite, words)


def _finite(raw: pa.Array, beyond: pa.Array, null_infinite: bool, words: str) -> pa.Array:
    if not pc.any(beyond).as_py():
        return raw
    if not null_infinite:
        row = beyond.index(pa.scalar(True)).as_py()
        raise BadValueError(
            row, f"{words.format(raw[row].as_py())} is infinite: source.debezium.infinite AsNull makes it null"
        )
    return pc.if_else(beyond, pa.scalar(None, raw.type), raw)


def dates(raw: pa.Array, null_infinite: bool) -> pa.Array:
    """Days since 1970."""
    if pt.is_date(raw.type):
        return raw
    found = _bounded(raw, *_DAYS, null_infinite, "the date of {} days")
    return found.cast(pa.int32()).view(pa.date32())


def timestamps(unit: int) -> Reader:
    """Numbers of so many microseconds since 1970, without a zone."""

    def read(raw: pa.Array, null_infinite: bool) -> pa.Array:
        if pt.is_timestamp(raw.type):
            return raw.cast(pa.timestamp("us"))
        found = _bounded(raw, -(-_MICROS[0] // unit), _MICROS[1] // unit, null_infinite, "the timestamp {}")
        return pc.multiply(found, pa.scalar(unit, pa.int64())).view(pa.timestamp("us"))

    return read


def moments(raw: pa.Array, null_infinite: bool) -> pa.Array:
    """ISO 8601 with a zone."""
    found = _finite(raw, pc.is_in(raw, _INFINITE), null_infinite, "the timestamp {}")

    return _located(
        found,
        lambda some: some.cast(pa.timestamp("us", "UTC")),
        lambda value, _: f"{value!r} is no moment of ISO 8601 with a zone",
    )


def clocks(unit: int) -> Reader:
    """Numbers of so many microseconds: a time of day as text, for Spark has no type of it. 24:00:00
    is one, too, and MySQL has times below zero."""

    def read(raw: pa.Array, null_infinite: bool) -> pa.Array:
        del null_infinite
        if pt.is_time(raw.type):
            raw = raw.cast(pa.time64("us")).view(pa.int64())
            return _clock(raw)
        return _clock(_located(raw.cast(pa.int64()), lambda some: pc.multiply_checked(some, unit)))

    return read


def _clock(micros: pa.Array) -> pa.Array:
    size = pc.abs(micros)
    seconds = pc.divide(size, 1_000_000)
    minutes = pc.divide(seconds, 60)
    hours = pc.divide(minutes, 60)

    def rest(more: pa.Array, less: pa.Array, unit: int, width: int) -> pa.Array:
        return pc.utf8_lpad(pc.subtract(more, pc.multiply(less, unit)).cast(pa.string()), width, "0")

    fraction = pc.utf8_rtrim(rest(size, seconds, 1_000_000, 6), "0")
    whole = pc.binary_join_element_wise(
        pc.utf8_lpad(hours.cast(pa.string()), 2, "0"), rest(minutes, hours, 60, 2), rest(seconds, minutes, 60, 2), ":"
    )
    tail = pc.if_else(pc.equal(fraction, ""), "", pc.binary_join_element_wise(".", fraction, ""))
    return pc.binary_join_element_wise(pc.if_else(pc.less(micros, 0), "-", ""), whole, tail, "")


def written_decimals(kind: pa.DataType) -> Reader:
    """Decimals as text."""

    def read(raw: pa.Array, null_infinite: bool) -> pa.Array:
        del null_infinite
        # Text without a point may be base64 as well, and mean another number.
        refuse(
            pc.invert(pc.match_substring(raw, ".")),
            raw,
            "{} is no decimal with a point: its scale is in the schema of a message alone; set decimal.handling.mode to string, or let the connector write schemas",
        )
        return _located(raw, lambda some: some.cast(kind), lambda value, error: f"{value!r} is no {kind}: {error}")

    return read


def as_is(kind: pa.DataType) -> Reader:
    """Values that Arrow reads itself."""

    def read(raw: pa.Array, null_infinite: bool) -> pa.Array:
        del null_infinite
        return raw if raw.type == kind else cast(raw, kind)

    return read
