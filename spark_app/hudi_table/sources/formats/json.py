"""JSON objects, one a message, by pyarrow's columnar parser: all messages in one block.

The parser takes objects as they come, wherever lines end. So each message stands as the value of an
object of its own, `{"v":…}`: no message can end what another one began, since a quote and a `v`
come between any two, and one that holds two values makes a row too many, or a column. (All tried:
pyarrow 26.)

Arrow takes a column for doubles where one number is no whole one of 64 bits, and a double holds the
digits of whole numbers below 2^53 alone. Where nobody has said the type, such a column of whole
numbers is one of `decimal(20,0)`, and whole numbers beyond are refused beside fractions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from hudi_table.codec.conform import cast_array
from hudi_table.errors import InvalidSchemaError
from hudi_table.sources.formats.decoder import UndecodableError, first_bad

_BEGIN, _BETWEEN, _END = b'{"v":', b'}\n{"v":', b"}"
_BLOCK_LEAST = 1024
_ZONE = r"([Zz]|[+-]\d\d(:?\d\d)?)"
_FINER, _ZONED = r"(\.\d{6})\d+", rf"[Tt ].*{_ZONE}$"
_MOMENT = rf"^\d{{4}}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?{_ZONE}?$"
_NUMBERED = re.compile(r" in row \d+$")
_UTC = pa.timestamp("us", tz="UTC")
_EXACT = 2.0**53
WHOLE = pa.decimal128(20, 0)
_LONG_WHOLE = r'("(?:\\.|[^"\\])*"|\d+[.eE][-+.\deE]*)|(\d)\d{15,}'
"""Texts and numbers with a fraction or an exponent, which the first group holds, or whole numbers
of 16 digits and more, of which the second one holds the first digit."""
MIXED = (
    "it holds whole numbers of 2^53 or more beside fractions, and a double does not hold all digits of both: "
    "say its type in source.columns, such as decimal(38,9) or double"
)
_FRAMED = "it begins with a zero byte, as the id of a schema in a registry does: give json.registry"


class JsonDecoder:
    """Objects. What has no type yet is left out: a column that is null in every message, a list
    without values, an object without fields, and such a field of an object."""

    independent: ClassVar[bool] = True

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. Dates and times are ISO 8601 text. Raises InvalidSchemaError for a known
        column that JSON cannot fill."""
        if not messages:
            return (known if known is not None else pa.schema([])).empty_table()
        try:
            return read_objects(messages, known, is_text)
        except UndecodableError as error:
            if messages[error.place].startswith(b"\0"):
                raise UndecodableError(error.place, _FRAMED) from None
            raise


IsText = Callable[[pa.DataType], bool]
Read = Callable[[pa.Buffer, pa.Schema | None], pa.Table]
"""The rows of a block, some columns in types that are given."""


def is_text(kind: pa.DataType) -> bool:
    """Whether the parser gives the text of values of this type."""
    return bool(pt.is_date(kind) or pt.is_time(kind))


def read_objects(messages: Sequence[bytes] | pa.Array, known: pa.Schema | None, as_text: IsText) -> pa.Table:
    """One row a message; values of types that are read `as_text` are made of it here. Raises
    UndecodableError, InvalidSchemaError."""
    wanted = _readable(known, as_text)

    def rows(some: Sequence[bytes] | pa.Array) -> pa.Table:
        def read(block: pa.Buffer, types: pa.Schema | None) -> pa.Table:
            found = parsed(block, len(some), types)
            if not found.type.num_fields:
                return pa.table({"": pa.nulls(len(found))}).select([])
            return pa.Table.from_arrays(found.flatten(), names=[field.name for field in found.type])

        return _typed(_exact(joined(some), read, wanted, known), known, as_text)

    def why_not(some: Sequence[bytes] | pa.Array) -> str:
        try:
            rows(some)
        except ValueError as error:
            return said(error)
        return ""

    try:
        return rows(messages)
    except ValueError:
        raise UndecodableError(*first_bad(messages, why_not)) from None


def read_lines(block: pa.Buffer, types: pa.Schema | None, known: pa.Schema | None) -> pa.Table:
    """The objects of a block of lines, in `types`, of which those of `known` are said and the
    others inferred. Raises ValueError, InvalidSchemaError."""
    return _typed(_exact(block, read_block, _readable(types, is_text), known), types, is_text)


def _readable(known: pa.Schema | None, as_text: IsText) -> pa.Schema | None:
    """What the parser is asked for: of dates and times their text."""
    if known is None:
        return None
    for field in known:
        if pt.is_map(field.type):
            raise InvalidSchemaError(
                f"column '{field.name}' is {field.type}, which cannot be read from JSON: use Avro, or another column"
            )
    return pa.schema([field.with_type(_parsed_type(field.type, as_text)) for field in known])


def _parsed_type(kind: pa.DataType, as_text: IsText) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_parsed_type(field.type, as_text)) for field in kind])
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_parsed_type(kind.value_type, as_text)))
    return pa.string() if as_text(kind) else kind


def joined(messages: Sequence[bytes] | pa.Array) -> pa.Buffer:
    """Messages as one block for `parsed`; of a column of them no message becomes an object of
    Python."""
    if not isinstance(messages, pa.Array):
        return pa.py_buffer(b"".join((_BEGIN, _BETWEEN.join(messages), _END)))
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(messages)], pa.int64()), messages)
    between = pc.binary_join(whole, pa.scalar(_BETWEEN, messages.type))
    return pa.py_buffer(b"".join((_BEGIN, between[0].as_buffer(), _END)))


def parsed(block: pa.Buffer, count: int, wanted: pa.Schema | None) -> pa.StructArray:
    """The `count` objects of a block. Raises ValueError, as pa.ArrowInvalid is one, where messages
    are no objects, one each."""
    found = read_block(block, pa.schema([pa.field("v", pa.struct(list(wanted)))]) if wanted is not None else None)
    if found.num_rows != count or found.column_names != ["v"]:
        raise ValueError("it is not one JSON object")
    rows = found.column(0).combine_chunks()
    rows = rows.chunk(0) if isinstance(rows, pa.ChunkedArray) else rows
    if not pt.is_struct(rows.type) or rows.null_count:
        raise ValueError("it is no JSON object")
    return rows


def read_block(block: pa.Buffer, wanted: pa.Schema | None) -> pa.Table:
    """The objects of a block, those of `wanted` in its types. Raises pa.ArrowInvalid."""
    found = pj.read_json(
        pa.BufferReader(block),
        # One block is one batch, and what is inferred holds for all of it.
        read_options=pj.ReadOptions(block_size=max(block.size + 1, _BLOCK_LEAST), use_threads=False),
        parse_options=pj.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="infer"),
    )
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        if found.schema.equals(wanted or pa.schema([])):
            raise
        # A list that begins with null loses values, unless its type is said before (pyarrow 26).
        return read_block(block, found.schema)
    return found


def _exact(block: pa.Buffer, read: Read, wanted: pa.Schema | None, known: pa.Schema | None) -> pa.Table:
    """What is read of a block, with all digits of whole numbers in columns that are not `known`.
    Raises ValueError where no type of theirs has them."""
    found = read(block, wanted)
    said_of = {field.name: field.type for field in known or ()}
    doubtful = [name for name in found.column_names if _has_large(_whole(found, name), said_of.get(name))]
    if not doubtful:
        return found
    short = read(_shortened(block), wanted)
    kinds = {}
    for name in doubtful:
        column, shortened = _whole(found, name), _whole(short, name)
        kind = _exact_type(column, shortened, said_of.get(name), name)
        if kind != column.type:
            kinds[name] = typed_part(kind)
    if not kinds:
        return found
    others = [field for field in wanted or () if field.name not in kinds]
    try:
        return read(block, pa.schema([*others, *kinds.items()])).select(found.column_names)
    except ValueError as error:
        names = " or ".join(kinds)
        raise ValueError(
            f"column {names}: it holds whole numbers that {WHOLE} does not: {error}; say its type in source.columns, such as decimal(38,0) or double"
        ) from error


def _whole(table: pa.Table, name: str) -> pa.Array:
    found = table.column(name).combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _shortened(block: pa.Buffer) -> pa.Buffer:
    """The block with long whole numbers cut to their first digit."""
    ends = pa.py_buffer(np.array([0, block.size], np.int64))
    text = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, block])
    return pc.replace_substring_regex(text, _LONG_WHOLE, r"\1\2")[0].as_buffer()


def _inside(known: pa.DataType | None, name: str) -> pa.DataType | None:
    place = known.get_field_index(name) if known is not None and pt.is_struct(known) else -1
    return known.field(place).type if known is not None and place >= 0 else None


def _item(known: pa.DataType | None) -> pa.DataType | None:
    return known.value_type if known is not None and pt.is_list(known) else None


def _has_large(values: pa.Array, known: pa.DataType | None) -> bool:
    """Whether doubles of a type that nobody has said are so large that they may have lost
    digits."""
    kind = values.type
    if pt.is_struct(kind):
        return any(_has_large(values.field(field.name), _inside(known, field.name)) for field in kind)
    if pt.is_list(kind):
        return _has_large(values.values, _item(known))
    return known is None and pt.is_float64(kind) and bool(pc.any(exceeds(values)).as_py())


def exceeds(values: pa.Array) -> pa.Array:
    """Which doubles are so large that they may have lost digits."""
    return pc.greater_equal(pc.abs(values), _EXACT)


def _exact_type(values: pa.Array, short: pa.Array, known: pa.DataType | None, name: str) -> pa.DataType:
    """The type that holds all digits; `short`: the same with long whole numbers cut. Raises
    ValueError where there is none."""
    kind = values.type
    if pt.is_struct(kind):
        fields = [
            field.with_type(
                _exact_type(
                    values.field(field.name),
                    short.field(field.name),
                    _inside(known, field.name),
                    f"{name}.{field.name}",
                )
            )
            for field in kind
        ]
        return pa.struct(fields)
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_exact_type(values.values, short.values, _item(known), name)))
    if known is not None or not pt.is_float64(kind) or not pc.any(pc.and_not(exceeds(values), exceeds(short))).as_py():
        return kind
    if not pt.is_integer(short.type):
        raise ValueError(f"column {name}: {MIXED}")
    return WHOLE


def typed_part(kind: pa.DataType) -> pa.DataType | None:
    """A type without the parts that have none yet; None where nothing is left."""
    if pt.is_struct(kind):
        found = [(field, typed_part(field.type)) for field in kind]
        kept = [field.with_type(part) for field, part in found if part is not None]
        return pa.struct(kept) if kept else None
    if pt.is_list(kind):
        item = typed_part(kind.value_type)
        return pa.list_(kind.value_field.with_type(item)) if item is not None else None
    return None if pt.is_null(kind) else kind


def _typed(found: pa.Table, known: pa.Schema | None, as_text: IsText) -> pa.Table:
    """The types that are known; what has no type is left out."""
    parts = {field.name: typed_part(field.type) for field in found.schema}
    table = found.select([name for name, part in parts.items() if part is not None])
    for place, field in enumerate(table.schema):
        if parts[field.name] != field.type:
            table = table.set_column(place, field.name, cast_array(_whole(table, field.name), parts[field.name]))
    for field in known if known is not None else ():
        if _parsed_type(field.type, as_text) != field.type:
            place = table.schema.get_field_index(field.name)
            table = table.set_column(place, field.name, from_text(_whole(table, field.name), field.type, as_text))
    return table


def from_text(values: pa.Array, kind: pa.DataType, as_text: IsText) -> pa.Array:
    """ISO 8601 as dates, times or moments, also where it lies deeper. Raises pa.ArrowInvalid,
    ValueError."""
    if pt.is_struct(kind):
        fields = []
        for field, child in zip(values.type, values.flatten(), strict=True):
            place = kind.get_field_index(field.name)
            fields.append(from_text(child, kind.field(place).type, as_text) if place >= 0 else child)
        names = [field.name for field in values.type]
        return pa.StructArray.from_arrays(fields, names=names, mask=values.is_null())
    if pt.is_list(kind):
        items = from_text(values.flatten(), kind.value_type, as_text)
        bounds = np.zeros(len(values) + 1, np.int32)
        np.cumsum(pc.fill_null(pc.list_value_length(values), 0).to_numpy(), out=bounds[1:])
        return pa.ListArray.from_arrays(pa.array(bounds), items, mask=values.is_null())
    if not as_text(kind):
        return values
    if pt.is_time(kind):
        # Arrow reads moments from text, and no times.
        moments = pc.binary_join_element_wise("1970-01-01T", values, "").cast(pa.timestamp(kind.unit))
        return moments.cast(kind)
    if pt.is_timestamp(kind):
        return _moments(values).cast(kind, safe=False)
    return values.cast(kind)


def _moments(texts: pa.Array) -> pa.Array:
    """RFC 3339, whose digits behind the microseconds are cut off; without a zone it is UTC. Raises
    pa.ArrowInvalid, ValueError."""
    others = texts.filter(pc.invert(pc.match_substring_regex(texts, _MOMENT)))
    if len(others):
        raise ValueError(f"{others[0].as_py()[:80]!r} is no date and time of RFC 3339")
    return moments(texts)


def moments(texts: pa.Array) -> pa.Array:
    """Moments, and days as their first one. Digits behind the microseconds are cut off; without a
    zone it is UTC. Raises pa.ArrowInvalid."""
    upper = pc.ascii_upper(pc.replace_substring_regex(texts, _FINER, r"\1"))
    zoned, none = pc.match_substring_regex(upper, _ZONED), pa.scalar(None, pa.string())
    naive = pc.if_else(zoned, none, upper).cast(pa.timestamp("us")).cast(_UTC)
    return pc.coalesce(pc.if_else(zoned, upper, none).cast(_UTC), naive)


def said(error: Exception) -> str:
    """An error of the parser, in terms of the message. Its number among those that were parsed
    together is left out: who tells the error names the message."""
    text = _NUMBERED.sub("", str(error))
    return " ".join(text.replace("(/v/", "(").replace("(/v)", "(the message)").split())
